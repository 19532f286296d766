"""Work of several owners: they take turns, and nobody's own work changes its order."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merchant_wallet.base.fair_queue import Owner, RoundRobin

Piece = tuple[Owner, int]


def owner_of(piece: Piece) -> Owner:
    return piece[0]


owners = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))
steps = st.lists(st.one_of(owners, st.integers(0, 9)), max_size=60)
"""Put a piece of this owner, or take as many pieces."""


class ModelQueue:
    """The same order, written so that it is plainly right: a list of groups, each a list of members."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, list[tuple[Owner, list[Piece]]]]] = []

    def append(self, piece: Piece) -> None:
        owner = owner_of(piece)
        members = next((members for name, members in self.groups if name == owner[0]), None)
        if members is None:
            members = []
            self.groups.append((owner[0], members))
        pieces = next((pieces for member, pieces in members if member == owner), None)
        if pieces is None:
            pieces = []
            members.append((owner, pieces))
        pieces.append(piece)

    def take_one(self) -> Piece:
        name, members = self.groups.pop(0)
        owner, pieces = members.pop(0)
        piece = pieces.pop(0)
        if pieces:
            members.append((owner, pieces))
        if members:
            self.groups.append((name, members))
        return piece


@given(steps)
def test_groups_take_turns_and_within_a_group_its_members(steps: list[Owner | int]) -> None:
    queue, model = RoundRobin(owner_of), ModelQueue()
    count = 0
    for number, step in enumerate(steps):
        if isinstance(step, int):
            expected = [model.take_one() for _ in range(min(step, count))]
            assert queue.take(step) == expected
            count -= len(expected)
        else:
            queue.append((step, number))
            model.append((step, number))
            count += 1
        assert len(queue) == count


@given(st.lists(owners, max_size=60))
def test_each_owners_work_stays_in_order_and_nothing_is_lost(put: list[Owner]) -> None:
    queue = RoundRobin(owner_of)
    pieces = [(owner, number) for number, owner in enumerate(put)]
    for piece in pieces:
        queue.append(piece)
    # A stable sort: each owner's pieces in the order in which they were taken.
    assert sorted(queue.take(len(put)), key=owner_of) == sorted(pieces, key=owner_of)
    assert len(queue) == 0


def test_a_group_has_one_turn_however_many_members_it_has() -> None:
    queue = RoundRobin(owner_of)
    for number in range(1000):
        queue.append((("crowd", f"source {number}"), number))
    queue.append((("single", "source"), 0))
    assert [owner_of(piece)[0] for piece in queue.take(3)] == ["crowd", "single", "crowd"]


def test_an_owner_who_comes_later_waits_for_one_piece_of_each_other() -> None:
    queue = RoundRobin(owner_of)
    for number in range(1000):
        queue.append((("a", ""), number))
        queue.append((("b", ""), number))
    queue.append((("c", ""), 0))
    assert queue.take(3) == [(("a", ""), 0), (("b", ""), 0), (("c", ""), 0)]


@pytest.mark.parametrize("count", [1, 3])
def test_owners_with_nothing_waiting_leave_nothing_behind(count: int) -> None:
    queue = RoundRobin(owner_of)
    for number in range(count):
        queue.append((("group", f"member {number}"), number))
    queue.take(count)
    assert (queue._waiting, queue._members, queue._order) == ({}, {}, deque())


def test_an_empty_queue_has_no_next_piece() -> None:
    assert RoundRobin(owner_of).take(8) == []


@given(st.lists(owners, max_size=60))
def test_while_all_are_ready_the_turns_are_the_same(put: list[Owner]) -> None:
    queue, same = RoundRobin(owner_of), RoundRobin(owner_of)
    for number, owner in enumerate(put):
        queue.append((owner, number))
        same.append((owner, number))
    assert [queue.take_ready(lambda _: True) for _ in put] == same.take(len(put))
    assert (queue.take_ready(lambda _: True), len(queue), queue._waiting, queue._members) == (None, 0, {}, {})


def test_the_members_of_a_group_that_is_not_ready_are_not_looked_at() -> None:
    queue = RoundRobin(owner_of)
    for owner in (("a", "x"), ("a", "y"), ("b", "")):
        queue.append((owner, 0))
    looked_at: list[Owner] = []

    def is_ready(owner: Owner) -> bool:
        looked_at.append(owner)
        return True

    assert queue.take_ready(is_ready, lambda group: group != "a") == (("b", ""), 0)
    assert looked_at == [("b", "")]


@given(st.lists(owners, max_size=60), st.data())
def test_a_removed_piece_is_not_taken_and_all_others_are(put: list[Owner], data: st.DataObject) -> None:
    queue = RoundRobin(owner_of)
    pieces = [(owner, number) for number, owner in enumerate(put)]
    removed = data.draw(st.sets(st.sampled_from(pieces))) if pieces else set()
    for piece in pieces:
        queue.append(piece)
    for piece in removed:
        queue.remove(piece)
    kept = [piece for piece in pieces if piece not in removed]
    assert sorted(queue.take(len(put)), key=owner_of) == sorted(kept, key=owner_of)
    assert (len(queue), queue._waiting, queue._members, queue._order) == (0, {}, {}, deque())


def test_who_is_not_ready_keeps_its_turn() -> None:
    queue = RoundRobin(owner_of)
    for owner in (("a", "x"), ("a", "y"), ("b", ""), ("a", "x"), ("c", "")):
        queue.append((owner, 0))
    taken = [queue.take_ready(lambda owner: owner != ("a", "x")) for _ in range(4)]
    assert [one and owner_of(one) for one in taken] == [("a", "y"), ("b", ""), ("c", ""), None]
    queue.append((("b", ""), 0))
    assert [owner_of(piece) for piece in queue.take(2)] == [("a", "x"), ("b", "")]
