"""Marks that show whether home was rolled back without its cells.

Rules:
- Each minute home raises a number for each apart cell, and commits. Then the cell stores it. So a cell that
  has a higher number than home has seen more of home than there is now.
- Nothing is raised while there is evidence: it would hide it.
- An acceptance raises home's numbers to those of the cells (see `merchants.cells.home_restoration`).
- Home commits a merchant before a cell opens its book, and each step of a move before a copy takes it on. So
  a book that home does not know, or whose copy has taken on more steps, shows the same.
- Before home decides that a book is in another cell, its old copy is closed. So an open copy elsewhere that
  has taken on no later step shows that home or that cell was rolled back.
- `FindMoved` looks at cells that home can't reach because they have moved (see `merchants.cells.places`).

Statements are in `home_marks.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.evidence import NO_MERCHANT, RollbackEvidence
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("home_marks.sql"))

Connection = AsyncConnection[Any]
FindMoved = Callable[[Connection, Collection[int], int], Awaitable[list[RollbackEvidence]]]
"""Finds the evidence of cells that were not reached. It gets home, the cells that were, and the time."""


async def find_none(home: Connection, reached: Collection[int], now_ms: int) -> list[RollbackEvidence]:
    """There are no other cells."""
    return []


async def find_home_evidence(
    home: Connection, cells: ReachedCells, now_ms: int, find_moved: FindMoved = find_none
) -> list[RollbackEvidence]:
    """The evidence that cells give about home, at most one. Cells that are away are left out."""
    cause = (
        await _find_mark_ahead(home, cells)
        or await _find_book_ahead(home, cells)
        or await _find_book_left(home, cells)
    )
    if cause is not None:
        return [RollbackEvidence(NO_MERCHANT, "home", "behind", cause, now_ms)]
    return await find_moved(home, cells.apart_ids, now_ms)


async def _find_mark_ahead(home: Connection, cells: ReachedCells) -> str | None:
    # The cells are read first: a number that is raised meanwhile is in home before it is in a cell.
    seen = {cell_id: await cells.ask(cell_id, _read_seen) for cell_id in cells.apart_ids}
    names = {cell_id: (name, no) for cell_id, name, no in await _fetch(home, "list_marks")}
    ahead = [
        names[cell_id][0]
        for cell_id, found in seen.items()
        if found and cell_id in names and found[0] > names[cell_id][1]
    ]
    if not ahead:
        return None
    return f"home was rolled back: it lacks what it told {', '.join(f'cell {name}' for name in ahead)}"


async def _find_book_ahead(home: Connection, cells: ReachedCells) -> str | None:
    for cell_id in cells.apart_ids:
        # The cell is read first, as above.
        copies = await cells.ask(cell_id, _list_copies)
        merchant_ids, move_versions = ([copy[place] for copy in copies] for place in range(2))
        values = {"merchant_ids": merchant_ids, "move_versions": move_versions}
        for merchant_id, is_known in await _fetch(home, "find_ahead", **values):
            what = f"cell {await _find_name(home, cell_id)} has the book of merchant {merchant_id}"
            lacks = "a move of it" if is_known else "this merchant"
            return f"home was rolled back: {what}, and home does not know {lacks}"
    return None


async def raise_marks(home: Connection, cells: ReachedCells) -> None:
    """Raise home's number for each apart cell that answers, then tell the cell."""
    for cell_id in cells.apart_ids:
        if cell_id in cells.away:
            continue
        for (number,) in await _fetch(home, "raise_mark", cell_id=cell_id):
            await cells.ask(cell_id, partial(_write_seen, number))


async def _find_book_left(home: Connection, cells: ReachedCells) -> str | None:
    # Home is read first: a copy that is opened meanwhile takes on a later step.
    moved = await _fetch(home, "list_moved")
    merchant_ids, cell_ids, move_versions = ([row[place] for row in moved] for place in range(3))
    for cell_id in cells.apart_ids if moved else ():
        values = {
            "merchant_ids": merchant_ids,
            "cell_ids": cell_ids,
            "move_versions": move_versions,
            "cell_id": cell_id,
        }
        for merchant_id in await cells.ask(cell_id, partial(_find_left, values)):
            name = await _find_name(home, cell_id)
            return (
                f"the book of merchant {merchant_id} is open in cell {name}, and home has it in another one:"
                " home or the cell was rolled back"
            )
    return None


async def _find_name(home: Connection, cell_id: int) -> str | int:
    """A cell's name, or its id if home does not know it any more."""
    names: dict[int, str] = {number: name for number, name, _ in await _fetch(home, "list_marks")}
    return names.get(cell_id, cell_id)


async def _find_left(values: dict[str, Any], cell: Connection) -> list[int]:
    return [merchant_id for (merchant_id,) in await _fetch(cell, "find_left", **values)]


async def _list_copies(cell: Connection) -> list[tuple[Any, ...]]:
    return await _fetch(cell, "list_copies")


async def _read_seen(cell: Connection) -> list[int]:
    return [number for (number,) in await _fetch(cell, "read_seen")]


async def _write_seen(number: int, cell: Connection) -> list[int]:
    await cell.execute(QUERIES["write_seen"].text, {"number": number})
    return [number]


async def _fetch(connection: Connection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(QUERIES[name].text, values)).fetchall()
