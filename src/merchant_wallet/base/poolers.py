"""Whether a pooler gives our sessions to other clients, as PgBouncer does in transaction and statement mode.

There, what a session sets is set for other programs too, and the prepared statements of one are unknown to
the next. In session mode a pooler is fine.
"""

from contextlib import AsyncExitStack
from typing import Any, Final

import psycopg

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.db import complete_conninfo

TRIES: Final = 8
"""With other clients at work, a pooler may give a session to one of them first."""
_WHO: Final = b"select pg_backend_pid()"


async def refuse_shared_sessions(url: str) -> None:
    """Raise ConfigError if a pooler gives one session to several clients in turn.

    Nothing is set in a session before this is known. Raises `psycopg.OperationalError` if the database can't
    be reached.
    """
    if await _are_shared(complete_conninfo(url)):
        raise ConfigError(
            "A connection pooler in transaction or statement mode is before the database. Prepared statements"
            " and settings would reach other programs' sessions. Set the pooler to session mode (PgBouncer:"
            " pool_mode = session), or give the server's own address in the database's URL."
        )


async def _are_shared(conninfo: str) -> bool:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(
            await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        )
        session = await _ask_session(first)
        # A server tells each client the session's process. A pooler tells a number of its own.
        if session == first.info.backend_pid:
            return False
        second = await stack.enter_async_context(
            await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        )
        for _ in range(TRIES):
            # The pooler gives the session that was free last, if it gives the first client's to anybody.
            if await _ask_session(second) == session:
                return True
            session = await _ask_session(first)
    return False


async def _ask_session(connection: psycopg.AsyncConnection[Any]) -> int:
    (row,) = await (await connection.execute(_WHO)).fetchall()
    return int(row[0])
