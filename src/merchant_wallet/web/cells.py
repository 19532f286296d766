"""The cells of the pages: a bounded pool for each apart cell, and what one page uses of them.

Rules:
- In the default cell a page uses its connection to home. So with one cell nothing is different.
- A page uses at most one connection to each cell, and gives all of them back at its end.
- People take turns for the connections to a cell as they do for those to home (`base.fair_places`). A page
  waits while it holds its connection to home. What holds a connection to a cell must not wait for a second
  one.
- A cell that breaks or refuses a connection is away for all pages at once. A connection in the background
  finds out when it is back, so no page waits for it.
- A cell that does not answer a page in time is slow for that page, and nothing else. A new connection in the
  background (`PING_S`) tells whether it is away.
- A silent connection is shut down. To cancel its statement would wait for the silent server too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final, TypeVar
from weakref import WeakSet

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.cells import DEFAULT_CELL_ID, Cell, CellClosed
from merchant_wallet.base.connection_limits import PAGE_CELL_CONNECTIONS
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.fair_places import FairPlaces
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.hosts import shut_down
from merchant_wallet.base.pool import Pool, PoolBusy, is_idle
from merchant_wallet.base.workers import Connect
from merchant_wallet.merchants.cells.carrying import carry
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.reporting.cells import Reach, Source, TooSlow
from merchant_wallet.web.connections import Away, limit_statements

log = structlog.get_logger("pages")

K = TypeVar("K")
T = TypeVar("T")
OPEN_S: Final = 1.5
"""How long a page waits for a connection to a cell."""
PING_S: Final = 5.0
"""A cell that was slow and can't be connected to within this time is away. A busy one can."""
ANSWER_S: Final = 1.8
"""How long one read of a list may take in a cell. It is less than what the read of all cells waits."""
HOLD_S: Final = 5.0
"""How long a page about one merchant may use its cell."""
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 15.0
"""A cell that is away is tried again after the first pause, then after longer ones."""


class CellAway(Away):
    """A cell can't be used now. `name` is for the platform's staff."""

    state = "away"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"cell {name} is {self.state}: {reason}")
        self.name = name


class CellSlow(CellAway, TooSlow):
    """A cell has not answered in time, or all connections of the pages to it are in use."""

    state = "slow"


