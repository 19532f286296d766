"""Snapshots of home and all cells in which each book is in one cell.

A book that is between two cells is closed in both, and would not be counted. One that moves while the cells
are read, one after the other, could be counted twice. Either would look like lost or found money.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from psycopg import AsyncConnection

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import Queries
from merchant_wallet.base.errors import TransientError
from merchant_wallet.custody.records import Balances, begin_snapshot

QUERIES: Final = Queries(Path(__file__).with_name("still_snapshots.sql"))
WAIT_S: Final = 0.5
MAX_WAITS: Final = 60
"""A book is between two cells for at most two seconds, or some more if its mover has died."""
MOVING: Final = "a book is closed between two cells: see `merchant-wallet doctor`"

Result = TypeVar("Result")


class BooksMoved(TransientError):
    """A book was between two cells, or has moved, while the snapshots were taken."""


class Moves(NamedTuple):
    """The number of steps that moves of books have taken, and whether a book is between two cells."""

    steps: int
    is_between: bool


async def read_moves(home: AsyncConnection[Any]) -> Moves:
    """What home knows of moves of books. Raises psycopg.Error."""
    row = await (await home.execute(QUERIES["read_moves"].text)).fetchone()
    assert row is not None, "a query without a condition always has its row"
    return Moves(*row)


async def require_still(home: AsyncConnection[Any], before: Moves) -> None:
    """Raises BooksMoved if a book was between two cells, or if a move has taken a step since `before`."""
    if before.is_between or await read_moves(home) != before:
        raise BooksMoved


async def begin_still_snapshot(databases: Databases, before: Moves) -> Balances:
    """`records.begin_snapshot` with each book in one cell. `before` was read earlier. Raises BooksMoved.

    Home's snapshot is the last. If no move has taken a step until then, the others agree with it.
    """
    balances = await begin_snapshot(databases)
    await require_still(databases.home, before)
    return balances


async def repeat_while_moving(
    read: Callable[[], Awaitable[Result]], wait_s: float = WAIT_S, max_waits: int = MAX_WAITS
) -> Result | None:
    """Read until no book has moved meanwhile. None if that does not end."""
    for _ in range(max_waits):
        try:
            return await read()
        except BooksMoved:
            await asyncio.sleep(wait_s)
    return None
