"""The calls that a node's limits allow, with a clock of the test's own."""

from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.node_addresses import CallLimits
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.chains.call_budget import SECOND_S, CallBudget, Charge, Purpose
from merchant_wallet.chains.node_rests import LONGEST_S, Rest, asks_for_rest, read_rest_s

NOON_MS = DAY_MS // 2
DAY = 20_000 * DAY_MS
NOW_MS = 1_795_000_000_000
"""2026-11-18 11:06:40 UTC."""


@given(
    per_s=st.integers(1, 9),
    asked=st.lists(
        st.tuples(st.floats(0, 0.5), st.integers(1, 12), st.floats(0, SECOND_S), st.floats(0, SECOND_S)),
        min_size=1,
        max_size=40,
    ),
)
@settings(max_examples=60, deadline=None)
def test_within_no_second_do_more_calls_arrive_than_the_limit(
    per_s: int, asked: list[tuple[float, int, float, float]]
) -> None:
    budget, now_s = CallBudget(CallLimits(per_s)), 0.0
    arrived_s: list[float] = []
    under_way: list[tuple[float, Charge]] = []
    for pause_s, calls, way_s, back_s in asked:
        calls = min(calls, per_s)
        now_s += pause_s
        while True:
            for ended in [one for one in under_way if one[0] <= now_s]:
                under_way.remove(ended)
                budget.end(ended[1], ended[0])
            delay_s = budget.await_second(now_s, calls)
            if delay_s <= 0:
                break
            # Whoever waits looks again at each answer.
            now_s = min([now_s + delay_s, *(at_s for at_s, _ in under_way)])
        under_way.append((now_s + way_s + min(back_s, SECOND_S - way_s), budget.take(now_s, 0, calls)))
        arrived_s += [now_s + way_s] * calls
    arrived_s.sort()
    for number, at_s in enumerate(arrived_s):
        assert bisect_left(arrived_s, at_s + SECOND_S - 1e-9) - number <= per_s


def test_a_seconds_calls_may_be_sent_at_once_and_the_next_one_waits_for_their_answers() -> None:
    budget, charges = CallBudget(CallLimits(15)), list[Charge]()
    for _ in range(15):
        assert budget.await_second(100.0, 1) == 0
        charges.append(budget.take(100.0, 0, 1))
    assert budget.await_second(100.5, 1) == 1.5
    budget.end(charges[7], 100.25)
    assert budget.await_second(100.5, 1) == 0.75
    assert budget.await_second(100.5, 2) == 1.5
    assert budget.await_second(101.25, 1) == 0
    for charge in charges:
        budget.end(charge, 101.75)
    assert budget.await_second(102.0, 15) == 0, "a slow answer makes nobody wait for more than two seconds"


@each_row(
    ("used", "passed_ms", "signed_s", "payout_s", "reading_s"),
    [
        (0, 0, 0, 0, 0),
        (49, 0, 0, 0, 0),
        # The line is at 50 at midnight, at 70 at noon, and at 90 at the end of the day.
        (50, 0, 0, 0, DAY_MS / 40 / 1000),
        (69, NOON_MS, 0, 0, 0),
        (70, NOON_MS, 0, 0, DAY_MS / 40 / 1000),
        (89, DAY_MS - 1, 0, 0, 0.001),
        (90, NOON_MS, 0, 0, DAY_MS / 2000),
        (94, NOON_MS, 0, 0, DAY_MS / 2000),
        # The last five are for what is signed.
        (95, NOON_MS, 0, DAY_MS / 2000, DAY_MS / 2000),
        (99, NOON_MS, 0, DAY_MS / 2000, DAY_MS / 2000),
        (100, NOON_MS, DAY_MS / 2000, DAY_MS / 2000, DAY_MS / 2000),
    ],
)
def test_reading_slows_down_before_payouts_and_what_is_signed_stops_last(
    used: int, passed_ms: int, signed_s: float, payout_s: float, reading_s: float
) -> None:
    budget = CallBudget(CallLimits(per_day=100))
    now_ms = DAY + passed_ms
    if used:
        budget.take(0.0, now_ms, used)
    assert budget.await_day(now_ms, 1, Purpose.SIGNED) == signed_s
    assert budget.await_day(now_ms, 1, Purpose.PAYOUTS) == payout_s
    assert budget.await_day(now_ms, 1, Purpose.READING) == reading_s
    # Whoever waits for so long may go then.
    assert budget.await_day(now_ms + int(reading_s * 1000), 1, Purpose.READING) == 0


