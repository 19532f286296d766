"""The queues: which command of a book is next, and how many places each book gets in a group."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.book.batch import Batch, PendingCommand
from merchant_wallet.book.commands import Adjust, Command, ReadBalances, Submission
from merchant_wallet.book.queue import MIN_READS, MIN_SHARE, CommandQueue, CommandQueues

WRITE = Adjust("KFB", 1, "funds", "operator", None)
READ = ReadBalances()


def _fill(kinds: Sequence[Command]) -> tuple[CommandQueue, list[PendingCommand], asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    batch = [
        PendingCommand(Submission(kind, request_id=str(index)), loop.create_future())
        for index, kind in enumerate(kinds)
    ]
    queue = CommandQueue()
    for pending in batch:
        queue.add(pending)
    return queue, batch, loop


def _names(batch: Sequence[PendingCommand]) -> list[str]:
    return [pending.submission.request_id for pending in batch]


def test_each_kind_is_served_in_the_order_it_came_money_first() -> None:
    queue, _, loop = _fill([READ, WRITE, READ, WRITE])
    assert _names(queue.take(512)) == ["1", "3", "0", "2"]
    assert len(queue) == 0
    loop.close()


@each_row(
    ("writes", "reads", "limit", "taken_writes", "taken_reads"),
    [
        (0, 600, 512, 0, 512),
        (600, 0, 512, 512, 0),
        (100, 600, 512, 100, 50),
        (1, 600, 512, 1, MIN_READS),
        (510, 600, 512, 508, MIN_READS),
        (600, 600, 512, 508, MIN_READS),
        (600, 3, 512, 509, 3),
        (9, 9, 2, 1, 1),
        (0, 0, 512, 0, 0),
    ],
)
def test_reads_get_half_as_many_slots_as_writes_but_always_a_few(
    writes: int, reads: int, limit: int, taken_writes: int, taken_reads: int
) -> None:
    queue, _, loop = _fill([WRITE] * writes + [READ] * reads)
    taken = [pending.submission.command for pending in queue.take(limit)]
    assert (taken.count(WRITE), taken.count(READ)) == (taken_writes, taken_reads)
    assert len(queue) == writes + reads - taken_writes - taken_reads
    loop.close()


def test_a_flood_of_either_kind_starves_nobody() -> None:
    queue, batch, loop = _fill([READ] * 200 + [WRITE] * 200)
    served: list[str] = []
    while queue:
        served += _names(queue.take(64))
    assert sorted(served) == sorted(_names(batch))
    loop.close()


LIMIT = 512
LARGE, SMALL = 1001, 1002


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def _pending(loop: asyncio.AbstractEventLoop, number: int = 0) -> PendingCommand:
    return PendingCommand(Submission(WRITE, request_id=str(number)), loop.create_future())


def _add(queues: CommandQueues, loop: asyncio.AbstractEventLoop, book: int, count: int) -> None:
    for number in range(count):
        queues.add(book, _pending(loop, number))


def _sizes(group: Sequence[Batch]) -> dict[int, int]:
    sizes = {batch.merchant_id: len(batch.pending) for batch in group}
    assert len(sizes) == len(group), "a book is in a group once"
    return sizes


def _finish(queues: CommandQueues, group: Sequence[Batch]) -> None:
    for batch in group:
        queues.finish(batch.merchant_id, len(batch.pending))


def test_4000_waiting_commands_of_one_book_leave_all_others_their_place(
    loop: asyncio.AbstractEventLoop,
) -> None:
    queues = CommandQueues()
    _add(queues, loop, LARGE, 4000)
    for book in range(2001, 2101):
        _add(queues, loop, book, 1)
    sizes = _sizes(queues.take_group(LIMIT))
    # Those that need one place get it. The large book gets all that is left, and no more.
    assert sizes == {LARGE: LIMIT - 100, **dict.fromkeys(range(2001, 2101), 1)}
    assert len(queues) == queues.count_waiting(LARGE) == 4000 - (LIMIT - 100)


def test_a_book_whose_batch_is_under_way_waits_and_others_go_on(loop: asyncio.AbstractEventLoop) -> None:
    queues = CommandQueues()
    _add(queues, loop, LARGE, 1000)
    first = queues.take_group(LIMIT)
    assert _sizes(first) == {LARGE: LIMIT}
    assert not queues
    assert not queues.is_idle
    _add(queues, loop, SMALL, 3)
    second = queues.take_group(LIMIT)
    assert _sizes(second) == {SMALL: 3}
    # A part of its batch is answered: the rest is still under way.
    queues.finish(LARGE, LIMIT - 1)
    assert not queues
    queues.finish(LARGE, 1)
    assert _sizes(queues.take_group(LIMIT)) == {LARGE: 1000 - LIMIT}
    assert len(queues) == 0


def test_books_take_turns(loop: asyncio.AbstractEventLoop) -> None:
    """With two places a group has one book. The large book, taken again, is behind those that waited."""
    queues = CommandQueues()
    _add(queues, loop, LARGE, 6)
    _add(queues, loop, SMALL, 1)
    order: list[tuple[int, int]] = []
    while queues:
        group = queues.take_group(2)
        order += _sizes(group).items()
        _finish(queues, group)
    assert order == [(LARGE, 2), (SMALL, 1), (LARGE, 2), (LARGE, 2)]
    assert queues.is_idle


def test_a_command_that_comes_while_its_book_is_under_way_is_not_lost(
    loop: asyncio.AbstractEventLoop,
) -> None:
    queues = CommandQueues()
    _add(queues, loop, LARGE, 1)
    group = queues.take_group(LIMIT)
    assert queues.count_waiting(LARGE) == 0
    _add(queues, loop, LARGE, 2)
    assert not queues
    _finish(queues, group)
    assert _sizes(queues.take_group(LIMIT)) == {LARGE: 2}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=300), st.integers(MIN_SHARE, 600))
def test_shares_are_fair_and_never_more_than_the_limit(needs: list[int], limit: int) -> None:
    loop = asyncio.new_event_loop()
    pending = _pending(loop)
    queues = CommandQueues()
    for book, need in enumerate(needs):
        for _ in range(need):
            queues.add(book, pending)
    sizes = _sizes(queues.take_group(limit))
    loop.close()
    # Those that came first are taken, as many as can have a share.
    assert list(sizes) == list(range(min(len(needs), limit // MIN_SHARE)))
    total = sum(sizes.values())
    assert total <= limit
    wanted = {book: needs[book] for book in sizes}
    assert all(1 <= sizes[book] <= wanted[book] for book in sizes)
    cut = [book for book in sizes if sizes[book] < wanted[book]]
    if cut:
        # No place is left empty, and no book has more than one place more than a book that got too few.
        assert total == limit
        assert max(sizes.values()) - min(sizes[book] for book in cut) <= 1


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), max_size=30), st.integers(2, 12))
def test_each_command_is_taken_once_and_in_the_order_of_its_book(
    arrivals: list[tuple[int, int]], limit: int
) -> None:
    """Arrivals and groups in turn: after each arrival a group is taken, and the one before it ends."""
    loop = asyncio.new_event_loop()
    queues, taken, came = CommandQueues(), [], Counter[int]()
    under_way: list[Batch] = []
    for book, count in [*arrivals, *[(0, 0)] * 200]:
        for _ in range(count):
            queues.add(book, _pending(loop, came[book]))
            came[book] += 1
        group = queues.take_group(limit) if queues else []
        assert not {batch.merchant_id for batch in group} & {batch.merchant_id for batch in under_way}
        taken += [(b.merchant_id, int(p.submission.request_id)) for b in group for p in b.pending]
        _finish(queues, under_way)
        under_way = group
    loop.close()
    assert queues.is_idle
    for book, count in came.items():
        assert [number for taken_book, number in taken if taken_book == book] == list(range(count))
