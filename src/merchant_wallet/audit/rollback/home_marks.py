"""Marks that show whether home was rolled back without its cells.

Rules:
- Each minute home raises a number for each apart cell, and commits. Then the cell stores it. So a cell that
  has a higher number than home has seen more of home than there is now.
- Nothing is raised while there is evidence: it would hide it.
- An acceptance raises home's numbers to those of the cells (see `checkpointing.home_restoration`).

Statements are in `home_marks.sql`. All raise `psycopg.Error`.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.evidence import NO_MERCHANT, RollbackEvidence
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("home_marks.sql"))

Connection = AsyncConnection[Any]


async def find_home_evidence(home: Connection, cells: ReachedCells, now_ms: int) -> RollbackEvidence | None:
    """The evidence that cells give about home; None if there is none. Cells that are away are left out."""
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
    cause = f"home was rolled back: it lacks what it told {', '.join(f'cell {name}' for name in ahead)}"
    return RollbackEvidence(NO_MERCHANT, "home", "behind", cause, now_ms)


async def raise_marks(home: Connection, cells: ReachedCells) -> None:
    """Raise home's number for each apart cell that answers, then tell the cell."""
    for cell_id in cells.apart_ids:
        if cell_id in cells.away:
            continue
        for (number,) in await _fetch(home, "raise_mark", cell_id=cell_id):
            await cells.ask(cell_id, partial(_write_seen, number))


async def _read_seen(cell: Connection) -> list[int]:
    return [number for (number,) in await _fetch(cell, "read_seen")]


async def _write_seen(number: int, cell: Connection) -> list[int]:
    await cell.execute(QUERIES["write_seen"].text, {"number": number})
    return [number]


async def _fetch(connection: Connection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(QUERIES[name].text, values)).fetchall()
