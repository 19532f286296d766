"""How long orders rest: the pure rules, and what they cost nodes in a day."""

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.withdrawals.rests import LONGEST_MS, rest_failed, rest_pending, rest_waiting

MIDNIGHT_MS = 20_000 * DAY_MS
NOW_MS = MIDNIGHT_MS + 12_345
ORDERS = 20
SHARED_CALLS = 8
OWN_CALLS = 2
RECENT_MS = 3_000


@each_row(
    ("waited_ms", "kind", "rest_ms"),
    [
        (0, "funds", 5_000),
        (40_000, "funds", 10_000),
        (2 * MINUTE_MS, "funds", 30_000),
        # About a minute, and it ends at a whole one.
        (10 * MINUTE_MS, "funds", MINUTE_MS - 12_345),
        (HOUR_MS, "funds", 2 * MINUTE_MS - 12_345),
        (3 * HOUR_MS, "funds", 5 * MINUTE_MS - 12_345),
        (24 * HOUR_MS, "node", 5 * MINUTE_MS - 12_345),
        (24 * HOUR_MS, "screening", 50_000),
        (24 * HOUR_MS, "payout_hours", 50_000),
        (-HOUR_MS, "funds", 5_000),
    ],
)
def test_an_order_rests_longer_the_longer_it_waits(waited_ms: int, kind: str, rest_ms: int) -> None:
    assert rest_waiting(NOW_MS, waited_ms, kind) == rest_ms


@each_row(
    ("age_ms", "check_after_ms", "is_mined", "rest_ms"),
    [
        (0, None, False, 5_000),
        (80_000, None, False, 10_000),
        (24 * HOUR_MS, None, False, 5 * MINUTE_MS - 12_345),
        # What the chain says counts, but for the second sending.
        (0, 1_500, False, 1_500),
        (59_999, 1, False, 1),
        (0, 12_000, False, 12_000),
        (0, 60_000, False, 15_000),
        (15_000, 66_000, False, 66_000),
        (15_000, 600_000, False, 90_000),
        (3 * HOUR_MS, 21_000, False, 5 * MINUTE_MS - 12_345),
        (15_000, 60_000, True, MINUTE_MS - 12_345),
        (15_000, 3_000, True, 3_000),
    ],
)
def test_a_signed_order_rests_until_there_may_be_news(
    age_ms: int, check_after_ms: int | None, is_mined: bool, rest_ms: int
) -> None:
    assert rest_pending(NOW_MS, age_ms, check_after_ms, is_mined=is_mined) == rest_ms


def test_a_failing_order_is_tried_soon_and_after_hours_rarely() -> None:
    assert rest_failed(NOW_MS, 0, "node", 250) == 250
    assert rest_failed(NOW_MS, 10 * MINUTE_MS, "node", 30_000) == 30_000
    assert rest_failed(NOW_MS, 5 * HOUR_MS, "node", 30_000) == 5 * MINUTE_MS - 12_345
    assert rest_failed(NOW_MS, 5 * HOUR_MS, "key", 30_000) == 30_000


@given(now_ms=st.integers(0, 10**13), waited_ms=st.integers(0, 10**9))
def test_no_rest_looks_like_a_clock_that_went_back(now_ms: int, waited_ms: int) -> None:
    """The queue takes a rest of more than ten minutes for one."""
    for rest_ms in (
        rest_waiting(now_ms, waited_ms, "funds"),
        rest_pending(now_ms, waited_ms, None, is_mined=False),
        rest_failed(now_ms, waited_ms, "node", 30_000),
    ):
        assert 0 < rest_ms <= 2 * LONGEST_MS


def test_twenty_orders_that_wait_for_a_day_leave_nearly_all_of_it_to_others() -> None:
    """With rests of 50 seconds at most, each at its own moment, they asked 188,000 times: a free plan has
    100,000.
    """
    dice, looks_ms = random.Random(7), list[int]()
    for _ in range(ORDERS):
        since_ms = now_ms = MIDNIGHT_MS + dice.randrange(HOUR_MS)
        while now_ms < MIDNIGHT_MS + 24 * HOUR_MS:
            looks_ms.append(now_ms)
            # An attempt takes a moment.
            now_ms += rest_waiting(now_ms, now_ms - since_ms, "funds") + dice.randrange(500)
    rounds, until_ms = 0, 0
    for now_ms in sorted(looks_ms):
        if now_ms > until_ms:
            rounds, until_ms = rounds + 1, now_ms + RECENT_MS
    assert rounds * SHARED_CALLS + len(looks_ms) * OWN_CALLS < 20_000
