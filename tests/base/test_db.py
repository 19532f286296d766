"""The form of `.sql` files, and the settings of connections."""

import asyncio
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from tests.rows import each_row

from merchant_wallet.base.db import (
    DatabaseReadOnly,
    Queries,
    QueryFileError,
    complete_conninfo,
    connect,
    connect_sync,
    for_writing,
    is_database_away,
    is_open,
    is_transient_error,
    place,
    run_together,
)
from merchant_wallet.base.session_settings import set_all
from merchant_wallet.base.setting_types import read_database_url


def _queries(tmp_path: Path, text: str) -> Queries:
    path = tmp_path / "book.sql"
    path.write_text(text)
    return Queries(path)


def test_queries_are_found_by_name_with_text_and_reason(tmp_path: Path) -> None:
    queries = _queries(
        tmp_path,
        "-- What a book reads.\n\n"
        "-- name: read_heads\n-- The head of each book,\n-- for the checkpoint.\n"
        "SELECT merchant_id, head_hash\n-- a comment of its own\nFROM book WHERE id = $1::bigint;\n\n"
        "-- name: count_books\n-- For the console.\nSELECT count(*) FROM book\n",
    )

    assert list(queries) == ["read_heads", "count_books"]
    assert len(queries) == 2
    assert queries["read_heads"].reason == "The head of each book, for the checkpoint."
    assert queries["read_heads"].text == (
        "SELECT merchant_id, head_hash\n-- a comment of its own\nFROM book WHERE id = $1::bigint"
    )
    assert queries["count_books"].text == "SELECT count(*) FROM book"


def test_a_fragment_stands_wherever_a_query_or_another_fragment_names_it(tmp_path: Path) -> None:
    queries = _queries(
        tmp_path,
        "-- fragment: columns\n-- What is shown.\na, '{}'::text[] as b;\n\n"
        "-- fragment: shown\n-- All of it.\nselect {columns} from t;\n"
        "-- name: list\n-- Some.\n{shown} where a = %(a)s;\n"
        "-- name: find\n-- One.\nselect {columns} from t limit 1",
    )

    assert {name: query.text for name, query in queries.items()} == {
        "list": "select a, '{}'::text[] as b from t where a = %(a)s",
        "find": "select a, '{}'::text[] as b from t limit 1",
    }


