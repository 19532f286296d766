"""Orders before their payout: what passes, what is held, what is refused, and what people decide."""

import asyncio
import json
from typing import Any

import pytest
from tests.callbacks.receiver import Behaviour, Received, Writer, hang, raw
from tests.crash_points import run_killed
from tests.fork_server import fork_program
from tests.ports import find_port
from tests.screening.conftest import InScreened, Screened, ann, open_screened
from tests.screening.killable_screener import STEPS, at, pay
from tests.screening.provider import OTHER_SECRET, be_slow, echo, is_signed, say
from tests.withdrawals.conftest import ERC20_ADDRESS, MERCHANT_ID, TRC20_ADDRESS, InShop, Shop

from merchant_wallet.base.addresses import format_address, parse_evm
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.chains.protocol import Blocked
from merchant_wallet.processes.screening import make_order_screen
from merchant_wallet.screening import asking, decisions, store
from merchant_wallet.screening.hook import REST_S, Answer
from merchant_wallet.screening.screener import PASS_LASTS_MS, Screener
from merchant_wallet.screening.screening_states import State
from merchant_wallet.screening.verdicts import Verdict

PAID, REFUNDED, PROCESSING = 2, 6, 1


async def rest(scene: Screened, ms: int = 60_000) -> None:
    """Let time pass until an order that waits is due again."""
    scene.shop.clock.advance(ms)
    scene.seconds += ms / 1000


async def count_signed(scene: Screened) -> int:
    rows = await scene.shop.rows("select count(*) from payout_signed")
    return int(rows[0][0])


def test_an_order_that_the_provider_lets_pass_is_paid_and_was_asked_about_once(in_shop: InShop) -> None:
    async def scenario(shop: Shop) -> None:
        async with open_screened(shop) as scene:
            payer = scene.payer(hook=scene.hook())
            order = await shop.order()
            assert await shop.pay(payer, order) == PAID
            (question,) = scene.provider.received
            assert is_signed(question)
            assert question.fields == {
                "screeningId": question.headers["webhook-id"],
                "type": "payout",
                "merchantId": MERCHANT_ID,
                "orderId": order.order_id,
                "mcOrderId": order.mc_order_id,
                "chainType": "ERC20",
                "address": format_address("ERC20", parse_evm(ERC20_ADDRESS)),
                "currency": "USDT",
                "amount": "10",
                "amountArrival": "9",
                "createTime": order.created_ms,
            }
            found = await scene.screening(order.order_id)
            assert (found.state, found.reasons[0].source) == (State.PASSED, "hook")
            (stored,) = await store.list_questions(shop.connection, found.screening_no)
            assert json.loads(stored.body) == question.fields
            assert (stored.verdict, stored.attempts) == ("pass", 1)

    in_shop(scenario)


def test_a_held_order_waits_and_is_paid_when_a_person_releases_it(in_each_layout: InShop) -> None:
    async def scenario(shop: Shop) -> None:
        async with open_screened(shop) as scene:
            scene.provider.behave = say("hold", "mixer, 2 hops")
            payer = scene.payer(hook=scene.hook())
            order = await shop.order()
            assert await shop.pay(payer, order) == PROCESSING
            kind, cause = await scene.obstacle(order.order_id)
            assert (kind, "mixer, 2 hops" in cause) == ("screening", True)
            assert (await count_signed(scene), len(scene.provider.received)) == (0, 1)
            found = await scene.screening(order.order_id)
            async with shop.connection.transaction():
                await decisions.release(shop.connection, ann(shop.clock()), found)
            assert await scene.follow() == 1
            assert await scene.follow() == 0
            # The follower has woken the order: no time passes.
            assert await shop.turn(payer) == 1
            assert await count_signed(scene) == 1
            assert await shop.pay(payer, order) == PAID
            assert len(scene.provider.received) == 1

    in_each_layout(scenario)


@pytest.mark.parametrize("is_refused", [False, True], ids=["released", "refused"])
def test_what_a_person_decides_while_an_attempt_ends_is_carried_out_at_once(
    in_each_layout: InShop, is_refused: bool
) -> None:
    async def scenario(shop: Shop) -> None:
        async with open_screened(shop) as scene:
            scene.provider.behave = say("hold")
            inner = make_order_screen(Screener(hook=scene.hook(), clock=shop.clock))

            async def screen(home: Any, cell: Any, merchant_id: int, withdrawal: Withdrawal) -> None:
                try:
                    await inner(home, cell, merchant_id, withdrawal)
                except Blocked:
                    # The attempt knows that the order is held, and has not let it rest yet.
                    found = await scene.screening(withdrawal.order_id)
                    decide = decisions.refuse if is_refused else decisions.release
                    await decide(shop.connection, ann(shop.clock()), found)
                    assert await scene.follow() == 1
                    raise

            payer = shop.payer(screen_order=screen)
            order = await shop.order()
            assert await shop.turn(payer) == 1
            assert await shop.turn(payer) == 1, "no time has passed"
            assert await shop.pay(payer, order) == (REFUNDED if is_refused else PAID)

    in_each_layout(scenario)


