"""The workers of one apart cell, and the worker that starts and ends them as cells come, move and go.

Rules:
- A cell's workers use its own connections. So a cell that is away delays nobody else.
- A cell's payouts and expiries wait until its books were compared with their checkpoints. Payouts wait until
  the chains fit the settings, too.
- The cells that Citus places are followed to the node that it names.
- A cell that has moved gets new workers. The old ones finish what they do; its old place refuses them.
- Several processes may run the same cell's workers. With `work --cell` one runs beside the cell's server.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from psycopg import AsyncConnection
from structlog.contextvars import bind_contextvars

from merchant_wallet.audit.rollback.compared_cells import is_compared_since, read_clock_ms
from merchant_wallet.base import db
from merchant_wallet.base.bell import current_bell
from merchant_wallet.base.cells import DEFAULT_CELL_ID, Cell
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.spans import Tracing
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import (
    Worker,
    WorkerConnection,
    log_error,
    repeat,
    repeat_until,
    run_workers,
    start_after,
)
from merchant_wallet.book.nonce_partitions import make_nonce_partition_task, open_nonce_days
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.callbacks.sender import MAX_CONCURRENT, CallbackSender
from merchant_wallet.callbacks.target_policy import TargetPolicy, list_networks, make_resolver
from merchant_wallet.deposits.crediting import CreditingWorker, ScreenDeposit
from merchant_wallet.deposits.intake_worker import IntakeWorker
from merchant_wallet.merchants.addresses import give_missing_addresses
from merchant_wallet.merchants.cells.follower import CellFollower
from merchant_wallet.merchants.cells.updates import CellUpdates
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.merchants.id_ranges import allocate_range, find_books_short_of_ids
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.maintenance import Maintenance, Task, make_id_range_task
from merchant_wallet.processes.payout_workers import PayoutWorkers
from merchant_wallet.processes.screening import DecisionFollower
from merchant_wallet.reporting import rollup
from merchant_wallet.sub_users.sessions import drop_expired
from merchant_wallet.withdrawals import freezes
from merchant_wallet.withdrawals.expiry import Expiry

ID_MARGIN: Final = 1 << 24
"""A book gets its next range of ids while it still has this many left."""
LOOK_INTERVAL_S: Final = 2.0
"""How often the worker looks which cells there are."""
COMPARED_INTERVAL_S: Final = 0.5
CALLBACKS_PAGE: Final = "/docs/callbacks/"

log = structlog.get_logger(__name__)


def _ask_nobody() -> None:
    """Another process compares checkpoints, once a minute."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the workers of all cells share. `ask_comparison` has the checkpoints compared soon."""

    base: Base
    writer: CellWriters
    payouts: PayoutWorkers
    callbacks: CallbackClient
    ask_comparison: Callable[[], None] = _ask_nobody
    tracing: Tracing | None = None
    sender: type[CallbackSender] = CallbackSender
    screen_deposit: ScreenDeposit | None = None


def make_callback_client(base: Base) -> CallbackClient:
    """Sends callbacks to hosts that the settings allow. Raises Untrusting."""
    settings = base.settings
    # At the start, so that no callback is the first to find out.
    settings.outbound.tls()
    threads = ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="resolver")
    networks = list_networks(settings.callback_networks, sandbox=settings.sandbox)
    policy = TargetPolicy(make_resolver(threads), networks, http_allowed=settings.sandbox)
    page = None if settings.public_url is None else settings.public_url + CALLBACKS_PAGE
    return CallbackClient(
        policy,
        settings.outbound,
        proxy_names=settings.proxy_names,
        unknown_names=settings.proxy_unknown_names,
        page=page,
    )


def make_cell_tasks(
    tolerance_s: int, cell_id: int = DEFAULT_CELL_ID, home: WorkerConnection | None = None
) -> dict[str, Task]:
    """The tasks of once a minute in a cell. Without `home` the cell is home's own."""

    async def find_home(cell: AsyncConnection) -> AsyncConnection:
        return cell if home is None else await home.get()

    async def give_addresses(cell: AsyncConnection, at_ms: int) -> None:
        await give_missing_addresses(await find_home(cell), cell)

    async def follow_frozen_orders(cell: AsyncConnection, at_ms: int) -> None:
        await freezes.follow_home(await find_home(cell), cell, cell_id, at_ms)

    return {
        "nonces": make_nonce_partition_task(tolerance_s),
        "id ranges": make_id_range_task(
            partial(find_books_short_of_ids, margin=ID_MARGIN), allocate_range, home
        ),
        "deposit addresses": give_addresses,
        "wallet sessions": drop_expired,
        "frozen orders": follow_frozen_orders,
    }


FIGURE_TASKS: Final[Mapping[str, Task]] = {"figures": rollup.advance_all}
"""The tasks that add up a cell's books."""