def test_a_day_ends_at_midnight_utc() -> None:
    budget = CallBudget(CallLimits(per_day=100))
    budget.take(0.0, DAY + DAY_MS - 1, 100)
    assert budget.count_today(DAY + DAY_MS - 1) == 100
    assert budget.count_today(DAY + DAY_MS) == 0
    assert budget.await_day(DAY + DAY_MS, 1, Purpose.READING) == 0


def test_a_node_without_limits_is_never_waited_for_and_its_calls_are_counted() -> None:
    budget = CallBudget(CallLimits())
    for _ in range(1000):
        assert budget.await_second(0.0, 100) + budget.await_day(DAY, 100, Purpose.READING) == 0
        budget.take(0.0, DAY, 100)
    assert budget.count_today(DAY) == 100_000


@each_row(
    ("header", "body", "named_s"),
    [
        ("120", b"", 121),
        (" 0 ", b"", 1),
        ("Wed, 18 Nov 2026 11:08:40 GMT", b"", 121),
        ("Wed, 18 Nov 2026 11:08:40", b"", 121),
        ("Wed, 18 Nov 2026 11:00:00 GMT", b"", None),
        ("soon", b"", None),
        ("-5", b"", None),
        ("Wed, 18 Nov 2026 11:08:40 +99999999999999", b"", None),
        (None, b'{"Error":"exceeds the frequency limit(15), and is suspended for 30 s"}', 31),
        (None, b"Suspended for 30s", 31),
        (None, b"suspended for 2 minutes", 121),
        (None, b"suspended for ever", None),
        (None, b"limited to 15 calls in 1 s", None),
        ("9", b"suspended for 30 s", 10),
    ],
)
def test_a_node_names_the_time_of_a_rest(header: str | None, body: bytes, named_s: float | None) -> None:
    assert read_rest_s(header, body, NOW_MS) == named_s


@each_row(
    ("status", "names_time", "is_about_call", "wanted"),
    [
        (429, False, False, True),
        (429, False, True, True),
        (403, False, False, True),
        (403, True, True, True),
        (403, False, True, False),
        (503, True, False, True),
        (503, False, False, False),
        (500, True, False, False),
        (401, True, False, False),
    ],
)
def test_which_http_errors_ask_for_a_rest(
    status: int, names_time: bool, is_about_call: bool, wanted: bool
) -> None:
    assert asks_for_rest(status, names_time=names_time, is_about_call=is_about_call) is wanted


def test_rests_of_no_named_time_grow_until_a_call_is_answered() -> None:
    rest, now_s, lengths = Rest(), 1000.0, list[float]()
    for _ in range(8):
        assert rest.note_refusal(now_s, now_s, None)
        lengths.append(rest.until_s - now_s)
        # A call that was under way prolongs the rest, and does not let the next one grow.
        assert not rest.note_refusal(now_s - 1, now_s + 5, None)
        assert rest.until_s == now_s + lengths[-1] + 5
        now_s = rest.until_s
    assert lengths == pytest.approx([30, 45, 67.5, 101.25, 151.875, 227.8125, 300, 300])
    assert rest.count == 8
    rest.note_answer(now_s - 1)
    assert rest.note_refusal(now_s, now_s, None)
    assert rest.until_s - now_s == 300, "an answer to what was sent before the rest says nothing"
    now_s = rest.until_s
    rest.note_answer(now_s)
    rest.note_refusal(now_s, now_s, None)
    assert rest.until_s - now_s == 30


def test_a_named_rest_is_extended_by_calls_that_were_under_way_and_bounded() -> None:
    rest = Rest()
    assert rest.note_refusal(0.0, 1.0, 31.0)
    assert not rest.note_refusal(0.0, 3.0, 31.0)
    assert rest.until_s == 34.0
    assert not rest.note_refusal(0.0, 4.0, 5.0)
    assert (rest.until_s, rest.count) == (34.0, 1)
    rest.note_refusal(34.0, 34.0, 10 * LONGEST_S)
    assert rest.until_s == 34.0 + LONGEST_S
