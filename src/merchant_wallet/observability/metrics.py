"""The metrics of a process: the state of the database, and this process's counters.

Rules: everything is computed on request, at most once a second. If the database does not answer in time, its
part is left out, and a metric says so. Figures of books are added up over all cells (see `cell_figures`).
Names and meanings are in `metric_table`. Money is shown in coins, as a float: no decision is made with it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, get_args

import psycopg
import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from psycopg import AsyncConnection

from merchant_wallet.audit import failures
from merchant_wallet.audit.rollback.evidence import Subject
from merchant_wallet.base.cells import Cells, ReachApart, reach_none
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_RANGE
from merchant_wallet.base.workers import Connect, WorkerConnection
from merchant_wallet.observability import metric_table
from merchant_wallet.observability.cell_figures import (
    MAX_COUNTED,
    ApartFigures,
    Sample,
    add_up,
    age,
    make_coins,
    read_apart,
    read_figures,
    show_cells,
    show_figures,
)
from merchant_wallet.observability.counters import LAST_BUCKET, RequestCounters

QUERIES: Final = Queries(Path(__file__).with_name("metrics.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

TIMEOUT_S: Final = 8.0
CELL_TIMEOUT_S: Final = 2.0
"""An apart cell that does not answer in time is left out, and shown as down."""
HOUR_MS: Final = 3_600_000
CACHE_S: Final = 1.0

log = structlog.get_logger(__name__)


class WriterStatistics(Protocol):
    """What the metrics show of a writer."""

    @property
    def group_count(self) -> int:
        """Groups that were committed."""

    @property
    def batch_count(self) -> int:
        """Batches that were committed."""

    @property
    def command_count(self) -> int:
        """Commands in these batches."""

    @property
    def optimistic_count(self) -> int:
        """Batches that were judged on the cache."""

    @property
    def waiting_count(self) -> int:
        """Commands that wait."""


class Metrics:
    """One process's metrics. `request_counters` and `writer` are None in a process that has none.

    Without `cells` there is the default cell alone. Otherwise `reach_apart` connects to the others.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Callable[[], int],
        sandbox: bool,
        writer: WriterStatistics | None = None,
        request_counters: RequestCounters | None = None,
        under_way: Callable[[], int] | None = None,
        signer_refusals: Callable[[], int] | None = None,
        rollback_evidence: Callable[[], int] | None = None,
        cells: Cells | None = None,
        reach_apart: ReachApart = reach_none,
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._clock = clock
        self._sandbox = sandbox
        self._writer = writer
        self._request_counters = request_counters
        self._under_way = under_way
        self._signer_refusals = signer_refusals
        self._rollback_evidence = rollback_evidence
        self._cells = cells
        self._reach_apart = reach_apart
        self._lock = asyncio.Lock()
        self._cached: tuple[float, bytes] = (float("-inf"), b"")

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        async with self._lock:
            if time.monotonic() - self._cached[0] > CACHE_S:
                samples = [*self._count(), *await self._read_database()]
                self._cached = (time.monotonic(), _write(samples, self._request_counters))
            return self._cached[1]

    def _count(self) -> Iterator[Sample]:
        yield "wallet_sandbox", (), int(self._sandbox)
        if self._request_counters is not None:
            for (path, code), count in sorted(self._request_counters.by_code().items()):
                yield "wallet_requests", (_operation(path), str(code)), count
        if self._under_way is not None:
            yield "wallet_requests_under_way", (), self._under_way()
        if self._writer is not None:
            yield "wallet_commands_waiting", (), self._writer.waiting_count
            yield "wallet_groups", (), self._writer.group_count
            yield "wallet_batches", (), self._writer.batch_count
            yield "wallet_batch_commands", (), self._writer.command_count
            yield "wallet_optimistic_batches", (), self._writer.optimistic_count
        if self._signer_refusals is not None:
            yield "wallet_signer_refusals", (), self._signer_refusals()
        if self._rollback_evidence is not None:
            yield "wallet_rollback_evidence_found", (), self._rollback_evidence()

    async def _read_database(self) -> list[Sample]:
        samples: list[Sample] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                connection = await self._worker_connection.get()
                for read_samples in READERS:
                    samples += await read_samples(connection, self._clock(), self._sandbox)
                samples += await self._read_cells(connection)
        except (psycopg.Error, TimeoutError) as error:
            log.warning("metrics without the database", reason=repr(error))
            # After a cancelled statement the connection's state is unknown.
            await self._worker_connection.close()
            return [("wallet_database_up", (), 0)]
        return [("wallet_database_up", (), 1), *samples]

    async def _read_cells(self, home: AsyncConnection) -> list[Sample]:
        now_ms = self._clock()
        of_home, apart = await asyncio.gather(read_figures(home), self._read_apart())
        reached = [found.figures for found in apart.values() if found is not None]
        return [*show_figures(add_up([of_home, *reached]), now_ms), *show_cells(apart, now_ms)]

    async def _read_apart(self) -> dict[str, ApartFigures | None]:
        """The figures of each apart cell by its name; None if it does not answer in time."""
        if self._cells is None:
            return {}
        connections = await self._reach_apart()
        names = {cell.cell_id: cell.name for cell in self._cells.list() if not cell.is_home}
        found = await asyncio.gather(*(_read_one(connections.get(cell_id)) for cell_id in names))
        return dict(zip(names.values(), found, strict=True))


async def _read_one(connection: AsyncConnection | None) -> ApartFigures | None:
    if connection is None:
        return None
    try:
        async with asyncio.timeout(CELL_TIMEOUT_S):
            return await read_apart(connection)
    except (psycopg.Error, TimeoutError) as error:
        log.warning("metrics without a cell", reason=repr(error))
        # After a cancelled statement the connection's state is unknown.
        await connection.close()
        return None


