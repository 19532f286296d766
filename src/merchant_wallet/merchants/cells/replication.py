"""PostgreSQL's logical replication of one cell's tables, from its old place to its new one.

Rules:
- Publication, slot and subscription have one name, with the move's id in it. Each function makes sure of
  something, and may be repeated after a kill.
- All tables that say something about books are copied, also the copies of home's tables. What a schema says
  about itself is not.
- Nonces go through the table's root. So each side has partitions of its own, and the new place gets new days
  first: without a day's partition it stops and tries again.
- Transactions are applied in the order of their commits. So a position that was reached covers all before.
- The subscription stores how it reaches the old place, with the password, in PostgreSQL's own catalogue. It
  is dropped after the switch.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncConnection, sql

from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells.moves import CellMove, MoveRefused

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("replication.sql"))
NOT_COPIED: Final = ("cell_state", "schema_migration", "side_role")
"""What a schema says about itself."""
POLL_S: Final = 0.01
MIN_VERSION: Final = 15
UNLIMITED: Final = "-1"
LOCK_TRIES: Final = 10
LOCK_TIMEOUT_MS: Final = 200
"""Writers wait no longer for a publication that is dropped."""
WAIT_NOTE_S: Final = 5.0
"""Who waits for the new place longer than this is told so, again and again."""


class Replication:
    """The replication of one move. `old` and `new` may administer the two databases.

    `old_conninfo` is how the server of the new place reaches the old one.
    """

    def __init__(
        self,
        move: CellMove,
        old: Connection,
        new: Connection,
        old_conninfo: str,
        progress: Callable[[str], None],
    ) -> None:
        self.name = make_name(move)
        self._schema = move.schema_name
        self._old = old
        self._new = new
        self._old_conninfo = old_conninfo
        self._progress = progress

    async def check(self) -> str | None:
        """Whether both servers can do it. Returns what the operator should know. Raises MoveRefused."""
        for connection in (self._old, self._new):
            (version,) = await _fetch(connection, "read_version")
            if version < MIN_VERSION:
                raise MoveRefused(f"PostgreSQL {version} is too old: a cell needs {MIN_VERSION} or newer.")
        if await _fetch(self._old, "read_rights") != (True,):
            raise MoveRefused(
                "At the old place the move needs a user who may replicate (REPLICATION) and may see and end"
                " sessions (pg_read_all_stats, pg_signal_backend), or a superuser: name it with --source-url."
            )
        if await _fetch(self._new, "read_new_rights") != (True,):
            raise MoveRefused(
                "At the new place the move needs a user who may create a schema (CREATE on the database) and"
                " a subscription (pg_create_subscription, or a superuser): name it in URL."
            )
        wal_level, kept, is_citus, user, limits = await _fetch(self._old, "read_settings")
        if is_citus:
            raise MoveRefused("The cell is placed by Citus: move it with citus_schema_move().")
        if wal_level != "logical":
            raise MoveRefused(
                f"The server of the old place has wal_level = {wal_level}. Set it to logical and restart it."
            )
        if limits:
            raise MoveRefused(
                f"At the old place the sessions of {user} begin with {limits}, which would end the copy. Set"
                f" it to 0 for this user (`alter role {user} set … = 0`), and run the command again."
            )
        if kept != UNLIMITED:
            return f"the old place keeps at most {kept} of changes for the copy (max_slot_wal_keep_size)"
        return None

    async def is_subscribed(self) -> bool:
        """Whether the new place has the subscription."""
        return await self._find(self._new, "find_subscription") is not None

    async def ensure(self) -> None:
        """Make what is missing, and start copying. The new place has empty tables, or was begun before."""
        if await self._find(self._old, "find_publication") is None:
            tables = await self.list_tables()
            names = sql.SQL(", ").join(sql.Identifier(self._schema, table) for table in tables)
            await self._execute(
                self._old,
                "create publication {name} for table {tables} with (publish_via_partition_root = true)",
                tables=names,
            )
        subscribed = await self._find(self._new, "find_subscription")
        if await self._find(self._old, "find_slot") is None:
            if subscribed is not None:
                raise MoveRefused(
                    f"The old place has lost the replication slot {self.name}: undo the move with --undo,"
                    " and begin it again."
                )
            await self._old.execute(QUERIES["create_slot"].text, {"name": self.name})
        if subscribed is None:
            await self._subscribe()
        elif subscribed == (False,):
            await self._execute(self._new, "alter subscription {name} enable")

    async def _subscribe(self) -> None:
        try:
            # The slot exists already. A subscription that makes it would hang if both are on one server.
            await self._execute(
                self._new,
                "create subscription {name} connection {conninfo} publication {name}"
                " with (create_slot = false, slot_name = {slot})",
                conninfo=sql.Literal(self._old_conninfo),
                slot=sql.Literal(self.name),
            )
        except psycopg.OperationalError as error:
            if self._new.closed:
                raise
            said = " ".join(str(error).split())
            raise MoveRefused(
                f"The server of the new place can't connect to the old one: {said}. Name with --source-url"
                " how it gets there, and run the command again."
            ) from error

    async def count_tables(self) -> tuple[int, int]:
        """How many tables there are, and how many of them are copied."""
        total, copied = await _fetch(self._new, "count_tables", name=self.name)
        return total, copied

    async def read_lag(self) -> int:
        """How many bytes of changes the new place has yet to apply. Raises MoveRefused without a slot."""
        return await self._read_lag(None)

    async def wait_applied(self) -> None:
        """Wait until the new place has applied and stored all that is committed now."""
        (position,) = await _fetch(self._old, "read_position")
        noted_s = time.monotonic()
        while (lag := await self._read_lag(position)) > 0:
            if time.monotonic() - noted_s > WAIT_NOTE_S:
                noted_s = time.monotonic()
                self._progress(
                    f"waiting: the new place is {lag} bytes behind; {await self.describe_errors()}"
                )
            await asyncio.sleep(POLL_S)

    async def describe_errors(self) -> str:
        """How often the new place has failed to apply changes, and where to look."""
        (count,) = await _fetch(self._new, "count_errors", name=self.name)
        return (
            f"{count_of(count, 'error')}; if they grow, see the log of its PostgreSQL"
            if count
            else "no errors"
        )

    async def disable(self) -> None:
        """Stop applying."""
        await self._execute(self._new, "alter subscription {name} disable")

    async def drop_subscription(self) -> None:
        """Drop the subscription and its slot. If the old place does not answer, the slot stays there."""
        if not await self.is_subscribed():
            return
        try:
            await self._execute(self._new, "drop subscription {name}")
        except psycopg.OperationalError:
            if self._new.closed:
                raise
            await drop_lone_subscription(self._new, self.name)

    async def list_tables(self) -> list[str]:
        """The tables that are copied."""
        values = {"schema": self._schema, "without": list(NOT_COPIED)}
        rows = await (await self._old.execute(QUERIES["list_tables"].text, values)).fetchall()
        return [table for (table,) in rows]

    async def _read_lag(self, position: str | None) -> int:
        values = {"name": self.name, "position": position}
        row = await (await self._old.execute(QUERIES["read_lag"].text, values)).fetchone()
        if row is None:
            raise MoveRefused(f"The old place has lost the replication slot {self.name}.")
        return int(row[0])

    async def _find(self, connection: Connection, query: str) -> tuple[Any, ...] | None:
        return await _find(connection, query, self.name)

    async def _execute(self, connection: Connection, text: LiteralString, **parts: sql.Composable) -> None:
        await _execute(connection, text, self.name, **parts)


def make_name(move: CellMove) -> str:
    """The name of a move's publication, slot and subscription."""
    return f"wallet_cell_{move.cell_id}_{move.move_id[:8]}"


