"""Places books again, after home or a cell was restored to before one moved.

Rules:
- Home raises a merchant's `move_version` before any copy takes it on. So a copy with a higher number than
  home's shows a move that home has lost. An open copy in another cell than home says is left of such a move,
  or of a cell that was rolled back.
- Outside home at most one copy with a higher number is open, and it is the right one.
- Without one, it is the whole copy that has the newest signed checkpoint of the book. Of several, the longest
  one, if the others are beginnings of it. If they went different ways after that checkpoint, two people
  choose (see `kept_copies`), and nothing is placed before.
- All other copies are closed. What they alone have is named. Orders there of which nothing was signed are
  never paid. The payouts of the others are closed as lost: their orders are in no book. Home records the move
  again, so `merchant move --drop-old` removes the old copy.
- Other copies are closed first, then the right one is opened, then home is told. So after a kill the same
  copy is chosen again.
- A book without any copy begins anew, empty and with a new id range: its last copy was lost with home. Its
  open payouts are closed and named, since their orders are lost.
- So does a book all of whose copies are closed and were still being filled. These are removed before. A copy
  that is wrong in another way stays, and a person must restore a right one.

Statements are in `book_placement.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.cells import DEFAULT_CELL_ID, Databases
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.checkpoints import check_checkpoints
from merchant_wallet.book.home import LOST
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.merchants.cells import book_fence, kept_copies
from merchant_wallet.merchants.cells.book_copies import remove_copy
from merchant_wallet.merchants.cells.book_tables import list_tables
from merchant_wallet.merchants.cells.copies import CheckpointFolder
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.id_ranges import take_range

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("book_placement.sql"))
PAGE: Final = 1000
OF_HOME: Final = "payout"
"""The rule of `verify` that compares with home, which may be older. The book itself is checked before."""


class NoWholeCopy(Exception):
    """No copy of a book is whole. The text says what to do."""


class CopiesDiffer(Exception):
    """Copies of a book went different ways, and nothing proves which is right. The text says what to do."""


class Copy(NamedTuple):
    """A copy of a book in a cell."""

    cell_id: int
    merchant_id: int
    is_open: bool
    move_version: int
    entry_count: int


class KnownPlace(NamedTuple):
    """Where home says that a book is, and whether it was opened there.

    `is_between`: a move in home has closed it for a moment, and a worker opens it again.
    """

    merchant_id: int
    cell_id: int
    move_version: int
    is_opened: bool
    is_between: bool


class PlacedBook(NamedTuple):
    """A book that was placed. `left_behind`: the entries that only closed copies have, by cell.

    `closed` are orders among them for which money was reserved or a transfer signed.
    """

    merchant_id: int
    cell: str
    entries: int
    left_behind: dict[str, list[int]]
    closed: list[int]


class LostBook(NamedTuple):
    """A book that begins anew.

    `dropped` are its orders that were to be paid, `closed` those for which money was reserved or a transfer
    signed.
    """

    merchant_id: int
    dropped: list[int]
    closed: list[int]


async def place_books(
    databases: Databases, by: Auditor, checkpoints: CheckpointFolder | None
) -> tuple[list[PlacedBook], list[LostBook]]:
    """Place all books that are not where home says. Returns them, and those that begin anew.

    Raises NoWholeCopy, CopiesDiffer.
    """
    kept = await kept_copies.list_kept(databases.home)
    placed = await _Placement(databases, by, checkpoints, kept).run()
    await kept_copies.drop_all(databases.home)
    return placed


class _Placement:
    def __init__(
        self,
        databases: Databases,
        by: Auditor,
        checkpoints: CheckpointFolder | None,
        kept: Mapping[int, str],
    ) -> None:
        self._home = databases.home
        self._cells = {DEFAULT_CELL_ID: databases.home, **databases.apart}
        self._by = by
        self._checkpoints = checkpoints
        self._kept = kept
        self._names: dict[int, str] = {}

    async def run(self) -> tuple[list[PlacedBook], list[LostBook]]:
        self._names = dict(await _fetch(self._home, "list_cells"))
        known = {row[0]: KnownPlace(*row) for row in await _fetch(self._home, "list_places")}
        copies: dict[int, list[Copy]] = {}
        for cell_id, cell in self._cells.items():
            for row in await _fetch(cell, "list_copies"):
                copies.setdefault(row[0], []).append(Copy(cell_id, *row))
        chosen, gone, differences = [], [], []
        for place in known.values():
            found = copies.get(place.merchant_id, [])
            if not found and place.is_opened and place.cell_id != DEFAULT_CELL_ID:
                gone.append((place, found))
            elif not _is_misplaced(place, found):
                continue
            elif place.cell_id != DEFAULT_CELL_ID and await self._are_partial(found):
                gone.append((place, found))
            else:
                try:
                    chosen.append((place, found, await self._choose(place, found)))
                except CopiesDiffer as differ:
                    differences.append(str(differ))
        if differences:
            raise CopiesDiffer(" ".join(differences))
        lost = [await self._begin_anew(place, found) for place, found in gone]
        return [await self._place(*placement) for placement in chosen], lost

    async def _place(self, place: KnownPlace, copies: Sequence[Copy], chosen: Copy) -> PlacedBook:
        version = _find_next_version(place, copies)
        others = [copy for copy in copies if copy is not chosen]
        left = {}
        for copy in others:
            cell = self._cells[copy.cell_id]
            if copy.is_open:
                await book_fence.close_copy(cell, copy.merchant_id, version)
                await book_fence.wait_for_writers(cell)
            if alone := await self._list_own(copy, chosen):
                left[self._names[copy.cell_id]] = alone
        if not chosen.is_open and chosen.cell_id != DEFAULT_CELL_ID:
            await book_fence.open_copy(self._cells[chosen.cell_id], chosen.merchant_id, version)
        closed = await self._tell_home(place, chosen, others, version, left)
        return PlacedBook(place.merchant_id, self._names[chosen.cell_id], chosen.entry_count, left, closed)

    async def _choose(self, place: KnownPlace, copies: Sequence[Copy]) -> Copy:
        """The right copy. Raises NoWholeCopy, CopiesDiffer."""
        if apart := [copy for copy in copies if copy.is_open and _is_ahead(place, copy)]:
            return max(apart, key=lambda copy: (copy.move_version, copy.entry_count))
        seen = {copy: await self._count_checkpoints(copy) for copy in copies} if len(copies) > 1 else {}
        ranked = sorted(copies, key=lambda copy: (seen.get(copy, 0), _rank(place, copy)), reverse=True)
        for number, copy in enumerate(ranked):
            if copy.is_open or await self._is_whole(copy):
                rivals = [other for other in ranked[number + 1 :] if seen[other] == seen[copy]]
                return await self._choose_between(copy, rivals)
        raise NoWholeCopy(
            f"No copy of the book of merchant {place.merchant_id} is whole. Restore a cell that has one"
            f" ({', '.join(self._names[copy.cell_id] for copy in copies)}) from its back-up, then run this"
            " again."
        )

    async def _choose_between(self, longest: Copy, rivals: Sequence[Copy]) -> Copy:
        """The longest copy, or a person's choice if others went different ways. Raises CopiesDiffer."""
        others = [
            rival
            for rival in rivals
            if await self._list_own(rival, longest) and (rival.is_open or await self._is_whole(rival))
        ]
        if not others:
            return longest
        merchant_id = longest.merchant_id
        for copy in (longest, *others):
            if self._names[copy.cell_id] == self._kept.get(merchant_id):
                return copy
        own = [(longest, await self._list_own(longest, others[0]))]
        own += [(other, await self._list_own(other, longest)) for other in others]
        counts = ", ".join(
            f"the one in cell {self._names[copy.cell_id]} has"
            f" {count_of(len(alone), 'entry', 'entries')} of its own from {alone[-1]} on"
            for copy, alone in own
        )
        raise CopiesDiffer(
            f"The copies of the book of merchant {merchant_id} went different ways, and no checkpoint says"
            f" which one is right: {counts}. Choose one: --keep {merchant_id}=CELL. What only the others have"
            " must then be entered."
        )

    async def _count_checkpoints(self, copy: Copy) -> int:
        """How many of the book's checkpoints a copy has, from the first one on."""
        if self._checkpoints is None:
            return 0
        folder, keys, archive = self._checkpoints
        cell = self._cells[copy.cell_id]
        report = await check_checkpoints(self._home, cell, keys, folder, copy.merchant_id, archive)
        return report.checked

    async def _is_whole(self, copy: Copy) -> bool:
        """A closed copy may be one that was still being filled."""
        archive = None if self._checkpoints is None else self._checkpoints.archive
        report = await verify_book(self._home, self._cells[copy.cell_id], copy.merchant_id, archive=archive)
        return report.violation is None or report.violation.rule == OF_HOME

    async def _are_partial(self, copies: Sequence[Copy]) -> bool:
        """Whether all copies are closed and were still being filled."""
        for copy in copies:
            values = {"merchant_id": copy.merchant_id}
            if copy.is_open or await _fetch(self._cells[copy.cell_id], "is_partial", values) != [(True,)]:
                return False
        return True

    async def _remove(self, place: KnownPlace, copies: Sequence[Copy]) -> None:
        version = _find_next_version(place, copies)
        values = {"merchant_id": place.merchant_id, "move_version": version}
        await self._home.execute(QUERIES["raise_version"].text, values)
        for copy in copies:
            cell = self._cells[copy.cell_id]
            tables = await list_tables(cell, cell, to_home=copy.cell_id == DEFAULT_CELL_ID)
            if not await remove_copy(cell, copy.merchant_id, tables, version):
                raise NoWholeCopy(f"The book of merchant {copy.merchant_id} is being moved. Run this again.")

    async def _list_own(self, copy: Copy, other: Copy) -> list[int]:
        return await list_own_entries(self._cells[copy.cell_id], self._cells[other.cell_id], copy.merchant_id)

    async def _tell_home(
        self,
        place: KnownPlace,
        chosen: Copy,
        others: Sequence[Copy],
        version: int,
        left: dict[str, list[int]],
    ) -> list[int]:
        """Returns the orders whose payouts were closed as lost."""
        home, merchant_id = self._home, place.merchant_id
        values = {"merchant_id": merchant_id, "cell_id": chosen.cell_id, "move_version": version}
        async with home.transaction():
            row = await (await home.execute(QUERIES["write_place"].text, values)).fetchone()
            assert row is not None, "merchants are never deleted"
            if chosen.cell_id == DEFAULT_CELL_ID and not chosen.is_open:
                # Home's transaction is the cell's, too.
                await book_fence.write_settings_version(home, merchant_id, row[0])
                await book_fence.open_copy(home, merchant_id, version)
            await home.execute(QUERIES["drop_move"].text, {"merchant_id": merchant_id})
            if others:
                old = max(others, key=lambda copy: _rank(place, copy))
                await home.execute(QUERIES["write_move"].text, {**values, "from_cell_id": old.cell_id})
            own = [entry_id for entry_ids in left.values() for entry_id in entry_ids]
            closed = await end_payouts(home, merchant_id, own)
            told = {"leftBehind": _count(left), "closedOrders": closed}
            await self._record("merchant.move.restore", place, chosen.cell_id, **told)
        return closed

    async def _begin_anew(self, place: KnownPlace, copies: Sequence[Copy]) -> LostBook:
        if copies:
            await self._remove(place, copies)
        home, merchant_id = self._home, place.merchant_id
        values = {"merchant_id": merchant_id}
        async with home.transaction():
            dropped = sorted(row[0] for row in await _fetch(home, "drop_unsigned", values))
            closed = sorted(row[0] for row in await _fetch(home, "close_payouts", values))
            range_no = await take_range(home, merchant_id)
            await home.execute(QUERIES["drop_ranges"].text, {**values, "range_no": range_no})
            await home.execute(QUERIES["drop_move"].text, values)
            # The book is opened when its settings are carried.
            await home.execute(QUERIES["begin_anew"].text, values)
            told = {"droppedOrders": dropped, "closedOrders": closed}
            await self._record("merchant.move.begin_anew", place, place.cell_id, **told)
        return LostBook(merchant_id, dropped, closed)

    async def _record(self, action: str, place: KnownPlace, cell_id: int, **after: Any) -> None:
        merchant_id = place.merchant_id
        facts = {"fromCell": self._names[place.cell_id], "toCell": self._names[cell_id], **after}
        await self._by.author(now_ms()).record(
            self._home, action, f"merchant {merchant_id}", merchant_id, after=facts
        )


