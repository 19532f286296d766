"""Whether the archive may be changed now: by one command at a time, and not while a book or a cell moves."""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.session_locks import take_lock

QUERIES: Final = Queries(Path(__file__).with_name("runs.sql"))


class RunRefused(Exception):
    """The archive can't be changed now. The text says why."""


async def lock_runs(home: AsyncConnection[Any]) -> None:
    """Take the lock of the archive, until the connection ends. Raises RunRefused."""
    if not await take_lock(home, QUERIES["lock_runs"].text):
        raise RunRefused("Another command changes the archive. Wait until it has ended.")
    moving = await (await home.execute(QUERIES["find_move"].text)).fetchone()
    if moving is not None:
        raise RunRefused(f"{moving[0].capitalize()} is being moved. Run this again after the move.")
