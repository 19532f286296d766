"""The writer's connection: answers come in order, and a loss is reported at once."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import psycopg
import pytest
from tests.crash.shop import run
from tests.waits import eventually

from merchant_wallet.base.db import connect
from merchant_wallet.book.connection import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    ConnectionLost,
    PipelineConnection,
    StatementFailed,
)

STATEMENTS = {
    b"one": b"select 1",
    b"echo": b"select $1::text",
    b"big": b"select length($1::text)",
    b"pad": b"select repeat('x', $1::int)",
    b"divide": b"select 1 / $1::int",
    b"pid": b"select pg_backend_pid()",
    b"make": b"create table kept (word text)",
    b"keep": b"insert into kept values ($1::text)",
    b"nap": b"select pg_sleep($1::float8)",
}
TIMEOUT_S = 10.0
"""How long a test waits for an immediate event. The connection's own timeout is three times as long."""


async def _soon(work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(TIMEOUT_S):
        return await work


async def _open(url: str, timeout_s: float = 30.0) -> PipelineConnection:
    statements = {name: text for name, text in STATEMENTS.items() if name != b"keep"}
    return await PipelineConnection.open(url, statements, timeout_s)


async def _pid(connection: PipelineConnection) -> int:
    (result,) = await connection.run([(b"pid", ())])
    return int(result.get_value(0, 0) or 0)


async def _terminate(url: str, *pids: int) -> None:
    """End sessions, and wait until they are gone."""
    async with await connect(url) as connection:
        for pid in pids:
            await connection.execute("select pg_terminate_backend(%s, 5000)", [pid])


def test_statements_are_answered_in_their_order(database_url: str) -> None:
    async def scenario() -> list[bytes | None]:
        connection = await _open(database_url)
        words = [b"first", b"second", b"third"]
        results = await connection.run([(b"echo", (word,)) for word in words])
        await connection.close()
        return [result.get_value(0, 0) for result in results]

    assert run(scenario()) == [b"first", b"second", b"third"]


def test_a_refused_statement_names_its_sqlstate_and_the_connection_goes_on(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        with pytest.raises(StatementFailed) as failure:
            await connection.run([(BEGIN, ()), (b"one", ()), (b"divide", (b"0",)), (b"one", ())])
        assert failure.value.sqlstate == "22012"
        await connection.run([(ROLLBACK, ())])
        (result,) = await connection.run([(b"divide", (b"1",))])
        assert result.get_value(0, 0) == b"1"
        await connection.close()

    run(scenario())


def test_what_follows_a_refused_statement_is_not_done(database_url: str) -> None:
    async def scenario() -> int:
        async with await connect(database_url) as observer:
            await observer.execute("create table kept (word text)")
            connection = await PipelineConnection.open(database_url, STATEMENTS)
            with pytest.raises(StatementFailed):
                await connection.run([(BEGIN, ()), (b"divide", (b"0",)), (b"keep", (b"late",)), (COMMIT, ())])
            await connection.run([(ROLLBACK, ())])
            await connection.close()
            cursor = await observer.execute("select count(*) from kept")
            row = await cursor.fetchone()
            return int(row[0]) if row else -1

    assert run(scenario()) == 0


def test_a_commit_that_is_refused_at_the_sync_is_a_failure(database_url: str) -> None:
    async def scenario() -> list[tuple[str]]:
        async with await connect(database_url) as observer:
            await observer.execute("create table kept (word text unique deferrable initially deferred)")
            connection = await PipelineConnection.open(database_url, STATEMENTS)
            await connection.run([(b"keep", (b"once",))])
            with pytest.raises(StatementFailed) as failure:
                await connection.run([(b"keep", (b"once",))])
            assert failure.value.sqlstate == "23505"
            await connection.run([(b"keep", (b"later",))])
            await connection.close()
            return await (await observer.execute("select word from kept order by word")).fetchall()

    assert run(scenario()) == [("later",), ("once",)]


def test_more_than_the_socket_holds_goes_through_in_both_directions_at_once(database_url: str) -> None:
    async def scenario() -> list[int]:
        connection = await _open(database_url)
        word = b"x" * 3_000_000
        calls = [(b"pad", (b"3000000",)), (b"big", (word,)), (b"pad", (b"3000000",)), (b"big", (word,))]
        results = await _soon(connection.run(calls))
        await connection.close()
        return [len(result.get_value(0, 0) or b"") for result in results]

    assert run(scenario()) == [3_000_000, 7, 3_000_000, 7]


def test_a_nul_is_refused_before_anything_is_sent(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        with pytest.raises(StatementFailed) as failure:
            await connection.run([(BEGIN, ()), (b"echo", (b"cut\0short",))])
        assert failure.value.sqlstate == "22021"
        (result,) = await connection.run([(b"echo", (b"whole",))])
        assert result.get_value(0, 0) == b"whole"
        await connection.close()

    run(scenario())


def test_a_session_that_is_ended_while_it_works_is_lost(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        pid = await _pid(connection)
        working = asyncio.create_task(connection.run([(b"nap", (b"60",)), (b"one", ())]))
        await _until_asleep(database_url, pid)
        await _terminate(database_url, pid)
        with pytest.raises((ConnectionLost, StatementFailed)):
            await _soon(working)
        with pytest.raises(ConnectionLost):
            await _soon(connection.run([(b"one", ())]))
        assert connection.is_broken
        await connection.close()

    run(scenario())


def test_a_session_that_ends_without_having_read_all_of_a_call_is_lost_at_once(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        pid = await _pid(connection)
        # More than the database reads at once. The socket ends with an error, which the loop reports only
        # once.
        working = asyncio.create_task(connection.run([(b"nap", (b"60",)), (b"big", (b"x" * 100_000,))]))
        await _until_asleep(database_url, pid)
        await _terminate(database_url, pid)
        with pytest.raises(ConnectionLost):
            await _soon(working)
        await connection.close()

    run(scenario())


async def _until_asleep(url: str, pid: int) -> None:
    query = "select count(*) from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
    async with await connect(url) as connection:
        await eventually(lambda: _count(connection, query, pid))


def test_a_session_that_ends_while_idle_is_known_to_be_broken_before_it_is_used(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        await _terminate(database_url, await _pid(connection))
        await _until_broken(connection)
        with pytest.raises(ConnectionLost):
            await _soon(connection.run([(b"one", ())]))
        await connection.close()

    run(scenario())


async def _until_broken(connection: PipelineConnection) -> None:
    async def is_broken() -> bool:
        return connection.is_broken

    await eventually(is_broken)


def test_closing_a_lost_connection_does_not_stop_reads_of_the_one_with_its_file_number(
    database_url: str,
) -> None:
    async def scenario() -> None:
        lost = await _open(database_url)
        await _terminate(database_url, await _pid(lost))
        await _until_broken(lost)
        # The system reuses the lowest free number, so one of these sockets has the lost one's number.
        pool = [await _open(database_url) for _ in range(3)]
        await lost.close()
        for connection in pool:
            await _soon(connection.run([(b"one", ())]))
            await connection.close()

    run(scenario())


def test_a_statement_that_takes_too_long_loses_the_connection(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url, timeout_s=0.2)
        with pytest.raises(ConnectionLost, match="no answer in time"):
            await connection.run([(b"nap", (b"60",))])
        assert connection.is_broken
        await connection.close()

    run(scenario())


def test_an_answer_that_came_while_this_process_stood_still_is_read(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url, timeout_s=0.2)
        napping = asyncio.create_task(connection.run([(b"nap", [b"0.05"])]))
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 - the process stands still.
        await _soon(napping)
        assert not connection.is_broken
        await connection.close()

    run(scenario())


def test_a_caller_that_is_cancelled_leaves_a_broken_connection(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        working = asyncio.create_task(connection.run([(b"nap", (b"60",))]))
        await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert connection.is_broken
        await connection.close()

    run(scenario())


def test_a_missing_database_is_a_lost_connection(database_url: str) -> None:
    async def scenario() -> None:
        with pytest.raises(ConnectionLost):
            await PipelineConnection.open(database_url.replace("host=", "host=%2Fnowhere"), STATEMENTS)

    run(scenario())


def test_a_connection_that_cannot_be_prepared_is_closed(database_url: str) -> None:
    async def scenario() -> int:
        for _ in range(3):
            with pytest.raises(StatementFailed):
                await PipelineConnection.open(database_url, {b"nothing": b"select * from no_such_table"})
        async with await connect(database_url) as observer:
            query = "select (count(*) = 0)::int from pg_stat_activity"
            query += " where application_name = 'merchant-wallet writer' and datname = current_database()"
            return await eventually(lambda: _count(observer, query))

    assert run(scenario()) == 1


async def _count(connection: psycopg.AsyncConnection, query: str, *values: object) -> int:
    row = await (await connection.execute(query.encode(), values)).fetchone()
    return int(row[0]) if row else 0


def test_a_connection_may_be_closed_twice(database_url: str) -> None:
    async def scenario() -> None:
        connection = await _open(database_url)
        await connection.close()
        await connection.close()
        assert connection.is_broken
        with pytest.raises(ConnectionLost):
            await connection.run([(b"one", ())])

    run(scenario())
