"""The page of metrics of a process: the process's own figures, and those of the platform if it is its turn.

Rules:
- Everything is computed on request. The database is asked at most once a second.
- The platform's figures are the same whichever process reads them. One process shows them (`platform_turn`).
- If the database does not answer in time, its part is left out, and a metric says so.
- Names and meanings are in `metric_table`.
- Web processes behind one port share a page (`sibling_figures`).
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Protocol

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.cells import Cells, ReachApart, reach_none
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.workers import Connect, WorkerConnection, describe_error
from merchant_wallet.observability.cell_figures import (
    ApartFigures,
    Sample,
    add_up,
    read_apart,
    read_figures,
    show_cells,
    show_figures,
)
from merchant_wallet.observability.counters import RequestCounters
from merchant_wallet.observability.exposition import name_operation, write_page
from merchant_wallet.observability.platform_figures import read_platform
from merchant_wallet.observability.platform_turn import PlatformTurn
from merchant_wallet.observability.process_figures import ProcessFigures, list_settings
from merchant_wallet.observability.sibling_figures import (
    INTERVAL_S,
    Figures,
    add_processes,
    is_siblings_turn,
    make_figures,
    publish,
)

TIMEOUT_S: Final = 8.0
CELL_TIMEOUT_S: Final = 2.0
"""An apart cell that does not answer in time is left out, and shown as down."""
CACHE_S: Final = 1.0
UNASKED_S: Final = 150.0
"""A process that nobody has scraped for so long closes its connection: another one may have the turn."""

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


class NodeStatistics(Protocol):
    """What the metrics show of a node."""

    @property
    def sent(self) -> Mapping[str, int]:
        """Calls by purpose."""

    @property
    def waited_s(self) -> float:
        """What calls waited for their turns."""

    @property
    def rests(self) -> int:
        """How often it was left alone."""


class Metrics:
    """One process's metrics. `request_counters` and `writer` are None in a process that has none.

    `process` names it beside others on one page. Without `cells` there is the default cell alone. Otherwise
    `reach_apart` connects to the others.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        process: str,
        clock: Callable[[], int],
        settings: Settings,
        writer: WriterStatistics | None = None,
        request_counters: RequestCounters | None = None,
        under_way: Callable[[], int] | None = None,
        forwarded: Callable[[], int] | None = None,
        clock_ahead_ms: Callable[[], int | None] = lambda: None,
        signer_refusals: Callable[[], int] | None = None,
        rollback_evidence: Callable[[], int] | None = None,
        list_nodes: Callable[[], Mapping[str, NodeStatistics]] | None = None,
        cells: Cells | None = None,
        reach_apart: ReachApart = reach_none,
        siblings: Siblings | None = None,
    ) -> None:
        self._siblings = siblings
        self._worker_connection = WorkerConnection(connect)
        self._turn = PlatformTurn()
        self._process = process
        self._figures = ProcessFigures(process)
        self._clock = clock
        self._clock_ahead_ms = clock_ahead_ms
        self._settings = settings
        self._writer = writer
        self._request_counters = request_counters
        self._under_way = under_way
        self._forwarded = forwarded
        self._signer_refusals = signer_refusals
        self._rollback_evidence = rollback_evidence
        self._list_nodes = list_nodes
        self._cells = cells
        self._reach_apart = reach_apart
        self._lock = asyncio.Lock()
        self._cached: tuple[float, bytes] = (float("-inf"), b"")
        self._read: list[Sample] = []
        self._unasked: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Give the turn back and close the connection."""
        if self._unasked is not None:
            self._unasked.cancel()
        async with self._lock:
            await self._leave()

    async def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        async with self._lock:
            self._await_next()
            if time.monotonic() - self._cached[0] > CACHE_S:
                self._read = await self._read_database()
                self._cached = (time.monotonic(), self._write(self._read))
            # Siblings answer in turn. A cached page would be older than the page of another one.
            return self._cached[1] if self._siblings is None else self._write(self._read)

    def _write(self, read: list[Sample]) -> bytes:
        if self._siblings is None:
            return write_page([*self._count(), *read], self._request_counters, self._figures.collect())
        samples, counters, families = add_processes(publish(self._siblings, self._make_figures()))
        return write_page([*samples, *read], counters, families)

    def _make_figures(self) -> Figures:
        has_turn = self._turn.is_held
        return make_figures(self._count(), self._request_counters, self._figures.collect(), has_turn=has_turn)

    async def keep_publishing(self) -> None:
        """Show the figures to the siblings, for as long as this process lives."""
        while self._siblings is not None:
            publish(self._siblings, self._make_figures())
            await asyncio.sleep(INTERVAL_S)

    def _await_next(self) -> None:
        """Leave the database if nobody asks for the page again."""
        if self._unasked is not None:
            self._unasked.cancel()

        def leave() -> None:
            self._closing = asyncio.ensure_future(self.close())

        self._unasked = asyncio.get_running_loop().call_later(UNASKED_S, leave)

    async def _leave(self) -> None:
        with suppress(psycopg.Error):
            await self._turn.give_back()
        await self._worker_connection.close()

    def _count(self) -> Iterator[Sample]:
        yield from list_settings(self._settings, self._process)
        own = (self._process,)
        if (ahead_ms := self._clock_ahead_ms()) is not None:
            yield "wallet_clock_ahead_seconds", own, ahead_ms / 1000
        if self._request_counters is not None:
            for (path, code), count in sorted(self._request_counters.by_code().items()):
                yield "wallet_requests", (name_operation(path), str(code)), count
        if self._under_way is not None:
            yield "wallet_requests_under_way", own, self._under_way()
        if self._writer is not None:
            yield "wallet_commands_waiting", own, self._writer.waiting_count
            yield "wallet_groups", (), self._writer.group_count
            yield "wallet_batches", (), self._writer.batch_count
            yield "wallet_batch_commands", (), self._writer.command_count
            yield "wallet_optimistic_batches", (), self._writer.optimistic_count
        if self._forwarded is not None:
            yield "wallet_forwarded_commands", (), self._forwarded()
        if self._signer_refusals is not None:
            yield "wallet_signer_refusals", (), self._signer_refusals()
        for node, figures in ({} if self._list_nodes is None else self._list_nodes()).items():
            for purpose, count in figures.sent.items():
                yield "wallet_node_calls", (node, purpose), count
            yield "wallet_node_wait_seconds", (node,), figures.waited_s
            yield "wallet_node_rests", (node,), figures.rests
        if self._rollback_evidence is not None:
            yield "wallet_rollback_evidence_found", own, self._rollback_evidence()

    async def _read_database(self) -> list[Sample]:
        own, samples, is_turn = (self._process,), list[Sample](), False
        try:
            async with asyncio.timeout(TIMEOUT_S):
                connection = await self._worker_connection.get()
                is_turn = await self._turn.take(connection) or self._is_siblings_turn()
                if is_turn:
                    samples = await read_platform(connection, self._clock(), self._settings)
                    samples += [*self._list_fee_caps(), *await self._read_cells(connection)]
        except (psycopg.Error, TimeoutError) as error:
            log.warning("metrics without the database", reason=describe_error(error))
            # After a cancelled statement the connection's state is unknown.
            await self._worker_connection.close()
            return [("wallet_database_up", own, 0), ("wallet_platform_shown", own, 0)]
        return [("wallet_database_up", own, 1), ("wallet_platform_shown", own, int(is_turn)), *samples]

    def _is_siblings_turn(self) -> bool:
        return self._siblings is not None and is_siblings_turn(self._siblings)

    def _list_fee_caps(self) -> Iterator[Sample]:
        settings = self._settings
        for code in () if settings.sandbox else settings.open_chains:
            cap = settings.chains[code].fee_cap / 10 ** CHAINS[code].coin_decimals
            yield "wallet_fee_cap_coins", (code,), cap

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
        log.warning("metrics without a cell", reason=describe_error(error))
        # After a cancelled statement the connection's state is unknown.
        await connection.close()
        return None
