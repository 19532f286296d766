"""Nonces of a hot wallet: they are given out in order, and one that is free is taken first or cancelled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from psycopg import AsyncConnection
from tests.waits import wait_until_blocked

from merchant_wallet.base.chains import ERC20
from merchant_wallet.base.db import connect
from merchant_wallet.hot_wallet import nonces, store
from merchant_wallet.hot_wallet.nonces import Purpose

WALLET = bytes(range(20))


@asynccontextmanager
async def open_known(url: str, first: int) -> AsyncIterator[AsyncConnection]:
    """A hot wallet whose next nonce is known."""
    async with await connect(url) as connection:
        await store.open_wallet(connection, ERC20, WALLET, 1)
        assert await nonces.record_count(connection, ERC20, WALLET, first, None, 1) is None
        yield connection


async def take(connection: AsyncConnection, purpose: Purpose = Purpose.TOP_UP) -> int:
    async with connection.transaction():
        await store.lock(connection, ERC20, WALLET)
        return await nonces.take(connection, ERC20, WALLET, purpose, 5)


async def show(connection: AsyncConnection) -> str:
    """All nonces with their purposes. Those that were cancelled and are used by now have a full stop."""
    cursor = await connection.execute("select nonce, purpose, cancelled_ms from wallet_nonce order by nonce")
    rows = await cursor.fetchall()
    return ", ".join(f"{nonce} {purpose}{'' if at_ms is None else '.'}" for nonce, purpose, at_ms in rows)


def test_the_lowest_free_nonce_is_given_out_first_and_a_cancelled_one_never(database_url: str) -> None:
    async def scenario() -> None:
        async with open_known(database_url, 7) as connection:
            assert [await take(connection, Purpose.COLD) for _ in range(4)] == [7, 8, 9, 10]
            await nonces.free(connection, ERC20, WALLET, Purpose.TOP_UP, [7], 6)
            assert await show(connection) == "7 cold, 8 cold, 9 cold, 10 cold", (
                "another purpose's is not freed"
            )
            await nonces.free(connection, ERC20, WALLET, Purpose.COLD, [7, 9], 6)
            assert [await take(connection) for _ in range(3)] == [7, 9, 11]
            await nonces.free(connection, ERC20, WALLET, Purpose.COLD, [8, 10], 6)
            await nonces.cancel_free(connection, ERC20, WALLET, below=9, before_ms=5, now_ms=7)
            assert await show(connection) == "7 top_up, 8 free, 9 top_up, 10 free, 11 top_up", (
                "not long enough"
            )
            await nonces.cancel_free(connection, ERC20, WALLET, below=9, before_ms=6, now_ms=7)
            await nonces.cancel(connection, ERC20, WALLET, Purpose.TOP_UP, 11, 7)
            assert await show(connection) == "7 top_up, 8 cancel, 9 top_up, 10 free, 11 cancel"
            assert [await take(connection) for _ in range(2)] == [10, 12]
            await nonces.end_cancelled(connection, ERC20, WALLET, 10, 8)
            assert await show(connection) == "7 top_up, 8 cancel., 9 top_up, 10 top_up, 11 cancel, 12 top_up"

    asyncio.run(scenario())


def test_a_nonce_that_is_being_cancelled_is_not_given_out(database_url: str) -> None:
    async def scenario() -> None:
        async with open_known(database_url, 0) as connection, await connect(database_url) as other:
            assert [await take(connection), await take(connection)] == [0, 1]
            await nonces.free(connection, ERC20, WALLET, Purpose.TOP_UP, [0], 2)
            async with other.transaction():
                await nonces.cancel_free(other, ERC20, WALLET, below=1, before_ms=2, now_ms=3)
                taking = asyncio.create_task(take(connection))
                await wait_until_blocked(other, connection.info.backend_pid, taking)
            assert await taking == 2
            assert await show(connection) == "0 cancel, 1 top_up, 2 top_up"

    asyncio.run(scenario())


def test_a_wallet_whose_count_is_unknown_gives_nothing_out(database_url: str) -> None:
    async def scenario() -> None:
        async with await connect(database_url) as connection:
            await store.open_wallet(connection, ERC20, WALLET, 1)
            with pytest.raises(LookupError, match="no next nonce"):
                await take(connection)

    asyncio.run(scenario())
