"""Ends a move one of whose two places no longer exists: its server is gone for good.

Nothing is asked of that place. If it comes back nevertheless, it stays closed: its version is not home's.
"""

from typing import Any

from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.merchants.cells import moves, new_place
from merchant_wallet.merchants.cells.moves import (
    REOPENING,
    SWITCHED,
    SWITCHING,
    Auditor,
    CellMove,
    MoveRefused,
)
from merchant_wallet.merchants.cells.moving import SESSION_NAME, Urls, open_again
from merchant_wallet.merchants.cells.replication import drop_lone_subscription, drop_source, make_name

Connection = AsyncConnection[Any]


async def undo_without_new(home: Connection, urls: Urls, move: CellMove, by: Auditor) -> None:
    """Undo a move whose new place is gone. Raises MoveRefused, psycopg.Error."""
    async with moves.hold_cell(home, move, by):
        move = await moves.read_again(home, move)
        if move.state == SWITCHED:
            raise MoveRefused(f"Cell {move.name} is at its new place. Restore that place from its backup.")
        async with (
            await db.connect(urls.old, SESSION_NAME) as old,
            await db.connect(urls.old_admin, SESSION_NAME) as admin,
        ):
            if move.state == SWITCHING:
                move = await moves.take_back(home, move, by, "the new place is gone")
            if move.state == REOPENING:
                await open_again(home, old, move)
                move = move._replace(state=moves.COPYING)
            await drop_source(admin, move)
        await moves.end(home, move, by, "undo")


async def forget_old(home: Connection, urls: Urls, move: CellMove, by: Auditor) -> None:
    """After the switch: the old place is gone. Raises MoveRefused, psycopg.Error."""
    async with moves.hold_cell(home, move, by):
        move = await moves.read_again(home, move)
        if move.state != SWITCHED:
            raise MoveRefused(
                f"Cell {move.name} is still at its old place. Restore that place from its backup."
            )
        async with (
            await db.connect(urls.new, SESSION_NAME) as new,
            await db.connect(urls.new_admin, SESSION_NAME) as admin,
        ):
            await drop_lone_subscription(admin, make_name(move))
            await new_place.clear_mark(new, move)
        await moves.end(home, move, by, "drop_old")
