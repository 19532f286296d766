"""Expansions and contractions while the service runs: steps, locks, kills, and who may run on what."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.postgres.migrate import list_pending, migrate, require_schema
from merchant_wallet.postgres.migration_files import Kind, MigrationError, Mode, read_migrations

COINS = "create table coin (id int not null, worth int not null)"
EXPAND = "-- kind: expand\nalter table coin add column if not exists name text;"
UNIQUE = """-- kind: expand
-- step: transaction
alter table coin add column if not exists name text;
-- step: concurrently
create unique index concurrently if not exists coin_id on coin (id);
"""
CONTRACT = "-- kind: contract\nalter table coin drop column if exists worth;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a baseline."""
    return _add(tmp_path, "0001_coins_home", COINS)


def _add(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.sql").write_text(text)
    return folder


def _quiet(_: str) -> None:
    return None


def _columns(url: str) -> set[str]:
    with connect_sync(url) as connection:
        rows = connection.execute(
            "select attname from pg_attribute"
            " where attrelid = 'coin'::regclass and attnum > 0 and not attisdropped"
        ).fetchall()
    return {name for (name,) in rows}


def _require(url: str, folder: Path) -> None:
    async def scenario() -> None:
        async with await connect(url) as connection:
            await require_schema(connection, folder)

    asyncio.run(scenario())


@contextmanager
def _holding(url: str, statement: str) -> Iterator[psycopg.Connection]:
    """A session in a transaction that has run this statement."""
    with connect_sync(url) as connection, connection.transaction():
        connection.execute(statement.encode())
        yield connection


def test_a_program_starts_on_a_schema_that_a_newer_one_expanded(
    empty_database_url: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    newer = _add(_add(tmp_path_factory.mktemp("newer"), "0001_coins_home", COINS), "0002_name_home", EXPAND)
    migrate(empty_database_url, _quiet, folder)
    migrate(empty_database_url, _quiet, newer)

    _require(empty_database_url, folder)
    assert migrate(empty_database_url, _quiet, folder) == []


def test_a_program_does_not_start_on_a_schema_that_a_newer_one_contracted(
    empty_database_url: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    newer = _add(
        _add(tmp_path_factory.mktemp("newer"), "0001_coins_home", COINS), "0002_worth_home", CONTRACT
    )
    migrate(empty_database_url, _quiet, newer)

    with pytest.raises(MigrationError, match="newer than this program, 2 against 1: upgrade"):
        _require(empty_database_url, folder)


def test_contractions_wait_for_those_who_do_not_know_them(empty_database_url: str, folder: Path) -> None:
    _add(_add(folder, "0002_name_home", EXPAND), "0003_worth_home", CONTRACT)

    assert migrate(empty_database_url, _quiet, folder, contract_to=2) == ["0001_coins_home", "0002_name_home"]
    assert list_pending(empty_database_url, folder) == ["0003_worth_home"]
    assert _columns(empty_database_url) == {"id", "worth", "name"}
    # The new program works before the contraction, too.
    _require(empty_database_url, folder)

    assert migrate(empty_database_url, _quiet, folder, contract_to=3) == ["0003_worth_home"]
    assert _columns(empty_database_url) == {"id", "name"}
    _require(empty_database_url, folder)


def test_an_expansion_waits_for_no_contraction(empty_database_url: str, folder: Path) -> None:
    _add(_add(folder, "0002_worth_home", CONTRACT), "0003_name_home", EXPAND)
    with pytest.raises(MigrationError, match="has no tables yet"):
        _require(empty_database_url, folder)

    assert migrate(empty_database_url, _quiet, folder, contract_to=1) == ["0001_coins_home", "0003_name_home"]
    assert _columns(empty_database_url) == {"id", "worth", "name"}
    _require(empty_database_url, folder)

    assert migrate(empty_database_url, _quiet, folder, contract_to=3) == ["0002_worth_home"]
    assert _columns(empty_database_url) == {"id", "name"}


OLD_TABLE = """
create table schema_migration (version int primary key, name text, checksum text, applied_ms bigint{kind});
insert into schema_migration values (1, '0001_books', 'c', 1{offline}), (91, '0091_last_home', 'c', 1{expand})
"""


@pytest.mark.parametrize(
    "old",
    [
        OLD_TABLE.format(kind=", kind text", offline=", 'offline'", expand=", 'expand'"),
        # Older still: before there were kinds.
        OLD_TABLE.format(kind="", offline="", expand=""),
    ],
)
def test_a_database_from_before_the_first_release_is_refused_and_told_what_to_do(
    empty_database_url: str, folder: Path, old: str
) -> None:
    with connect_sync(empty_database_url) as connection:
        connection.execute(old.encode())

    for ask in (list_pending, lambda url, at: migrate(url, _quiet, at), _require):
        with pytest.raises(MigrationError, match=r"before the first release.*name a new database, or a new"):
            ask(empty_database_url, folder)


def test_a_table_in_use_is_waited_for_in_short_tries(empty_database_url: str, folder: Path) -> None:
    migrate(empty_database_url, _quiet, folder)
    _add(folder, "0002_name_home", EXPAND)
    said: list[str] = []
    tried = threading.Event()

    def note(text: str) -> None:
        said.append(text)
        if "in use" in text:
            tried.set()

    with _holding(empty_database_url, "select from coin"):
        migrating = threading.Thread(target=migrate, args=(empty_database_url, note, folder))
        migrating.start()
        assert tried.wait(30)
        # Between two tries nobody waits behind the migration.
        with connect_sync(empty_database_url) as other:
            other.execute("insert into coin values (1, 2)")
    migrating.join(30)

    assert "name" in _columns(empty_database_url)
    assert any("a table is in use, trying again" in line for line in said)


def test_a_step_that_failed_is_run_again_and_those_before_it_are_kept(
    empty_database_url: str, folder: Path
) -> None:
    migrate(empty_database_url, _quiet, folder)
    with connect_sync(empty_database_url) as connection:
        connection.execute("insert into coin values (1, 1), (1, 2)")
    _add(folder, "0002_unique_home", UNIQUE)

    with pytest.raises(psycopg.errors.UniqueViolation):
        migrate(empty_database_url, _quiet, folder)
    assert list_pending(empty_database_url, folder) == ["0002_unique_home"]
    assert "name" in _columns(empty_database_url)

    # The index that was begun is invalid. It is built anew, not taken for done.
    with connect_sync(empty_database_url) as connection:
        connection.execute("delete from coin where worth = 2")
    assert migrate(empty_database_url, _quiet, folder) == ["0002_unique_home"]
    with connect_sync(empty_database_url) as connection:
        found = connection.execute(
            "select indisvalid from pg_index where indrelid = 'coin'::regclass"
        ).fetchall()
    assert found == [(True,)]


def test_batches_run_until_no_row_is_left(empty_database_url: str, folder: Path) -> None:
    migrate(empty_database_url, _quiet, folder)
    with connect_sync(empty_database_url) as connection:
        connection.execute("insert into coin select n, 0 from generate_series(1, 25) n")
    fill = "update coin set worth = 7 where id in (select id from coin where worth = 0 limit 10);"
    _add(folder, "0002_fill_home", f"-- kind: expand\n-- step: batches\n{fill}")

    assert migrate(empty_database_url, _quiet, folder) == ["0002_fill_home"]
    with connect_sync(empty_database_url) as connection:
        # Three transactions changed rows.
        rows = connection.execute(
            "select count(*), count(distinct xmin::text), min(worth) from coin"
        ).fetchall()
    assert rows == [(25, 3, 7)]


def test_a_file_says_its_kind_and_its_steps(folder: Path) -> None:
    text = "-- kind: contract\n-- Why.\n-- step: transaction\nselect 1;\n-- step: batches\nselect 2;\n"
    [_, migration] = read_migrations(_add(folder, "0002_both_home", text))

    assert migration.kind is Kind.CONTRACT
    assert [(step.mode, step.text) for step in migration.steps] == [
        (Mode.TRANSACTION, "select 1;\n"),
        (Mode.BATCHES, "select 2;\n"),
    ]


@pytest.mark.parametrize("text", ["-- kind: both\nselect 1", "-- kind: expand\n-- kind: contract\nselect 1"])
def test_a_kind_that_does_not_exist_is_refused(folder: Path, text: str) -> None:
    [_, migration] = read_migrations(_add(folder, "0002_wrong_home", text))
    with pytest.raises(MigrationError, match="begins with `-- kind: expand` or `-- kind: contract`"):
        _ = migration.kind


def test_a_mode_that_does_not_exist_is_refused(folder: Path) -> None:
    [_, migration] = read_migrations(_add(folder, "0002_wrong_home", "-- step: slowly\nselect 1"))
    with pytest.raises(MigrationError, match="one of transaction, concurrently, batches, not slowly"):
        _ = migration.steps
