"""Work of several owners: they take turns, and nobody's own work changes its order."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merchant_wallet.base.fair_queue import RoundRobin

Piece = tuple[str, int]


def owner_of(piece: Piece) -> str:
    return piece[0]


pieces = st.lists(st.sampled_from("abc"), max_size=40).map(
    lambda owners: [(owner, number) for number, owner in enumerate(owners)]
)


@given(pieces)
def test_each_owners_work_stays_in_order_and_nothing_is_lost(put: list[Piece]) -> None:
    queue = RoundRobin(owner_of)
    for piece in put:
        queue.append(piece)
    assert len(queue) == len(put)
    taken = [queue.popleft() for _ in put]
    assert sorted(taken, key=owner_of) == sorted(put, key=owner_of)
    assert len(queue) == 0


@given(pieces)
def test_no_owner_has_two_turns_while_another_waits(put: list[Piece]) -> None:
    queue = RoundRobin(owner_of)
    for piece in put:
        queue.append(piece)
    taken = [owner_of(queue.popleft()) for _ in put]
    in_a_row = [(owner, len(list(turns))) for owner, turns in groupby(taken)]
    # Only the last owner, for whom nobody else waits, has several turns in a row.
    assert all(turns == 1 for _, turns in in_a_row[:-1])


def test_an_owner_who_comes_later_waits_for_one_piece_of_each_other() -> None:
    queue = RoundRobin(owner_of)
    for number in range(1000):
        queue.append(("a", number))
        queue.append(("b", number))
    queue.append(("c", 0))
    assert [queue.popleft() for _ in range(3)] == [("a", 0), ("b", 0), ("c", 0)]


def test_an_empty_queue_has_no_next_piece() -> None:
    with pytest.raises(IndexError):
        RoundRobin(owner_of).popleft()
