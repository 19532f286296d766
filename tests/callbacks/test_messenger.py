"""Delivery: what a merchant gets, when again, in which order, and that a dead endpoint slows nobody else."""

import asyncio
from collections import Counter

import msgspec
import pytest
import structlog
from tests.callbacks.conftest import START_MS, InMall, Mall, verify_sign
from tests.callbacks.receiver import Behaviour, Received, answer, hang

from merchant_wallet.book.commands import Expire, ReadWithdrawal
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.content import Letter
from merchant_wallet.callbacks.outbox import Key
from merchant_wallet.callbacks.schedule import PAUSES_S
from merchant_wallet.callbacks.sender import Answer
from merchant_wallet.callbacks.turns import QUICK_LIMIT
from merchant_wallet.merchants import store

REFUSE = answer(500, b"no")


def test_a_paid_order_is_told_and_its_notify_time_is_the_first_delivery(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        order = await mall.paid(shop)
        mall.clock.advance_s(3)
        assert await mall.deliver(mall.messenger()) == 1
        (request,) = mall.receiver.received
        fields = request.fields
        assert (fields["appKey"], fields["orderId"], fields["mcOrderId"]) == (
            shop.merchant.app_key,
            order.order_id,
            order.mc_order_id,
        )
        assert (fields["txnStatus"], fields["txHash"], fields["amountArrival"]) == ("2", "0xfeed", "9.5")
        assert (fields["timestamp"], fields["finishTime"]) == (START_MS + 3000, START_MS)
        assert verify_sign(request, shop.app_secret)
        asked = await mall.ask(shop, ReadWithdrawal(order.order_id, order.mc_order_id))
        assert isinstance(asked, Withdrawal)
        assert asked.notified_ms == START_MS + 3000
        assert await mall.states() == {f"evt_{order.order_id}_2": "delivered"}
        report = await verify_book(mall.connection, shop.merchant.merchant_id)
        assert report.violation is None

    in_mall(scenario)


def test_every_status_that_merchants_are_told_of_arrives(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        paid, failed = await mall.paid(shop), await mall.failed(shop)
        cancelled = await mall.cancelled(shop)
        late = await mall.order(shop)
        mall.clock.advance_s(3601)
        await mall.ask(shop, Expire(late.order_id))
        await mall.deliver(mall.messenger())
        assert sorted(mall.receiver.events) == sorted(
            [
                f"evt_{paid.order_id}_2",
                f"evt_{failed.order_id}_3",
                f"evt_{failed.order_id}_6",
                cancelled,
                f"evt_{late.order_id}_5",
            ]
        )

    in_mall(scenario)


def test_a_callback_is_repeated_on_schedule_with_the_same_content_and_parked_at_last(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        event = await mall.cancelled(shop)
        mall.receiver.behave = REFUSE
        messenger = mall.messenger()
        assert await mall.deliver(messenger) == 1
        for pause_s in PAUSES_S:
            assert await mall.states() == {event: "due"}
            mall.clock.advance_s(pause_s - 1)
            assert await mall.deliver(messenger) == 0
            mall.clock.advance_s(1)
            assert await mall.deliver(messenger) == 1
        assert await mall.states() == {event: "parked"}
        mall.clock.advance_s(1_000_000)
        assert await mall.deliver(messenger) == 0
        own = ("timestamp", "nonceStr", "sign")
        stable = {
            msgspec.json.encode({name: value for name, value in request.fields.items() if name not in own})
            for request in mall.receiver.received
        }
        assert len(stable) == 1
        for name in own:
            assert len({request.fields[name] for request in mall.receiver.received}) == len(PAUSES_S) + 1
        assert all(verify_sign(request, shop.app_secret) for request in mall.receiver.received)
        assert await mall.rows("select notified_ms from withdrawal") == [(None,)]

    in_mall(scenario)


def test_every_attempt_is_kept_with_what_came_of_it(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        event = await mall.cancelled(await mall.open_merchant())
        messenger = mall.messenger(timeout_s=0.2)
        behaviours: list[Behaviour] = [REFUSE, answer(200, b"ok"), hang, answer(200, b"x" * 2000), answer()]
        for behave in behaviours:
            mall.receiver.behave = behave
            await mall.deliver(messenger)
            mall.clock.advance_s(PAUSES_S[-1])
        (merchant_id,) = (await mall.rows("select merchant_id from callback"))[0]
        shown = await outbox.find_event(mall.connection, merchant_id, event)
        assert shown is not None
        attempts = await outbox.read_attempts(mall.connection, shown)
        assert [(kept.attempt_no, kept.http_status, kept.error) for kept in attempts] == [
            (1, 500, "HTTP status 500"),
            (2, 200, "the body of the answer is not the word success"),
            (3, None, "no whole answer within 0.2 s"),
            (4, 200, "the body of the answer is not the word success"),
            (5, 200, None),
        ]
        assert [kept.answer for kept in attempts] == [b"no", b"ok", b"", b"x" * 512, b"success"]
        assert {kept.address for kept in attempts} == {"127.0.0.1"}
        assert attempts[2].latency_ms is not None
        assert attempts[2].latency_ms >= 200
        assert [kept.at_ms for kept in attempts] == [START_MS + n * 1000 * PAUSES_S[-1] for n in range(5)]

    in_mall(scenario)


def test_one_orders_callbacks_go_in_order_even_when_the_first_fails(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        order = await mall.failed(await mall.open_merchant())
        mall.receiver.behave = REFUSE
        messenger = mall.messenger()
        assert await mall.deliver(messenger) == 1
        mall.receiver.behave = answer()
        assert await mall.deliver(messenger) == 0
        mall.clock.advance_s(PAUSES_S[0])
        assert await mall.deliver(messenger) == 2
        failed, refunded = f"evt_{order.order_id}_3", f"evt_{order.order_id}_6"
        assert mall.receiver.events == [failed, failed, refunded]
        first, _, last = (request.fields for request in mall.receiver.received)
        assert (first["txnStatus"], first["finishTime"]) == ("3", START_MS)
        assert (last["txnStatus"], last["finishTime"]) == ("6", START_MS + 1000)

    in_mall(scenario)


def test_the_next_callback_of_an_order_goes_when_the_one_before_is_parked(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        order = await mall.failed(await mall.open_merchant())
        await mall.rows("update callback set retry_no = %s where status = 3", len(PAUSES_S))
        mall.receiver.behave = REFUSE
        messenger = mall.messenger()
        assert await mall.deliver(messenger) == 2
        assert await mall.states() == {f"evt_{order.order_id}_3": "parked", f"evt_{order.order_id}_6": "due"}

    in_mall(scenario)


def test_the_newest_secret_signs(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        messenger = mall.messenger()
        await mall.cancelled(shop)
        await mall.deliver(messenger)
        newest = await store.rotate_secret(
            mall.connection, mall.keyring, shop.merchant.merchant_id, at_ms=mall.clock()
        )
        await mall.cancelled(shop)
        await mall.deliver(messenger)
        before, after = mall.receiver.received
        assert verify_sign(before, shop.app_secret)
        assert verify_sign(after, newest)

    in_mall(scenario)


def test_two_messengers_send_each_callback_once(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        events = [await mall.cancelled(shop) for _ in range(40)]
        messengers = [mall.messenger(name=f"messenger {number}") for number in range(3)]
        while any(await asyncio.gather(*(mall.turn(messenger) for messenger in messengers))):
            pass
        assert Counter(mall.receiver.events) == Counter(events)
        claimers = await mall.rows("select count(*) from callback_attempt")
        assert claimers == [(40,)]

    in_mall(scenario)


def test_a_claim_that_lapsed_is_taken_again_under_the_same_event(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        event = await mall.cancelled(shop)
        (key,) = await mall.rows("select merchant_id, order_id, status from callback")
        now = mall.clock()
        await outbox.claim(mall.connection, [Key(*key)], claimed_by="dead", now_ms=now, until_ms=now + 30_000)
        messenger = mall.messenger()
        assert await mall.deliver(messenger) == 0
        mall.clock.advance_s(30)
        assert await mall.deliver(messenger) == 1
        assert mall.receiver.events == [event]
        kept = await mall.rows("select attempt_no, latency_ms is null from callback_attempt order by 1")
        assert kept == [(1, True), (2, False)]

    in_mall(scenario)


def test_a_late_failure_of_a_lapsed_claim_changes_nothing_but_a_late_success_counts(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        await mall.cancelled(shop)
        (row,) = await mall.rows("select merchant_id, order_id, status from callback")
        key = Key(*row)
        claims = []
        for _ in range(2):
            now = mall.clock()
            claims += await outbox.claim(
                mall.connection, [key], claimed_by="m", now_ms=now, until_ms=now + 30_000
            )
            mall.clock.advance_s(30)
        first, second = claims
        assert not await outbox.note_failed(mall.connection, first, Answer(1, error="late"), None)
        assert await mall.rows("select state, retry_no from callback") == [("due", 0)]
        await outbox.note_delivered(mall.connection, first, Answer(1, "a", 200, b"success"), mall.clock())
        assert not await outbox.note_failed(mall.connection, second, Answer(1, error="lost"), mall.clock())
        assert await mall.rows("select state from callback") == [("delivered",)]
        assert await mall.rows("select error from callback_attempt order by attempt_no") == [
            ("late",),
            ("lost",),
        ]

    in_mall(scenario)


def test_a_fault_of_ours_is_kept_as_a_failed_attempt_and_repeated_on_schedule(in_mall: InMall) -> None:
    class Broken:
        async def send(self, url: str, letter: Letter) -> Answer:
            raise RuntimeError("broken")

    async def scenario(mall: Mall) -> None:
        event = await mall.cancelled(await mall.open_merchant())
        with structlog.testing.capture_logs() as logs:
            assert await mall.deliver(mall.messenger(post=Broken())) == 1
        assert [line["event"] for line in logs] == ["callback could not be sent", "callback not taken"]
        assert logs[0]["event_id"] == event
        assert await mall.rows("select state, retry_no, next_ms from callback") == [
            ("due", 1, START_MS + 15_000)
        ]
        assert await mall.rows("select error from callback_attempt") == [
            ("a fault of this service, its log says which",)
        ]

    in_mall(scenario)


def test_log_lines_name_no_url_and_no_secret(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        await mall.cancelled(shop, mall.receiver.url(path="/notify?token=hush"))
        mall.receiver.behave = REFUSE
        with structlog.testing.capture_logs() as logs:
            await mall.deliver(mall.messenger())
        assert logs
        for word in ("hush", shop.app_secret, shop.callback_secret):
            assert word not in repr(logs)

    in_mall(scenario)


def test_ten_merchants_whose_endpoints_hang_slow_down_none_of_the_forty_others(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        events: dict[str, list[str]] = {}
        for number in range(50):
            host = f"{'dead' if number < 10 else 'live'}{number}.test"
            shop = await mall.open_merchant(f"Shop {number}")
            events[host] = [await mall.cancelled(shop, mall.receiver.url(host)) for _ in range(6)]
            if number < 10:
                mall.receiver.behaviours[host] = hang
        live = {event for host, told in events.items() if host.startswith("live") for event in told}
        stop = asyncio.Event()
        running = asyncio.create_task(mall.messenger(timeout_s=20.0).run(stop, interval_s=0.02))
        # Those that hang are given up after 20 seconds, so nothing of what follows waits for them.
        async with asyncio.timeout(18):
            while {event for event, state in (await mall.states()).items() if state == "delivered"} != live:
                await mall.receiver.next_request()
        stop.set()
        await running
        assert Counter(mall.receiver.events).keys() >= live
        assert all(mall.receiver.most_at_once[f"dead{number}.test"] <= 2 for number in range(10))

    in_mall(scenario)


def test_a_host_gets_no_more_at_once_than_its_share(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        for _ in range(40):
            await mall.cancelled(shop)

        async def slowly(request: Received, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.05)
            await answer()(request, writer)

        mall.receiver.behave = slowly
        await mall.deliver(mall.messenger())
        assert len(mall.receiver.events) == 40
        assert mall.receiver.most_at_once["shop.test"] <= QUICK_LIMIT

    in_mall(scenario)


def test_a_messenger_that_is_told_to_stop_finishes_what_is_under_way(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        event = await mall.cancelled(await mall.open_merchant())
        may_answer = asyncio.Event()

        async def wait(request: Received, writer: asyncio.StreamWriter) -> None:
            await may_answer.wait()
            await answer()(request, writer)

        mall.receiver.behave = wait
        stop = asyncio.Event()
        running = asyncio.create_task(mall.messenger().run(stop, interval_s=0.01))
        await mall.receiver.next_request(patience_s=30)
        stop.set()
        may_answer.set()
        await running
        assert await mall.states() == {event: "delivered"}

    in_mall(scenario)


def test_more_merchants_than_a_turn_looks_at_are_all_told(
    in_mall: InMall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchant_wallet.callbacks.messenger.PAGE", 2)

    async def scenario(mall: Mall) -> None:
        events = [await mall.cancelled(await mall.open_merchant(f"Shop {number}")) for number in range(5)]
        messenger = mall.messenger()
        for _ in range(3):
            await mall.turn(messenger)
        assert sorted(mall.receiver.events) == sorted(events)

    in_mall(scenario)