async def _read_payouts(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    [(count, since_ms)] = await _rows(connection, "count_frozen")
    aged = ("wallet_frozen_orders", "wallet_frozen_order_oldest_seconds", ())
    samples = age(*aged, count, since_ms, now_ms)
    for chain, kind, count, since_ms in await _rows(connection, "count_obstacles", most=MAX_COUNTED):
        names = (chain, kind)
        samples += age("wallet_obstacles", "wallet_obstacle_oldest_seconds", names, count, since_ms, now_ms)
    return samples


async def _read_wallets(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    samples: list[Sample] = []
    for chain, funds, checked_ms, is_frozen, reserved in await _rows(connection, "list_hot_wallets"):
        samples.append(("wallet_hot_wallet_reserved_coins", (chain,), make_coins(reserved)))
        samples.append(("wallet_hot_wallet_frozen", (chain,), is_frozen))
        if funds is not None:
            samples.append(("wallet_hot_wallet_funds_coins", (chain,), make_coins(funds)))
            samples.append(("wallet_hot_wallet_checked_seconds", (chain,), (now_ms - checked_ms) / 1000))
    for chain, actor in await _rows(connection, "list_stops"):
        samples.append(("wallet_payout_stops", (chain, actor), 1))
    return samples


async def _read_chains(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    samples: list[Sample] = []
    watched: dict[str, int] = {}
    for chain, final, head, is_stopped, moved_ms in await _rows(connection, "list_watchers"):
        watched[chain] = final
        samples.append(("wallet_watcher_block", (chain, "final"), final))
        samples.append(("wallet_watcher_block", (chain, "head"), head))
        samples.append(("wallet_watcher_stopped", (chain,), is_stopped))
        samples.append(("wallet_watcher_idle_seconds", (chain,), (now_ms - moved_ms) / 1000))
    for chain, at_ms, is_sound, block, unexplained, held, coin in await _rows(
        connection, "list_reconciliations"
    ):
        samples.append(("wallet_reconciliation_age_seconds", (chain,), (now_ms - at_ms) / 1000))
        samples.append(("wallet_reconciliation_sound", (chain,), is_sound))
        if block is None:
            continue
        samples.append(("wallet_reconciliation_unexplained_coins", (chain,), make_coins(unexplained)))
        samples.append(("wallet_custody_coins", (chain,), make_coins(held)))
        coins = sum(int(each["held"]) for each in coin)
        samples.append(("wallet_hot_wallet_gas_coins", (chain,), coins / 10 ** CHAINS[chain].coin_decimals))
        if chain in watched and not sandbox:
            # Reconciliation counts the sandbox's blocks in another way.
            samples.append(("wallet_watcher_lag_blocks", (chain,), max(0, block - watched[chain])))
    return samples


async def _read_supplies(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    [(highest,)] = await _rows(connection, "read_highest_range")
    [(accounts,)] = await _rows(connection, "count_accounts_left", most=MAX_COUNTED)
    samples: list[Sample] = [
        ("wallet_id_ranges_left", (), MAX_RANGE - (highest or 0)),
    ]
    if not sandbox:
        samples.append(("wallet_accounts_left", (), accounts))
    return samples


async def _read_rollback(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    rows = {row[0]: row[1:] for row in await _rows(connection, "count_evidence")}
    samples: list[Sample] = []
    for subject in get_args(Subject):
        count, since_ms = rows.get(subject, (0, None))
        aged = ("wallet_rollback_evidence", "wallet_rollback_evidence_oldest_seconds", (subject,))
        samples += age(*aged, count, since_ms, now_ms)
    return samples


ReadSamples = Callable[[AsyncConnection, int, bool], Awaitable[list[Sample]]]


async def _read_sign_ins(connection: AsyncConnection, now_ms: int, sandbox: bool) -> list[Sample]:
    counts = await failures.count_recent(connection, now_ms - HOUR_MS)
    return [("wallet_failed_sign_ins", (factor,), count) for factor, count in counts.items()]


READERS: Final[tuple[ReadSamples, ...]] = (
    _read_payouts,
    _read_wallets,
    _read_chains,
    _read_supplies,
    _read_rollback,
    _read_sign_ins,
)
"""The queries, given the present time and whether this is the sandbox."""


def _operation(path: str) -> str:
    return path.rsplit("/", 1)[1]


async def _rows(connection: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()


class _Collected(Collector):
    """Metric families that are complete already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def _write(samples: list[Sample], request_counters: RequestCounters | None) -> bytes:
    """The samples, each in its family. Raises KeyError for a metric that is not in the table."""
    counters = {
        line.name: CounterMetricFamily(line.name, line.text, labels=line.labels)
        for line in metric_table.COUNTERS
    }
    gauges = {
        line.name: GaugeMetricFamily(line.name, line.text, labels=line.labels) for line in metric_table.GAUGES
    }
    for name, values, number in samples:
        (counters.get(name) or gauges[name]).add_metric(values, number)
    families: list[Metric] = [family for family in (*counters.values(), *gauges.values()) if family.samples]
    if request_counters is not None:
        families.append(_histogram(request_counters))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(families))
    return generate_latest(registry)


def _histogram(request_counters: RequestCounters) -> HistogramMetricFamily:
    line = metric_table.HISTOGRAM
    family = HistogramMetricFamily(line.name, line.text, labels=line.labels)
    for path, counts in sorted(request_counters.by_time().items()):
        total, buckets = 0, []
        for bucket, count in enumerate(counts):
            total += count
            edge = "+Inf" if bucket == LAST_BUCKET else str((1 << bucket) / 1000)
            buckets.append((edge, float(total)))
        family.add_metric((_operation(path),), buckets, None)
    return family
