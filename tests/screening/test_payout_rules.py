"""A merchant's payout rules: the pure judgement, and orders that are held by it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row
from tests.screening.conftest import InScreened, Screened, ann, open_screened
from tests.screening.test_screened_orders import PAID, PROCESSING, rest
from tests.withdrawals.conftest import COIN, ERC20_ADDRESS, MERCHANT_ID, START_MS, TRC20_ADDRESS

from merchant_wallet.base.opening_hours import DAYS, canonicalize_hours, parse_hours
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.screening import decisions
from merchant_wallet.screening.payout_rules import Cleared, PayoutRules, judge
from merchant_wallet.screening.screening_states import State
from merchant_wallet.screening.verdicts import Source, Verdict

UNITS = st.integers(0, 10**15)
LIMIT = st.none() | UNITS
COUNT = st.none() | st.integers(0, 1000)
RULES = st.builds(
    PayoutRules,
    limit_units=LIMIT,
    limit_count=COUNT,
    window_h=st.integers(1, 168),
    first_limit_units=LIMIT,
)
CLEARED = st.builds(Cleared, count=st.integers(0, 1000), units=UNITS)
AMOUNT = st.integers(1, 10**15)


@given(RULES, AMOUNT, CLEARED, st.booleans())
def test_a_rule_holds_exactly_what_is_above_its_limit_and_refuses_nothing(
    rules: PayoutRules, amount: int, cleared: Cleared, was_paid: bool
) -> None:
    wanted = {
        Source.AMOUNT: rules.limit_units is not None and cleared.units + amount > rules.limit_units,
        Source.COUNT: rules.limit_count is not None and cleared.count + 1 > rules.limit_count,
        Source.FIRST: rules.first_limit_units is not None
        and amount > rules.first_limit_units
        and not was_paid,
    }
    found = judge(rules, amount, cleared, was_paid=was_paid)
    assert {one.source for one in found} == {source for source, is_broken in wanted.items() if is_broken}
    assert all(one.verdict is Verdict.HOLD for one in found)


@given(RULES, AMOUNT, AMOUNT, CLEARED, st.booleans())
def test_what_is_held_is_held_too_when_more_was_cleared_or_more_is_asked(
    rules: PayoutRules, amount: int, more: int, cleared: Cleared, was_paid: bool
) -> None:
    few = {one.source for one in judge(rules, amount, cleared, was_paid=was_paid)}
    larger = judge(rules, amount + more, cleared, was_paid=was_paid)
    after_more = judge(rules, amount, Cleared(cleared.count + 1, cleared.units + more), was_paid=was_paid)
    assert few <= {one.source for one in larger}
    assert few <= {one.source for one in after_more}


@given(st.lists(AMOUNT, max_size=30), UNITS, st.integers(0, 30))
def test_orders_that_pass_one_after_the_other_never_exceed_a_limit(
    amounts: list[int], limit_units: int, limit_count: int
) -> None:
    rules, cleared = PayoutRules(limit_units=limit_units, limit_count=limit_count), Cleared()
    for amount in amounts:
        if not judge(rules, amount, cleared, was_paid=True):
            cleared = Cleared(cleared.count + 1, cleared.units + amount)
    assert cleared.units <= limit_units
    assert cleared.count <= limit_count


ZONES = ("Asia/Shanghai", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
MINUTE = st.integers(0, 24 * 60 - 1)


@given(
    st.sets(st.integers(0, 6), min_size=1),
    MINUTE,
    MINUTE,
    st.sampled_from(ZONES),
    st.integers(1_700_000_000_000, 1_900_000_000_000),
)
def test_hours_are_open_at_the_wall_clock_of_their_zone_and_at_no_other_time(
    days: set[int], begin: int, end: int, zone: str, at_ms: int
) -> None:
    if begin == end:
        return
    names = ",".join(DAYS[day] for day in sorted(days))
    text = f"{names} {begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02} {zone}"
    local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    minute = local.hour * 60 + local.minute
    # Counted by hand: the hours that began today or yesterday.
    spans = [(begin, end)] if begin < end else [(begin, 24 * 60 + end)]
    today = any(first <= minute < last for first, last in spans) and local.weekday() in days
    before = (local - timedelta(days=1)).weekday() in days
    yesterday = any(first <= minute + 24 * 60 < last for first, last in spans) and before
    assert parse_hours(text).is_open(at_ms) == (today or yesterday)


@each_row(
    ("text", "days"),
    [
        ("mon-fri 09:00-18:00 Asia/Shanghai", {0, 1, 2, 3, 4}),
        ("Sat-Mon 22:00-06:00 UTC", {5, 6, 0}),
        ("Tue,Thu 00:00-24:00 Europe/Berlin", {1, 3}),
        ("Mon-Sun 08:00-20:00 UTC", set(range(7))),
    ],
)
def test_days_may_be_spans_and_lists(text: str, days: set[int]) -> None:
    assert parse_hours(text).days == days
    assert parse_hours(canonicalize_hours(text)) == parse_hours(text)


@each_row(
    "text",
    [
        "",
        "Mon-Fri 09:00-18:00",
        "Mon-Fri 9:00-18:00 UTC",
        "Mon-Fri 09:00-25:00 UTC",
        "Mon-Fri 09:60-10:00 UTC",
        "Mon-Fri 24:00-06:00 UTC",
        "Mon-Fri 09:00-09:00 UTC",
        "Mon- 09:00-18:00 UTC",
        "Mon-Fri-Sun 09:00-18:00 UTC",
        "Someday 09:00-18:00 UTC",
        "Mon 09:00-18:00 Mars/Olympus",
        "Mon 09:00-18:00 ../../etc/passwd",
        "Mon 09:00-18:00 " + "A/" * 60,
    ],
)
def test_what_is_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|is none of|is not such as"):
        parse_hours(text)


def test_an_order_above_the_limit_of_a_window_is_held_until_a_person_has_looked(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, payer = scene.shop, scene.payer()
        await scene.set_rules(payout_limit_units=25 * COIN, payout_window_h=2)
        for _ in range(2):
            assert await shop.pay(payer, await shop.order()) == PAID
        third = await shop.order()
        assert await shop.pay(payer, third) == PROCESSING
        kind, cause = await scene.obstacle(third.order_id)
        assert (kind, "30 USDT within 2 h, more than 25" in cause) == ("payout_rule", True)
        # It stays held when the window is over. A new one passes.
        await rest(scene, 3 * HOUR_MS)
        assert await shop.pay(payer, third) == PROCESSING
        assert await shop.pay(payer, await shop.order()) == PAID
        await decisions.release(shop.connection, ann(shop.clock()), await scene.screening(third.order_id))
        await scene.follow()
        assert await shop.pay(payer, third) == PAID

    screened(scenario)


def test_any_number_of_orders_at_once_pass_no_further_than_the_limit(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        await scene.set_rules(payout_limit_units=45 * COIN)
        orders = [await shop.order() for _ in range(12)]
        payers = [scene.payer(hook=scene.hook(), name=f"payer {number}") for number in range(3)]
        for _ in range(6):
            await asyncio.gather(*(payer.start_due() for payer in payers))
            await asyncio.gather(*(payer.finish() for payer in payers))
            shop.clock.advance(1_500)
        states = [(await scene.screening(order.order_id)).state for order in orders]
        assert (states.count(State.PASSED), states.count(State.HELD)) == (4, 8)
        ((units,),) = await shop.rows("select sum(amount) from screening where cleared_ms is not null")
        assert units == 40 * COIN

    screened(scenario)


def test_the_number_of_orders_of_a_window_is_limited(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, payer = scene.shop, scene.payer()
        await scene.set_rules(payout_limit_count=1)
        assert await shop.pay(payer, await shop.order()) == PAID
        held = await shop.order()
        assert await shop.pay(payer, held) == PROCESSING
        assert "2 payouts within 24 h, more than 1" in (await scene.obstacle(held.order_id))[1]

    screened(scenario)


def test_a_large_first_payment_to_an_address_is_held_and_later_ones_are_not(in_each_layout: Any) -> None:
    async def scenario(shop: Any) -> None:
        async with open_screened(shop) as scene:
            payer = scene.payer()
            await scene.set_rules(first_payout_limit_units=20 * COIN)
            large = await shop.order(30 * COIN)
            assert await shop.pay(payer, large) == PROCESSING
            assert (await scene.obstacle(large.order_id))[0] == "payout_rule"
            assert await shop.pay(payer, await shop.order(20 * COIN)) == PAID
            # The small one was paid, so the address is known. Another address is not.
            mixed_case = "0x742d35Cc6634C0532925a3b844Bc454e4438f44e"
            assert await shop.pay(payer, await shop.order(30 * COIN, mixed_case)) == PAID
            assert await shop.pay(payer, await shop.order(30 * COIN, TRC20_ADDRESS)) == PROCESSING

    in_each_layout(scenario)


def test_outside_the_hours_an_order_waits_and_goes_on_by_itself(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, payer = scene.shop, scene.payer(hook=scene.hook())
        begins = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=3)
        await scene.set_rules(payout_hours=f"Mon-Sun {begins:%H:%M}-{begins + timedelta(hours=2):%H:%M} UTC")
        order = await shop.order()
        await shop.turn(payer)
        assert (await scene.obstacle(order.order_id))[0] == "payout_hours"
        assert (await scene.screening(order.order_id)).state is State.OPEN
        shop.clock.advance(3 * HOUR_MS)
        assert await shop.pay(payer, order) == PAID
        # What was answered before the hours is not asked again.
        assert len(scene.provider.received) == 1

    screened(scenario)


def test_what_waits_to_be_signed_counts_in_the_window_in_which_it_is_paid(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, told = scene.shop, scene.shop.scripted()
        payer = scene.payer(told=told)
        await scene.set_rules(payout_limit_units=10 * COIN, payout_window_h=2)
        told.check_error = ConnectionError("payouts wait")
        orders = []
        for _ in range(3):
            orders.append(await shop.order())
            await shop.turn(payer)
            shop.clock.advance(2 * HOUR_MS + 1)
        # Now what passed in three windows could be signed at once.
        told.check_error = None
        await shop.turn(payer)
        states = sorted([(await scene.screening(order.order_id)).state for order in orders])
        assert states == [State.HELD, State.HELD, State.PASSED]
        assert len(told.built) == 1

    screened(scenario)


def test_what_passed_within_the_hours_and_could_not_be_signed_waits_for_the_next_hours(
    screened: InScreened,
) -> None:
    async def scenario(scene: Screened) -> None:
        shop, told = scene.shop, scene.shop.scripted()
        payer = scene.payer(told=told)
        begins = datetime.fromtimestamp(START_MS / 1000, UTC) - timedelta(hours=1)
        await scene.set_rules(payout_hours=f"Mon-Sun {begins:%H:%M}-{begins + timedelta(hours=2):%H:%M} UTC")
        told.check_error = ConnectionError("the node is away")
        order = await shop.order()
        await shop.turn(payer)
        assert (await scene.screening(order.order_id)).state is State.PASSED
        # The node is back at night.
        told.check_error = None
        shop.clock.advance(4 * HOUR_MS)
        await shop.turn(payer)
        assert (await scene.obstacle(order.order_id))[0] == "payout_hours"
        assert told.built == []
        shop.clock.advance(20 * HOUR_MS)
        await shop.turn(payer)
        assert len(told.built) == 1

    screened(scenario)


def test_a_person_may_release_an_order_before_the_hours(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop, payer = scene.shop, scene.payer()
        begins = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=3)
        await scene.set_rules(payout_hours=f"Mon-Sun {begins:%H:%M}-{begins + timedelta(hours=2):%H:%M} UTC")
        order = await shop.order(address=ERC20_ADDRESS)
        await shop.turn(payer)
        await decisions.release(shop.connection, ann(shop.clock()), await scene.screening(order.order_id))
        await scene.follow()
        assert await shop.pay(payer, order) == PAID

    screened(scenario)


def test_rules_are_one_merchants_own(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        await scene.shop.rows(
            "insert into public.merchant (merchant_id, name, app_key, currency_mode, created_ms,"
            " payout_limit_count) values (%s, 'Other', 'other', 'KFB', 1, 0)",
            MERCHANT_ID + 1,
        )
        assert await scene.shop.pay(scene.payer(), await scene.shop.order()) == PAID

    screened(scenario)
