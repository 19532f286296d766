"""Delivery: what a merchant gets, when again, in which order. A dead endpoint slows no other down."""

import asyncio
from collections import Counter

import msgspec
import pytest
import structlog
from tests.callbacks.conftest import START_MS, CallbackScene, InScene, verify_sign
from tests.callbacks.receiver import Behaviour, Received, answer, hang

from merchant_wallet.book.commands import Expire, ReadWithdrawal
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.host_concurrency import QUICK_LIMIT
from merchant_wallet.callbacks.outbox import Key
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.schedule import PAUSES_S
from merchant_wallet.merchants import store
from merchant_wallet.reporting.callbacks import find_callback, list_attempts

REFUSE = answer(500, b"no")


def test_a_paid_orders_notify_time_is_the_first_delivery(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        order = await scene.paid(shop)
        scene.clock.advance_s(3)
        assert await scene.deliver(scene.sender()) == 1
        (request,) = scene.receiver.received
        fields = request.fields
        assert (fields["appKey"], fields["orderId"], fields["mcOrderId"]) == (
            shop.merchant.app_key,
            order.order_id,
            order.mc_order_id,
        )
        assert (fields["txnStatus"], fields["txHash"], fields["amountArrival"]) == ("2", "0xfeed", "9.5")
        assert (fields["timestamp"], fields["finishTime"]) == (START_MS + 3000, START_MS)
        assert verify_sign(request, shop.app_secret)
        asked = await scene.ask(shop, ReadWithdrawal(order.order_id, order.mc_order_id))
        assert isinstance(asked, Withdrawal)
        assert asked.notified_ms == START_MS + 3000
        assert await scene.states() == {f"evt_{order.order_id}_2": "delivered"}
        report = await verify_book(scene.connection, scene.connection, shop.merchant.merchant_id)
        assert report.violation is None

    in_scene(scenario)


def test_every_status_with_a_callback_is_delivered(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        paid, failed = await scene.paid(shop), await scene.failed(shop)
        cancelled = await scene.cancelled(shop)
        late = await scene.order(shop)
        scene.clock.advance_s(3601)
        await scene.ask(shop, Expire(late.order_id))
        await scene.deliver(scene.sender())
        assert sorted(scene.receiver.events) == sorted(
            [
                f"evt_{paid.order_id}_2",
                f"evt_{failed.order_id}_3",
                f"evt_{failed.order_id}_6",
                cancelled,
                f"evt_{late.order_id}_5",
            ]
        )

    in_scene(scenario)


def test_a_callback_is_repeated_on_schedule_with_the_same_content_and_ends_as_a_dead_letter(
    in_scene: InScene,
) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        event = await scene.cancelled(shop)
        scene.receiver.behave = REFUSE
        sender = scene.sender()
        assert await scene.deliver(sender) == 1
        for pause_s in PAUSES_S:
            assert await scene.states() == {event: "due"}
            scene.clock.advance_s(pause_s - 1)
            assert await scene.deliver(sender) == 0
            scene.clock.advance_s(1)
            assert await scene.deliver(sender) == 1
        assert await scene.states() == {event: "dead_letter"}
        scene.clock.advance_s(1_000_000)
        assert await scene.deliver(sender) == 0
        own = ("timestamp", "nonceStr", "sign")
        stable = {
            msgspec.json.encode({name: value for name, value in request.fields.items() if name not in own})
            for request in scene.receiver.received
        }
        assert len(stable) == 1
        for name in own:
            assert len({request.fields[name] for request in scene.receiver.received}) == len(PAUSES_S) + 1
        assert all(verify_sign(request, shop.app_secret) for request in scene.receiver.received)
        assert await scene.rows("select notified_ms from withdrawal") == [(None,)]

    in_scene(scenario)


def test_every_attempt_is_kept_with_what_came_of_it(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        event = await scene.cancelled(await scene.open_merchant())
        sender = scene.sender(timeout_s=0.2)
        marked = answer(200, b"\xef\xbb\xbfsuccess")
        behaviours: list[Behaviour] = [REFUSE, answer(200, b"ok"), hang, answer(200, b"x" * 2000), marked]
        for behave in behaviours:
            scene.receiver.behave = behave
            await scene.deliver(sender)
            scene.clock.advance_s(PAUSES_S[-1])
        (merchant_id,) = (await scene.rows("select merchant_id from callback"))[0]
        shown = await find_callback(scene.connection, event, merchant_id)
        assert shown is not None
        attempts = list(reversed(await list_attempts(scene.connection, shown)))
        assert [(kept.attempt_no, kept.http_status, kept.error) for kept in attempts] == [
            (1, 500, "HTTP status 500"),
            (2, 200, "the body of the answer is not the word success"),
            (3, None, "no complete answer within 0.2 s"),
            (4, 200, "the body of the answer is not the word success"),
            (5, 200, "accepted, although the word success has U+FEFF byte order mark at character 1"),
        ]
        assert (attempts[3].remark, attempts[4].failure) == (None, None)
        assert await scene.states() == {event: "delivered"}
        assert [kept.answer for kept in attempts[:4]] == [b"no", b"ok", b"", b"x" * 512]
        assert {kept.address for kept in attempts} == {"127.0.0.1"}
        assert attempts[2].latency_ms is not None
        assert attempts[2].latency_ms >= 200
        assert [kept.at_ms for kept in attempts] == [START_MS + n * 1000 * PAUSES_S[-1] for n in range(5)]

    in_scene(scenario)


def test_one_orders_callbacks_go_in_order_even_when_the_first_fails(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        order = await scene.failed(await scene.open_merchant())
        scene.receiver.behave = REFUSE
        sender = scene.sender()
        assert await scene.deliver(sender) == 1
        scene.receiver.behave = answer()
        assert await scene.deliver(sender) == 0
        scene.clock.advance_s(PAUSES_S[0])
        assert await scene.deliver(sender) == 2
        failed, refunded = f"evt_{order.order_id}_3", f"evt_{order.order_id}_6"
        assert scene.receiver.events == [failed, failed, refunded]
        first, _, last = (request.fields for request in scene.receiver.received)
        assert (first["txnStatus"], first["finishTime"]) == ("3", START_MS)
        assert (last["txnStatus"], last["finishTime"]) == ("6", START_MS + 1000)

    in_scene(scenario)


def test_the_next_callback_of_an_order_is_sent_after_a_dead_letter(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        order = await scene.failed(await scene.open_merchant())
        await scene.rows("update callback set retry_no = %s where status = 3", len(PAUSES_S))
        scene.receiver.behave = REFUSE
        sender = scene.sender()
        assert await scene.deliver(sender) == 2
        assert await scene.states() == {
            f"evt_{order.order_id}_3": "dead_letter",
            f"evt_{order.order_id}_6": "due",
        }

    in_scene(scenario)


def test_the_newest_secret_signs(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        sender = scene.sender()
        await scene.cancelled(shop)
        await scene.deliver(sender)
        newest = await store.rotate_secret(
            scene.connection, scene.keyring, shop.merchant.merchant_id, at_ms=scene.clock()
        )
        await scene.cancelled(shop)
        await scene.deliver(sender)
        before, after = scene.receiver.received
        assert verify_sign(before, shop.app_secret)
        assert verify_sign(after, newest)

    in_scene(scenario)


def test_two_senders_send_each_callback_once(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        events = [await scene.cancelled(shop) for _ in range(40)]
        senders = [scene.sender(name=f"sender {number}") for number in range(3)]
        while any(await asyncio.gather(*(scene.turn(sender) for sender in senders))):
            pass
        assert Counter(scene.receiver.events) == Counter(events)
        claimers = await scene.rows("select count(*) from callback_attempt")
        assert claimers == [(40,)]

    in_scene(scenario)


def test_an_expired_claim_is_taken_again_with_the_same_event_id(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        event = await scene.cancelled(shop)
        (key,) = await scene.rows("select merchant_id, order_id, status from callback")
        now = scene.clock()
        await outbox.claim(
            scene.connection, [Key(*key)], claimed_by="dead", now_ms=now, until_ms=now + 30_000
        )
        sender = scene.sender()
        assert await scene.deliver(sender) == 0
        scene.clock.advance_s(30)
        assert await scene.deliver(sender) == 1
        assert scene.receiver.events == [event]
        kept = await scene.rows("select attempt_no, latency_ms is null from callback_attempt order by 1")
        assert kept == [(1, True), (2, False)]

    in_scene(scenario)


def test_a_late_failure_of_an_expired_claim_changes_nothing_but_a_late_success_counts(
    in_scene: InScene,
) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        await scene.cancelled(shop)
        (row,) = await scene.rows("select merchant_id, order_id, status from callback")
        key = Key(*row)
        claims = []
        for _ in range(2):
            now = scene.clock()
            claims += await outbox.claim(
                scene.connection, [key], claimed_by="m", now_ms=now, until_ms=now + 30_000
            )
            scene.clock.advance_s(30)
        first, second = claims
        assert not await outbox.record_failure(scene.connection, first, Answer(1, error="late"), None)
        assert await scene.rows("select state, retry_no from callback") == [("due", 0)]
        await outbox.record_success(scene.connection, first, Answer(1, "a", 200, b"success"), scene.clock())
        assert not await outbox.record_failure(
            scene.connection, second, Answer(1, error="lost"), scene.clock()
        )
        assert await scene.rows("select state from callback") == [("delivered",)]
        assert await scene.rows("select error from callback_attempt order by attempt_no") == [
            ("late",),
            ("lost",),
        ]

    in_scene(scenario)


def test_a_fault_of_ours_is_kept_as_a_failed_attempt_and_repeated_on_schedule(in_scene: InScene) -> None:
    class Broken:
        async def send(self, url: str, payload: Payload) -> Answer:
            raise RuntimeError("broken")

    async def scenario(scene: CallbackScene) -> None:
        event = await scene.cancelled(await scene.open_merchant())
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
            assert await scene.deliver(scene.sender(client=Broken())) == 1
        assert [line["event"] for line in logs] == ["callback could not be sent", "callback not accepted"]
        assert logs[0]["event_id"] == event
        assert await scene.rows("select state, retry_no, next_ms from callback") == [
            ("due", 1, START_MS + 15_000)
        ]
        assert await scene.rows("select error from callback_attempt") == [
            ("a fault of this service, its log says which",)
        ]

    in_scene(scenario)


def test_log_lines_name_no_url_and_no_secret(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        await scene.cancelled(shop, scene.receiver.url(path="/notify?token=hush"))
        scene.receiver.behave = REFUSE
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
            await scene.deliver(scene.sender())
        assert logs
        for word in ("hush", shop.app_secret, shop.callback_secret):
            assert word not in repr(logs)

    in_scene(scenario)


def test_ten_merchants_whose_endpoints_hang_slow_down_none_of_the_forty_others(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        events: dict[str, list[str]] = {}
        for number in range(50):
            host = f"{'dead' if number < 10 else 'live'}{number}.test"
            shop = await scene.open_merchant(f"Shop {number}")
            events[host] = [await scene.cancelled(shop, scene.receiver.url(host)) for _ in range(6)]
            if number < 10:
                scene.receiver.behaviours[host] = hang
        live = {event for host, told in events.items() if host.startswith("live") for event in told}
        stop = asyncio.Event()
        running = asyncio.create_task(scene.sender(timeout_s=20.0).run(stop, interval_s=0.02))
        # Requests to hanging endpoints time out after 20 seconds. The others must not wait for that.
        async with asyncio.timeout(18):
            while {event for event, state in (await scene.states()).items() if state == "delivered"} != live:
                await scene.receiver.next_request()
        stop.set()
        await running
        assert Counter(scene.receiver.events).keys() >= live
        assert all(scene.receiver.max_running[f"dead{number}.test"] <= 2 for number in range(10))

    in_scene(scenario)


def test_a_host_gets_no_more_at_once_than_its_share(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        for _ in range(40):
            await scene.cancelled(shop)

        async def slowly(request: Received, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.05)
            await answer()(request, writer)

        scene.receiver.behave = slowly
        await scene.deliver(scene.sender())
        assert len(scene.receiver.events) == 40
        assert scene.receiver.max_running["shop.test"] <= QUICK_LIMIT

    in_scene(scenario)


def test_a_sender_that_is_told_to_stop_finishes_what_is_under_way(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        event = await scene.cancelled(await scene.open_merchant())
        may_answer = asyncio.Event()

        async def wait(request: Received, writer: asyncio.StreamWriter) -> None:
            await may_answer.wait()
            await answer()(request, writer)

        scene.receiver.behave = wait
        stop = asyncio.Event()
        running = asyncio.create_task(scene.sender().run(stop, interval_s=0.01))
        await scene.receiver.next_request(timeout_s=30)
        stop.set()
        may_answer.set()
        await running
        assert await scene.states() == {event: "delivered"}

    in_scene(scenario)


def test_more_merchants_than_a_turn_looks_at_are_all_told(
    in_scene: InScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchant_wallet.callbacks.sender.PAGE", 2)

    async def scenario(scene: CallbackScene) -> None:
        events = [await scene.cancelled(await scene.open_merchant(f"Shop {number}")) for number in range(5)]
        sender = scene.sender()
        for _ in range(3):
            await scene.turn(sender)
        assert sorted(scene.receiver.events) == sorted(events)

    in_scene(scenario)
