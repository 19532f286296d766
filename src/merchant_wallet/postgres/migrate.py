"""Migrations: bring a database to the schema that this program needs, while the service runs.

Rules:
- The files and their kinds are in `migration_files`. They are applied in order, but for contractions that
  wait. One process migrates a schema at a time; others wait for it.
- A step that is one transaction waits at most `LOCK_TIMEOUT_MS` for a lock, since all who come after it wait,
  too. Then it lets go and tries again later. So no table is closed for long.
- A migration is written down after its last step. After a kill its steps run again.
- The caller says which version the running programs know. Later contractions are left for the next time.
- A program accepts a schema that lacks contractions, and one that has later expansions.
- A schema with a migration of the kind `OLD_KIND` is from before the first release, and is refused.
"""

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import HOME_SCHEMA, Queries, connect_sync, place
from merchant_wallet.postgres.migration_files import (
    MIGRATIONS,
    Kind,
    Migration,
    MigrationError,
    Mode,
    Step,
    find_required_version,
    read_for,
)

Progress = Callable[[str], None]

QUERIES: Final = Queries(Path(__file__).with_name("migrate.sql"))
LOCK_TIMEOUT_MS: Final = 100
FIRST_PAUSE_S: Final = 0.2
LAST_PAUSE_S: Final = 5.0
PATIENCE_S: Final = 600.0
"""After this time without a lock the migration gives up, and names who has it."""
NOTE_INTERVAL_S: Final = 5.0
ENCODING: Final = "UTF8"
OLD_KIND: Final = "offline"
TOO_OLD: Final = (
    "This database is from before the first release, 0.1.0, and no program migrates it: name a new database,"
    " or a new data folder."
)

_BUILT_INDEX: Final = re.compile(
    r"\bcreate\s+(?:unique\s+)?index\s+concurrently\s+if\s+not\s+exists\s+(\w+)", re.I
)


class Applied(NamedTuple):
    """What a database says of a migration that it has."""

    checksum: str
    kind: str


