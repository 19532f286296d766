"""The database sessions of writers, as the server lists them."""

from typing import Final

from tests.waits import eventually

from merchant_wallet.base.db import connect

OF_WRITERS: Final = (
    "from pg_stat_activity where application_name = 'merchant-wallet writer' and datname = current_database()"
)
"""The end of a query for the writers' sessions of this database."""


async def list_pids(url: str) -> set[int]:
    """The process ids of all sessions of writers."""
    async with await connect(url) as connection:
        cursor = await connection.execute(f"select pid {OF_WRITERS}".encode())
        return {pid for (pid,) in await cursor.fetchall()}


async def until_gone(url: str, pid: int) -> None:
    """Wait until this session has ended."""

    async def is_gone() -> bool:
        return pid not in await list_pids(url)

    await eventually(is_gone)
