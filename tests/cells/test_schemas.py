"""The schema of an apart cell: the same tables as home's cell tables, with the same rights."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.cells.test_borders import list_cell_queries
from tests.conftest import FAR
from tests.plans import execute_with_nulls, number_parameters
from tests.postgres.test_grants import AS

from merchant_wallet.base.db import Query, connect_sync, place
from merchant_wallet.book.store import STATEMENTS
from merchant_wallet.postgres.grants import Side, grant, list_grants
from merchant_wallet.postgres.migrate import list_pending, migrate
from merchant_wallet.postgres.migration_files import (
    read_cell_migrations,
    read_migrations,
)
from merchant_wallet.postgres.places import APART_CELL
from merchant_wallet.postgres.schema_dump import dump_schema

pytestmark = pytest.mark.new_database

CELL_SCHEMA = Path(__file__).parents[2] / "cell_schema.sql"
_OF_TABLE = re.compile(
    r"(?:create|alter) table (?:only )?public\.(\w+)|create .*index \w+ on .*?public\.(\w+)"
)


def _quiet(_: str) -> None:
    return None


def _split(dumped: str) -> Iterator[str]:
    """The statements of a dump."""
    lines: list[str] = []
    for line in dumped.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if line.endswith(";") and text.count("$$") % 2 == 0:
            yield text.strip()
            lines = []


def _read_statements(url: str, schema: str) -> dict[str, set[str]]:
    """The statements of a schema by their table, as if the schema were called `public`; "" for no table."""
    found: dict[str, set[str]] = {"": set()}
    for statement in _split(dump_schema(url, schema)):
        renamed = re.sub(rf'"?{schema}"?\.', "public.", statement)
        table = _OF_TABLE.match(renamed.lower())
        found.setdefault((table[1] or table[2]) if table else "", set()).add(renamed)
    return found


def test_the_tables_of_an_apart_cell_are_homes_cell_tables(url_with_cell: str) -> None:
    home, far = _read_statements(url_with_cell, "public"), _read_statements(url_with_cell, FAR)

    assert set(far) - {""} == APART_CELL
    for table in sorted(APART_CELL - {"merchant"}):
        assert far[table] == home[table], table
    # Functions and types.
    assert far[""] <= home[""]
    assert len(far[""]) > 10


def test_what_a_cell_reads_of_a_merchant_has_homes_types(url_with_cell: str) -> None:
    query = (
        "select a.attname::text, format_type(a.atttypid, a.atttypmod) from pg_attribute a"
        " where a.attrelid = 'merchant'::regclass and a.attnum > 0 order by a.attname"
    )
    with connect_sync(url_with_cell) as home, connect_sync(place(url_with_cell, None, FAR)) as far:
        columns = far.execute(query).fetchall()
        assert set(columns) <= set(home.execute(query).fetchall())
    assert len(columns) == 7


def test_cell_schema_sql_is_what_the_migrations_make(url_with_cell: str) -> None:
    with connect_sync(url_with_cell) as connection:
        connection.execute("alter schema far rename to cell")
        connection.execute("drop function cell.add_nonce_days, cell.drop_nonce_day")
    written = [text for text in _split(CELL_SCHEMA.read_text()) if "nonce_day" not in text]

    assert written == list(_split(dump_schema(url_with_cell, "cell"))), "run `make schema`"


def test_an_apart_cell_answers_every_query_over_cell_tables(url_with_cell: str) -> None:
    with _planning(place(url_with_cell, None, FAR)) as far:
        planned = 0
        for file, query in list_cell_queries():
            try:
                _plan(far, query)
            except psycopg.Error as error:
                raise AssertionError(f"{file}: {query.name}: {error}") from error
            planned += 1
        assert planned > 150


def test_a_writer_can_prepare_its_statements(url_with_cell: str) -> None:
    with connect_sync(place(url_with_cell, None, FAR)) as far:
        for name, text in STATEMENTS.items():
            far.execute(b"prepare " + name + b" as " + text)


@pytest.mark.parametrize("side", Side)
def test_each_side_has_the_same_rights_in_every_cell(url_with_cell: str, side: Side) -> None:
    as_side = AS[side](url_with_cell)
    with _planning(as_side) as default, _planning(place(as_side, None, FAR)) as far:
        allowed = 0
        for file, query in list_cell_queries():
            is_allowed = _may_run(default, query)
            assert _may_run(far, query) is is_allowed, f"{file}: {query.name}"
            allowed += is_allowed
        assert allowed > 50


def test_home_tables_are_out_of_a_cells_sight(url_with_cell: str) -> None:
    with connect_sync(place(url_with_cell, None, FAR)) as far:
        for table in ("payout", "audit_entry", "operator", "id_range"):
            with pytest.raises(psycopg.errors.UndefinedTable):
                far.execute(f"select from {table}".encode())


def test_a_cell_makes_and_drops_partitions_of_its_own(url_with_cell: str) -> None:
    query = "select count(*) from pg_inherits where inhparent = 'nonce'::regclass"
    with connect_sync(url_with_cell) as home, connect_sync(place(url_with_cell, None, FAR)) as far:
        far.execute("select add_nonce_days(100, 102)")
        assert (home.execute(query).fetchone(), far.execute(query).fetchone()) == ((0,), (3,))
        home.execute("select drop_nonce_day(100)")
        assert far.execute(query).fetchone() == (3,)
        far.execute("select drop_nonce_day(100)")
        assert far.execute(query).fetchone() == (2,)


def test_a_schema_is_made_and_migrated_once(database_url: str) -> None:
    names = [migration.name for migration in read_cell_migrations()]

    assert list_pending(database_url, schema="other") == names
    assert migrate(database_url, _quiet, schema="other") == names
    assert migrate(database_url, _quiet, schema="other") == []
    assert list_pending(database_url, schema="other") == []
    assert list_pending(database_url) == []


def test_a_schemas_name_may_be_a_word_of_sql(database_url: str) -> None:
    migrate(database_url, _quiet, schema="order")

    with connect_sync(place(database_url, None, "order")) as connection:
        assert connection.execute("select add_nonce_days(100, 100)").fetchone() == ([100],)


def test_a_cell_gets_its_baseline_and_the_files_of_cell_tables_alone(tmp_path: Path) -> None:
    for name in ("0001_tables_home", "0001_tables_cell", "0002_new_home", "0003_new_cell"):
        (tmp_path / f"{name}.sql").write_text("select 1")

    assert [one.name for one in read_cell_migrations(tmp_path)] == ["0001_tables_cell", "0003_new_cell"]
    home = ["0001_tables_home", "0002_new_home", "0003_new_cell"]
    assert [one.name for one in read_migrations(tmp_path)] == home


def test_grants_of_a_cell_stay_in_its_schema(url_with_cell: str) -> None:
    with connect_sync(place(url_with_cell, None, FAR)) as far:
        far.execute("grant delete on entry to wallet_web")
    with connect_sync(url_with_cell) as home:
        home.execute("grant delete on entry to wallet_web")

    grant(url_with_cell, schema=FAR)

    query = "select has_table_privilege('wallet_web', %s::regclass, 'delete')"
    with connect_sync(url_with_cell) as home:
        assert home.execute(query, ("far.entry",)).fetchone() == (False,)
        assert home.execute(query, ("public.entry",)).fetchone() == (True,)
    assert set(list_grants(FAR)) == APART_CELL


def _may_run(connection: psycopg.Connection, query: Query) -> bool:
    try:
        _plan(connection, query)
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


@contextmanager
def _planning(url: str) -> Iterator[psycopg.Connection]:
    """A connection whose plans are generic and have all partitions."""
    with connect_sync(url) as connection:
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute("set enable_partition_pruning = off")
        yield connection


def _plan(connection: psycopg.Connection, query: Query) -> None:
    if query.text.lower().startswith(("lock ", "set ")):
        return
    numbered = number_parameters(query.text)
    # What is prepared outlives a refusal.
    steps = (
        "deallocate all",
        f"prepare planned as {numbered}",
        f"explain {execute_with_nulls('planned', numbered)}",
    )
    connection.execute("; ".join(steps).encode())
