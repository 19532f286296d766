"""Moves a whole cell to another database, while it is in use.

1. The new place gets an empty schema, closed for the service, and PostgreSQL's logical replication fills it.
2. When all tables are copied, every book of the copy is verified: its journal, its rows, its checkpoints.
3. The switch. Home says that the cell is closed. The old place is closed and its sessions are ended. The new
   place applies what is left. All books are compared. The new place is opened. Home says where the cell is.
4. Replication is dropped, and the service's roles may not write at the old place any more.

The switch must end within a budget. If not, it is taken back, and tried again later. A mover that is killed
is continued by the same command, or undone; if it dies in the switch, a worker takes the switch back (see
`takeover`). Everything before home's decision can be repeated or undone without loss.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from merchant_wallet.audit.rollback.evidence import ROLLED_BACK
from merchant_wallet.base import db
from merchant_wallet.merchants.cells import fence, inspection, moves, new_place
from merchant_wallet.merchants.cells.copies import CheckpointFolder, CopyVerifier, compare
from merchant_wallet.merchants.cells.moves import (
    COPYING,
    PLANNED,
    REOPENING,
    SWITCHED,
    SWITCHING,
    Auditor,
    CellMove,
    MoveLost,
    MoveRefused,
)
from merchant_wallet.merchants.cells.replication import WAIT_NOTE_S, Replication, drop_source

Connection = AsyncConnection[Any]
Progress = Callable[[str], None]

SESSION_NAME: Final = "merchant-wallet mover"
"""The mover's sessions are not the service's: the fence does not end them."""
CONNECT: Final = {"connect_timeout": db.CONNECT_TIMEOUT_S}
BUDGET_S: Final = 1.2
"""A cell is closed for at most this long before its switch is taken back."""
RETRY_S: Final = 10.0
ATTEMPTS: Final = 5
"""The switch is tried this often. Each attempt closes the cell for up to the budget."""
MAX_LAG_BYTES: Final = 1 << 20
"""The switch begins only if the new place is at most so far behind."""
MAX_TAIL_S: Final = 0.3
"""The switch begins only after the newest entries were checked within this time."""
POLL_S: Final = 0.05


class Urls(NamedTuple):
    """How the two places are reached: by the tables' owner, and by who may replicate there."""

    old: str
    old_admin: str
    new: str
    new_admin: str


class Timing(NamedTuple):
    """How long the switch may take, and when it is tried again."""

    budget_s: float = BUDGET_S
    retry_s: float = RETRY_S
    attempts: int = ATTEMPTS


USUAL: Final = Timing()


def make_urls(home_url: str, move: CellMove, new_url: str | None, old_url: str | None) -> Urls:
    """The owner of home's tables owns the cell's tables at both places. Typed URLs may name other users."""
    return Urls(
        db.for_writing(db.place(home_url, move.old_address, move.schema_name)),
        _administer(home_url, move.old_address, move.schema_name, old_url),
        db.for_writing(db.place(home_url, move.address, move.schema_name)),
        _administer(home_url, move.address, move.schema_name, new_url),
    )


def _administer(home_url: str, address: str | None, schema: str, typed: str | None) -> str:
    """A URL without a search path. Without a user in the typed one it is home's."""
    if typed is None or not db.names_user(typed):
        placed = conninfo_to_dict(db.place(home_url, typed or address, schema))
        typed = make_conninfo("", **{**placed, "options": None})
    return db.for_writing(typed)


@asynccontextmanager
async def open_mover(
    home: Connection,
    home_url: str,
    move: CellMove,
    by: Auditor,
    progress: Progress,
    *,
    new_url: str | None = None,
    old_url: str | None = None,
    timing: Timing | None = None,
) -> AsyncIterator["Mover"]:
    """Connect to both places. `new_url` and `old_url` may name who administers them.

    Raises MoveRefused if another mover runs, psycopg.OperationalError.
    """
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(moves.hold_cell(home, move, by))
        move = await moves.read_again(home, move)
        urls = make_urls(home_url, move, new_url, old_url)
        opened = [await stack.enter_async_context(await db.connect(url, SESSION_NAME)) for url in urls]
        if move.state != SWITCHED and await fence.read_moved_to(opened[0]) is not None:
            raise MoveRefused(ROLLED_BACK)
        yield Mover(home, move, urls, opened, by, progress, timing or USUAL)


