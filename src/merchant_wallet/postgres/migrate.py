"""Migrations: bring a database to the schema that this code needs, and write that schema down.

Rules:
- A migration is a file `NNNN_name.sql` in `migrations/`, numbered from 0001 without gaps. There is no way
  back.
- Home's schema gets all of them. An apart cell's schema gets `cell_baseline.sql`, which stands for the first
  ones, and then those whose names end in `_cell`. The others end in `_home`.
- `{schema}` in a file is the schema's name, for texts that PostgreSQL does not look up in the search path.
- Each runs in one transaction, together with its row in `schema_migration`. A lock on that table lets one
  process at a time through.
- An applied file never changes. A database that is ahead of the code is left alone.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import HOME_SCHEMA, connect_sync, place
from merchant_wallet.postgres import find_programs

MIGRATIONS = Path(__file__).with_name("migrations")
BASELINE = "cell_baseline"
BASELINE_VERSION = 37
"""The baseline of cells stands for all migrations up to this one."""

_CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version int PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL
)"""


_HAS_TABLE = "SELECT to_regclass('schema_migration') IS NOT NULL"
_READ_APPLIED = "SELECT version, checksum FROM schema_migration"


class MigrationError(Exception):
    """The files or the database don't fit. The text names the version."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its name (with the number) and its SQL."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """The files in order. Raises `MigrationError` for a wrong name, a gap or a duplicate number."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        if path.stem == BASELINE:
            continue
        named = re.fullmatch(r"([0-9]{4})_[a-z0-9_]+", path.stem)
        if not named:
            raise MigrationError(f"{path.name}: a migration is called NNNN_name.sql")
        if int(named[1]) > BASELINE_VERSION and not path.stem.endswith(("_home", "_cell")):
            raise MigrationError(f"{path.name}: its name ends in _home or _cell, where its tables are")
        found.append(Migration(int(named[1]), path.stem, path.read_text(encoding="utf-8")))
    for number, migration in enumerate(found, start=1):
        if migration.version != number:
            raise MigrationError(f"{migration.name} has the place of number {number:04}")
    return found


def read_cell_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """What an apart cell gets, in order. Raises `MigrationError` as `read_migrations` does."""
    text = (folder / f"{BASELINE}.sql").read_text(encoding="utf-8")
    baseline = Migration(BASELINE_VERSION, f"{BASELINE_VERSION:04}_{BASELINE}", text)
    later = [migration for migration in read_migrations(folder) if migration.version > BASELINE_VERSION]
    return [baseline, *(migration for migration in later if migration.name.endswith("_cell"))]


def _read(schema: str, folder: Path) -> list[Migration]:
    return read_migrations(folder) if schema == HOME_SCHEMA else read_cell_migrations(folder)


def migrate(
    url: str, progress: Callable[[str], None], folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA
) -> list[str]:
    """Apply the missing migrations of a schema in order, and return their names.

    The schema of an apart cell is created if it is missing. Any number of processes may call this at once.
    Raises `MigrationError`, and `psycopg.Error` if the SQL of a file fails. The files before it stay applied.
    """
    migrations = _read(schema, folder)
    with connect_sync(place(url, None, schema)) as connection:
        _create_table(connection, schema)
        _check(_read_applied(connection), migrations)
        return [m.name for m in migrations if _apply(connection, m, migrations, progress, schema)]


def list_pending(url: str, folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA) -> list[str]:
    """The names that `migrate` would apply. Changes nothing. Raises `MigrationError` as `migrate` does."""
    migrations = _read(schema, folder)
    with connect_sync(place(url, None, schema)) as connection:
        exists = connection.execute(_HAS_TABLE).fetchone()
        applied = _read_applied(connection) if exists == (True,) else {}
    _check(applied, migrations)
    return [migration.name for migration in migrations if migration.version not in applied]


