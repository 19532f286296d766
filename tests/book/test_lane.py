"""The queue of one book: who is next."""

import asyncio
from collections.abc import Sequence

import pytest

from merchant_wallet.book.commands import Adjust, Command, ReadBalances, Submission
from merchant_wallet.book.lane import LEAST_READS, Job, Lane

MONEY = Adjust("KFB", 1, "funds", "operator", None)
READ = ReadBalances()


def _fill(kinds: Sequence[Command]) -> tuple[Lane, list[Job], asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    jobs = [
        Job(Submission(kind, request_id=str(index)), loop.create_future()) for index, kind in enumerate(kinds)
    ]
    lane = Lane()
    for job in jobs:
        lane.put(job)
    return lane, jobs, loop


def _names(jobs: Sequence[Job]) -> list[str]:
    return [job.submission.request_id for job in jobs]


def test_each_kind_is_served_in_the_order_it_came_money_first() -> None:
    lane, _, loop = _fill([READ, MONEY, READ, MONEY])
    assert _names(lane.take(512)) == ["1", "3", "0", "2"]
    assert len(lane) == 0
    loop.close()


@pytest.mark.parametrize(
    ("money", "reads", "limit", "taken_money", "taken_reads"),
    [
        (0, 600, 512, 0, 512),
        (600, 0, 512, 512, 0),
        (100, 600, 512, 100, 50),
        (1, 600, 512, 1, LEAST_READS),
        (510, 600, 512, 508, LEAST_READS),
        (600, 600, 512, 508, LEAST_READS),
        (600, 3, 512, 509, 3),
        (9, 9, 2, 1, 1),
        (0, 0, 512, 0, 0),
    ],
)
def test_reads_get_half_as_many_places_as_money_takes_but_always_a_few(
    money: int, reads: int, limit: int, taken_money: int, taken_reads: int
) -> None:
    lane, _, loop = _fill([MONEY] * money + [READ] * reads)
    taken = [job.submission.command for job in lane.take(limit)]
    assert (taken.count(MONEY), taken.count(READ)) == (taken_money, taken_reads)
    assert len(lane) == money + reads - taken_money - taken_reads
    loop.close()


def test_a_flood_of_either_kind_starves_nobody() -> None:
    lane, jobs, loop = _fill([READ] * 200 + [MONEY] * 200)
    served: list[str] = []
    while lane:
        served += _names(lane.take(64))
    assert sorted(served) == sorted(_names(jobs))
    loop.close()
