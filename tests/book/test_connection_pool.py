"""The writer's connections: how many are shared, and what happens if none can be opened."""

import asyncio
from typing import Any

import pytest
from merchant_wallet.book.pool import DEEP_PIPELINE, MAX_SHARED, SHARED, SLOW_COMMIT_S, ConnectionPool
from tests.crash.shop import run

from merchant_wallet.base.connection_limits import WRITER_EXTRA
from merchant_wallet.book import pool as module
from merchant_wallet.book import store
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection

NAP_S = "60"


@pytest.fixture(autouse=True)
def _statements(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = {b"nap": b"select pg_sleep($1::float8)", b"timeout": b"show lock_timeout"}
    monkeypatch.setattr(store, "STATEMENTS", statements)


async def _acquire_shared(pool: ConnectionPool) -> PipelineConnection:
    connection = await pool.acquire_shared()
    assert connection is not None
    return connection


def _occupy(connection: PipelineConnection) -> asyncio.Task[Any]:
    return asyncio.create_task(connection.run([(b"nap", (NAP_S.encode(),))]))


async def _occupy_all(
    pool: ConnectionPool, times: int
) -> tuple[list[asyncio.Task[Any]], set[PipelineConnection]]:
    naps, used = [], set()
    for _ in range(times):
        connection = await _acquire_shared(pool)
        naps.append(_occupy(connection))
        used.add(connection)
        await asyncio.sleep(0)
    return naps, used


async def _end(pool: ConnectionPool, naps: list[asyncio.Task[Any]]) -> None:
    """Don't wait until the naps end by themselves."""
    await pool.close()
    ended = await asyncio.gather(*naps, return_exceptions=True)
    assert all(isinstance(one, ConnectionLost) for one in ended)


def test_optimistic_batches_share_a_few_connections_and_more_where_each_takes_long(database_url: str) -> None:
    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        first = await _acquire_shared(pool)
        assert await _acquire_shared(pool) is first
        naps, used = await _occupy_all(pool, SHARED * (DEEP_PIPELINE - 1))
        assert first in used
        # The connection with the fewest in flight is next.
        assert [len(connection) for connection in used] == [DEEP_PIPELINE - 1] * SHARED
        for connection in used:
            connection.latency_s = 2 * SLOW_COMMIT_S
        # That alone is no reason while few batches wait.
        more, again = await _occupy_all(pool, SHARED)
        assert again == used
        further = await _acquire_shared(pool)
        assert further not in used
        await _end(pool, naps + more)

    run(scenario())


def test_many_that_wait_are_no_reason_where_each_is_quick(database_url: str) -> None:
    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        naps, used = await _occupy_all(pool, 2 * SHARED * DEEP_PIPELINE)
        assert len(used) == SHARED
        await _end(pool, naps)

    run(scenario())


def test_there_is_an_end_to_it(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_COMMIT_S", -1.0)
    monkeypatch.setattr(module, "DEEP_PIPELINE", 1)

    async def scenario(connections: int) -> int:
        pool = ConnectionPool(database_url, connections)
        naps, used = await _occupy_all(pool, MAX_SHARED + 4)
        await _end(pool, naps)
        return len(used)

    assert run(scenario(16)) == MAX_SHARED
    assert run(scenario(2)) == 2


def test_a_shared_connection_waits_for_a_lock_only_shortly(database_url: str) -> None:
    async def scenario() -> list[bytes | None]:
        pool = ConnectionPool(database_url, 2)
        (shared,) = await (await _acquire_shared(pool)).run([(b"timeout", ())])
        async with pool.acquire() as connection:
            (lent,) = await connection.run([(b"timeout", ())])
        await pool.close()
        return [shared.get_value(0, 0), lent.get_value(0, 0)]

    assert run(scenario()) == [b"250ms", b"10s"]


def test_one_that_was_lost_is_replaced(database_url: str) -> None:
    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        first = await _acquire_shared(pool)
        await first.close()
        second = await _acquire_shared(pool)
        assert second is not first
        await second.run([(b"timeout", ())])
        await pool.close()

    run(scenario())


def test_a_connection_that_cannot_be_had_costs_nothing_while_there_is_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        only = await _acquire_shared(pool)
        nap = _occupy(only)
        await asyncio.sleep(0)
        tries = []

        async def refuse(*asked: object, **named: object) -> PipelineConnection:
            tries.append(asked)
            raise ConnectionLost("too many clients already")

        with monkeypatch.context() as patch:
            patch.setattr(PipelineConnection, "open", refuse)
            assert [await _acquire_shared(pool) for _ in range(3)] == [only] * 3
        # It does not try again at once.
        assert len(tries) == 1
        await _end(pool, [nap])

    run(scenario())


def test_while_the_first_is_being_opened_nobody_waits_for_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        away = asyncio.Event()

        async def be_away(*asked: object, **named: object) -> PipelineConnection:
            await away.wait()
            raise ConnectionLost("connection timeout expired")

        with monkeypatch.context() as patch:
            patch.setattr(PipelineConnection, "open", be_away)
            opening = asyncio.create_task(pool.acquire_shared())
            await asyncio.sleep(0)
            assert [await pool.acquire_shared() for _ in range(3)] == [None] * 3
            away.set()
            with pytest.raises(ConnectionLost):
                await opening
        await _acquire_shared(pool)
        await pool.close()

    run(scenario())


def test_what_was_lost_at_once_is_looked_up_a_few_at_a_time(database_url: str) -> None:
    async def scenario() -> int:
        pool = ConnectionPool(database_url, 16)
        open_now, most = 0, 0

        async def look_up() -> None:
            nonlocal open_now, most
            async with pool.open_extra() as connection:
                open_now += 1
                most = max(most, open_now)
                await connection.run([(b"nap", (b"0.01",))])
                open_now -= 1

        await asyncio.gather(*[look_up() for _ in range(20)])
        await pool.close()
        return most

    assert run(scenario()) == WRITER_EXTRA
