"""What only a replay finds: ids, floors and holds that no single row can show."""

import pytest
from tests.book.fake_writer import MERCHANT_ID, RANGE_NO

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.book.verification.replay import Replay, find_first_id_after, position_of
from merchant_wallet.book.verification.violations import ViolationFound


def test_the_id_after_the_last_of_a_range_is_the_first_of_the_next() -> None:
    last = ids.compose(RANGE_NO, ids.MAX_COUNTER)
    assert find_first_id_after(None, [RANGE_NO, 40]) == ids.compose(RANGE_NO, 1)
    assert find_first_id_after(last - 1, [RANGE_NO, 40]) == last
    assert find_first_id_after(last, [RANGE_NO, 40, 41]) == ids.compose(40, 1)
    assert find_first_id_after(last, [RANGE_NO]) is None
    assert find_first_id_after(None, []) is None


def test_the_place_of_an_id_counts_the_ranges_before_its_own() -> None:
    assert position_of(ids.compose(RANGE_NO, 5), [RANGE_NO, 40]) == 5
    assert position_of(ids.compose(40, 5), [RANGE_NO, 40]) == ids.MAX_COUNTER + 5
    assert position_of(ids.compose(41, 5), [RANGE_NO, 40]) is None


def test_a_balance_that_passes_its_floor_for_a_moment_is_named() -> None:
    replay = Replay(MERCHANT_ID, (RANGE_NO,))
    below = Posting(2, 11, KFB, 5, -5, 5)
    entry = Entry(ids.compose(RANGE_NO, 1), "adjust", None, 1, 0, "", (below,), b"")
    with pytest.raises(ViolationFound) as found:
        replay.apply(entry)
    assert (found.value.violation.rule, found.value.violation.account) == ("floor", "merchant:KFB")


def test_a_hold_that_no_open_order_explains_is_named() -> None:
    replay = Replay(MERCHANT_ID, (RANGE_NO,))
    replay.balances[3] = 7
    with pytest.raises(ViolationFound) as found:
        replay.close()
    assert (found.value.violation.rule, found.value.violation.account) == ("hold", "hold:USDT")