async def require_schema(
    connection: psycopg.AsyncConnection, folder: Path = MIGRATIONS, schema: str = HOME_SCHEMA
) -> None:
    """Check that the connection's schema is exactly ours. Raises MigrationError with what to do."""
    exists = await (await connection.execute(_HAS_TABLE)).fetchone()
    if exists != (True,):
        raise MigrationError("The database has no tables yet: run `merchant-wallet migrate`.")
    rows = await (await connection.execute(_READ_APPLIED)).fetchall()
    applied: dict[int, str] = dict(rows)
    migrations = _read(schema, folder)
    _check(applied, migrations)
    if len(applied) < len(migrations):
        raise MigrationError(
            f"The database's schema is older than this program, {max(applied, default=0)} of "
            f"{migrations[-1].version}: run `merchant-wallet migrate`."
        )


def _create_table(connection: psycopg.Connection, schema: str) -> None:
    """Create the schema and the table if they are missing. One process creates them, and others wait.

    IF NOT EXISTS does not see a table that another transaction is creating, and fails in several ways when
    that one commits. There is no table to lock yet, so the lock is an advisory one.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('schema_migration'))")
        if schema != HOME_SCHEMA:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        connection.execute(_CREATE_TABLE)


def _read_applied(connection: psycopg.Connection) -> dict[int, str]:
    return dict(connection.execute(_READ_APPLIED).fetchall())


def _check(applied: dict[int, str], migrations: list[Migration]) -> None:
    known = {migration.version: migration for migration in migrations}
    for version, checksum in sorted(applied.items()):
        if version not in known:
            raise MigrationError(
                f"The database's schema is newer than this program, {max(applied)} against {max(known)}: "
                "upgrade the program."
            )
        if known[version].checksum != checksum:
            raise MigrationError(f"{known[version].name} was changed after it was applied")


def _apply(
    connection: psycopg.Connection,
    migration: Migration,
    all_of_them: list[Migration],
    progress: Callable[[str], None],
    schema: str,
) -> bool:
    """Under the lock, apply one file unless another process has. Returns whether it was applied here."""
    with connection.transaction():
        connection.execute("LOCK TABLE schema_migration IN EXCLUSIVE MODE")
        applied = _read_applied(connection)
        _check(applied, all_of_them)
        if migration.version in applied:
            return False
        progress(f"migration {migration.name}")
        quoted = sql.Identifier(schema).as_string(connection)
        connection.execute(migration.text.replace("{schema}", quoted).encode())
        connection.execute(
            "INSERT INTO schema_migration (version, name, checksum, applied_ms) VALUES (%s, %s, %s, %s)",
            (migration.version, migration.name, migration.checksum, now_ms()),
        )
    return True


# Lines of pg_dump that say nothing about the schema, or differ from run to run.
_NOISE = re.compile(
    r"--|-- (Name:|PostgreSQL database dump|Dumped (from|by)).*|\\(un)?restrict .*|SET [a-z_]+ = .*;"
    r"|ALTER TABLE ONLY \S+ ALTER COLUMN \S+ SET \(\);"
    r"|SELECT pg_catalog\.set_config\('search_path'.*"
    r"|(CREATE|COMMENT ON) SCHEMA .*;"
)


def dump_schema(url: str, schema: str = HOME_SCHEMA) -> str:
    """A schema of the database as SQL, from the wheel's pg_dump. The same schema gives the same text.

    Raises `MigrationError` with pg_dump's message.
    """
    parameters = conninfo_to_dict(url)
    password = str(parameters.pop("password", ""))
    dumped = subprocess.run(
        [
            str(find_programs() / "pg_dump"),
            "--schema-only",
            "--no-owner",
            "--no-privileges",
            f"--schema={schema}",
            f"--dbname={make_conninfo('', **parameters)}",
        ],
        # Not on the command line, where every user of the machine could read it.
        env={**os.environ, "PGPASSWORD": password},
        capture_output=True,
        text=True,
        check=False,
    )
    if dumped.returncode != 0:
        raise MigrationError(f"pg_dump failed: {dumped.stderr.strip()}")
    # PostgreSQL 15.20 stores when a column was changed. The number is different in each database.
    text = re.sub(r"pg_attver=\d+(, )?|, pg_attver=\d+", "", dumped.stdout)
    kept = "\n".join(line for line in text.splitlines() if not _NOISE.fullmatch(line))
    return re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"