async def list_own_entries(here: Connection, there: Connection, merchant_id: int) -> list[int]:
    """The entries that only this copy of a book has, newest first. The rest begins alike."""
    own: list[int] = []
    before = MAX_ID + 1
    [(border,)] = await _fetch(there, "read_border", {"merchant_id": merchant_id})
    while True:
        values = {"merchant_id": merchant_id, "after": border, "before": before, "page": PAGE}
        rows = await _fetch(here, "page_entries", values)
        wanted = {"merchant_id": merchant_id, "entry_ids": [entry_id for entry_id, _ in rows]}
        known = set(await _fetch(there, "find_entries", wanted))
        more = [entry_id for entry_id, digest in rows if (entry_id, digest) not in known]
        own += more
        if len(more) < PAGE:
            return own
        before = rows[-1][0]


async def end_payouts(home: Connection, merchant_id: int, entry_ids: Sequence[int]) -> list[int]:
    """Drop what home was to pay of the orders that only a closed copy of a book has, and close what it began.

    Returns the orders of which it had begun to pay. What is reserved for them ends as in `lost_payouts`.
    """
    values = {"merchant_id": merchant_id, "order_ids": entry_ids, "lost": LOST, "now_ms": now_ms()}
    await home.execute(QUERIES["drop_payouts"].text, values)
    return sorted(row[0] for row in await _fetch(home, "close_left_behind", values))


async def _fetch(cell: Connection, name: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    return await (await cell.execute(QUERIES[name].text, values)).fetchall()


def _is_ahead(place: KnownPlace, copy: Copy) -> bool:
    return copy.cell_id != DEFAULT_CELL_ID and copy.move_version > place.move_version


def _find_next_version(place: KnownPlace, copies: Sequence[Copy]) -> int:
    """The step of a move after all that home and the copies know."""
    return max(place.move_version, *(copy.move_version for copy in copies)) + 1


def _is_misplaced(place: KnownPlace, copies: Iterable[Copy]) -> bool:
    """Whether a book is not open where home says, or is open elsewhere, too. Pure."""
    return any(
        _is_ahead(place, copy) or (copy.is_open and copy.cell_id != place.cell_id) for copy in copies
    ) or (
        place.is_opened
        and not place.is_between
        and bool(copies)
        and not any(copy.cell_id == place.cell_id and copy.is_open for copy in copies)
    )


def _rank(place: KnownPlace, copy: Copy) -> tuple[int, bool, bool]:
    return copy.entry_count, copy.is_open, copy.cell_id == place.cell_id


def _count(left: dict[str, list[int]]) -> dict[str, int]:
    return {cell: len(entry_ids) for cell, entry_ids in left.items()}
