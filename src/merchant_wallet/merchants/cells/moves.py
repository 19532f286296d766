"""Home's record of moves of cells to other databases, and its one decision.

Rules:
- `cell.version` is raised by each step that opens or closes a cell. A step names the version that it saw. It
  does nothing if somebody else has raised it since (compare and swap). So of a mover and a worker that takes
  over, one wins.
- copying → switching → switched; or switching → reopening → copying, if the mover gave up or died.
- A copy of a cell takes on higher versions only (see `fence`). So whoever is late opens and closes nothing.
- Home alone decides: until `decide` has committed, the old place is the right one, afterwards the new one.

Each function that changes something is a transaction of its own, with its entry in the audit log.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.audit.records import Author
from merchant_wallet.audit.rollback.evidence import ROLLED_BACK, has_open_evidence
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.postgres import jobs
from merchant_wallet.postgres.jobs import JobInTheWay, Scope

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("moves.sql"))
TIMEOUT_MS: Final = 5_000
"""A cell that is closed for this long has lost its mover, though its session seems to live."""

PLANNED: Final = "planned"
"""The state of a move that home does not have yet."""
COPYING, SWITCHING, REOPENING, SWITCHED = "copying", "switching", "reopening", "switched"
"""The states of a move."""


class MoveRefused(Exception):
    """The move can't begin or go on. The text says why."""


class MoveLost(MoveRefused):
    """Somebody else has changed the move meanwhile: a worker took it over, or another command ended it."""


class CellMove(NamedTuple):
    """A move, as home has it. `version` is the cell's. Without `old_address` it was in home's database."""

    cell_id: int
    name: str
    schema_name: str
    version: int
    move_id: str
    state: str
    address: str
    old_address: str | None
    began_ms: int

    @property
    def mark(self) -> str:
        """The comment on a schema that says which move made it."""
        return f"merchant-wallet: a copy made by move {self.move_id}"


class FoundMove(NamedTuple):
    """A move, whether a mover is at work on it, and the age of its last step."""

    move: CellMove
    is_held: bool
    age_ms: int


class Auditor(NamedTuple):
    """Who does it and from where, for the audit log."""

    actor: str
    source: str

    async def record_move(self, home: Connection, action: str, move: CellMove, **after: Any) -> None:
        """Append an entry in the caller's transaction."""
        facts = {"address": move.address, **after}
        await self.author(now_ms()).record(home, f"cell.move.{action}", f"cell {move.name}", after=facts)

    def author(self, at_ms: int) -> Author:
        """The author of a change at a time."""
        return Author(self.actor, self.source, at_ms)


@asynccontextmanager
async def hold(home: Connection, kind: jobs.Kind, scope: Scope, by: Auditor) -> AsyncIterator[None]:
    """Have what is moved for this job alone. Raises MoveRefused."""
    try:
        async with jobs.hold(home, kind, scope, by.actor):
            await _require_newest(home)
            yield
    except JobInTheWay as other:
        raise MoveRefused(str(other)) from None


@asynccontextmanager
async def hold_cell(home: Connection, move: CellMove, by: Auditor) -> AsyncIterator[None]:
    """Be the only mover of a cell and of its books. Raises MoveRefused."""
    async with hold(home, jobs.Kind.CELL_MOVE, jobs.scope_of_cell(move.cell_id, move.name), by):
        yield


async def find_cell_id(home: Connection, name: str) -> int:
    """The id of an apart cell by its name. Raises MoveRefused."""
    row = await (await home.execute(QUERIES["find_cell"].text, {"name": name})).fetchone()
    if row is None:
        raise MoveRefused(f"There is no cell {name}.")
    cell_id, state = row
    if cell_id == 0:
        raise MoveRefused(f"Cell {name} is in home's own schema and can't be moved.")
    if state == "retired":
        raise MoveRefused(f"Cell {name} is retired.")
    return int(cell_id)


async def read_move(home: Connection, cell_id: int) -> CellMove | None:
    """The move of a cell, if there is one."""
    return await _fetch(home, "read", {"cell_id": cell_id})


async def plan(home: Connection, cell_id: int, address: str) -> CellMove:
    """The move of a cell, or one to this address that may be begun. Raises MoveRefused."""
    move = await read_move(home, cell_id) or await _fetch(
        home, "plan", {"cell_id": cell_id, "address": address}
    )
    assert move is not None, "cells are never deleted"
    return _require_address(move, address)


async def read_again(home: Connection, move: CellMove) -> CellMove:
    """The move as it is now. Another mover may have gone on, begun or ended it. Raises MoveRefused."""
    found = await read_move(home, move.cell_id)
    if move.state == PLANNED:
        return move if found is None else _require_address(found, move.address)
    if found is None or found.move_id != move.move_id:
        raise MoveLost(f"Another command has ended this move of cell {move.name}.")
    return found


async def begin(home: Connection, cell_id: int, address: str, by: Auditor) -> CellMove:
    """Begin a move, or find the one to the same address that was begun. Raises MoveRefused."""
    async with home.transaction():
        values = {"cell_id": cell_id, "address": address}
        await _require_whole_books(home, cell_id)
        begun = await home.execute(QUERIES["begin"].text, values)
        move = await read_move(home, cell_id)
        assert move is not None, "the row was just inserted, or was there"
        if begun.rowcount:
            await by.record_move(home, "begin", move)
    return _require_address(move, address)


