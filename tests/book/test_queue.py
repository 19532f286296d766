"""The queue of one book: which command is next."""

import asyncio
from collections.abc import Sequence

import pytest

from merchant_wallet.book.commands import Adjust, Command, ReadBalances, Submission
from merchant_wallet.book.queue import MIN_READS, CommandQueue, PendingCommand

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


@pytest.mark.parametrize(
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
