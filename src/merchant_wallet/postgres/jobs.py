"""Long jobs that rewrite or copy books: two that touch the same book never run at once.

Rules:
- A job has a row in home's table `job` while its command runs: who has what, since when. The table's
  exclusion constraint refuses a second one with a part of the same scope.
- A scope is one book, all books of a cell, or everything. A book is named with its cell. So a job that moves
  it to another cell has it in both.
- The session of the command holds an advisory lock, which says that it lives. It decides nothing but that:
  the row of a dead command is deleted by whoever finds it in the way.
- A command whose session with home has died may go on elsewhere for a moment. So each job also checks under
  its own locks what it relies on: a copy its head, the archive its border.

Statements are in `jobs.sql`. All raise `psycopg.Error`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries, connect

Connection = AsyncConnection[Any]

log = structlog.get_logger(__name__)

QUERIES: Final = Queries(Path(__file__).with_name("jobs.sql"))
PATIENCE_S: Final = 2.0
"""The server may notice only after a moment that a command was killed."""
PAUSE_S: Final = 0.05
NOTE_INTERVAL_S: Final = 5.0


class Kind(StrEnum):
    """What a job does."""

    BOOK_MOVE = "move of a book"
    CELL_MOVE = "move of a cell"
    ARCHIVE = "archive"
    MONTH = "month report"
    ACCEPTANCE = "acceptance of a rollback"
    MIGRATION = "migration"
    CURRENCY_MODE = "change of the currency mode"


class Job(NamedTuple):
    """A job whose command lives. `subject` says for people what it has."""

    job_id: int
    kind: str
    subject: str
    actor: str
    began_ms: int

    def __str__(self) -> str:
        began = datetime.fromtimestamp(self.began_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{self.kind} ({self.subject}), begun by {self.actor} at {began} UTC"


class JobInTheWay(Exception):
    """Another job has a part of what this one needs. The text says which, and since when."""

    def __init__(self, job: Job | None) -> None:
        self.found = f"another job has these books, {job or 'which begins or ends just now'}"
        super().__init__(f"Nothing was done: {self.found}. Run this again when it has ended.")


class Scope(NamedTuple):
    """What a job needs. `ranges` is PostgreSQL's text of the numbers, `subject` that for people."""

    ranges: str
    subject: str


EVERYTHING: Final = Scope("{(,)}", "all books")
_BOOKS: Final = 1 << 40
"""The numbers of a cell. Ids of merchants are far below."""


def scope_of_cell(cell_id: int, name: str) -> Scope:
    """All books of a cell. Pure."""
    return Scope(f"{{[{cell_id * _BOOKS},{(cell_id + 1) * _BOOKS})}}", f"cell {name}")


def scope_of_book(merchant_id: int, *cell_ids: int) -> Scope:
    """One book, in each of these cells. Pure."""
    numbers = sorted({cell_id * _BOOKS + merchant_id for cell_id in cell_ids})
    ranges = ",".join(f"[{number},{number}]" for number in numbers)
    return Scope(f"{{{ranges}}}", f"the book of merchant {merchant_id}")


@asynccontextmanager
async def hold(
    home: Connection, kind: Kind, scope: Scope, actor: str, *, patience_s: float | None = None
) -> AsyncIterator[None]:
    """Have the scope for this job alone, as long as the context and the connection live.

    Raises JobInTheWay if another job has a part of it after `patience_s`, by default PATIENCE_S.
    """
    ends_s = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
    while (job_id := await _begin(home, kind, scope, actor)) is None:
        if time.monotonic() > ends_s:
            raise JobInTheWay(next(iter(await list_in_the_way(home, scope)), None))
        await asyncio.sleep(PAUSE_S)
    try:
        yield
    finally:
        try:
            await home.execute(QUERIES["end"].text, {"job_id": job_id})
            await home.execute(QUERIES["unlock"].text, {"job_id": job_id})
        except psycopg.Error as error:
            # What the job has done stays done. Without the connection there is no lock.
            await home.close()
            log.warning("the row of an ended job stays until another job needs its books", reason=str(error))


