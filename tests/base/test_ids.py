"""Ids contain their range, fit into 53 bits, and refuse values out of range."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.ids import MAX_COUNTER, MAX_ID, MAX_RANGE, compose, counter_of, range_of

ranges = st.integers(1, MAX_RANGE)
counters = st.integers(0, MAX_COUNTER)


@given(ranges, counters)
def test_an_id_gives_back_its_range_and_counter(range_no: int, counter: int) -> None:
    composed = compose(range_no, counter)
    assert (range_of(composed), counter_of(composed)) == (range_no, counter)


@given(ranges, counters)
def test_an_id_is_exact_in_a_double(range_no: int, counter: int) -> None:
    composed = compose(range_no, counter)
    assert 0 < composed < 2**53
    assert int(float(composed)) == composed


@given(st.tuples(ranges, counters), st.tuples(ranges, counters))
def test_ids_sort_as_their_range_and_counter_do(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (compose(*one) < compose(*other)) == (one < other)


def test_the_largest_id_is_the_last_counter_of_the_last_range() -> None:
    assert compose(MAX_RANGE, MAX_COUNTER) == MAX_ID == 2**53 - 1


@each_row(("range_no", "counter"), [(0, 1), (-1, 1), (2**20, 1), (1, -1), (1, 2**33)])
def test_what_does_not_fit_is_refused(range_no: int, counter: int) -> None:
    with pytest.raises(ValueError, match="is not between"):
        compose(range_no, counter)
