"""Whether a pooler gives our sessions to other clients, as PgBouncer does in transaction and statement mode.

There, what a session sets is set for other programs too, and the prepared statements of one are unknown to
the next. In session mode a pooler is fine.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

import psycopg

TRIES: Final = 8
"""With other clients at work, a pooler may give a session to one of them first."""
WAIT_S: Final = 5.0
"""A pooler in session mode lets a client wait while all its sessions are in use."""
MAX_KNOWN: Final = 1024
_WHO: Final = b"select pg_catalog.pg_backend_pid()"
_known: set[str] = set()
"""The connection strings behind which a pooler is in session mode. Each is asked once."""


class PoolerRefused(psycopg.OperationalError):
    """A pooler is in front of the database that gives one session to several clients in turn."""

    what: Final = "A connection pooler in transaction or statement mode is in front of the database"
    advice: Final = (
        "Prepared statements and settings would reach other programs' sessions. Set it to session mode"
        " (PgBouncer: pool_mode = session), or give the server's own address in the database's URL."
    )

    def __init__(self) -> None:
        super().__init__(f"{self.what}. {self.advice}")


async def refuse_shared_sessions(conninfo: str) -> None:
    """Raise PoolerRefused if the pooler there gives one session to several clients in turn.

    It sets nothing in any session. Raises `psycopg.OperationalError`.
    """
    if conninfo in _known:
        return
    try:
        async with asyncio.timeout(WAIT_S):
            if await _are_shared(conninfo):
                raise PoolerRefused
    except TimeoutError:
        # The caller's session is unused. A pooler that shares sessions would have given it to us.
        pass
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known.add(conninfo)


async def _are_shared(conninfo: str) -> bool:
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(await psycopg.AsyncConnection.connect(conninfo, autocommit=True))
            for _ in range(2)
        ]
        session = await _ask_session(first)
        for _ in range(TRIES):
            # The pooler gives the session that was free last, if it gives the first client's to anybody.
            if await _ask_session(second) == session:
                return True
            session = await _ask_session(first)
    return False


async def _ask_session(connection: psycopg.AsyncConnection[Any]) -> int:
    (row,) = await (await connection.execute(_WHO)).fetchall()
    return int(row[0])
