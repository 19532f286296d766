"""One measurement: sign requests, run wrk against a service, read CPU time and memory before and after.

Rules: signed requests are in memory if possible: writing them to disk would compete with the database.
Signing is finished before the clock starts. A row says how many answers were not a success; the reader must
look at that.
"""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.meters import Busy, read_machine_busy, read_processor_s, read_resident_mib
from bench.service import RunningService
from bench.signed_requests import RequestWriter
from bench.wrk import Result, WrkRun, choose_threads

MAX_RATE: Final = 20_000
"""Requests signed for each second of a run. With a faster service the run ends early, and its rate is
still right.
"""
RATE_PER_CONNECTION: Final = 3_000
FLOOD_LEAD_S: Final = 2
"""Long enough for 4,000 connections to be opened and answered once."""
WARM_UP_S: Final = 20
LIFE_S: Final = 240
"""The longest run: a request is valid for 300 seconds and is signed before the run."""


class Plan(msgspec.Struct, frozen=True):
    """What a row measures. `name` is its name for selection."""

    name: str
    population: str
    operation: str
    connections: int
    seconds: int


class Cost(msgspec.Struct, frozen=True):
    """The cost of a run: CPU time in hundredths of one core; None if there is no such process.

    `other_cpu` is everything else on the machine, including the rest of the service. `stolen_cpu` is what the
    machine's host withheld. If these are high, the figures are too low.
    """

    web_cpu: float
    postgres_cpu: float | None
    wrk_cpu: float
    other_cpu: float
    stolen_cpu: float
    web_mib: float


class Row(msgspec.Struct, frozen=True):
    """The result of a plan."""

    name: str
    merchants: str
    operation: str
    connections: int
    answers: int
    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    refusals: dict[str, int]
    errors: dict[str, int]
    used_up: bool
    cost: Cost

    @property
    def failures(self) -> int:
        """Answers that are not a success, and requests without an answer."""
        return sum(self.refusals.values()) + sum(self.errors.values())


class Use(NamedTuple):
    """CPU seconds so far: of the web process, PostgreSQL, ended load generators, the machine."""

    web_s: float
    postgres_s: float
    wrk_s: float
    machine: Busy


class Meter:
    """Measures CPU time from its creation on."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._began_s = time.monotonic()
        self._before = self._read()

    def _read(self) -> Use:
        pid = self._service.postgres_pid
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Use(
            read_processor_s(self._service.web_pid),
            0.0 if pid is None else read_processor_s(pid),
            children.ru_utime + children.ru_stime,
            read_machine_busy(),
        )

    def read(self) -> Cost:
        """What was used, in hundredths of one core."""
        now, before = self._read(), self._before
        share = 100 / (time.monotonic() - self._began_s)
        web = (now.web_s - before.web_s) * share
        base = (now.postgres_s - before.postgres_s) * share
        wrk = (now.wrk_s - before.wrk_s) * share
        all_of_it = (now.machine.worked_s - before.machine.worked_s) * share
        return Cost(
            web_cpu=web,
            postgres_cpu=None if self._service.postgres_pid is None else base,
            wrk_cpu=wrk,
            other_cpu=max(0.0, all_of_it - web - base - wrk),
            stolen_cpu=(now.machine.stolen_s - before.machine.stolen_s) * share,
            web_mib=read_resident_mib(self._service.web_pid),
        )


class LoadGenerator:
    """Runs plans. `said` is called with each row."""

    def __init__(self, wrk: str, request_writer: RequestWriter, said: Callable[[Row], None]) -> None:
        self._wrk = wrk
        self._request_writer = request_writer
        self._said = said
        self._count = 0

    def measure(self, service: RunningService, plan: Plan, requests: int | None = None) -> Row:
        """Run one plan. With `requests`, exactly that many are signed. Raises WrkFailed."""
        slices = self._sign(plan, plan.seconds, requests)
        meter = Meter(service)
        result = self._run_wrk(service, plan, slices, plan.seconds).wait()
        return self._note(service, plan, result, meter, slices)

    def measure_beside(self, service: RunningService, plan: Plan, flood: Plan) -> Row:
        """Run one plan during another one, which begins before it and ends after it. Raises WrkFailed."""
        flood_s = plan.seconds + 2 * FLOOD_LEAD_S
        flood_slices, slices = self._sign(flood, flood_s, None), self._sign(plan, plan.seconds, None)
        flooding = self._run_wrk(service, flood, flood_slices, flood_s)
        time.sleep(FLOOD_LEAD_S)
        meter = Meter(service)
        result = self._run_wrk(service, plan, slices, plan.seconds).wait()
        row = self._note(service, plan, result, meter, slices)
        self._note(service, flood, flooding.wait(), meter, flood_slices)
        return row

    def measure_watched(
        self, service: RunningService, plan: Plan, requests: int, watch: Callable[[Callable[[], bool]], None]
    ) -> Row:
        """Run one plan, and meanwhile `watch`, which can ask whether it still runs. Raises WrkFailed.

        `requests` are signed, or fewer if there is no room for them.
        """
        count = max(1, min(requests, self._request_writer.count_room()))
        slices = self._sign(plan, plan.seconds, count)
        meter = Meter(service)
        shooting = self._run_wrk(service, plan, slices, plan.seconds)
        try:
            watch(shooting.is_running)
        finally:
            result = shooting.wait()
        return self._note(service, plan, result, meter, slices)

    def warm_up(self, service: RunningService, population: str, operation: str, requests: int) -> None:
        """Send some requests that are not measured, so that caches are filled."""
        plan = Plan("warm-up", population, operation, 16, WARM_UP_S)
        slices = self._sign(plan, WARM_UP_S, requests)
        self._run_wrk(service, plan, slices, WARM_UP_S).wait()
        self._request_writer.discard(slices)

    def _sign(self, plan: Plan, seconds: int, requests: int | None) -> Path:
        self._count += 1
        count = requests or min(MAX_RATE, RATE_PER_CONNECTION * plan.connections) * seconds
        pieces = choose_threads(plan.connections)
        return self._request_writer.write_slices(
            str(self._count), plan.population, plan.operation, count, pieces
        )

    def _run_wrk(self, service: RunningService, plan: Plan, slices: Path, seconds: int) -> WrkRun:
        return WrkRun(self._wrk, service.address, slices, plan.connections, seconds)

    def _note(self, service: RunningService, plan: Plan, result: Result, meter: Meter, slices: Path) -> Row:
        cost = meter.read()
        self._request_writer.discard(slices)
        row = Row(
            name=plan.name,
            merchants=plan.population,
            operation=plan.operation,
            connections=plan.connections,
            answers=result.answered,
            rate=result.rate,
            p50_ms=result.p50_us / 1000,
            p99_ms=result.p99_us / 1000,
            max_ms=result.max_us / 1000,
            refusals=result.refusals,
            errors=result.errors,
            used_up=result.used_up,
            cost=cost,
        )
        self._said(row)
        return row
