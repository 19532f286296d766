"""The bell: what rings it, whom it wakes, and that nobody rests where nobody listens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
from tests.crash.shop import COIN, open_shop, run
from tests.waits import eventually

from merchant_wallet.base import bell as bells
from merchant_wallet.base.bell import CHANNEL, Bell, current_bell, ring
from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import IDLE_TURNS, repeat
from merchant_wallet.book.commands import Adjust, CreateWithdrawal
from merchant_wallet.book.outcomes import Adjusted, Transferred, Withdrawal
from merchant_wallet.book.writer import Writer

HOUR_S = 3_600.0


async def until(look: Callable[[], object]) -> None:
    async def ask() -> bool:
        return bool(look())

    await eventually(ask)


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[tuple[Bell, asyncio.Event]]:
    """A bell that a database rings, and an event that each ring sets."""
    bell, rung, stop = Bell(), asyncio.Event(), asyncio.Event()
    bell.add(rung)
    running = asyncio.create_task(bell.listen(partial(connect, url), stop))
    try:
        # The first ring is its own: something may have been left before.
        await rung.wait()
        rung.clear()
        yield bell, rung
    finally:
        stop.set()
        await running


def test_a_transaction_rings_when_it_is_committed(database_url: str) -> None:
    async def scenario() -> None:
        async with listening(database_url) as (_, rung), await connect(database_url) as connection:
            async with connection.transaction(force_rollback=True):
                await ring(connection)
            assert not rung.is_set()
            async with connection.transaction():
                await ring(connection)
            await rung.wait()

    run(scenario())


def test_an_order_rings_and_a_transfer_does_not(database_url: str) -> None:
    async def scenario() -> list[str]:
        shop = await open_shop(database_url)
        writer = Writer(database_url)
        recipient, receiver = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC", "https://example.com/notify"
        order = CreateWithdrawal("o1", COIN, "TRC20", recipient, receiver, 0, 0, 0, None, True, 1)
        async with await connect(database_url) as listener, await connect(database_url) as other:
            await listener.execute(f"listen {CHANNEL}")
            assert isinstance(await shop.ask(writer, Adjust("USDT", COIN, "funds", "test", None)), Adjusted)
            assert isinstance(await shop.ask(writer, shop.credit("t1")), Transferred)
            await other.execute(f"select pg_notify('{CHANNEL}', 'after the transfer')")
            assert isinstance(await shop.ask(writer, order), Withdrawal)
            await writer.close()
            return [heard.payload async for heard in listener.notifies(stop_after=2)]

    assert run(scenario()) == ["after the transfer", ""]


def test_a_worker_that_finds_nothing_rests_until_the_bell_rings() -> None:
    async def scenario() -> None:
        bell, stop, turns, found = Bell(), asyncio.Event(), 0, 3

        async def turn() -> bool:
            nonlocal turns
            turns += 1
            return turns <= found

        current_bell.set(bell)
        working = asyncio.create_task(repeat("test", turn, stop=stop, interval_s=0.001, rest_s=HOUR_S))
        await until(lambda: turns == found + IDLE_TURNS)
        await asyncio.sleep(0.02)
        assert turns == found + IDLE_TURNS
        bell.ring()
        await until(lambda: turns > found + IDLE_TURNS)
        stop.set()
        await working

    run(scenario())


def test_nobody_rests_while_a_database_can_not_ring(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bells, "RETRY_S", 0.01)

    async def scenario() -> None:
        async with listening(database_url) as (bell, rung), await connect(database_url) as connection:
            assert bell.is_heard
            ended = "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'"
            await connection.execute(ended)
            await until(lambda: not bell.is_heard)
            # It listens again, and looks at once for what it has missed.
            await rung.wait()
            assert bell.is_heard

    run(scenario())
