"""Sessions that end inside a transaction: a trigger of a table ends the session that writes to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from merchant_wallet.base.db import connect

_SESSIONS_DIE = """
create function end_session() returns trigger language plpgsql as $$
begin
    perform pg_terminate_backend(pg_backend_pid());
    perform pg_sleep(30);
end $$;
create trigger end_session before {event} on {table} for each statement execute function end_session()
"""


@asynccontextmanager
async def sessions_die(url: str, event: str, table: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """While this is open, each session that does `event` (`insert`, `update`) on the table dies there.

    Gives a connection to look with. The statements before it in the transaction have been executed.
    """
    async with await connect(url) as connection:
        await connection.execute(_SESSIONS_DIE.format(event=event, table=table).encode())
        try:
            yield connection
        finally:
            await connection.execute(f"drop trigger end_session on {table}".encode())
            await connection.execute(b"drop function end_session()")