@asynccontextmanager
async def hold_book(
    home: Connection, kind: Kind, merchant_id: int, actor: str, *, patience_s: float | None = None
) -> AsyncIterator[int]:
    """Have the book of a merchant for this job alone. Returns the id of its cell, where it stays meanwhile.

    Raises JobInTheWay.
    """
    while True:
        cell_id = await _read_cell(home, merchant_id)
        scope = scope_of_book(merchant_id, cell_id)
        async with hold(home, kind, scope, actor, patience_s=patience_s):
            # A move may have ended between the look and the row.
            if await _read_cell(home, merchant_id) == cell_id:
                yield cell_id
                return


async def require_alone(home: Connection, kind: Kind, merchant_id: int, actor: str) -> None:
    """Have a book for the rest of the caller's transaction. Raises JobInTheWay.

    Whoever wants it meanwhile waits for the transaction's end, although the row is deleted at once.
    """
    scope = scope_of_book(merchant_id, await _read_cell(home, merchant_id))
    if (job_id := await _insert(home, kind, scope, actor)) is None:
        raise JobInTheWay(next(iter(await list_in_the_way(home, scope)), None))
    await home.execute(QUERIES["end"].text, {"job_id": job_id})


class Waiting(NamedTuple):
    """How a job waits for others: it tells `progress` for which, until `is_stopping`."""

    progress: Callable[[str], None]
    is_stopping: Callable[[], bool] = lambda: False


@contextmanager
def hold_alone(
    url: str, kind: Kind, scope: Scope, actor: str, waiting: Waiting | None = None
) -> Iterator[None]:
    """`hold` for code without an event loop, on a connection of its own. With `waiting` it waits for others.

    A database that is not migrated so far has no jobs, so there is none to wait for. Raises JobInTheWay.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            runner.run(_enter(stack, url, kind, scope, actor, waiting))
            yield
        finally:
            runner.run(stack.aclose())


async def _enter(
    stack: AsyncExitStack, url: str, kind: Kind, scope: Scope, actor: str, waiting: Waiting | None
) -> None:
    home = await stack.enter_async_context(await connect(url))
    if await (await home.execute(QUERIES["has_table"].text)).fetchone() != (True,):
        return
    noted_s = 0.0
    while True:
        try:
            await stack.enter_async_context(hold(home, kind, scope, actor))
        except JobInTheWay as other:
            if waiting is None or waiting.is_stopping():
                raise
            if time.monotonic() - noted_s > NOTE_INTERVAL_S:
                noted_s = time.monotonic()
                waiting.progress(f"waiting: {other.found}")
        else:
            return


async def list_in_the_way(home: Connection, scope: Scope) -> list[Job]:
    """The jobs with a part of a scope whose commands live, oldest first."""
    return await _list(home, "list_in_the_way", scope)


async def is_at_work(home: Connection, kind: Kind, scope: Scope) -> bool:
    """Whether a command lives that does this to a part of the scope."""
    return any(job.kind == kind for job in await list_in_the_way(home, scope))


async def list_all(home: Connection) -> list[Job]:
    """All jobs whose commands live, oldest first."""
    return await _list(home, "list_all", EVERYTHING)


async def _begin(home: Connection, kind: Kind, scope: Scope, actor: str) -> int | None:
    async with home.transaction():
        job_id = await _insert(home, kind, scope, actor)
        if job_id is not None:
            # Nobody sees the row before the lock is there.
            await home.execute(QUERIES["lock"].text, {"job_id": job_id})
        return job_id


async def _insert(home: Connection, kind: Kind, scope: Scope, actor: str) -> int | None:
    values = {"kind": kind.value, "scope": scope.ranges, "subject": scope.subject, "actor": actor}
    await home.execute(QUERIES["drop_dead"].text, values)
    row = await (await home.execute(QUERIES["begin"].text, values)).fetchone()
    return None if row is None else int(row[0])


async def _read_cell(home: Connection, merchant_id: int) -> int:
    row = await (await home.execute(QUERIES["read_cell"].text, {"merchant_id": merchant_id})).fetchone()
    if row is None:
        raise LookupError(f"There is no merchant {merchant_id}.")
    return int(row[0])


async def _list(home: Connection, name: str, scope: Scope) -> list[Job]:
    async with home.cursor(row_factory=class_row(Job)) as cursor:
        await cursor.execute(QUERIES[name].text, {"scope": scope.ranges})
        return await cursor.fetchall()