class Mover:
    """Moves one cell. One mover of a cell runs at a time (see `moves.hold_cell`)."""

    def __init__(
        self,
        home: Connection,
        move: CellMove,
        urls: Urls,
        opened: list[Connection],
        by: Auditor,
        progress: Progress,
        timing: Timing,
    ) -> None:
        self.move = move
        self.closed_s = 0.0
        self._home = home
        self._urls = urls
        self._by = by
        self._progress = progress
        self._timing = timing
        self._old, old_admin, self._new, new_admin = opened
        self._old_admin = old_admin
        self._new_admin = new_admin
        self._replication = self._make_replication()

    def _make_replication(self) -> Replication:
        conninfo = make_conninfo("", **{**db.DEFAULTS, **CONNECT, **conninfo_to_dict(self._urls.old_admin)})
        return Replication(self.move, self._old_admin, self._new_admin, conninfo, self._progress)

    async def run(self, checkpoints: CheckpointFolder | None) -> None:
        """Bring the move to its end, from wherever it stands. Raises MoveRefused, psycopg.Error."""
        if self.move.state == PLANNED:
            await self._begin()
        if self.move.state != SWITCHED:
            await self._open_old("continued")
            await self._copy()
            verifier = CopyVerifier(self._home, self._new, checkpoints)
            await self._verify(verifier)
            await new_place.analyze(self._new, self.move.schema_name, await self._replication.list_tables())
            await self._switch_within_budget(verifier)
        await self.finish()

    async def undo(self) -> None:
        """Remove the copy. The old place stays as it is. Raises MoveRefused."""
        if self.move.state == SWITCHED:
            raise MoveRefused(f"Cell {self.move.name} is at its new place: it can only be moved back.")
        await self._open_old("undone")
        await self._close_new()
        await self._replication.drop_subscription()
        await drop_source(self._old_admin, self.move)
        await new_place.remove(self._new, self.move)
        await moves.end(self._home, self.move, self._by, "undo")

    async def drop_old(self) -> None:
        """Drop the old copy after the switch. Raises MoveRefused."""
        if self.move.state != SWITCHED:
            raise MoveRefused(f"Cell {self.move.name} is still in use at its old place.")
        await self.finish()
        await new_place.drop_old(self._old, self.move)
        await moves.end(self._home, self.move, self._by, "drop_old")

    async def count(self) -> tuple[int, int]:
        """The open books at the new place, and their entries."""
        row = await (await self._new.execute(inspection.QUERIES["count_entries"].text)).fetchone()
        assert row is not None, "a count always has a row"
        return row[0], row[1]

    async def finish(self) -> None:
        """After the switch: end the replication, and take the right to write at the old place."""
        await self._replication.drop_subscription()
        await drop_source(self._old_admin, self.move)
        await new_place.revoke_writes(self._old, self.move.schema_name)
        await new_place.note_moved(self._old, self.move)
        await new_place.clear_mark(self._new, self.move)

    async def _begin(self) -> None:
        """What can be checked is checked first. So a command with a wrong URL leaves nothing behind."""
        await new_place.require_migrated(self._urls.old, self.move.schema_name)
        await self._replication.check()
        await new_place.check_place(self._home, self._new, self.move)
        self.move = await moves.begin(self._home, self.move.cell_id, self.move.address, self._by)
        self._replication = self._make_replication()

    async def _open_old(self, cause: str) -> None:
        """Open the old place again, if an earlier mover left it closed."""
        if self.move.state == SWITCHING:
            self.move = await moves.take_back(self._home, self.move, self._by, cause)
        if self.move.state == REOPENING:
            await open_again(self._home, self._old, self.move)
            self.move = self.move._replace(state=COPYING)

    async def _close_new(self) -> None:
        """Close the new place, if an earlier mover has opened it without a decision."""
        if await new_place.is_ours(self._new, self.move):
            await fence.close_copy(self._new, self.move.cell_id, self.move.version)

    async def _copy(self) -> None:
        await new_place.require_migrated(self._urls.old, self.move.schema_name)
        if (warning := await self._replication.check()) is not None:
            self._progress(warning)
        await self._close_new()
        if await self._replication.is_subscribed():
            await new_place.require_same_tables(self._urls.new, self.move.schema_name)
        else:
            self._progress("preparing the new place")
            await new_place.make_empty(self._old, self._new, self._urls.new, self.move)
        await new_place.add_nonce_days(self._old, self._new)
        await self._replication.ensure()
        await self._wait_copied()

    async def _wait_copied(self) -> None:
        said, said_s = "", 0.0
        while True:
            total, copied = await self._replication.count_tables()
            text, now_s = f"copying: {copied} of {total} tables", time.monotonic()
            if text != said:
                said, said_s = text, now_s
                self._progress(text)
            elif now_s - said_s > WAIT_NOTE_S:
                said_s = now_s
                self._progress(f"{text}; {await self._replication.describe_errors()}")
            if total and copied == total:
                return
            await asyncio.sleep(POLL_S)

    async def _verify(self, verifier: CopyVerifier) -> None:
        def show(done: int, total: int) -> None:
            self._progress(f"verifying: {done} of {total} books")

        await self._replication.wait_applied()
        await verifier.verify_all(self._replication.wait_applied, show)

    async def _switch_within_budget(self, verifier: CopyVerifier) -> None:
        for attempt in range(self._timing.attempts):
            if attempt:
                self._progress(f"the switch took too long; trying again in {self._timing.retry_s:g} s")
                await asyncio.sleep(self._timing.retry_s)
                await self._close_new()
                await self._replication.ensure()
            await self._follow(verifier)
            if await self._switch(verifier):
                return
        raise MoveRefused(
            f"The switch took longer than {self._timing.budget_s:g} s each time. The cell is in use at its"
            " old place. Run the command again when there is less load."
        )

    async def _follow(self, verifier: CopyVerifier) -> None:
        """Wait until the new place is nearly up to date, and check what is new there."""
        self._progress("following")
        noted_s = time.monotonic()
        while True:
            await new_place.add_nonce_days(self._old, self._new)
            began_s = time.monotonic()
            await verifier.check_tails()
            checked_s = time.monotonic() - began_s
            lag = await self._replication.read_lag()
            if checked_s < MAX_TAIL_S and lag <= MAX_LAG_BYTES:
                return
            if time.monotonic() - noted_s > WAIT_NOTE_S:
                noted_s = time.monotonic()
                errors = await self._replication.describe_errors()
                self._progress(f"following: {lag} bytes behind, checked in {checked_s:.1f} s; {errors}")
            await asyncio.sleep(POLL_S)

    async def _switch(self, verifier: CopyVerifier) -> bool:
        """Switch to the new place. False if that took too long and was taken back."""
        self._progress("switching")
        began_s = time.monotonic()
        self.move = await moves.begin_switching(self._home, self.move)
        try:
            async with asyncio.timeout(self._timing.budget_s):
                await self._bring_over(verifier)
            self.move = await moves.decide(self._home, self.move, self._by)
        except TimeoutError:
            await self._open_old("the budget ran out")
            return False
        except BaseException:
            await self._try_to_open_old()
            raise
        finally:
            self.closed_s = time.monotonic() - began_s
        return True

    async def _bring_over(self, verifier: CopyVerifier) -> None:
        """Close the old place, bring over what is left, compare, and open the new place."""
        cell_id, version = self.move.cell_id, self.move.version
        if not await fence.close_copy(self._old, cell_id, version):
            raise MoveLost("A worker has opened the old place again.")
        await fence.drain(self._old_admin, self.move.schema_name, self._progress)
        await self._replication.wait_applied()
        await verifier.check_tails()
        await compare(self._old, self._new)
        await self._replication.disable()
        if not await fence.open_copy(self._new, cell_id, version):
            raise MoveLost("Another mover has closed the new place.")

    async def _try_to_open_old(self) -> None:
        """After an error. If this fails too, a worker does it."""
        try:
            await self._open_old("an error")
        except MoveLost as lost:
            self._progress(f"{lost}")
        except psycopg.Error as error:
            self._progress(f"the old place may still be closed; then a worker opens it: {error}")


async def open_again(home: Connection, old: Connection, move: CellMove) -> None:
    """Open the old place after a switch was taken back. Repeating it is harmless."""
    await fence.open_copy(old, move.cell_id, move.version)
    await moves.note_reopened(home, move)
