"""The measurements in their order: the ceiling, the matrix, the flood, a million transfers, a large book.

Rules: what no row asks for is not prepared; a stage's rows are told by the gunner, the figures that no single
row holds are given back.
"""

import asyncio
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import large
from bench.cast import LARGE, Cast, Progress
from bench.goals import FLOOD_FAIRNESS, FLOOD_SHARE, LARGE_SHARE, MILLION_MIB
from bench.house import House, open_ceiling
from bench.meters import resident_mib
from bench.plans import LARGE_BOOK, SMALL_BOOK, Choice, large_plans
from bench.rows import Gunner, Plan, Row
from bench.supply import DEBIT

MILLION: Final = 1_000_000
MILLION_SLICE: Final = 255_000
"""Four of these are a million and some: a slice is not quite used up when the other thread's is."""
WARM_UP_REQUESTS: Final = 5_000
LARGE_ROUNDS: Final = 3

Figures = dict[str, float]
Say = Callable[[str], None]


class Show:
    """Every stage, on one service with one cast."""

    def __init__(self, house: House, cast: Cast, gunner: Gunner, say: Say, progress: Progress) -> None:
        self._house = house
        self._cast = cast
        self._gunner = gunner
        self._say = say
        self._progress = progress

    def run(self, choice: Choice, cast_path: Path, log: Path) -> Figures:
        """Measure everything that is wanted; the figures that no single row holds."""
        self._say("warming up")
        for population in choice.populations:
            self._gunner.warm_up(self._house, population, DEBIT, WARM_UP_REQUESTS)
        if choice.ceiling:
            self._measure_ceiling(choice.ceiling, cast_path, log)
        for plan in choice.matrix:
            self._gunner.measure(self._house, plan)
        figures = self._flood(choice.flood) if choice.flood else {}
        if choice.memory is not None:
            figures |= self._transfer_a_million(choice.memory)
        if choice.large:
            figures |= self._grow(choice.seconds)
        return figures

    def _measure_ceiling(self, plans: list[Plan], cast_path: Path, log: Path) -> None:
        self._say("the ceiling: the same HTTP path without a database")
        with open_ceiling(cast_path, log) as ceiling:
            self._gunner.warm_up(ceiling, plans[0].population, DEBIT, WARM_UP_REQUESTS)
            for plan in plans:
                self._gunner.measure(ceiling, plan)

    def _flood(self, plans: list[tuple[Plan, Plan | None]]) -> Figures:
        self._say("a flood of reads beside transfers")
        alone, beside_transfers, beside_reads = (self._measure_flooded(plan, other) for plan, other in plans)
        return {
            FLOOD_SHARE: beside_reads.rate / alone.rate,
            FLOOD_FAIRNESS: beside_reads.rate / beside_transfers.rate,
        }

    def _measure_flooded(self, plan: Plan, flood: Plan | None) -> Row:
        if flood is None:
            return self._gunner.measure(self._house, plan)
        return self._gunner.measure_beside(self._house, plan, flood)

    def _transfer_a_million(self, plan: Plan) -> Figures:
        self._say("a million transfers, for the memory they leave behind")
        done = 0
        while done < MILLION:
            done += self._gunner.measure(self._house, plan, MILLION_SLICE).answers
            self._progress("transfers", min(done, MILLION), MILLION)
        return {MILLION_MIB: resident_mib(self._house.web_pid)}

    def _grow(self, seconds: int) -> Figures:
        self._say("a large book")
        small = self._measure_book("small", SMALL_BOOK, seconds)
        full = self._measure_book("full", LARGE_BOOK, seconds)
        return {LARGE_SHARE: min(mine / its for mine, its in zip(full, small, strict=True))}

    def _measure_book(self, name: str, entries: int, seconds: int) -> list[float]:
        """Fill the book, verify it, and give the median speed for each number of connections."""
        url, (player,) = self._house.database_url, self._cast.players[LARGE]
        assert url is not None
        asyncio.run(large.fill_book(url, player, entries, self._progress))
        asyncio.run(large.check_book(url, player, self._progress))
        self._say("vacuum and checkpoint")
        asyncio.run(large.tidy(url))
        rates = []
        for plan in large_plans(name, seconds):
            rows = [self._gunner.measure(self._house, plan) for _ in range(LARGE_ROUNDS)]
            rates.append(statistics.median(row.rate for row in rows))
        return rates