class CellWorkers:
    """The workers of one apart cell."""

    def __init__(self, shared: Shared, cell: Cell) -> None:
        base = shared.base
        settings, home = base.settings, base.cells.connect_home
        connect = partial(base.cells.connect, cell)
        self._shared = shared
        self._cell = cell
        self._line = WorkerConnection(home)
        assert shared.payouts.make_payer is not None, "the program's payout workers make payers"
        self._payer = shared.payouts.make_payer(cell.cell_id, connect)
        self._expiry = Expiry(connect, shared.writer)
        bell = current_bell.get()
        tasks = make_cell_tasks(settings.timestamp_tolerance_s, cell.cell_id, self._line)
        changes_tables = {"nonces": tasks.pop("nonces")}
        away = asyncio.Event()
        self._others: list[Worker] = [
            *([] if bell is None else [partial(bell.listen, connect)]),
            CellUpdates(cell.cell_id, home, connect, away).run,
            IntakeWorker(
                home, connect, cell.cell_id, settings.open_chains, minimum_units=settings.deposit_minimum
            ).run,
            CreditingWorker(home, connect, shared.writer, screen_deposit=shared.screen_deposit).run,
            DecisionFollower(home, connect, cell.cell_id).run,
            shared.sender(
                connect, base.keyring, shared.callbacks, connect_home=home, tracing=shared.tracing
            ).run,
            Maintenance(connect, tasks).run,
            Maintenance(partial(db.connect, cell.table_url), changes_tables).run,
            partial(Maintenance(connect, FIGURE_TASKS).run, interval_s=rollup.INTERVAL_S),
        ]
        if cell.admin_url is not None:
            self._others.append(CellFollower(base.cells, cell, away).run)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. Work under way is finished."""
        compared = asyncio.Event()

        async def compare(stop: asyncio.Event) -> None:
            await self._wait_until_compared(stop)
            if not stop.is_set():
                compared.set()

        pay = start_after(compared, start_after(self._shared.payouts.checked, self._payer.run))
        expire = start_after(compared, self._expiry.run)
        try:
            await run_workers([compare, pay, expire, *self._others], stop)
        finally:
            await self._payer.close()
            await self._expiry.close()
            await self._line.close()

    async def _wait_until_compared(self, stop: asyncio.Event) -> None:
        began_ms: list[int] = []

        async def prepare() -> bool:
            # Without today's partition nothing can be written.
            await open_nonce_days(self._cell.table_url, now_ms() // DAY_MS)
            began_ms.append(await read_clock_ms(await self._line.get()))
            self._shared.ask_comparison()
            return True

        async def look() -> bool:
            return await is_compared_since(await self._line.get(), self._cell.cell_id, began_ms[0])

        name = f"start of cell {self._cell.name}"
        for turn in (prepare, look):
            await repeat_until(name, turn, stop=stop, interval_s=COMPARED_INTERVAL_S)


@dataclass(slots=True)
class _Running:
    cell: Cell
    stop: asyncio.Event
    task: asyncio.Task[None]


class CellSupervisor:
    """Runs the workers of every apart cell, or of the one that is named `only`."""

    def __init__(self, shared: Shared, only: str | None = None) -> None:
        self._shared = shared
        self._only = only
        self._home = WorkerConnection(shared.base.cells.connect_home)
        self._running: dict[int, _Running] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event, *, interval_s: float = LOOK_INTERVAL_S) -> None:
        """Start and end cells' workers until `stop` is set. Then all finish what they do."""
        try:
            await repeat("cells", self.look, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """End all workers."""
        for cell_id in list(self._running):
            self._end(cell_id)
        while self._ending:
            await asyncio.wait(list(self._ending))
        await self._home.close()

    async def look(self) -> None:
        """Start workers for new cells, end those of cells that are gone or moved. Raises psycopg.Error."""
        cells = self._shared.base.cells
        await cells.refresh_with(await self._home.get())
        wanted = {
            cell.cell_id: cell
            for cell in cells.list()
            if not cell.is_home and self._only in (None, cell.name)
        }
        for cell_id, running in list(self._running.items()):
            if wanted.get(cell_id) != running.cell or running.task.done():
                self._end(cell_id)
        for cell_id, cell in wanted.items():
            if cell_id not in self._running:
                log.info("working for a cell", cell=cell.name)
                ended = asyncio.Event()
                task = asyncio.create_task(self._work(cell, ended))
                self._running[cell_id] = _Running(cell, ended, task)

    def _end(self, cell_id: int) -> None:
        running = self._running.pop(cell_id)
        running.stop.set()
        self._ending.add(running.task)
        running.task.add_done_callback(self._ending.discard)

    async def _work(self, cell: Cell, stop: asyncio.Event) -> None:
        # The task, and those that it starts, are this cell's alone.
        bind_contextvars(cell=cell.name)
        try:
            await CellWorkers(self._shared, cell).run(stop)
        except Exception as error:
            # Its workers are started again; the other cells' go on.
            log_error(log, "the workers of a cell ended", error)
