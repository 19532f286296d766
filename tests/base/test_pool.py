"""Pools: how many connections are open, who gets which, and when one is opened or closed."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.book.groups import make_batch
from tests.book.many_books import fund, open_books
from tests.crash.shop import run
from tests.rows import each_row
from tests.waits import eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.base.pool import Pool, PoolBusy
from merchant_wallet.book.batch import Mode
from merchant_wallet.book.committer import Committer
from merchant_wallet.web.connections import Connections

SOON_S = 0.01
COUNT = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


class Named:
    """A connection with a name. `closed` keeps the order of closing."""

    def __init__(self, name: str, closed: list[str]) -> None:
        self.name = name
        self.is_broken = False
        self._closed = closed

    async def close(self) -> None:
        self._closed.append(self.name)


def _pool_of(names: str, closed: list[str], **options: Any) -> Pool[Named]:
    """A pool that opens connections of these names, one after the other."""
    unopened = iter(names)

    async def open_next() -> Named:
        return Named(next(unopened), closed)

    return Pool(open_next, len(names), is_usable=lambda one: not one.is_broken, **options)


async def _use_all(pool: Pool[Named], count: int) -> None:
    """Acquire all at once, and release them in the order in which they were opened."""
    stacks = [AsyncExitStack() for _ in range(count)]
    for stack in stacks:
        await stack.enter_async_context(pool.acquire())
    for stack in stacks:
        await stack.aclose()


def test_the_one_used_last_is_given_out_first() -> None:
    async def scenario() -> None:
        pool = _pool_of("ab", [])
        await _use_all(pool, 2)
        async with pool.acquire() as first, pool.acquire() as second:
            assert (first.name, second.name) == ("b", "a")
        await pool.close()

    asyncio.run(scenario())


@each_row(("kept", "closed"), [(0, ["a", "b", "c"]), (1, ["a", "b"]), (3, [])])
def test_what_nobody_needs_is_closed_the_oldest_first_but_for_a_few(kept: int, closed: list[str]) -> None:
    async def scenario() -> None:
        ended: list[str] = []
        pool = _pool_of("abc", ended, min_idle=kept, idle_s=SOON_S)
        await _use_all(pool, 3)

        async def are_closed() -> bool:
            return ended == closed

        await eventually(are_closed)
        await pool.close()
        assert sorted(ended) == ["a", "b", "c"]

    asyncio.run(scenario())


def test_no_more_are_open_than_the_limit_and_who_waits_too_long_is_refused() -> None:
    async def scenario() -> None:
        closed: list[str] = []
        pool = _pool_of("ab", closed)
        async with pool.acquire(), pool.acquire() as second:
            with pytest.raises(PoolBusy):
                async with pool.acquire(SOON_S):
                    pass
            waiting = asyncio.create_task(_name_of_next(pool))
            await asyncio.sleep(0)
            assert not waiting.done()
        assert await waiting in "ab"
        assert (second.name, closed) == ("b", [])
        await pool.close()

    asyncio.run(scenario())


async def _name_of_next(pool: Pool[Named]) -> str:
    async with pool.acquire() as connection:
        return connection.name


def test_a_broken_one_is_closed_and_another_opened() -> None:
    async def scenario() -> None:
        closed: list[str] = []
        pool = _pool_of("abc", closed)
        async with pool.acquire() as first:
            first.is_broken = True
        assert closed == ["a"]
        async with pool.acquire() as second:
            pass
        # It breaks while nobody uses it.
        second.is_broken = True
        assert await _name_of_next(pool) == "c"
        assert closed == ["a", "b"]
        await pool.close()

    asyncio.run(scenario())


def test_who_asks_gets_the_error_of_opening_and_the_next_one_tries_again() -> None:
    async def scenario() -> None:
        tries = 0

        async def open_next() -> Named:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise OSError("away")
            return Named("a", [])

        pool = Pool(open_next, 1, is_usable=lambda one: True)
        with pytest.raises(OSError, match="away"):
            await _name_of_next(pool)
        assert await _name_of_next(pool) == "a"
        await pool.close()

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


@pytest.mark.new_sessions
def test_the_pages_give_their_connections_back(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merchant_wallet.base.pool.IDLE_S", SOON_S)

    async def scenario() -> None:
        lent = Connections(database_url)
        async with lent.take(), lent.take(), lent.take():
            assert await _count(database_url) == 3
        await _until_count(database_url, 0)
        async with lent.take() as connection:
            await connection.execute("select 1")
        await lent.close()

    run(scenario())


@pytest.mark.new_sessions
def test_a_writer_keeps_one_connection_and_none_for_books_that_it_locked(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchant_wallet.base.pool.IDLE_S", SOON_S)

    async def scenario() -> None:
        books = await open_books(database_url, 6)
        modes = [*[Mode.READ] * 3, *[Mode.LOCKED] * 3]
        committer = Committer(database_url, 16, now_ms, None)
        async with await connect(database_url) as holder, holder.transaction():
            await holder.execute("lock table entry in exclusive mode")
            groups = [
                asyncio.create_task(committer.run([make_batch(book, fund("first"), mode=mode)]))
                for book, mode in zip(books, modes, strict=True)
            ]
            # The holder's is one of them.
            await _until_count(database_url, len(groups) + 1)
        assert all([(await group).committed for group in groups])
        await _until_count(database_url, 1)
        await committer.close()

    run(scenario())