def migrate(
    url: str,
    progress: Progress,
    folder: Path = MIGRATIONS,
    schema: str = HOME_SCHEMA,
    *,
    contract_to: int | None = None,
    hold: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> list[str]:
    """Apply the missing migrations of a schema in order, and return their names.

    It leaves contractions after `contract_to`; None applies all. `hold` keeps other jobs away
    meanwhile (see `jobs`); it is not asked if nothing is missing. The schema of an apart cell
    is created if it is missing. Any number of processes may call this at once. Raises `MigrationError`, also
    for a new database that is not UTF-8, and `psycopg.Error` if the SQL of a file fails. The files before it
    stay applied.
    """
    migrations = read_for(schema, folder)
    with connect_sync(place(url, None, schema)) as connection:
        _require_encoding(connection)
        _create_table(connection, schema)
        with _alone(connection, schema, progress):
            applied = _read_applied(connection)
            _check(applied, migrations)
            pending = [migration for migration in migrations if migration.version not in applied]
            allowed = [migration for migration in pending if _is_allowed(migration, contract_to)]
            with hold() if allowed else nullcontext():
                for migration in allowed:
                    progress(f"migration {migration.name}")
                    _apply(connection, migration, progress, schema)
            _order_by_bytes(connection, progress)
    return [migration.name for migration in allowed]


def _order_by_bytes(connection: psycopg.Connection[Any], progress: Progress) -> None:
    """Let the texts whose beginnings are searched for have the order of bytes, whatever the database's is.

    All of a new schema, or none: a join finds no index of another order. Where there are rows, indexes would
    be built under a lock.
    """
    found = connection.execute(QUERIES["list_unordered"].text).fetchall()
    if not found or not _are_empty(connection, {table for table, _, _ in found}):
        return
    changes = [
        sql.SQL('alter table {} alter {} type {} collate "C"').format(
            sql.Identifier(table), sql.Identifier(column), sql.SQL(kind)
        )
        for table, column, kind in found
    ]
    text = sql.SQL("; ").join(changes).as_string(connection)
    _run_step(connection, Step(Mode.TRANSACTION, text), progress, is_online=True)


def _are_empty(connection: psycopg.Connection[Any], tables: Collection[str]) -> bool:
    rows = [sql.SQL("exists (select from {})").format(sql.Identifier(table)) for table in sorted(tables)]
    answer = connection.execute(sql.SQL("select not ({})").format(sql.SQL(" or ").join(rows))).fetchone()
    return answer == (True,)


def _is_allowed(migration: Migration, contract_to: int | None) -> bool:
    return migration.kind is not Kind.CONTRACT or contract_to is None or migration.version <= contract_to


def list_pending(url: str, folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA) -> list[str]:
    """The names of what `find_pending` finds. Raises `MigrationError` as `migrate` does."""
    return [migration.name for migration in find_pending(url, folder, schema)]


def find_pending(url: str, folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA) -> list[Migration]:
    """What `migrate` would apply. Changes nothing. Raises `MigrationError` as `migrate` does."""
    migrations = read_for(schema, folder)
    with connect_sync(place(url, None, schema)) as connection:
        exists = connection.execute(QUERIES["has_table"].text).fetchone()
        applied = _read_applied(connection) if exists == (True,) else {}
    _check(applied, migrations)
    return [migration for migration in migrations if migration.version not in applied]


async def require_schema(
    connection: psycopg.AsyncConnection[Any], folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA
) -> None:
    """Check that this program can run on the connection's schema. Raises MigrationError with what to do."""
    exists = await (await connection.execute(QUERIES["has_table"].text)).fetchone()
    if exists != (True,):
        hidden = await connection.execute(QUERIES["find_hidden"].text, {"schema": schema})
        if row := await hidden.fetchone():
            raise MigrationError(
                f"The role {row[0]} may not use the schema {schema}, which has tables: name it in"
                " `merchant-wallet migrate --web-role ROLE --worker-role ROLE`, typed by their owner."
            )
        raise MigrationError("The database has no tables yet: run `merchant-wallet migrate`.")
    rows = await (await connection.execute(QUERIES["list_applied"].text)).fetchall()
    applied = {version: Applied(checksum, kind) for version, checksum, kind in rows}
    migrations = read_for(schema, folder)
    _check(applied, migrations)
    if any(m.version not in applied for m in migrations if m.kind is not Kind.CONTRACT):
        raise MigrationError(
            f"The database's schema is older than this program, {max(applied, default=0)} of "
            f"{find_required_version(migrations)}: "
            "run `merchant-wallet migrate`."
        )


def _require_encoding(connection: psycopg.Connection) -> None:
    """Refuse a database without tables if it can't store every name. One that is in use is migrated."""
    found = connection.info.parameter_status("server_encoding")
    if found != ENCODING and connection.execute(QUERIES["has_table"].text).fetchone() != (True,):
        raise MigrationError(
            f"The database's encoding is {found}, and names can be in any script: create the database anew "
            f"with `encoding '{ENCODING}' template template0`."
        )


def _create_table(connection: psycopg.Connection, schema: str) -> None:
    """Create the schema and the table if they are missing. One process creates them, and others wait.

    IF NOT EXISTS does not see a table that another transaction is creating, and fails in several ways when
    that one commits. There is no table to lock yet, so the lock is an advisory one.
    """
    with connection.transaction():
        connection.execute(QUERIES["lock_creation"].text)
        if schema != HOME_SCHEMA:
            connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        _require_right(connection, schema)
        connection.execute(QUERIES["create_table"].text)


def _require_right(connection: psycopg.Connection, schema: str) -> None:
    """Refuse a role that may not create tables, as in a database that another role owns."""
    row = connection.execute(QUERIES["may_create"].text, {"schema": schema}).fetchone()
    assert row is not None
    role, may_create, has_table = row
    if may_create is None:
        raise MigrationError(
            f"This database has no schema {schema}: as the database's owner type"
            f" `create schema {schema} authorization {role}`."
        )
    if not may_create and not has_table:
        raise MigrationError(
            f"The role {role} may not create tables in schema {schema} of this database: as the database's"
            f" owner type `grant create on schema {schema} to {role}`, or give the URL of the owner."
        )


@contextmanager
def _alone(connection: psycopg.Connection, schema: str, progress: Progress) -> Iterator[None]:
    """Be the only one who migrates the schema. The lock is asked for, not waited for.

    A session that waits for it would have a snapshot. `create index concurrently` waits for those.
    """
    values = {"schema": schema}
    noted_s = time.monotonic()
    while connection.execute(QUERIES["try_lock"].text, values).fetchone() != (True,):
        if time.monotonic() - noted_s > NOTE_INTERVAL_S:
            noted_s = time.monotonic()
            progress("waiting: another process migrates this schema")
        time.sleep(FIRST_PAUSE_S)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(QUERIES["unlock"].text, values)


def _read_applied(connection: psycopg.Connection) -> dict[int, Applied]:
    rows = connection.execute(QUERIES["list_applied"].text).fetchall()
    return {version: Applied(checksum, kind) for version, checksum, kind in rows}


def _check(applied: Mapping[int, Applied], migrations: Sequence[Migration]) -> None:
    if any(one.kind == OLD_KIND for one in applied.values()):
        raise MigrationError(TOO_OLD)
    known = {migration.version: migration for migration in migrations}
    for version, (checksum, kind) in sorted(applied.items()):
        if version not in known:
            if kind == Kind.EXPAND:
                continue
            raise MigrationError(
                f"The database's schema is newer than this program, {max(applied)} against {max(known)}: "
                "upgrade the program."
            )
        if known[version].checksum != checksum:
            raise MigrationError(f"{known[version].name} was changed after it was applied")


def _apply(connection: psycopg.Connection, migration: Migration, progress: Progress, schema: str) -> None:
    quoted = sql.Identifier(schema).as_string(connection)
    *first, last = [Step(step.mode, step.text.replace("{schema}", quoted)) for step in migration.steps]
    is_online = migration.kind is not Kind.BASELINE
    for step in first:
        _run_step(connection, step, progress, is_online)
    if last.mode is not Mode.TRANSACTION:
        _run_step(connection, last, progress, is_online)
        last = Step(Mode.TRANSACTION, "")
    # The last statements are committed together with the note that the migration is done.
    _run_step(connection, last, progress, is_online, migration)


def _run_step(
    connection: psycopg.Connection,
    step: Step,
    progress: Progress,
    is_online: bool,
    done: Migration | None = None,
) -> None:
    if step.mode is Mode.CONCURRENTLY:
        _run_concurrently(connection, step)
        return
    timeout_ms = LOCK_TIMEOUT_MS if is_online else 0
    noted_s, total = time.monotonic(), 0
    while changed := _run_patiently(connection, step, progress, timeout_ms, done):
        if step.mode is not Mode.BATCHES:
            return
        total += changed
        if time.monotonic() - noted_s > NOTE_INTERVAL_S:
            noted_s = time.monotonic()
            progress(f"  {count_of(total, 'row')} so far")


def _run_concurrently(connection: psycopg.Connection, step: Step) -> None:
    """Run it without a limit for locks: it keeps nobody from writing while it waits."""
    if built := _BUILT_INDEX.search(step.text):
        # What a killed one left.
        [broken] = connection.execute(QUERIES["is_invalid"].text, {"name": built[1]}).fetchall()
        if broken == (True,):
            connection.execute(sql.SQL("drop index concurrently {}").format(sql.Identifier(built[1])))
    connection.execute(step.text.encode())


def _run_patiently(
    connection: psycopg.Connection, step: Step, progress: Progress, timeout_ms: int, done: Migration | None
) -> int:
    """Run a step as one transaction, again when a lock was not free. Returns how many rows it changed.

    A step that is not of batches always counts as one. Raises MigrationError when it never got its locks.
    """
    began_s, pause_s = time.monotonic(), FIRST_PAUSE_S
    while True:
        try:
            return _run_once(connection, step, timeout_ms, done)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            holders = _name_holders(connection)
            if time.monotonic() - began_s > PATIENCE_S:
                raise MigrationError(
                    f"A table was not free for {PATIENCE_S:.0f} s: {error.diag.message_primary}. {holders}"
                    " End what has it, and run `merchant-wallet migrate` again."
                ) from error
            progress(f"  a table is in use, trying again in {pause_s:.1f} s. {holders}".rstrip())
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_PAUSE_S)


def _run_once(connection: psycopg.Connection, step: Step, timeout_ms: int, done: Migration | None) -> int:
    with connection.transaction():
        connection.execute(sql.SQL("set local lock_timeout = {}").format(timeout_ms))
        changed = connection.execute(step.text.encode()).rowcount if step.text.strip() else 0
        if done is not None:
            values = {"version": done.version, "name": done.name, "checksum": done.checksum}
            values |= {"kind": done.kind.value, "now_ms": now_ms()}
            connection.execute(QUERIES["add_applied"].text, values)
    return changed if step.mode is Mode.BATCHES else 1


def _name_holders(connection: psycopg.Connection) -> str:
    rows = connection.execute(QUERIES["list_long"].text).fetchall()
    named = [f"{name} (pid {pid}) is in a transaction since {age_s:.0f} s" for pid, name, age_s in rows]
    return f"{'; '.join(named)}." if named else ""
