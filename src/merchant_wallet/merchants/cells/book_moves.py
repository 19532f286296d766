"""Home's record of moves of single books to other cells, and its one decision.

Rules:
- `merchant.move_version` is raised by each step that opens or closes a copy of the book. A step names the
  version that it saw. It does nothing if somebody else has raised it since (compare and swap). So of a mover
  and a worker that takes over, one wins.
- copying → switching → opening → switched; or switching → reopening → copying, if the mover gave up or died.
- A copy of a book takes on higher versions only (see `book_fence`). So whoever is late opens and closes
  nothing.
- Home alone decides: until `decide` has committed, the old copy is the right one, afterwards the new one.

Each function that changes something is a transaction of its own, with its entry in the audit log.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells import book_fence, placement
from merchant_wallet.merchants.cells.moves import Auditor, MoveLost, MoveRefused, hold, lock_moves
from merchant_wallet.postgres import jobs

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("book_moves.sql"))
COPYING, SWITCHING, REOPENING, OPENING, SWITCHED = (
    "copying",
    "switching",
    "reopening",
    "opening",
    "switched",
)
"""The states of a move."""
GRACE_MS: Final = 3_000
"""A switch that is not over so long after its budget has lost its mover."""


class BookMove(NamedTuple):
    """A move, as home has it. `version` is the merchant's `move_version`; times are home's."""

    merchant_id: int
    name: str
    version: int
    move_id: str
    state: str
    from_cell_id: int
    from_cell: str
    to_cell_id: int
    to_cell: str
    began_ms: int
    changed_ms: int
    now_ms: int


@asynccontextmanager
async def hold_book(home: Connection, move: BookMove, by: Auditor) -> AsyncIterator[None]:
    """Be the only mover of a book, with both of its copies. Raises MoveRefused."""
    async with hold(home, jobs.Kind.BOOK_MOVE, _scope(move), by):
        yield


async def is_mover_alive(home: Connection, move: BookMove) -> bool:
    """Whether somebody moves the book now."""
    return await jobs.is_at_work(home, jobs.Kind.BOOK_MOVE, _scope(move))


def _scope(move: BookMove) -> jobs.Scope:
    return jobs.scope_of_book(move.merchant_id, move.from_cell_id, move.to_cell_id)


async def read_move(home: Connection, merchant_id: int) -> BookMove | None:
    """The move of a book, if there is one."""
    async with home.cursor(row_factory=class_row(BookMove)) as cursor:
        await cursor.execute(QUERIES["read"].text, {"merchant_id": merchant_id})
        return await cursor.fetchone()


async def list_moves(home: Connection) -> Sequence[BookMove]:
    """All moves."""
    return await _list(home, "list_all", {})


async def list_stalled(home: Connection, grace_ms: int = GRACE_MS) -> Sequence[BookMove]:
    """Moves that left their book closed, and no mover does anything about it."""
    return await _list(home, "list_stalled", {"grace_ms": grace_ms})


async def begin(home: Connection, merchant_id: int, cell: str, by: Auditor) -> BookMove:
    """Begin a move, or find the one to the same cell that was begun. Raises MoveRefused."""
    async with home.transaction():
        if (move := await read_move(home, merchant_id)) is None:
            await _insert(home, merchant_id, cell)
            move = await read_move(home, merchant_id)
            assert move is not None, "the row was just inserted"
            await _record(home, by, "begin", move)
    if move.to_cell == cell:
        return move
    if move.state == SWITCHED:
        raise MoveRefused(
            f"The book was moved to cell {move.to_cell}, and its old copy is still in cell {move.from_cell}."
            f" Remove that first: `merchant-wallet merchant move {merchant_id} --drop-old`."
        )
    raise MoveRefused(f"The book is being moved to cell {move.to_cell}. Let that end, or undo it (--undo).")


async def _insert(home: Connection, merchant_id: int, cell: str) -> None:
    values = {"merchant_id": merchant_id}
    await lock_moves(home)
    place = await (await home.execute(QUERIES["read_place"].text, values)).fetchone()
    if place is None:
        raise MoveRefused(f"There is no merchant {merchant_id}.")
    try:
        to_cell_id = await placement.choose_cell(home, cell)
    except (placement.CellUnknown, placement.PlacementRefused) as refused:
        raise MoveRefused(str(refused)) from None
    cell_id, is_opened = place
    if cell_id == to_cell_id:
        raise MoveRefused(f"The book is in cell {cell} already.")
    if not is_opened:
        raise MoveRefused("The merchant's book was not opened yet: its cell was away. Try again later.")
    cells = {"cell_ids": [cell_id, to_cell_id]}
    if (moving := await (await home.execute(QUERIES["find_cell_move"].text, cells)).fetchone()) is not None:
        raise MoveRefused(f"Cell {moving[0]} is being moved itself. Let that end first.")
    await home.execute(QUERIES["begin"].text, {**values, "to_cell_id": to_cell_id})


async def take_up(home: Connection, move: BookMove) -> BookMove:
    """Go on with copying. Whoever copied before can't write at the new place any more. Raises MoveLost."""
    async with home.transaction():
        return await _step(home, move, [COPYING], COPYING)


