"""Speeds in pairs of windows: what is measured, in which order, and the share and interval computed from
it.
"""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.database import open_bench_database
from bench.large import count_entries
from bench.pairs import Pair, Share, draw_turns, judge_pairs, take_pairs

ALONE, BESIDE = 1000.0, 900.0


class Machine:
    """A machine that gets faster with each window and ends after `windows`. It is a tenth slower during a
    visit.
    """

    def __init__(self, windows: int) -> None:
        self.left = windows
        self.visited = False
        self.visits = 0
        self.pace = 1.0

    @contextmanager
    def visit(self) -> Iterator[None]:
        self.visited, self.visits = True, self.visits + 1
        yield
        self.visited = False

    async def read_speed(self) -> float:
        self.left -= 1
        self.pace *= 1.02
        return self.pace * (BESIDE if self.visited else ALONE)

    def is_running(self) -> bool:
        return self.left >= 0

    def take(self) -> list[Pair]:
        return asyncio.run(take_pairs(self.read_speed, self.visit, self.is_running))


def test_pairs_are_taken_until_the_run_ends_and_the_last_one_does_not_count() -> None:
    machine = Machine(windows=7)
    assert len(machine.take()) == 3
    assert (machine.left, machine.visits, machine.visited) == (-1, 4, False)


def test_a_machine_that_becomes_twice_as_fast_does_not_change_the_share() -> None:
    pairs = Machine(windows=120).take()
    assert pairs[-1].alone > 2 * pairs[0].alone
    found = judge_pairs(pairs)
    assert found.share == pytest.approx(0.9, abs=0.01)
    assert 0.89 < found.low < found.share < found.high < 0.91
    assert found.pairs == 60


def test_either_order_is_drawn_about_as_often_and_always_the_same() -> None:
    turns = list(itertools.islice(draw_turns(), 100))
    assert all(first is not second for first, second in turns)
    assert 35 <= sum(first for first, _ in turns) <= 65
    assert turns == list(itertools.islice(draw_turns(), 100))
    assert turns != list(itertools.islice(draw_turns(2), 100))


def test_the_interval_is_as_wide_as_the_pairs_differ() -> None:
    alike = judge_pairs([Pair(1000, 950)] * 20)
    assert alike == Share(0.95, 0.95, 0.95, 20)
    apart = judge_pairs([Pair(1000, 650), Pair(1000, 1250)] * 10)
    assert apart.share == pytest.approx(0.95)
    assert apart.low < 0.85
    assert apart.high > 1.05


def test_a_window_that_stood_still_costs_no_more_than_itself() -> None:
    found = judge_pairs([Pair(1000, 1000)] * 49 + [Pair(1000, 0)])
    assert found.share == pytest.approx(0.98)
    assert found.low < 0.98 < found.high


def test_one_pair_has_no_interval() -> None:
    with pytest.raises(ValueError, match="takes two pairs of windows, there are 1"):
        judge_pairs([Pair(1000, 1000)])


def test_what_is_told_has_the_interval_beside_the_share() -> None:
    assert (
        Share(0.9612, 0.9421, 0.9799, 58).describe()
        == "0.961, 95 % interval 0.942 to 0.980, 58 pairs of windows"
    )


def test_the_count_of_entries_follows_each_commit(database_url: str) -> None:
    async def scenario() -> list[int]:
        async with open_bench_database(database_url) as database:
            merchant = await database.open_merchant("shop")
            counts = []
            for _ in range(3):
                counts.append(await count_entries(database.connection, merchant.merchant_id))
                await database.fund(merchant.merchant_id, 5)
            return counts

    first, second, third = asyncio.run(scenario())
    assert (second - first, third - second) == (1, 1)
