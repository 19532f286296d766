"""Moves the book of one merchant to another cell, while it is in use.

1. The new cell gets a closed copy of the book. It is filled from the old one (see `book_copies`).
2. The whole copy is verified: its journal entry by entry, its rows, its checkpoints.
3. It is caught up until that takes a part of the budget only. New entries are verified each time.
4. The switch. Home says that the book may be closed. The old copy is closed, and its writers are waited
   for. What is left is copied, compared and verified. Home decides, and the new copy is opened.

The switch must end within a budget. If not, it is taken back, and tried again later. A mover that is killed
is continued by the same command, or undone; if it dies in the switch, a worker opens the right copy (see
`book_takeover`). Everything before home's decision can be repeated or undone without loss.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base.cells import DEFAULT_CELL_ID, Cell, Cells
from merchant_wallet.base.errors import TransientError
from merchant_wallet.book.verification import verify
from merchant_wallet.book.verification.tail import Head, check_tail
from merchant_wallet.book.verification.violations import ViolationFound
from merchant_wallet.merchants.cells import book_fence, book_moves
from merchant_wallet.merchants.cells.book_copies import BookCopy, Caught, remove_copy, require_plain
from merchant_wallet.merchants.cells.book_moves import (
    COPYING,
    OPENING,
    REOPENING,
    SWITCHED,
    SWITCHING,
    BookMove,
)
from merchant_wallet.merchants.cells.book_tables import MERCHANT, BookTable, list_tables
from merchant_wallet.merchants.cells.copies import CheckpointFolder, CopyWrong
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.merchants.cells.moves import Auditor, MoveLost, MoveRefused
from merchant_wallet.merchants.cells.moving import USUAL, Progress, Timing

Connection = AsyncConnection[Any]

PASSES: Final = 20
"""If so many passes do not become quick, the book is too large for the budget or too busy now."""
REST_S: Final = 20.0
"""The old copy is removed at the earliest so long after the switch."""
QUICK: Final = 0.5
"""The switch begins after a pass that took at most this part of the budget."""


@asynccontextmanager
async def open_mover(
    home: Connection,
    cells: Cells,
    move: BookMove,
    by: Auditor,
    progress: Progress,
    *,
    timing: Timing = USUAL,
) -> AsyncIterator["BookMover"]:
    """Connect to both cells.

    Raises MoveRefused if another mover runs, CellClosed, psycopg.OperationalError.
    """
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(book_moves.hold_book(home, move, by))
        # Another mover may have gone on until now.
        found = await book_moves.read_move(home, move.merchant_id)
        if found is None or found.move_id != move.move_id:
            raise MoveLost("Another command has ended this move.")
        await cells.refresh()
        old, new = [
            await stack.enter_async_context(await connect_to(cells, cell_id))
            for cell_id in (move.from_cell_id, move.to_cell_id)
        ]
        for cell in (old, new):
            await require_plain(cell)
        yield BookMover(home, old, new, found, by, progress, timing)


async def connect_to(cells: Cells, cell_id: int) -> Connection:
    """A connection to an open cell by its id. Raises MoveRefused, CellClosed, psycopg.OperationalError."""
    cell: Cell | None = next((cell for cell in cells.list() if cell.cell_id == cell_id), None)
    if cell is None:
        raise MoveRefused(f"There is no cell {cell_id} any more.")
    return await cells.connect_home() if cell.is_home else await cells.connect(cell)


class BookMover:
    """Moves one book. One mover of a book runs at a time (see `book_moves.hold_book`)."""

    def __init__(
        self,
        home: Connection,
        old: Connection,
        new: Connection,
        move: BookMove,
        by: Auditor,
        progress: Progress,
        timing: Timing,
    ) -> None:
        self.move = move
        self.closed_s = 0.0
        self._home = home
        self._old = old
        self._new = new
        self._by = by
        self._progress = progress
        self._timing = timing
        self._verified: Head | None = None

    @property
    def is_switched(self) -> bool:
        """Whether home has decided for the new cell."""
        return self.move.state in (OPENING, SWITCHED)

    async def run(self, checkpoints: CheckpointFolder | None) -> None:
        """Bring the move to its end, from wherever it stands. Raises MoveRefused, psycopg.Error."""
        if not self.is_switched:
            await self._open_old("continued")
            self.move = await book_moves.take_up(self._home, self.move)
            copy = await self._make_copy()
            await copy.copy_journal(self._say_copied)
            await copy.copy_nonces()
            await self._verify(copy, checkpoints)
            await self._switch_within_budget(copy)
        await self._open_new()

    async def undo(self) -> None:
        """Remove the new copy. The old one stays as it is. Raises MoveRefused."""
        if self.is_switched:
            raise MoveRefused(
                f"The book is in cell {self.move.to_cell} already: drop the old copy (--drop-old), then move"
                " it back."
            )
        await self._open_old("undone")
        # Whoever copies now can't go on.
        self.move = await book_moves.take_up(self._home, self.move)
        await self._remove(self._new, self.move.to_cell_id)
        await book_moves.end(self._home, self.move, self._by, "undo")

    async def drop_old(self) -> None:
        """Remove the old copy after the switch. Raises MoveRefused."""
        if not self.is_switched:
            raise MoveRefused(f"The book is still in use in cell {self.move.from_cell}.")
        await self._open_new()
        await self._let_readers_end()
        await self._remove(self._old, self.move.from_cell_id)
        await book_moves.end(self._home, self.move, self._by, "drop_old")

    async def _let_readers_end(self) -> None:
        """Whoever looked in home before the decision may still read the old copy, and must find it."""
        rest_s = REST_S - (self.move.now_ms - self.move.changed_ms) / 1000
        if rest_s > 0:
            self._progress(f"waiting {rest_s:.0f} s for those who still read the old copy")
            await asyncio.sleep(rest_s)

    async def _remove(self, cell: Connection, cell_id: int) -> None:
        # In home the merchant's own row stays.
        tables = [table for table in await self._list_tables() if cell_id or table.name != MERCHANT]
        if not await remove_copy(cell, self.move.merchant_id, tables, self.move.version):
            raise MoveLost("The copy is open, or of a later move.")

    async def _list_tables(self) -> Sequence[BookTable]:
        return await list_tables(self._old, self._new, to_home=self.move.to_cell_id == 0)

    def _say_copied(self, done: int, total: int) -> None:
        self._progress(f"copying the journal: {done} of {total} entries")

    async def _make_copy(self) -> BookCopy:
        self._progress(f"copying from cell {self.move.from_cell} to cell {self.move.to_cell}")
        tables = await self._list_tables()
        copy = BookCopy(self._old, self._new, self.move.merchant_id, tables, self.move.version)
        await copy.take_up()
        return copy

    async def _open_old(self, cause: str) -> None:
        """Open the old copy again, if an earlier mover left it closed."""
        if self.move.state == SWITCHING:
            self.move = await book_moves.take_back(self._home, self.move, self._by, cause)
        if self.move.state == REOPENING:
            await open_again(self._home, self._old, self.move)
            self.move = self.move._replace(state=COPYING)

    async def _open_new(self) -> None:
        if self.move.state == OPENING:
            await open_decided(self._home, self._new, self.move)
            self.move = self.move._replace(state=SWITCHED)

    async def _verify(self, copy: BookCopy, checkpoints: CheckpointFolder | None) -> None:
        """Verify the whole copy. Raises CopyWrong."""
        folder, keys, archive = checkpoints or (None, None, None)

        def show(_: int, done: int, total: int) -> None:
            self._progress(f"verifying: {done} of {total} entries")

        await copy.catch_up()
        report = await verify.verify_book(
            self._home,
            self._new,
            self.move.merchant_id,
            show,
            checkpoint_dir=folder,
            checkpoint_keys=keys,
            archive=archive,
            catch_up=copy.catch_up,
        )
        if report.violation is not None:
            raise CopyWrong(
                f"The copy is wrong ({report.violation.rule}): {report.violation.text}."
                f" See whether `merchant-wallet book verify {self.move.merchant_id}` finds it, too."
            )
        self._verified = Head(report.entries, report.last_entry_id or 0, report.head_hash)

    async def _check_new_entries(self, caught: Caught) -> None:
        """Verify the entries that a pass has copied."""
        assert self._verified is not None, "the whole copy was verified before"
        try:
            self._verified = await check_tail(
                self._new, self.move.merchant_id, self._verified, caught.entry_count, caught.head_hash
            )
        except ViolationFound as found:
            raise CopyWrong(f"The copy is wrong: {found.violation.text}.") from found

    async def _switch_within_budget(self, copy: BookCopy) -> None:
        for attempt in range(self._timing.attempts):
            if attempt:
                self._progress(f"the switch took too long; trying again in {self._timing.retry_s:g} s")
                await asyncio.sleep(self._timing.retry_s)
            await self._follow(copy)
            if await self._switch(copy):
                return
        raise self._too_slow()

    def _too_slow(self) -> MoveRefused:
        return MoveRefused(
            f"The switch would take longer than {self._timing.budget_s:g} s. The book is in use in its old"
            " cell."
            " Run the command again when there is less load, or with a higher --within."
        )

    async def _follow(self, copy: BookCopy) -> None:
        """Catch up until that is quick. Raises MoveRefused if it does not become quick."""
        self._progress("following")
        for _ in range(PASSES):
            caught = await copy.catch_up()
            await self._check_new_entries(caught)
            if caught.took_s <= self._timing.budget_s * QUICK:
                return
        raise self._too_slow()

    async def _switch(self, copy: BookCopy) -> bool:
        """Switch to the new copy. False if that took too long and was taken back."""
        self._progress("switching")
        began_s = time.monotonic()
        self.move = await book_moves.begin_switching(self._home, self.move, self._timing.budget_s)
        try:
            async with asyncio.timeout(self._timing.budget_s):
                await self._bring_over(copy)
            self.move = await book_moves.decide(self._home, self.move, self._by)
        except TimeoutError:
            await self._open_old("the budget ran out")
            return False
        except BaseException:
            await self._try_to_open_old()
            raise
        await self._open_new()
        self.closed_s = time.monotonic() - began_s
        return True

    async def _bring_over(self, copy: BookCopy) -> None:
        """Close the old copy, copy what is left, compare and verify."""
        if not await book_fence.close_copy(self._old, self.move.merchant_id, self.move.version):
            raise MoveLost("A worker has opened the old copy again.")
        await book_fence.wait_for_writers(self._old)
        await self._check_new_entries(await copy.catch_up(is_last=True))

    async def _try_to_open_old(self) -> None:
        """After an error. If this fails too, a worker does it."""
        try:
            await self._open_old("an error")
        except (psycopg.Error, TransientError, MoveRefused) as error:
            self._progress(f"the old copy is still closed, a worker opens it: {error}")


async def open_again(home: Connection, old: Connection, move: BookMove) -> None:
    """Open the old copy after a switch was taken back. Repeating it is harmless."""
    await book_fence.open_copy(old, move.merchant_id, move.version)
    await book_moves.note_reopened(home, move)


async def open_decided(home: Connection, new: Connection, move: BookMove) -> None:
    """Open the new copy after home's decision. Repeating it is harmless."""
    if move.to_cell_id != DEFAULT_CELL_ID:
        # Its books may have used a rate at home that the cell has not heard of yet.
        await mirror(home, new)
    await book_fence.open_copy(new, move.merchant_id, move.version)
    await book_moves.note_opened(home, move)