async def lock_moves(home: Connection) -> None:
    """Be the only one who begins a move of a cell or of a book, until the caller's transaction ends.

    Raises MoveRefused.
    """
    await home.execute(QUERIES["lock_moves"].text)
    await _require_newest(home)


async def _require_newest(home: Connection) -> None:
    """After a rollback home may not know where its books are. Raises MoveRefused."""
    if await has_open_evidence(home):
        raise MoveRefused(ROLLED_BACK)


async def _require_whole_books(home: Connection, cell_id: int) -> None:
    await lock_moves(home)
    row = await (await home.execute(QUERIES["find_book_move"].text, {"cell_id": cell_id})).fetchone()
    if row is not None:
        raise MoveRefused(
            f"The book of merchant {row[0]} is being moved to this cell or from it. Let that end, or undo it:"
            f" `merchant-wallet merchant move {row[0]} --undo`."
        )


def _require_address(move: CellMove, address: str) -> CellMove:
    if move.address == address:
        return move
    if move.state == SWITCHED:
        raise MoveRefused(
            f"Cell {move.name} was moved to another place before, {move.address}, and its old copy was not"
            f" dropped: `merchant-wallet cell move {move.name} --drop-old`."
        )
    raise MoveRefused(
        f"Cell {move.name} is being moved to another place: {move.address}. Continue that one, or undo it:"
        f" `merchant-wallet cell move {move.name} --undo`."
    )


async def begin_switching(home: Connection, move: CellMove) -> CellMove:
    """Close the cell for everybody who asks home from now on. Raises MoveLost."""
    async with home.transaction():
        return await _step(home, move, [COPYING], SWITCHING)


async def take_back(home: Connection, move: CellMove, by: Auditor, cause: str) -> CellMove:
    """Give the switch up: the old place must be opened again. Raises MoveLost."""
    async with home.transaction():
        after = await _step(home, move, [SWITCHING], REOPENING)
        await by.record_move(home, "take_back", after, cause=cause)
        return after


async def note_reopened(home: Connection, move: CellMove) -> bool:
    """Note that the old place is open. False if that is known, or outdated."""
    return await _set_state(home, move, [REOPENING], COPYING)


async def decide(home: Connection, move: CellMove, by: Auditor) -> CellMove:
    """The decision: the cell is at its new place from now on. Raises MoveLost."""
    async with home.transaction():
        moved = await home.execute(QUERIES["set_address"].text, _values(move))
        if not moved.rowcount or not await _set_state(home, move, [SWITCHING], SWITCHED):
            raise MoveLost(f"The switch of cell {move.name} was taken back by a worker.")
        await by.record_move(home, "switch", move, oldAddress=move.old_address)
    return move._replace(state=SWITCHED)


async def end(home: Connection, move: CellMove, by: Auditor, action: str) -> None:
    """Delete the record: the move is undone, or its old copy is gone. Raises MoveLost."""
    async with home.transaction():
        values = {**_values(move), "from_states": [move.state]}
        if not (await home.execute(QUERIES["delete"].text, values)).rowcount:
            raise MoveLost(f"The move of cell {move.name} has changed meanwhile.")
        await by.record_move(home, action, move)


async def list_all(home: Connection) -> list[FoundMove]:
    """All moves that were begun, also those whose old copy was not dropped yet."""
    found = []
    for *columns, age_ms in await (await home.execute(QUERIES["list_all"].text)).fetchall():
        move = CellMove(*columns)
        scope = jobs.scope_of_cell(move.cell_id, move.name)
        is_held = move.state != SWITCHED and await jobs.is_at_work(home, jobs.Kind.CELL_MOVE, scope)
        found.append(FoundMove(move, is_held, age_ms))
    return found


async def list_stalled(home: Connection, timeout_ms: int = TIMEOUT_MS) -> Sequence[CellMove]:
    """Moves that left their cell closed, and no mover does anything about it."""
    return [
        found.move
        for found in await list_all(home)
        if found.move.state == REOPENING
        or (found.move.state == SWITCHING and (found.age_ms > timeout_ms or not found.is_held))
    ]


async def _step(home: Connection, move: CellMove, from_states: list[str], state: str) -> CellMove:
    raised = await (await home.execute(QUERIES["raise_version"].text, _values(move))).fetchone()
    if raised is not None:
        after = move._replace(version=raised[0], state=state)
        if await _set_state(home, after, from_states, state):
            return after
    raise MoveLost(f"The move of cell {move.name} was changed by somebody else.")


async def _set_state(home: Connection, move: CellMove, from_states: list[str], state: str) -> bool:
    values = {**_values(move), "from_states": from_states, "state": state}
    return bool((await home.execute(QUERIES["set_state"].text, values)).rowcount)


def _values(move: CellMove) -> Mapping[str, Any]:
    return {"cell_id": move.cell_id, "move_id": move.move_id, "version": move.version}


async def _fetch(home: Connection, name: str, values: Mapping[str, Any]) -> CellMove | None:
    async with home.cursor(row_factory=class_row(CellMove)) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchone()
