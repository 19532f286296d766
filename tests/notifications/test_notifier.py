"""The worker tells people what waits for them: once, not at night, and the next one if nobody acts."""

from pathlib import Path
from typing import Any

from tests.callbacks.receiver import answer
from tests.notifications.conftest import Run
from tests.notifications.mail_server import open_server
from tests.notifications.scene import SITE, NotifierScene

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.notifications import contacts, outbox
from merchant_wallet.notifications.contacts import EMAIL, WEBHOOK
from merchant_wallet.notifications.outbox import DROPPED, FAILED, SENT, WAITING
from merchant_wallet.notifications.worker import PAUSES_S

MINUTE_S = 60
HOUR_S = 3600
# The scene begins at 08:00 UTC, which is 16:00 in Shanghai.
NIGHT: Any = {"time_zone": "Asia/Shanghai", "quiet_from_min": 22 * 60, "quiet_to_min": 7 * 60}


def test_what_waits_is_told_once_by_a_signed_webhook_with_a_link(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop")
        notifier = scene.notifier()
        assert await scene.turn(notifier) == 0
        await scene.stop()
        assert await scene.turn(notifier) == 1
        (told,) = scene.told("ann")
        (item,) = told["data"]["items"]
        assert (told["type"], item["kind"], item["isEscalated"]) == ("inbox.items", "stop", False)
        assert item["text"] == "Payouts on TRC20 are stopped by zoe, on the command line"
        (sent,) = await scene.sent_to(ann)
        assert (sent.state, sent.attempt_no, sent.is_doubtful) == (SENT, 1, False)
        assert item["url"] == f"{SITE.url}/console/inbox/messages/{sent.notification_no}/0"
        scene.callbacks.clock.advance_s(24 * HOUR_S)
        assert await scene.turn(notifier) == 0, "it still waits, and ann knows"

    tells(scenario)


def test_a_mail_names_kinds_times_and_links_and_nothing_that_a_mail_server_should_not_keep(
    tells: Run, tmp_path: Path
) -> None:
    async def scenario(scene: NotifierScene) -> None:
        shop = await scene.callbacks.open_merchant("Rich House")
        order = await scene.callbacks.order(shop)
        [(recipient,)] = await scene.callbacks.rows("select address from withdrawal")
        # The ends are the same. Allow-lists hold texts, and this one needs no checksum.
        alike = recipient[:5] + "1" * (len(recipient) - 9) + recipient[-4:]
        await scene.callbacks.rows("update merchant set allowed_addresses = array[%s]", alike)
        with open_server(tmp_path) as (mailbox, scene.mail):
            ann = await scene.operator("ann", "approval", "stop", by=(EMAIL,), **NIGHT)
            await scene.stop()
            await scene.turn(scene.notifier())
        (mail,), (text,) = mailbox.mails, mailbox.texts
        (sent,) = await scene.sent_to(ann)
        assert mail["To"] == "ann@example.com"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["Message-ID"].startswith(f"<ntf_{sent.notification_no}.")
        assert mail["Subject"] == "2 things wait for you: Stops in force, Withdrawals to approve"
        warning = "An address looks like a known one: compare it whole"
        assert f"Withdrawals to approve · since 2025-11-21 16:00 CST · {warning}" in text
        assert f"{SITE.url}/console/inbox/messages/{sent.notification_no}/1" in text
        for secret in (
            "10.5",
            "Rich House",
            str(order.order_id),
            order.mc_order_id,
            "TRC20",
            "zoe",
            recipient[:5],
        ):
            assert secret not in text + mail["Subject"], (secret, text)

    tells(scenario)


def test_of_five_hundred_things_all_are_counted_and_the_next_person_is_told_of_all(
    tells: Run, tmp_path: Path
) -> None:
    async def scenario(scene: NotifierScene) -> None:
        rows, clock = scene.callbacks.rows, scene.callbacks.clock
        await rows(
            "insert into failed_sign_in (merchant_id, subject, minute_ms, factor, source, failures, last_ms)"
            " select 0, 'guess ' || n, %s, 'password', '192.0.2.1', 20, %s from generate_series(1, 500) n",
            *[clock() // 60_000 * MINUTE_MS] * 2,
        )
        with open_server(tmp_path) as (mailbox, scene.mail):
            ann = await scene.operator("ann", "sign-in", role="owner", by=(EMAIL,))
            zoe = await scene.operator("zoe", "sign-in", role="owner", by=(EMAIL,))
            await scene.escalate({"sign-in": HOUR_S}, ann, zoe)
            notifier = scene.notifier()
            assert await scene.turn(notifier) == 1
            clock.advance_s(HOUR_S)
            assert await scene.turn(notifier) == 1
        assert [mail["To"] for mail in mailbox.mails] == ["ann@example.com", "zoe@example.com"]
        for mail, text in zip(mailbox.mails, mailbox.texts, strict=True):
            assert mail["Subject"] == "500 things wait for you: Failed sign-ins"
            assert "And 480 more." in text
        told = await rows("select operator_id, count(*) from notification_told group by 1 order by 1")
        assert told == [(ann.operator_id, 500), (zoe.operator_id, 500)]

    tells(scenario)


def test_people_read_in_their_own_language(tells: Run, tmp_path: Path) -> None:
    async def scenario(scene: NotifierScene) -> None:
        with open_server(tmp_path) as (mailbox, scene.mail):
            ann = await scene.operator("ann", "stop", by=(EMAIL, WEBHOOK))
            await scene.callbacks.rows(
                "update operator set language = 'zh-CN' where operator_id = %s", ann.operator_id
            )
            await scene.stop()
            await scene.turn(scene.notifier())
        assert mailbox.mails[0]["Subject"] == "有一项待办等您处理：生效中的停付"
        assert scene.texts("ann") == [["zoe（命令行） 已停止 TRC20 上的付款"]]

    tells(scenario)


def test_only_those_who_may_act_are_told(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        await scene.operator("ann", "proposal")
        await scene.operator("ben", "proposal")
        await scene.operator("kim", "proposal", role="auditor")
        conn, now_ms = scene.callbacks.connection, scene.callbacks.clock()
        await changes.propose(
            conn,
            "wallet.thaw",
            "wallet TRC20",
            {"stoppedBy": "zoe"},
            {"stoppedBy": None},
            "the node is right again",
            person=Person("operator:ann", "192.0.2.1"),
            at_ms=now_ms,
            lasts_ms=10**9,
        )
        await scene.turn(scene.notifier())
        assert scene.told("ann") == [], "nobody accepts an own proposal"
        assert scene.told("kim") == [], "an auditor changes nothing"
        assert scene.texts("ben") == [["ann proposes to resume payouts on TRC20"]]

    tells(scenario)


def test_a_merchants_person_is_told_of_its_own_book_alone(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        shop = await scene.callbacks.open_merchant("Mine")
        strange = await scene.callbacks.open_merchant("Other")
        await scene.operator(
            "mia", "callback", "approval", "stop", role="merchant", merchant_id=shop.merchant.merchant_id
        )
        await scene.stop()
        for one in (shop, strange):
            await scene.callbacks.order(one)
            await scene.callbacks.cancelled(one)
        await scene.callbacks.rows("update callback set state = 'dead_letter'")
        await scene.turn(scene.notifier())
        assert scene.texts("mia") == [["1 callback is parked"]]

    tells(scenario)


def test_quiet_hours_are_kept_in_the_persons_own_time_zone(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        await scene.operator("ann", "stop", **NIGHT)
        await scene.operator("ben", "stop", wakes=True, **NIGHT)
        notifier, clock = scene.notifier(), scene.callbacks.clock
        clock.advance_s(6 * HOUR_S)
        await scene.stop()
        await scene.turn(notifier)
        assert (len(scene.told("ann")), len(scene.told("ben"))) == (0, 1), "22:00 in Shanghai"
        clock.advance_s(9 * HOUR_S - MINUTE_S)
        await scene.turn(notifier)
        assert scene.told("ann") == [], "06:59"
        clock.advance_s(MINUTE_S)
        await scene.turn(notifier)
        assert len(scene.told("ann")) == 1, "07:00, and it still waits"

    tells(scenario)


def test_what_was_done_in_the_night_is_not_told_in_the_morning(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        await scene.operator("ann", "stop", **NIGHT)
        notifier, clock = scene.notifier(), scene.callbacks.clock
        clock.advance_s(6 * HOUR_S)
        await scene.stop()
        await scene.turn(notifier)
        await scene.resume()
        clock.advance_s(12 * HOUR_S)
        assert await scene.turn(notifier) == 0

    tells(scenario)


def test_the_next_person_is_told_when_nobody_has_acted_in_the_set_time(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop")
        ben = await scene.operator("ben", "stop", **NIGHT)
        cat = await scene.operator("cat", "stop")
        await scene.operator("dan", "stop")
        await scene.escalate({"stop": 30 * MINUTE_S}, ann, ben, cat)
        notifier, clock = scene.notifier(), scene.callbacks.clock
        await scene.stop()

        async def pass_(seconds: int) -> list[int]:
            clock.advance_s(seconds)
            await scene.turn(notifier)
            return [len(scene.told(name)) for name in ("ann", "ben", "cat", "dan")]

        assert await pass_(0) == [1, 0, 0, 1], "dan is not in the order: told at once"
        assert await pass_(30 * MINUTE_S - 1) == [1, 0, 0, 1]
        assert await pass_(1) == [1, 1, 0, 1]
        assert scene.told("ben")[0]["data"]["items"][0]["isEscalated"] is True
        await scene.resume()
        assert await pass_(HOUR_S) == [1, 1, 0, 1], "somebody has acted"
        # It is 22:30 in Shanghai, so ben sleeps. The order goes on without him.
        assert await pass_(5 * HOUR_S) == [1, 1, 0, 1]
        await scene.stop("ERC20")
        assert await pass_(0) == [2, 1, 0, 2]
        assert await pass_(30 * MINUTE_S) == [2, 1, 1, 2]

    tells(scenario)


def test_a_flood_becomes_a_digest(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        shop = await scene.callbacks.open_merchant()
        await scene.operator("ann", "approval")
        notifier, clock = scene.notifier(), scene.callbacks.clock
        await scene.callbacks.order(shop)
        await scene.turn(notifier)
        for _ in range(30):
            await scene.callbacks.order(shop)
            clock.advance_s(10)
            await scene.turn(notifier)
        assert [len(texts) for texts in scene.texts("ann")] == [1], "the next message waits for its time"
        clock.advance_s(5 * MINUTE_S)
        await scene.turn(notifier)
        assert [len(texts) for texts in scene.texts("ann")] == [1, 30]

    tells(scenario)


def test_an_endpoint_that_fails_is_tried_again_with_longer_pauses_and_then_shown(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop")
        await scene.operator("olga", "unreached", role="owner")
        scene.callbacks.receiver.behaviours["ann.test"] = answer(503, b"busy")
        notifier, clock = scene.notifier(), scene.callbacks.clock
        await scene.stop()
        assert await scene.turn(notifier) == 1
        for number, pause_s in enumerate(PAUSES_S, 2):
            (sent,) = await scene.sent_to(ann)
            assert (sent.state, sent.answer) == (WAITING, "HTTP status 503")
            clock.advance_s(pause_s - 1)
            assert await scene.turn(notifier) == 0
            clock.advance_s(1)
            assert await scene.turn(notifier) == 1, f"attempt {number}"
        (sent,) = await scene.sent_to(ann)
        assert (sent.state, sent.attempt_no) == (FAILED, len(PAUSES_S) + 1)
        assert len({one.headers["webhook-id"] for one in scene.callbacks.receiver.received}) == 1
        await scene.turn(notifier)
        assert scene.texts("olga") == [["Messages to ann can't be delivered by webhook"]]

    tells(scenario)


def test_a_message_about_what_is_done_already_is_dropped(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop")
        scene.callbacks.receiver.behave = answer(503)
        notifier = scene.notifier()
        await scene.stop()
        await scene.turn(notifier)
        scene.callbacks.receiver.behave = answer()
        await scene.resume()
        scene.callbacks.clock.advance_s(PAUSES_S[0])
        await scene.turn(notifier)
        (sent,) = await scene.sent_to(ann)
        assert sent.state == DROPPED
        assert len(scene.told("ann")) == 1

    tells(scenario)


def test_what_comes_back_within_minutes_is_not_told_again_and_later_it_is(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        await scene.operator("ann", "obstacle")
        notifier, clock = scene.notifier(), scene.callbacks.clock
        shop = await scene.callbacks.open_merchant()
        order = await scene.callbacks.taken_up(shop)

        async def lacks_gas(*, lacks: bool) -> int:
            await scene.callbacks.rows("delete from payout where order_id = %s", order.order_id)
            if lacks:
                await scene.callbacks.rows(
                    "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
                    " obstacle_kind, obstacle_cause, obstacle_ms)"
                    " values (%s, %s, 'TRC20', 1, 'w', 0, 'fuel', 'no TRX', 5)",
                    shop.merchant.merchant_id,
                    order.order_id,
                )
            await scene.turn(notifier)
            return len(scene.told("ann"))

        assert await lacks_gas(lacks=True) == 1
        clock.advance_s(2 * MINUTE_S)
        assert await lacks_gas(lacks=False) == 1
        clock.advance_s(2 * MINUTE_S)
        assert await lacks_gas(lacks=True) == 1
        clock.advance_s(HOUR_S)
        assert await lacks_gas(lacks=False) == 1
        clock.advance_s(HOUR_S)
        assert await lacks_gas(lacks=False) == 1
        assert await lacks_gas(lacks=True) == 2

    tells(scenario)


def test_an_address_gets_nothing_but_its_code_until_it_is_confirmed(tells: Run, tmp_path: Path) -> None:
    async def scenario(scene: NotifierScene) -> None:
        conn, clock, keyring = scene.callbacks.connection, scene.callbacks.clock, scene.callbacks.keyring
        with open_server(tmp_path) as (mailbox, scene.mail):
            ann = await scene.operator("ann", "stop", by=(EMAIL,), email_confirmed_ms=None)
            notifier = scene.notifier()
            await scene.stop()
            assert await scene.turn(notifier) == 0
            async with conn.transaction():
                await outbox.store_test(conn, ann.operator_id, EMAIL, "ann@example.com", clock())
            assert await scene.turn(notifier) == 1
            code = contacts.make_code(keyring, ann.operator_id, "ann@example.com", clock())
            assert f"Enter this code to confirm your address: {code}" in mailbox.texts[0]
            await contacts.confirm_email(conn, keyring, ann.operator_id, code, clock())
            assert await scene.turn(notifier) == 1
            assert "Stops in force" in mailbox.texts[1]

    tells(scenario)


def test_without_a_mail_server_mails_wait_and_webhooks_go(tells: Run) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop", by=(EMAIL, WEBHOOK))
        await scene.stop()
        assert await scene.turn(scene.notifier()) == 1
        assert {one.channel: one.state for one in await scene.sent_to(ann)} == {EMAIL: WAITING, WEBHOOK: SENT}

    tells(scenario)
