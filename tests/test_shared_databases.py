"""Databases and sessions that tests share: the next test finds nothing of the one before."""

import psycopg
import pytest
from tests import kept_sessions
from tests.conftest import TEMPLATE, SharedPostgres

from merchant_wallet.base.db import connect_sync

LIST_TABLES = """
select oid::regclass::text from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace
"""
READ_SEQUENCES = "select seqrelid::regclass::text, pg_sequence_last_value(seqrelid) from pg_sequence"
ADD = """
insert into merchant (name, app_key, currency_mode, created_ms) values ('Shop', 'shop', 'KFB', 1);
delete from side_role;
select add_nonce_days(1, 2)
"""


def read_content(url: str) -> tuple[dict[str, object], object]:
    """All rows of each table, and the sequences."""
    with connect_sync(url) as connection:
        tables = [name for (name,) in connection.execute(LIST_TABLES.encode()).fetchall()]
        rows: dict[str, object] = {
            name: connection.execute(f"select t::text from {name} t order by 1".encode()).fetchall()
            for name in tables
        }
        return rows, connection.execute(READ_SEQUENCES.encode()).fetchall()


def read_pid(connection: psycopg.Connection) -> int:
    return connection.info.backend_pid


def test_a_database_is_used_again_and_is_as_the_template(postgres: SharedPostgres) -> None:
    with postgres.database(TEMPLATE) as first:
        before = read_content(first)
        with connect_sync(first) as connection:
            connection.execute(ADD.encode())
        assert read_content(first) != before
    with postgres.database(TEMPLATE) as second:
        assert second == first
        assert read_content(second) == before


@pytest.mark.parametrize(
    "change",
    [
        "create table tea (cups int)",
        "alter table merchant disable trigger user",
        "drop function add_nonce_days",
        "analyze merchant",
        "alter database {name} set work_mem = '1MB'",
    ],
)
def test_a_database_that_emptying_does_not_mend_is_not_used_again(
    postgres: SharedPostgres, change: str
) -> None:
    with postgres.database(TEMPLATE) as first, connect_sync(first) as connection:
        connection.execute(change.format(name=connection.info.dbname).encode())
    with postgres.database(TEMPLATE) as second:
        assert second != first


def test_a_session_is_as_new_for_the_next_one(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        pid = read_pid(connection)
        connection.execute(b"set work_mem = '9MB'")
        connection.execute(b"create temp table tea (cups int)")
        connection.execute(b"select pg_advisory_lock(7)")
    with connect_sync(database_url) as connection:
        assert read_pid(connection) == pid
        asked = b"select current_setting('work_mem') <> '9MB', to_regclass('tea'), pg_advisory_unlock(7)"
        assert connection.execute(asked).fetchone() == (True, None, False)


def test_an_open_transaction_really_ends(database_url: str) -> None:
    connection = psycopg.connect(database_url)
    connection.execute(b"select 1")
    pid = read_pid(connection)
    connection.close()
    with psycopg.connect(database_url) as other:
        assert read_pid(other) != pid


def test_a_session_that_ends_while_it_is_taken_over_is_not_given_out(
    postgres: SharedPostgres, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect_sync(database_url) as connection:
        pid = read_pid(connection)
    monkeypatch.setattr(kept_sessions, "is_alive", lambda _: True)
    postgres.execute(f"select pg_terminate_backend({pid}, 10000)")
    with connect_sync(database_url) as connection:
        assert read_pid(connection) != pid


@pytest.mark.new_sessions
def test_where_a_test_says_so_a_session_ends_with_its_connection(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        pid = read_pid(connection)
    with connect_sync(database_url) as connection:
        assert read_pid(connection) != pid