class CellPool:
    """The connections to one cell, as the cell was when the pool was made."""

    def __init__(self, cell: Cell, directory: Directory, limit: int) -> None:
        self.cell = cell
        self._directory = directory
        self._places = FairPlaces(limit)
        self._pool = Pool(self._open, limit, is_usable=is_idle)
        self._failures = 0
        self._reason = ""
        self._trying: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._shut_down: WeakSet[AsyncConnection] = WeakSet()

    @asynccontextmanager
    async def take(self, owner: Owner) -> AsyncIterator[AsyncConnection]:
        """A connection for one page, when it is the owner's turn. Raises CellAway, CellSlow."""
        if self._trying is not None:
            raise CellAway(self.cell.name, self._reason)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._places.hold(owner, OPEN_S))
                connection = await stack.enter_async_context(self._pool.acquire())
            except PoolBusy as error:
                raise CellSlow(self.cell.name, str(error)) from error
            except TimeoutError as error:
                raise self._note_slow(_describe(error)) from error
            except (psycopg.OperationalError, TransientError) as error:
                self.note_failure(_describe(error))
                raise CellAway(self.cell.name, _describe(error)) from error
            with self.limit(connection, HOLD_S):
                yield connection

    @contextmanager
    def limit(self, connection: AsyncConnection, limit_s: float) -> Iterator[None]:
        """Shut a connection down if what is inside takes longer than `limit_s`."""
        timer = asyncio.get_running_loop().call_later(limit_s, self._end, connection)
        try:
            yield
        finally:
            timer.cancel()

    def _end(self, connection: AsyncConnection) -> None:
        self._shut_down.add(connection)
        shut_down(connection.pgconn)

    def explain_broken(self, connection: AsyncConnection, error: Exception) -> CellAway:
        """What it means that a page's connection has broken: a limit was over, or the cell has failed."""
        if connection in self._shut_down:
            return self._note_slow("no answer in time")
        self.note_failure(_describe(error))
        return CellAway(self.cell.name, _describe(error))

    def _note_slow(self, reason: str) -> CellSlow:
        """The cell has not answered in time. Look in the background whether it is away."""
        if self._trying is None and self._pinging is None:
            log.warning("cell slow", cell=self.cell.name, reason=reason)
            self._pinging = asyncio.create_task(self._ping())
        return CellSlow(self.cell.name, reason)

    async def _ping(self) -> None:
        try:
            await (await self._open(PING_S)).close()
        except Exception as error:
            # Whatever it is, the cell can't be used.
            self.note_failure(_describe(error))
        finally:
            self._pinging = None

    def note_failure(self, reason: str) -> None:
        """The cell is away from now on, until it is tried again."""
        if self._trying is None:
            log.warning("cell away", cell=self.cell.name, reason=reason)
            self._reason = reason
            self._failures += 1
            self._trying = asyncio.create_task(self._try_again())

    def note_answer(self) -> None:
        """The cell has answered a page."""
        self._failures = 0

    async def close(self) -> None:
        """Close all connections."""
        tasks = [task for task in (self._trying, self._pinging) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._pool.close()

    async def _open(self, limit_s: float | None = None) -> AsyncConnection:
        async with asyncio.timeout(limit_s or OPEN_S):
            connection = await self._directory.connect(self.cell)
            try:
                await limit_statements(connection)
            except BaseException:
                await connection.close()
                raise
            return connection

    async def _try_again(self) -> None:
        """Wait until the cell can be connected to. After each failure in a row the pause is longer."""
        # The idle connections are as broken as the one that failed.
        await self._pool.close()
        while True:
            await asyncio.sleep(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** (self._failures - 1)))
            try:
                await (await self._open()).close()
            except Exception as error:
                # Whatever it is, the cell can't be used. Pages name it, with this reason in their log lines.
                self._reason = _describe(error)
                self._failures += 1
                continue
            self._trying = None
            log.info("cell back", cell=self.cell.name)
            return


def _describe(error: BaseException) -> str:
    return " ".join(str(error).split()) or "no answer in time"


class CellPools:
    """The pools of one site. A cell that has moved gets a new pool."""

    def __init__(self, directory: Directory, limit: int = PAGE_CELL_CONNECTIONS) -> None:
        self.directory = directory
        self._limit = limit
        self._pools: dict[int, CellPool] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, cell: Cell) -> CellPool:
        """The pool of an apart cell."""
        pool = self._pools.get(cell.cell_id)
        if pool is not None and pool.cell is cell:
            return pool
        if pool is not None:
            closing = asyncio.create_task(pool.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        pool = self._pools[cell.cell_id] = CellPool(cell, self.directory, self._limit)
        return pool

    @asynccontextmanager
    async def open(self, home: AsyncConnection, owner: Owner) -> AsyncIterator["PageCells"]:
        """The cells for one page of an owner, which has this connection to home. Raises CellAway."""
        async with AsyncExitStack() as stack:
            cells = PageCells(self, home, owner, stack)
            try:
                yield cells
            except psycopg.Error as error:
                cells.raise_if_away(error)
                raise

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*[pool.close() for pool in self._pools.values()], *self._closing)