@pytest.mark.parametrize("by", ["provider", "list", "person"])
def test_a_refused_order_fails_and_the_merchant_has_its_money_back(screened: InScreened, by: str) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        before = await shop.balances()
        verdict = {"provider": "refuse", "list": "pass", "person": "hold"}[by]
        scene.provider.behave = say(verdict, "sanctioned")
        scene.write_list(f"{ERC20_ADDRESS} refuse OFAC" if by == "list" else "")
        payer = scene.payer(scene.list_file(), scene.hook())
        order = await shop.order()
        if by == "person":
            assert await shop.pay(payer, order) == PROCESSING
            await decisions.refuse(shop.connection, ann(shop.clock()), await scene.screening(order.order_id))
            await scene.follow()
        assert await shop.pay(payer, order) == REFUNDED
        assert await shop.balances() == before
        # What the list refuses is asked nowhere.
        assert len(scene.provider.received) == (0 if by == "list" else 1)
        assert (await scene.screening(order.order_id)).state is State.REFUSED
        causes = await shop.rows("select cause from withdrawal_step where to_status = 3")
        assert causes == [("this address can't be paid",)]

    screened(scenario)


LIES: dict[str, Behaviour] = {
    "another secret": say("pass", secret=OTHER_SECRET),
    "another question's answer": say("pass", event_id="scr_0123"),
    "an old answer": say("pass", late_s=-3600),
    "the question sent back": echo,
    "no signature": raw(b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"verdict":"pass"}'),
    "no verdict that exists": say("fine"),
    "no JSON": say(body=b"pass"),
    "a long answer": say(body=b'{"verdict":"pass"}' + b" " * 5000),
    "a redirect": raw(b"HTTP/1.1 302 Found\r\nLocation: /pass\r\nContent-Length: 0\r\n\r\n"),
    "not found": say("pass", status=404),
}


