"""Unused connections: the one used last is given out first, those that nobody needs are closed."""

import asyncio

import pytest
from psycopg import AsyncConnection
from tests.crash.shop import eventually, run

from merchant_wallet.base import workers
from merchant_wallet.base.db import connect
from merchant_wallet.base.idle import IdleConnections
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book import pool as pool_module
from merchant_wallet.book.pool import ConnectionPool
from merchant_wallet.web.connections import Connections

SOON_S = 0.01
COUNT = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


class Ends:
    """What was closed, in its order."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    async def close(self, name: str) -> None:
        self.closed.append(name)


def test_the_one_used_last_is_given_out_first() -> None:
    async def scenario() -> None:
        idle = IdleConnections(Ends().close)
        idle.put("first")
        idle.put("second")
        assert (idle.take(), idle.take(), idle.take()) == ("second", "first", None)
        await idle.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("least", "closed"), [(0, ["a", "b", "c"]), (1, ["a", "b"]), (3, [])])
def test_what_nobody_needs_is_closed_the_oldest_first_but_for_a_few(least: int, closed: list[str]) -> None:
    async def scenario() -> None:
        ends = Ends()
        idle = IdleConnections(ends.close, least=least, idle_s=SOON_S)
        for name in "abc":
            idle.put(name)

        async def are_closed() -> bool:
            return len(idle) == least and ends.closed == closed

        await eventually(are_closed)
        await idle.close()
        assert sorted(ends.closed) == ["a", "b", "c"]

    asyncio.run(scenario())


async def _count(url: str) -> int:
    async with await connect(url) as connection:
        row = await (await connection.execute(COUNT)).fetchone()
        assert row is not None
        return int(row[0])


async def _until_count(url: str, count: int) -> None:
    async def is_so() -> bool:
        return await _count(url) == count

    await eventually(is_so)


def test_a_line_that_rests_is_closed_and_opened_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "IDLE_S", SOON_S)

    async def scenario() -> None:
        async def open_one() -> AsyncConnection:
            return await connect(database_url)

        worker_connection = WorkerConnection(open_one)
        await worker_connection.get()
        worker_connection.rest()
        await _until_count(database_url, 0)
        first = await worker_connection.get()
        worker_connection.rest()
        # Taken up again in time, it stays open.
        assert await worker_connection.get() is first
        await asyncio.sleep(5 * SOON_S)
        assert not first.closed
        await worker_connection.close()

    run(scenario())


def test_the_pages_give_their_connections_back(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merchant_wallet.base.idle.IDLE_S", SOON_S)

    async def scenario() -> None:
        lent = Connections(database_url)
        async with lent.take(), lent.take(), lent.take():
            assert await _count(database_url) == 3
        await _until_count(database_url, 0)
        async with lent.take() as connection:
            await connection.execute("select 1")
        await lent.close()

    run(scenario())


def test_a_writer_keeps_one_connection_of_each_kind(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchant_wallet.base.idle.IDLE_S", SOON_S)
    monkeypatch.setattr(pool_module, "IDLE_S", SOON_S)

    async def scenario() -> None:
        pool = ConnectionPool(database_url, 16)
        async with pool.acquire(), pool.acquire(), pool.acquire():
            await pool.acquire_shared()
            assert await _count(database_url) == 4
        await _until_count(database_url, 2)
        await pool.close()

    run(scenario())