class PageCells(Reach):
    """The cells as one page uses them."""

    def __init__(self, pools: CellPools, home: AsyncConnection, owner: Owner, stack: AsyncExitStack) -> None:
        super().__init__(self._find_source, self._list_sources, home)
        self._pools = pools
        self._home = home
        self._owner = owner
        self._stack = stack
        self._cells: dict[int, Cell] = {}
        self._taken: dict[int, tuple[CellPool, AsyncConnection]] = {}

    async def of(self, merchant_id: int) -> AsyncConnection:
        """A connection to the cell of a merchant's book, until the page ends.

        In the default cell it is the page's connection to home. Raises CellAway.
        """
        return await self._take(await self.find_cell(merchant_id))

    async def find_cell(self, merchant_id: int) -> Cell:
        """The cell of a merchant's book. Raises CellClosed, psycopg.Error."""
        await self._learn([merchant_id])
        return self._cells[merchant_id]

    async def find_connect(self, merchant_id: int) -> Connect:
        """How to make a connection of its own to the cell of a merchant's book."""
        cell = await self.find_cell(merchant_id)
        return partial(self._pools.directory.connect, cell)

    @property
    def connect_home(self) -> Connect:
        """How to make a connection of its own to home."""
        return self._pools.directory.connect_home

    async def carry(self, merchant_id: int) -> None:
        """Tell the merchant's cell what the page has just committed in home. If it is away, workers do it."""
        try:
            cell = await self.find_cell(merchant_id)
            if not cell.is_home:
                await carry(self._home, await self.of(merchant_id), cell.cell_id, merchant_id)
        except (psycopg.OperationalError, TransientError) as error:
            log.info("carried later", merchant_id=merchant_id, reason=_describe(error))

    async def try_groups(
        self,
        asked: Iterable[K],
        merchant_of: Callable[[K], int],
        read: Callable[[Sequence[K], AsyncConnection], Awaitable[T]],
    ) -> list[tuple[Sequence[K], T | None]]:
        """Things of many merchants, read together in each cell. The answer of a cell that is away is None."""
        things = list(asked)
        await self._learn({merchant_of(one) for one in things})
        groups: dict[int, list[K]] = {}
        for one in things:
            groups.setdefault(self._cells[merchant_of(one)].cell_id, []).append(one)
        asks = {merchant_of(group[0]): partial(read, group) for group in groups.values()}
        answers = await self.try_each(asks)
        return [(group, answers.get(merchant_of(group[0]))) for group in groups.values()]

    def raise_if_away(self, error: psycopg.Error) -> None:
        """Raise CellAway or CellSlow if the connection to a cell has broken."""
        for pool, connection in self._taken.values():
            if connection.closed:
                raise pool.explain_broken(connection, error) from error

    async def _learn(self, merchant_ids: Collection[int]) -> None:
        if unknown := [one for one in merchant_ids if one not in self._cells]:
            self._cells |= await self._pools.directory.find_now(self._home, unknown)

    async def _take(self, cell: Cell) -> AsyncConnection:
        if cell.is_home:
            return self._home
        if cell.cell_id not in self._taken:
            pool = self._pools.get(cell)
            self._taken[cell.cell_id] = pool, await self._stack.enter_async_context(pool.take(self._owner))
        return self._taken[cell.cell_id][1]

    async def _find_source(self, merchant_id: int) -> Source:
        return self._make_source(await self.find_cell(merchant_id))

    async def _list_sources(self) -> Sequence[Source]:
        await self._pools.directory.refresh_with(self._home)
        return [self._make_source(cell) for cell in self._pools.directory.list()]

    def _make_source(self, cell: Cell) -> Source:
        return Source(cell.name, lambda: self._lend(cell))

    @asynccontextmanager
    async def _lend(self, cell: Cell) -> AsyncIterator[AsyncConnection]:
        """The page's connection to a cell for one read. Raises CellAway, CellSlow."""
        connection = await self._take(cell)
        if cell.cell_id == DEFAULT_CELL_ID:
            yield connection
            return
        pool = self._pools.get(cell)
        try:
            with pool.limit(connection, ANSWER_S):
                yield connection
        except psycopg.Error as error:
            if not connection.closed:
                raise
            raise pool.explain_broken(connection, error) from error
        except CellClosed as error:
            raise CellAway(cell.name, _describe(error)) from error
        pool.note_answer()