@pytest.mark.parametrize("fails_open", [False, True], ids=["fail closed", "fail open"])
def test_an_answer_that_is_not_authentic_or_makes_no_sense_never_passes(
    screened: InScreened, fails_open: bool
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        for lie, behave in LIES.items():
            scene.provider.behave = behave
            scene.provider.received.clear()
            signed = await count_signed(scene)
            payer = scene.payer(hook=scene.hook(), fails_open=fails_open)
            order = await shop.order()
            await shop.turn(payer)
            assert (await scene.obstacle(order.order_id))[0] == "screening_away", lie
            assert (await shop.status(order), await count_signed(scene)) == (PROCESSING, signed), lie
            # It is asked again, under the same name, and passes when the answer is right.
            scene.provider.behave = say("pass")
            await rest(scene)
            assert await shop.pay(payer, order) == PAID, lie
            assert len({one.headers["webhook-id"] for one in scene.provider.received}) == 1, lie

    screened(scenario)


OUTAGES: dict[str, Behaviour | None] = {
    "away": None,
    "silent": hang,
    "slow": be_slow,
    "busy": say("pass", status=429),
    "broken": say("pass", status=503),
}


def test_without_an_answer_an_order_waits_or_passes_as_the_setting_says(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        for outage, behave in OUTAGES.items():
            await meet_outage(scene, outage, behave)

    screened(scenario)


async def meet_outage(scene: Screened, outage: str, behave: Behaviour | None) -> None:
    """Two orders wait, and pass once the setting says so."""
    shop = scene.shop
    scene.provider.behave = behave or hang
    port = find_port() if behave is None else None
    closed = scene.payer(hook=scene.hook(timeout_ms=200, port=port))
    first = await shop.order()
    await shop.turn(closed)
    assert (await scene.obstacle(first.order_id))[0] == "screening_away", outage
    (asked,) = await store.list_questions(
        shop.connection, (await scene.screening(first.order_id)).screening_no
    )
    assert asked.error, outage
    # After an outage nobody is asked for some seconds.
    asked_before = len(scene.provider.received)
    second = await shop.order()
    await shop.turn(closed)
    assert len(scene.provider.received) == asked_before, outage
    assert (await scene.obstacle(second.order_id))[0] == "screening_away", outage
    await rest(scene, int(REST_S * 1000) + 60_000)
    opened = scene.payer(hook=scene.hook(timeout_ms=200, port=port), fails_open=True)
    for order in (first, second):
        assert await shop.pay(opened, order) == PAID, outage
        found = await scene.screening(order.order_id)
        assert (found.state, [one.source for one in found.reasons]) == (State.PASSED, ["away"]), outage


@pytest.mark.parametrize(
    "second", [say("pass"), say("pass", status=503)], ids=["answer", "silence, fail open"]
)
def test_of_two_answers_to_one_question_the_one_that_was_stored_first_holds_for_both_workers(
    screened: InScreened, second: Behaviour
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        order = await shop.order()

        async def answer_another_worker(request: Received) -> None:
            found = await scene.screening(order.order_id)
            refused = Answer(Verdict.REFUSE, "sanctioned")
            async with await shop.connect() as other:
                assert await asking.answer_question(other, found, refused, shop.clock())

        async def behave(request: Received, writer: Writer) -> None:
            await answer_another_worker(request)
            await second(request, writer)

        scene.provider.behave = behave
        payer = scene.payer(hook=scene.hook(), fails_open=True)
        assert await shop.pay(payer, order) == REFUNDED
        assert (await scene.screening(order.order_id)).state is State.REFUSED
        assert await count_signed(scene) == 0

    screened(scenario)


def test_a_list_that_changes_holds_what_has_passed_until_it_is_signed(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, told = scene.shop, scene.shop.scripted()
        scene.write_list()
        payer = scene.payer(scene.list_file(), told=told)
        told.check_error = ConnectionError("the node is away")
        order = await shop.order()
        await shop.turn(payer)
        assert (await scene.screening(order.order_id)).state is State.PASSED
        scene.write_list(f"{ERC20_ADDRESS} hold a new warning # from the morning's list")
        await rest(scene)
        told.check_error = None
        await shop.turn(payer)
        assert await scene.obstacle(order.order_id) == ("screening", "screening 1: list: a new warning")
        assert told.built == []
        # The statement that stores what was signed would refuse it, too.
        await decisions.release(shop.connection, ann(1), await scene.screening(order.order_id))
        await rest(scene)
        await shop.turn(payer)
        assert len(told.built) == 1

    screened(scenario)


@pytest.mark.parametrize("verdict", ["hold", "refuse"])
def test_who_released_an_order_before_its_address_was_listed_did_not_release_that(
    screened: InScreened, verdict: str
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        scene.write_list()
        await scene.set_rules(payout_limit_count=0)
        payer = scene.payer(scene.list_file())
        order = await shop.order()
        assert await shop.pay(payer, order) == PROCESSING
        assert (await scene.obstacle(order.order_id))[0] == "payout_rule"
        # The address is listed while two people look at the rule alone.
        scene.write_list(f"{ERC20_ADDRESS} {verdict} stolen funds")
        await decisions.release(shop.connection, ann(shop.clock()), await scene.screening(order.order_id))
        await scene.follow()
        ended = await shop.pay(payer, order)
        found = await scene.screening(order.order_id)
        assert await count_signed(scene) == 0
        if verdict == "refuse":
            assert (ended, found.state) == (REFUNDED, State.REFUSED)
            return
        assert (ended, found.state, found.round_no) == (PROCESSING, State.HELD, 2)
        assert {one.source for one in found.reasons} == {"list", "payout-limit-count"}
        # Who releases it now knows of the list.
        await decisions.release(shop.connection, ann(shop.clock()), found)
        await scene.follow()
        assert await shop.pay(payer, order) == PAID

    screened(scenario)


def test_what_passed_and_could_not_be_signed_for_a_day_is_asked_about_again(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, told = scene.shop, scene.shop.scripted()
        payer = scene.payer(hook=scene.hook(), told=told)
        told.check_error = ConnectionError("the node is away")
        order = await shop.order()
        await shop.turn(payer)
        scene.provider.behave = say("refuse", "sanctioned since Monday")
        await rest(scene, PASS_LASTS_MS - 60_000)
        await shop.turn(payer)
        assert ((await scene.screening(order.order_id)).state, len(scene.provider.received)) == (
            State.PASSED,
            1,
        )
        told.check_error = None
        # What has waited for long is looked at again after minutes.
        await rest(scene, 600_000)
        assert await shop.pay(payer, order) == REFUNDED
        found = await scene.screening(order.order_id)
        assert (found.state, found.round_no, told.built) == (State.REFUSED, 2, [])

    screened(scenario)


def test_nothing_signed_is_stored_for_an_order_that_is_held_meanwhile(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, told = scene.shop, scene.shop.scripted()
        payer = scene.payer(hook=scene.hook(), told=told)
        order = await shop.order()
        told.may_build.clear()
        await payer.start_due()
        await told.building.wait()
        passed = await scene.screening(order.order_id)
        await shop.rows("update screening set state = 'held', cleared_ms = null")
        told.may_build.set()
        await payer.finish()
        assert passed.state is State.PASSED
        assert (await count_signed(scene), told.broadcasts) == (0, [])

    screened(scenario)


def test_one_line_of_the_list_is_about_the_same_key_on_every_chain(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        scene.write_list(f"{format_address('TRC20', parse_evm(ERC20_ADDRESS))} hold")
        payer = scene.payer(scene.list_file())
        held, paid = await scene.shop.order(), await scene.shop.order(address=TRC20_ADDRESS)
        assert await scene.shop.pay(payer, held) == PROCESSING
        assert await scene.shop.pay(payer, paid) == PAID

    screened(scenario)


def test_a_list_that_was_never_read_lets_nothing_pass_and_a_broken_one_leaves_the_last(
    screened: InScreened,
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        payer = scene.payer(scene.list_file())
        order = await shop.order(address=TRC20_ADDRESS)
        await shop.turn(payer)
        kind, cause = await scene.obstacle(order.order_id)
        assert (kind, "list.txt: No such file" in cause) == ("screening_away", True)
        scene.write_list(f"{ERC20_ADDRESS} hold")
        await rest(scene)
        assert await shop.pay(payer, order) == PAID
        scene.write_list("not an address")
        held = await shop.order()
        assert await shop.pay(payer, held) == PROCESSING
        assert (await scene.obstacle(held.order_id))[0] == "screening"

    screened(scenario)


def test_a_person_may_have_the_provider_asked_again(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        scene.provider.behave = say("hold")
        payer = scene.payer(hook=scene.hook())
        order = await shop.order()
        assert await shop.pay(payer, order) == PROCESSING
        scene.provider.behave = say("pass")
        found = await scene.screening(order.order_id)
        await decisions.ask_again(shop.connection, ann(shop.clock()), found)
        await rest(scene)
        assert await shop.pay(payer, order) == PAID
        first, second = (one.headers["webhook-id"] for one in scene.provider.received)
        assert first != second
        questions = await store.list_questions(shop.connection, found.screening_no)
        assert [(one.round_no, one.verdict) for one in questions] == [(2, "pass"), (1, "hold")]

    screened(scenario)


def test_silence_loosens_no_hold_though_the_setting_lets_orders_pass(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        payer = scene.payer(hook=scene.hook(), fails_open=True)
        scene.provider.behave = say("hold")
        order = await shop.order()
        assert await shop.pay(payer, order) == PROCESSING
        for _ in range(2):
            scene.provider.behave = say("pass", status=503)
            found = await scene.screening(order.order_id)
            await decisions.ask_again(shop.connection, ann(shop.clock()), found)
            await rest(scene)
            assert await shop.pay(payer, order) == PROCESSING
            assert (await scene.obstacle(order.order_id))[0] == "screening_away"
            assert await count_signed(scene) == 0
        scene.provider.behave = say("pass")
        await rest(scene)
        assert await shop.pay(payer, order) == PAID

    screened(scenario)


def test_without_sources_and_rules_nothing_is_stored(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        assert await scene.shop.pay(scene.payer(), await scene.shop.order()) == PAID
        assert await scene.shop.rows("select from screening") == []

    screened(scenario)


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.extended), "after"])
def test_a_payer_killed_at_any_step_asks_once_more_at_most_and_pays_once(
    screened: InScreened, when: str
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        url = f"http://127.0.0.1:{scene.provider.port}/screen"
        for number, step in enumerate(STEPS, 1):
            scene.provider.received.clear()
            order = await shop.order()
            point = f"{when} {step}"
            assert await run_killed(pay(shop.url, shop.clock.now_ms, url), at(point)), point
            shop.clock.advance(60_000)
            assert await shop.pay(scene.payer(hook=scene.hook()), order) == PAID, point
            questions = scene.provider.received
            assert len({one.headers["webhook-id"] for one in questions}) == 1, point
            # What was answered and stored is not asked again.
            is_lost = point in ("after ask", "before answer_question")
            assert len(questions) == (2 if is_lost else 1), point
            assert len(await shop.transfers()) == number, point

    screened(scenario)


def test_a_payer_killed_between_question_and_answer_asks_again_under_the_same_name(
    screened: InScreened,
) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        order: Withdrawal = await shop.order()
        url = f"http://127.0.0.1:{scene.provider.port}/screen"
        program = "tests.screening.killable_screener"
        child = fork_program(program, shop.url, str(shop.clock.now_ms), url, "never")
        shop.closing.callback(child.end)
        asked = asyncio.Event()

        async def kill(request: Received) -> None:
            if not asked.is_set():
                asked.set()
                child.kill()
                await asyncio.to_thread(child.wait_for_state)

        scene.provider.behave = say("pass", before=kill)
        await asked.wait()
        shop.clock.advance(60_000)
        assert await shop.pay(scene.payer(hook=scene.hook()), order) == PAID
        assert len(scene.provider.received) == 2
        assert len({one.headers["webhook-id"] for one in scene.provider.received}) == 1

    screened(scenario)