def test_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        _queries(tmp_path, "-- name: a\n-- Why.\nSELECT 1")["b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: a\nSELECT 1", "a has no reason"),
        ("-- name: a\n--\nSELECT 1", "a has no reason"),
        ("-- name: a\n\n-- Why.\nSELECT 1", "a has no reason"),
        ("-- name: a\n-- Why.\n", "a has no text"),
        ("-- name: a\n-- Why.\n;", "a has no text"),
        ("-- name: a\n-- Why.\nSELECT 1;\n-- name: a\n-- Why.\nSELECT 2", "a occurs twice"),
        ("-- name: Read heads\n-- Why.\nSELECT 1", "is no name"),
        ("-- name:\n-- Why.\nSELECT 1", "is no name"),
        ("-- name: a\n-- Why.\nSELECT {b}", "a uses {b}"),
        ("-- fragment: b\n-- Why.\n{b}\n-- name: a\n-- Why.\nSELECT {b}", "b uses {b}"),
        ("-- name: a\n-- Why.\nSELECT {b}\n-- fragment: b\n-- Why.\n1", "a uses {b}"),
        ("-- fragment: b\n-- Why.\n1\n-- name: a\n-- Why.\nSELECT 1", "b is never used"),
        ("-- fragment: b\n-- Why.\n1\n-- name: b\n-- Why.\nSELECT {b}", "b occurs twice"),
        ("-- fragment: b\nSELECT 1", "b has no reason"),
        ("SELECT 1;\n-- name: a\n-- Why.\nSELECT 1", "before the first name"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(QueryFileError, match=complaint):
        _queries(tmp_path, text)


def test_a_connection_commits_by_itself_and_names_the_program(empty_database_url: str) -> None:
    with connect_sync(empty_database_url) as connection, connect_sync(empty_database_url) as other:
        connection.execute("CREATE TABLE seen (id int)")

        assert other.execute("SELECT count(*) FROM seen").fetchone() == (0,)
        assert other.execute("SHOW application_name").fetchone() == ("merchant-wallet",)


def test_an_asynchronous_connection_is_the_same(empty_database_url: str) -> None:
    async def ask() -> tuple[bool, object]:
        async with await connect(empty_database_url) as connection:
            row = await (await connection.execute("SHOW application_name")).fetchone()
            return connection.autocommit, row

    assert asyncio.run(ask()) == (True, ("merchant-wallet",))


def test_each_test_gets_a_database_of_its_own(database_url: str, empty_database_url: str) -> None:
    assert database_url != empty_database_url


@each_row(
    ("hosts", "kept", "ports"),
    [
        ("db1,db2", "db1,db2", ","),
        ("db1:5432,db2:5433", "db1,db2", "5432,5433"),
        ("db1,[::1]:5433", "db1,::1", ",5433"),
        ("[2001:db8::1]:5432,[2001:db8::2]:5432", "2001:db8::1,2001:db8::2", "5432,5432"),
    ],
)
def test_all_hosts_of_a_url_are_kept(hosts: str, kept: str, ports: str) -> None:
    url = read_database_url(f"postgresql://wallet:secret@{hosts}/wallet?target_session_attrs=primary")
    for text in (url, for_writing(url), complete_conninfo(url), complete_conninfo(for_writing(url))):
        found = conninfo_to_dict(text)
        assert (found["host"], found.get("port")) == (kept, ports)
        assert found["target_session_attrs"] == "primary"
        assert (found["user"], found["password"]) == ("wallet", "secret")


def test_a_server_that_takes_writes_is_asked_for_unless_the_url_says_otherwise() -> None:
    assert conninfo_to_dict(for_writing("postgresql://db/wallet"))["target_session_attrs"] == "read-write"
    assert for_writing("postgresql://db/wallet?target_session_attrs=any").endswith("=any")
    assert for_writing(for_writing("postgresql://db/wallet")) == for_writing("postgresql://db/wallet")


def test_a_cell_is_reached_at_its_own_address_as_the_same_user() -> None:
    url = "postgresql://web:secret@home:5432/wallet?sslmode=require"

    found = conninfo_to_dict(
        place(url, "postgresql://admin:other@db1:5433,db2:5433/cells?sslmode=disable", "far")
    )

    assert (found["user"], found["password"]) == ("web", "secret")
    assert (found["host"], found["port"], found["dbname"]) == ("db1,db2", "5433,5433", "cells")
    assert found["sslmode"] == "disable"
    assert found["options"] == "-c search_path=far"


def test_a_cell_is_reached_as_safely_as_home_unless_its_address_says_otherwise() -> None:
    url = "postgresql://web@/wallet?service=home&sslmode=verify-full&sslrootcert=ca.pem&hostaddr=10.0.0.1"

    found = conninfo_to_dict(place(url, "postgresql://db/cells", "far"))

    assert found == {
        "user": "web",
        "host": "db",
        "dbname": "cells",
        "sslmode": "verify-full",
        "sslrootcert": "ca.pem",
        "options": "-c search_path=far",
    }


def test_a_cell_of_homes_own_database_differs_in_its_schema_alone() -> None:
    url = "postgresql://web:secret@home/wallet?options=-c%20jit%3Doff"

    assert place(url, None, "public") is url
    found = conninfo_to_dict(place(url, None, "far"))
    assert found.pop("options") == "-c jit=off -c search_path=far"
    assert found == {"user": "web", "password": "secret", "host": "home", "dbname": "wallet"}


def test_the_user_of_an_address_is_not_used() -> None:
    found = conninfo_to_dict(place("postgresql:///wallet", "postgresql://admin:other@db/cells", "far"))

    assert "user" not in found
    assert "password" not in found


@each_row("name", ["", "Far", "far off", "1far", "far,public", "x" * 64])
def test_a_schema_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a schema"):
        place("postgresql:///wallet", None, name)


def test_a_cells_connection_sees_its_schema_alone(database_url: str) -> None:
    with connect_sync(database_url) as admin:
        admin.execute("create schema far")
        admin.execute("create table far.book (merchant_id bigint)")
    with connect_sync(place(database_url, None, "far")) as connection:
        assert connection.execute("select from book").fetchall() == []
        with pytest.raises(errors.UndefinedTable):
            connection.execute("select from merchant")


def test_the_urls_own_patience_wins_and_the_name_is_ours() -> None:
    found = conninfo_to_dict(
        complete_conninfo("postgresql://db/wallet?connect_timeout=2&application_name=psql")
    )
    assert (found["connect_timeout"], found["application_name"]) == ("2", "merchant-wallet")
    assert found["tcp_user_timeout"] == "30000"


def test_a_refusal_makes_connections_to_the_same_address_suspect_alone(
    database_url: str, empty_database_url: str
) -> None:
    async def ask() -> None:
        # Another name of the same folder is another address.
        folder = str(conninfo_to_dict(database_url)["host"])
        there = make_conninfo(database_url, host=f"{folder}/../{Path(folder).name}")
        async with (
            await connect(database_url) as refused,
            await connect(empty_database_url) as beside,
            await connect(there) as elsewhere,
        ):
            with pytest.raises(DatabaseReadOnly):
                await refused.execute("set transaction_read_only = on; create table made (id int)")
            assert not is_open(beside)
            assert is_open(elsewhere)

    asyncio.run(ask())


def test_a_connection_that_is_refused_a_write_is_closed_and_those_from_before_are_suspect(
    database_url: str,
) -> None:
    async def ask() -> None:
        before, asked = await connect(database_url), await connect(database_url)
        assert is_open(before)
        await asked.execute("set default_transaction_read_only = on")
        with pytest.raises(DatabaseReadOnly) as refused:
            await asked.execute("create table t (id int)")
        assert is_database_away(refused.value)
        assert is_transient_error(refused.value)
        assert asked.closed
        assert not is_open(before)
        async with await connect(database_url) as after:
            assert is_open(after)
        await before.close()

    asyncio.run(ask())


def test_a_connection_whose_session_was_ended_is_seen_without_asking(database_url: str) -> None:
    async def ask() -> None:
        async with await connect(database_url) as ended, await connect(database_url) as other:
            await other.execute("select pg_terminate_backend(%s, 10000)", (ended.info.backend_pid,))
            assert is_open(other)
            assert not is_open(ended)

    asyncio.run(ask())


@each_row(
    ("error", "away", "passing"),
    [
        (errors.AdminShutdown(), True, True),
        (errors.CannotConnectNow(), True, True),
        (errors.TooManyConnections(), True, True),
        (errors.ReadOnlySqlTransaction(), True, True),
        (errors.IdleInTransactionSessionTimeout(), True, True),
        (errors.OperationalError(), True, True),
        (errors.LockNotAvailable(), False, True),
        (errors.QueryCanceled(), False, True),
        (errors.DeadlockDetected(), False, True),
        (errors.DiskFull(), False, True),
        (errors.UniqueViolation(), False, False),
        (errors.UndefinedColumn(), False, False),
        (ValueError(), False, False),
    ],
)
def test_what_is_away_and_what_passes(error: Exception, away: bool, passing: bool) -> None:
    assert (is_database_away(error), is_transient_error(error)) == (away, passing)


_ADD = b"insert into numbers values (%(number)s)"
_FAIL = b"update numbers set number = 1 / (number - %(number)s)"


def test_statements_that_run_together_are_one_transaction_in_one_round_trip(
    database_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with await connect(database_url) as connection:
            await connection.execute("create table numbers (number int)")
            with (tmp_path / "messages").open("wb") as messages:
                connection.pgconn.trace(messages.fileno())
                read = b"select number from numbers"
                cursors = await run_together(connection, [(_ADD, {"number": 7}), (read, {})])
                connection.pgconn.untrace()
            assert [await cursors[1].fetchall(), cursors[0].rowcount] == [[(7,)], 1]
            sent = [line.split("\t") for line in (tmp_path / "messages").read_text().splitlines()]
            names = [line[3] for line in sent if line[1] == "F"]
            assert (names.count("Sync"), names.count("Execute")) == (1, 4)
            assert connection.info.transaction_status == TransactionStatus.IDLE

    asyncio.run(scenario())


def test_if_one_of_them_fails_none_is_done_and_the_connection_is_good(database_url: str) -> None:
    async def scenario() -> None:
        async with await connect(database_url) as connection:
            await connection.execute("create table numbers (number int)")
            with pytest.raises(errors.DivisionByZero):
                await run_together(
                    connection, [(_ADD, {"number": 7}), (_FAIL, {"number": 7}), (_ADD, {"number": 8})]
                )
            assert is_open(connection)
            assert connection.info.transaction_status == TransactionStatus.IDLE
            await run_together(connection, [(_ADD, {"number": 9})])
            rows = await connection.execute("select number from numbers")
            assert await rows.fetchall() == [(9,)]

    asyncio.run(scenario())


def test_in_a_transaction_of_the_caller_they_are_part_of_it(database_url: str) -> None:
    async def scenario() -> None:
        async with await connect(database_url) as connection:
            await connection.execute("create table numbers (number int)")
            async with connection.transaction(force_rollback=True):
                await run_together(connection, [(_ADD, {"number": 7})])
                assert connection.info.transaction_status == TransactionStatus.INTRANS
            rows = await connection.execute("select count(*) from numbers")
            assert await rows.fetchall() == [(0,)]

    asyncio.run(scenario())


def test_a_server_that_takes_no_writes_closes_their_connection(database_url: str) -> None:
    async def scenario() -> None:
        async with await connect(database_url) as connection:
            await connection.execute("create table numbers (number int)")
            await connection.execute("set default_transaction_read_only = on")
            with pytest.raises(DatabaseReadOnly):
                await run_together(connection, [(_ADD, {"number": 7})])
            assert connection.closed

    asyncio.run(scenario())


def test_nothing_is_set_in_a_session_that_the_server_calls_otherwise(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as session:
        own = session.info.backend_pid
        assert session.execute(set_all({"bytea_output": "escape"}, own + 1)).fetchone() is None
        assert session.execute("show bytea_output").fetchone() == ("hex",)
        assert session.execute(set_all({"bytea_output": "escape"}, own)).fetchone() == ("escape",)
        assert session.execute("show bytea_output").fetchone() == ("escape",)
