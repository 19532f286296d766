"""One writer of books for each cell, behind the interface of a single one.

- A cell that is away refuses the commands of its own merchants at once. Each second one command tries it.
- When a cell has moved, a new writer takes its commands. The old one answers what it has, at the new place,
  too: a COMMIT that was cut off at the old place is looked up where the book is now.
- The default cell is always tried, as if there were no others.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.cells import Cell, CellClosed
from merchant_wallet.base.errors import TransientError
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.committer import OpenConnection
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection
from merchant_wallet.book.errors import BookClosed, Unavailable
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.cells.directory import Directory, choose_plans, require_cell

log = structlog.get_logger("writer")

REFUSAL_S: Final = 1.0
"""After a failed connect a cell refuses commands for this long."""

MakeWriter = Callable[[Cell, OpenConnection, Callable[[int], None]], Writer]
"""Makes the writer of a cell. It calls the last argument with each merchant whose book is not open there."""


class _CellWriter:
    """The writer of one cell, as the cell was when it was made, and whether connecting fails now."""

    def __init__(
        self,
        cell: Cell,
        make_writer: MakeWriter,
        note_closed: Callable[[int], None],
        note_failure: Callable[[bool], None],
        find_newest: Callable[[Cell], Cell],
    ) -> None:
        self.cell = cell
        self._find_newest = find_newest
        connect = PipelineConnection.open if cell.is_home else self._connect
        self.writer = make_writer(cell, connect, note_closed)
        self._note_failure = note_failure
        self._trying = 0
        self._failed_s: float | None = None

    @property
    def is_away(self) -> bool:
        """Whether a connect failed just now, or is tried again now."""
        if self._failed_s is None:
            return False
        return self._trying > 0 or time.monotonic() - self._failed_s < REFUSAL_S

    async def _open(self, statements: Mapping[bytes, bytes]) -> PipelineConnection:
        cell = self._find_newest(self.cell)
        if not cell.is_open:
            raise CellClosed(f"cell {cell.name} is closed")

        async def check(connection: AsyncConnection) -> None:
            await require_cell(connection, cell)
            await choose_plans(connection)

        return await PipelineConnection.open(cell.url, statements, check=check)

    async def _connect(self, url: str, statements: Mapping[bytes, bytes]) -> PipelineConnection:
        self._trying += 1
        try:
            connection = await self._open(statements)
        except (ConnectionLost, CellClosed) as error:
            self._failed_s = time.monotonic()
            self._note_failure(isinstance(error, CellClosed))
            raise ConnectionLost(str(error)) from error
        finally:
            self._trying -= 1
        self._failed_s = None
        return connection


class CellWriters:
    """Takes submissions for any book of any cell. Gives each its outcome after the commit."""

    def __init__(self, directory: Directory, make_writer: MakeWriter) -> None:
        self._directory = directory
        self._make_writer = make_writer
        self._writers: dict[int, _CellWriter] = {}
        self._replaced: list[Writer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._default = self._take(directory.list()[0]).writer

    async def open(self) -> None:
        """Connect to the default cell once, and read which cells there are. Raises Unavailable."""
        await self._default.open()
        try:
            await self._directory.refresh()
        except psycopg.Error as error:
            raise Unavailable(f"database: {error}") from error

    async def close(self) -> None:
        """Refuse new submissions, finish the queued ones, close the connections."""
        self._is_closing = True
        await asyncio.gather(*[entry.writer.close() for entry in self._writers.values()])
        while self._tasks:
            await asyncio.wait(self._tasks)

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """Put a command into its book's queue.

        Raises Unavailable if the queue is full, the cell is away or the writer closes. The future returns the
        outcome, or raises Unavailable or CommandFailed.
        """
        cell = self._directory.known(merchant_id)
        if cell is None:
            return self._find_and_submit(merchant_id, submission)
        if cell.is_home:
            return self._default.submit(merchant_id, submission)
        if self._is_closing:
            raise Unavailable("stopping")
        entry = self._take(cell)
        if entry.is_away or not cell.is_open:
            self._refresh()
            raise Unavailable(f"cell {cell.name} is away")
        return entry.writer.submit(merchant_id, submission)

    def _take(self, cell: Cell) -> _CellWriter:
        """The writer of a cell; a new one if the cell has moved."""
        entry = self._writers.get(cell.cell_id)
        if entry is not None and entry.cell is cell:
            return entry
        if entry is not None:
            self._replaced.append(entry.writer)
            self._start(entry.writer.close())
        entry = _CellWriter(
            cell, self._make_writer, self._note_closed, self._note_failure, self._directory.newest
        )
        self._writers[cell.cell_id] = entry
        return entry

    def _find_and_submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        if self._is_closing:
            raise Unavailable("stopping")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._start(self._answer(future, merchant_id, submission))
        return future

    async def _answer(
        self, future: asyncio.Future[Outcome], merchant_id: int, submission: Submission
    ) -> None:
        try:
            outcome = await self._find_and_ask(merchant_id, submission)
        except Exception as error:
            if not future.done():
                future.set_exception(error)
            return
        if not future.done():
            future.set_result(outcome)

    async def _find_and_ask(self, merchant_id: int, submission: Submission) -> Outcome:
        try:
            await self._directory.find(merchant_id)
        except KeyError as error:
            raise BookClosed(f"there is no merchant {merchant_id}") from error
        except (psycopg.Error, TransientError) as error:
            raise Unavailable(f"the cell of merchant {merchant_id} is unknown now: {error}") from error
        return await self.submit(merchant_id, submission)

    def _note_closed(self, merchant_id: int) -> None:
        self._directory.forget(merchant_id)
        self._note_failure(is_closed=True)

    def _note_failure(self, is_closed: bool) -> None:
        if is_closed:
            self._directory.note_closed()
        self._refresh()

    def _refresh(self) -> None:
        """Read the table of cells soon: a refusal says that the directory may be outdated."""
        if not (self._is_closing or self._directory.is_fresh):
            self._start(self._read_directory())

    async def _read_directory(self) -> None:
        try:
            await self._directory.refresh()
        except psycopg.Error as error:
            log.warning("cells can't be read", reason=str(error))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _sum(self, name: str) -> int:
        writers = [*self._replaced, *(entry.writer for entry in self._writers.values())]
        return sum(getattr(writer, name) for writer in writers)

    @property
    def waiting_count(self) -> int:
        """How many commands wait, over all books."""
        return self._sum("waiting_count")

    @property
    def group_count(self) -> int:
        """Groups that were committed."""
        return self._sum("group_count")

    @property
    def batch_count(self) -> int:
        """Batches that were committed."""
        return self._sum("batch_count")

    @property
    def command_count(self) -> int:
        """Commands in these batches."""
        return self._sum("command_count")

    @property
    def optimistic_count(self) -> int:
        """Batches that were judged on the cache."""
        return self._sum("optimistic_count")
