"""Migrations on their own databases, from their own folders; the shipped schema at the end."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.conftest import SharedPostgres

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.migrate import QUERIES, list_pending, migrate
from merchant_wallet.postgres.migration_files import MigrationError, read_migrations
from merchant_wallet.postgres.schema_dump import dump_schema

pytestmark = pytest.mark.new_database

SCHEMA = Path(__file__).parents[2] / "schema.sql"


def _write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(f"-- kind: contract\n{text}")
    return folder


@pytest.fixture
def two_steps(tmp_path: Path) -> Path:
    return _write(
        tmp_path,
        m0001_coins_home="CREATE TABLE coin (id int PRIMARY KEY);\nINSERT INTO coin VALUES (1);",
        m0002_names_home="ALTER TABLE coin ADD COLUMN name text;",
    )


def _quiet(_: str) -> None:
    return None


def test_migrations_are_applied_in_order_and_once(empty_database_url: str, two_steps: Path) -> None:
    said: list[str] = []

    assert list_pending(empty_database_url, two_steps) == ["0001_coins_home", "0002_names_home"]
    assert migrate(empty_database_url, said.append, two_steps) == ["0001_coins_home", "0002_names_home"]
    assert said == ["migration 0001_coins_home", "migration 0002_names_home"]
    assert list_pending(empty_database_url, two_steps) == []
    assert migrate(empty_database_url, said.append, two_steps) == []
    with connect_sync(empty_database_url) as connection:
        assert connection.execute("SELECT id, name FROM coin").fetchall() == [(1, None)]


@pytest.fixture
def latin_url(postgres: SharedPostgres) -> Iterator[str]:
    """An empty database whose encoding has no Chinese characters."""
    name = f"latin_{postgres.worker}"
    postgres.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    try:
        yield postgres.url_of(name)
    finally:
        postgres.drop(name)


def test_a_database_that_can_not_store_every_name_gets_no_table(latin_url: str, two_steps: Path) -> None:
    with pytest.raises(MigrationError, match=r"LATIN1.*encoding 'UTF8'"):
        migrate(latin_url, _quiet, two_steps)

    assert list_pending(latin_url, two_steps) == ["0001_coins_home", "0002_names_home"]


def test_a_database_of_another_encoding_that_is_in_use_is_still_migrated(
    latin_url: str, two_steps: Path
) -> None:
    with connect_sync(latin_url) as connection:
        connection.execute(QUERIES["create_table"].text)

    assert migrate(latin_url, _quiet, two_steps) == ["0001_coins_home", "0002_names_home"]


def test_only_what_is_missing_is_applied(empty_database_url: str, two_steps: Path) -> None:
    migrate(empty_database_url, _quiet, two_steps)
    _write(two_steps, m0003_more_home="CREATE TABLE more (id int)")

    assert list_pending(empty_database_url, two_steps) == ["0003_more_home"]
    assert migrate(empty_database_url, _quiet, two_steps) == ["0003_more_home"]


def test_asking_what_is_pending_changes_nothing(empty_database_url: str, two_steps: Path) -> None:
    list_pending(empty_database_url, two_steps)

    with connect_sync(empty_database_url) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone() == (0,)


def test_a_failing_migration_leaves_the_ones_before_it_and_nothing_of_its_own(
    empty_database_url: str, two_steps: Path
) -> None:
    _write(two_steps, m0003_broken_home="CREATE TABLE half (id int); SELECT 1 / 0;")

    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty_database_url, _quiet, two_steps)

    assert list_pending(empty_database_url, two_steps) == ["0003_broken_home"]
    with connect_sync(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('half'), to_regclass('coin')").fetchone() == (
            None,
            "coin",
        )


def test_an_applied_migration_that_was_changed_is_refused(empty_database_url: str, two_steps: Path) -> None:
    migrate(empty_database_url, _quiet, two_steps)
    _write(two_steps, m0001_coins_home="CREATE TABLE coin (id bigint PRIMARY KEY);")

    with pytest.raises(MigrationError, match="0001_coins_home was changed"):
        migrate(empty_database_url, _quiet, two_steps)
    with pytest.raises(MigrationError, match="0001_coins_home was changed"):
        list_pending(empty_database_url, two_steps)


def test_a_database_that_is_newer_than_the_code_is_refused(empty_database_url: str, two_steps: Path) -> None:
    migrate(empty_database_url, _quiet, two_steps)
    (two_steps / "0002_names_home.sql").unlink()

    with pytest.raises(MigrationError, match="newer than this program, 2 against 1: upgrade"):
        migrate(empty_database_url, _quiet, two_steps)


def test_processes_that_migrate_at_once_apply_each_step_once(empty_database_url: str, tmp_path: Path) -> None:
    for number in range(1, 9):
        _write(tmp_path, **{f"m{number:04}_step_home": f"CREATE TABLE step_{number} (id int)"})
    program = (
        "import sys, pathlib; from merchant_wallet.postgres.migrate import migrate;"
        "print(*migrate(sys.argv[1], lambda _: None, pathlib.Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", program, empty_database_url, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    applied = [name for process in running for name in process.communicate()[0].split()]

    assert [process.returncode for process in running] == [0, 0, 0, 0]
    assert sorted(applied) == [f"{number:04}_step_home" for number in range(1, 9)]


def test_first_starts_at_the_same_moment_make_the_table_of_migrations_once(
    empty_database_url: str, tmp_path: Path
) -> None:
    _write(tmp_path, m0001_coins_home="CREATE TABLE coin (id int)")
    for _ in range(25):
        together = threading.Barrier(4)

        def start(together: threading.Barrier = together) -> list[str]:
            together.wait(timeout=30)
            return migrate(empty_database_url, _quiet, tmp_path)

        with ThreadPoolExecutor(4) as starts:
            started = [starts.submit(start) for _ in range(4)]
            assert [name for one in started for name in one.result()] == ["0001_coins_home"]
        with connect_sync(empty_database_url) as connection:
            connection.execute("DROP TABLE coin, schema_migration")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["0002_late_home"], "the place of number 0001"),
        (["0001_a_home", "0003_c_cell"], "the place of number 0002"),
        (["0001_a_home", "0001_b_home"], "the place of number 0002"),
        (["0001_a"], "ends in _home or _cell"),
        (["1_a"], "NNNN_name"),
        (["0001-a"], "NNNN_name"),
    ],
)
def test_a_folder_with_a_gap_a_double_or_a_wrong_name_is_refused(
    tmp_path: Path, names: list[str], complaint: str
) -> None:
    for name in names:
        (tmp_path / f"{name}.sql").write_text("SELECT 1")

    with pytest.raises(MigrationError, match=complaint):
        read_migrations(tmp_path)


def test_the_same_schema_is_always_written_the_same_way(empty_database_url: str, two_steps: Path) -> None:
    migrate(empty_database_url, _quiet, two_steps)

    written = dump_schema(empty_database_url)

    assert written == dump_schema(empty_database_url)
    assert "CREATE TABLE public.coin (\n    id integer NOT NULL,\n    name text\n);" in written
    assert "restrict" not in written
    assert "Dumped" not in written


def test_schema_sql_is_what_the_migrations_make(database_url: str) -> None:
    assert SCHEMA.read_text() == dump_schema(database_url), "run `make schema`"


def test_contractions_that_come_late_make_the_same_schema(empty_database_url: str) -> None:
    migrate(empty_database_url, _quiet, contract_to=0)
    migrate(empty_database_url, _quiet)
    assert SCHEMA.read_text() == dump_schema(empty_database_url)


def test_a_fresh_database_for_a_test_has_every_migration(database_url: str) -> None:
    assert list_pending(database_url) == []


def test_no_migration_names_a_not_null_constraint() -> None:
    """Only PostgreSQL 18 has such names. A migration that needs one stops on 15 to 17."""
    named = [step.name for step in read_migrations() if re.search(r"\w_not_null\b", step.text)]
    assert named == []


def test_not_null_constraints_have_the_names_that_new_tables_would_give_them(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        if connection.info.server_version < 180000:
            pytest.skip("PostgreSQL 15 to 17 give NOT NULL constraints no name")
        rows = connection.execute(
            "SELECT t.relname || '_' || a.attname || '_not_null', c.conname FROM pg_constraint c"
            " JOIN pg_class t ON t.oid = c.conrelid"
            " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]"
            " WHERE c.contype = 'n' AND c.coninhcount = 0"
            " AND t.relnamespace = current_schema()::regnamespace"
        ).fetchall()
    assert len(rows) > 100
    assert [present for wanted, present in rows if present != wanted[:63]] == []
