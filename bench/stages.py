"""The measurements in order: the ceiling, the matrix, the flood, memory, a million sub-users, fairness, a
large book.

Rules: what no selected row needs is not prepared. The load generator reports a stage's rows; the stage
returns the figures of several rows together. Fairness comes after memory, since 4,000 connections make the
web process larger.
"""

import asyncio
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import cold, fairness, large
from bench.goals import (
    COLD_MIB,
    COLD_SHARE,
    FLOOD_FAIRNESS,
    FLOOD_SHARE,
    LARGE_SHARE,
    MILLION_MIB,
    WRITER_ALONE_P99,
    WRITER_BESIDE_P99,
)
from bench.merchants import COLD, HOT, LARGE, SINGLE, MerchantSet, Progress
from bench.meters import read_resident_mib
from bench.plans import LARGE_BOOK, SMALL_BOOK, Choice, make_large_plans
from bench.rows import LoadGenerator, Plan, Row
from bench.service import RunningService, open_ceiling
from bench.signed_requests import DEBIT

MILLION: Final = 1_000_000
MILLION_SLICE: Final = 255_000
"""Four of these are a million and some: a slice is not quite used up when the other thread's is."""
WARM_UP_REQUESTS: Final = 5_000
CHECKED_BOOKS: Final = 3
COLD_ROUNDS: Final = 3
LARGE_ROUNDS: Final = 3

Figures = dict[str, float]
Say = Callable[[str], None]


class Benchmark:
    """Every stage, on one service with one set of merchants."""

    def __init__(
        self,
        service: RunningService,
        merchant_set: MerchantSet,
        load_generator: LoadGenerator,
        say: Say,
        progress: Progress,
    ) -> None:
        self._service = service
        self._merchant_set = merchant_set
        self._load_generator = load_generator
        self._say = say
        self._progress = progress

    def run(self, choice: Choice, merchants_path: Path, log: Path) -> Figures:
        """Measure everything selected. Returns the figures of several rows together."""
        self._say("warming up")
        for population in choice.populations:
            if population != COLD:  # It has no sub-users yet.
                self._load_generator.warm_up(self._service, population, DEBIT, WARM_UP_REQUESTS)
        if choice.ceiling:
            self._measure_ceiling(choice.ceiling, merchants_path, log)
        for plan in choice.matrix:
            self._load_generator.measure(self._service, plan)
        figures = self._flood(choice.flood) if choice.flood else {}
        if choice.memory is not None:
            figures[MILLION_MIB] = self._transfer_a_million(choice.memory)
        if choice.cold or choice.cold_memory:
            figures |= self._measure_cold(choice)
        if choice.fairness:
            figures |= self._measure_fairness(choice.fairness, choice.seconds)
        if choice.large:
            figures |= self._grow(choice.seconds)
        return figures

    def _measure_ceiling(self, plans: list[Plan], merchants_path: Path, log: Path) -> None:
        self._say("the ceiling: the same HTTP path without a database")
        with open_ceiling(merchants_path, log) as ceiling:
            self._load_generator.warm_up(ceiling, plans[0].population, DEBIT, WARM_UP_REQUESTS)
            for plan in plans:
                self._load_generator.measure(ceiling, plan)

    def _flood(self, plans: list[tuple[Plan, Plan | None]]) -> Figures:
        self._say("a flood of reads beside transfers")
        alone, beside_transfers, beside_reads = (self._measure_flooded(plan, other) for plan, other in plans)
        return {
            FLOOD_SHARE: beside_reads.rate / alone.rate,
            FLOOD_FAIRNESS: beside_reads.rate / beside_transfers.rate,
        }

    def _measure_flooded(self, plan: Plan, flood: Plan | None) -> Row:
        if flood is None:
            return self._load_generator.measure(self._service, plan)
        return self._load_generator.measure_beside(self._service, plan, flood)

    def _measure_fairness(self, plans: list[tuple[Plan, Plan | None]], seconds: int) -> Figures:
        self._say("one request beside 4,000 of another merchant, over HTTP and in the writer")
        for plan, crowd in plans:
            self._measure_flooded(plan, crowd)
        url, populations = self._service.database_url, self._merchant_set.populations
        assert url is not None
        (single,), (other,) = populations[SINGLE], populations[HOT]
        waits = fairness.measure(url, single, other, seconds)
        self._say(waits.describe())
        return {WRITER_ALONE_P99: waits.alone_p99_ms, WRITER_BESIDE_P99: waits.beside_p99_ms}

    def _transfer_a_million(self, plan: Plan) -> float:
        """Returns the web process's memory after a million transfers, in MiB."""
        self._say("a million transfers, for the memory they leave behind")
        done = 0
        while done < MILLION:
            done += self._load_generator.measure(self._service, plan, MILLION_SLICE).answers
            self._progress("transfers", min(done, MILLION), MILLION)
        return read_resident_mib(self._service.web_pid)

    def _measure_cold(self, choice: Choice) -> Figures:
        """Register the million sub-users, then measure."""
        self._say("a million sub-users")
        url, merchants = self._service.database_url, self._merchant_set.populations[COLD]
        assert url is not None
        asyncio.run(cold.register_sub_users(url, merchants, self._progress))
        for merchant in merchants[:CHECKED_BOOKS]:
            asyncio.run(large.check_book(url, merchant, self._progress))
        asyncio.run(cold.add_up(url, merchants, self._progress))
        self._tidy(url)
        figures = self._compare_cold(*choice.cold) if choice.cold else {}
        if choice.cold_memory:
            figures[COLD_MIB] = self._transfer_a_million(choice.cold_memory)
        return figures

    def _compare_cold(self, cold_plan: Plan, warm_plan: Plan) -> Figures:
        """Measure both plans in turns, because the machine's speed drifts."""
        rates: dict[str, list[float]] = {cold_plan.name: [], warm_plan.name: []}
        for number in range(COLD_ROUNDS):
            for plan in (warm_plan, cold_plan) if number % 2 else (cold_plan, warm_plan):
                self._load_generator.warm_up(self._service, plan.population, plan.operation, WARM_UP_REQUESTS)
                rates[plan.name].append(self._load_generator.measure(self._service, plan).rate)
        cold_rate, warm_rate = (statistics.median(found) for found in rates.values())
        return {COLD_SHARE: cold_rate / warm_rate}

    def _tidy(self, url: str) -> None:
        self._say("vacuum and checkpoint")
        asyncio.run(large.tidy(url))

    def _grow(self, seconds: int) -> Figures:
        self._say("a large book")
        small = self._measure_book("small", SMALL_BOOK, seconds)
        full = self._measure_book("full", LARGE_BOOK, seconds)
        return {LARGE_SHARE: min(mine / its for mine, its in zip(full, small, strict=True))}

    def _measure_book(self, name: str, entries: int, seconds: int) -> list[float]:
        """Fill the book, verify it, and give the median speed for each number of connections."""
        url, (merchant,) = self._service.database_url, self._merchant_set.populations[LARGE]
        assert url is not None
        asyncio.run(large.fill_book(url, merchant, entries, self._progress))
        asyncio.run(large.check_book(url, merchant, self._progress))
        self._tidy(url)
        rates = []
        for plan in make_large_plans(name, seconds):
            rows = [self._load_generator.measure(self._service, plan) for _ in range(LARGE_ROUNDS)]
            rates.append(statistics.median(row.rate for row in rows))
        return rates