async def begin_switching(home: Connection, move: BookMove, budget_s: float) -> BookMove:
    """From now on the old copy may be closed. Raises MoveLost."""
    async with home.transaction():
        return await _step(home, move, [COPYING], SWITCHING, round(1000 * budget_s))


async def take_back(home: Connection, move: BookMove, by: Auditor, cause: str) -> BookMove:
    """Give the switch up: the old copy must be opened again. Raises MoveLost."""
    async with home.transaction():
        after = await _step(home, move, [SWITCHING], REOPENING)
        await _record(home, by, "take_back", after, cause=cause)
        return after


async def note_reopened(home: Connection, move: BookMove) -> bool:
    """Note that the old copy is open. False if that is known, or outdated."""
    return await _set_state(home, move, [REOPENING], COPYING)


async def decide(home: Connection, move: BookMove, by: Auditor) -> BookMove:
    """The decision: the book is in its new cell from now on. Raises MoveLost."""
    async with home.transaction():
        after = await _step(home, move, [SWITCHING], OPENING)
        row = await (await home.execute(QUERIES["set_cell"].text, _values(after))).fetchone()
        if row is None:
            raise MoveLost(f"The book of merchant {move.merchant_id} is not in cell {move.from_cell}.")
        if move.to_cell_id == DEFAULT_CELL_ID:
            # Home's transaction is the cell's, too. A change of settings that no cell has heard is carried.
            await book_fence.write_settings_version(home, move.merchant_id, row[0])
        await _record(home, by, "switch", after)
    return after


async def note_opened(home: Connection, move: BookMove) -> bool:
    """Note that the new copy is open. False if that is known, or outdated."""
    return await _set_state(home, move, [OPENING], SWITCHED)


async def end(home: Connection, move: BookMove, by: Auditor, action: str) -> None:
    """Delete the record: the move is undone, or its old copy is gone. Raises MoveLost."""
    async with home.transaction():
        values = {**_values(move), "from_states": [move.state]}
        if not (await home.execute(QUERIES["delete"].text, values)).rowcount:
            raise _lost(move)
        await _record(home, by, action, move)


async def _record(home: Connection, by: Auditor, action: str, move: BookMove, **after: Any) -> None:
    subject = f"merchant {move.merchant_id}"
    facts = {"fromCell": move.from_cell, "toCell": move.to_cell, **after}
    await by.author(now_ms()).record(home, f"merchant.move.{action}", subject, move.merchant_id, after=facts)


async def _step(
    home: Connection, move: BookMove, from_states: list[str], state: str, budget_ms: int = 0
) -> BookMove:
    raised = await (await home.execute(QUERIES["raise_version"].text, _values(move))).fetchone()
    if raised is not None:
        after = move._replace(version=raised[0], state=state)
        if await _set_state(home, after, from_states, state, budget_ms):
            return after
    raise _lost(move)


def _lost(move: BookMove) -> MoveLost:
    return MoveLost(f"The move of merchant {move.merchant_id} was changed by somebody else.")


async def _set_state(
    home: Connection, move: BookMove, from_states: list[str], state: str, budget_ms: int = 0
) -> bool:
    values = {**_values(move), "from_states": from_states, "state": state, "budget_ms": budget_ms}
    return bool((await home.execute(QUERIES["set_state"].text, values)).rowcount)


def _values(move: BookMove) -> Mapping[str, Any]:
    return {"merchant_id": move.merchant_id, "move_id": move.move_id, "version": move.version}


async def _list(home: Connection, name: str, values: Mapping[str, Any]) -> Sequence[BookMove]:
    async with home.cursor(row_factory=class_row(BookMove)) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchall()