async def drop_lone_subscription(new: Connection, name: str) -> None:
    """Drop the subscription and ask nothing of the old place."""
    if await _find(new, "find_subscription", name) is not None:
        await _execute(new, "alter subscription {name} disable", name)
        await _execute(new, "alter subscription {name} set (slot_name = none)", name)
        await _execute(new, "drop subscription {name}", name)


async def drop_source(old: Connection, move: CellMove) -> None:
    """Drop the slot and the publication at the old place, whatever the new place does."""
    values = {"name": make_name(move)}
    while True:
        slot = await (await old.execute(QUERIES["find_slot"].text, values)).fetchone()
        if slot is None:
            break
        if slot[0] is None:
            await old.execute(QUERIES["drop_slot"].text, values)
        else:
            await old.execute(QUERIES["end_reader"].text, values)
            await asyncio.sleep(POLL_S)
    await _drop_publication(old, values["name"])


async def _drop_publication(old: Connection, name: str) -> None:
    """Drop it while nobody writes, if the tables can be locked in one of `LOCK_TRIES`; else all the same.

    PostgreSQL finds a table's publications in two steps. A statement that is between them when one of them
    is dropped fails with "cache lookup failed for publication". A lock of the tables keeps all writers out.
    A long autovacuum keeps the lock from us. Then such a failure, which commits nothing, is the smaller evil.
    """
    rows = await (await old.execute(QUERIES["list_published"].text, {"name": name})).fetchall()
    tables = sql.SQL(", ").join(sql.Identifier(*row) for row in rows)
    for _ in range(LOCK_TRIES if rows else 0):
        with suppress(psycopg.errors.LockNotAvailable):
            async with old.transaction():
                await old.execute(sql.SQL("set local lock_timeout = {}").format(LOCK_TIMEOUT_MS))
                await old.execute(sql.SQL("lock table {} in share row exclusive mode").format(tables))
                await _execute(old, "drop publication if exists {name}", name)
            return
        await asyncio.sleep(POLL_S)
    await _execute(old, "drop publication if exists {name}", name)


async def _find(connection: Connection, query: str, name: str) -> tuple[Any, ...] | None:
    return await (await connection.execute(QUERIES[query].text, {"name": name})).fetchone()


async def _execute(connection: Connection, text: LiteralString, name: str, **parts: sql.Composable) -> None:
    await connection.execute(sql.SQL(text).format(name=sql.Identifier(name), **parts))


async def _fetch(connection: Connection, query: str, **values: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = await (await connection.execute(QUERIES[query].text, values)).fetchone()
    assert row is not None, "these queries always have a row"
    return row
