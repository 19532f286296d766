"""The pages' connections: few, with a short timeout, and never reused once broken."""

from contextlib import suppress

import psycopg
import pytest
from psycopg import AsyncConnection
from tests.crash.shop import run

from merchant_wallet.base import db
from merchant_wallet.web import connections
from merchant_wallet.web.connections import STATEMENT_TIMEOUT_MS, Away, Connections


def test_a_connection_is_lent_again_and_commits_by_itself(database_url: str) -> None:
    async def scenario() -> None:
        lent = Connections(database_url)
        async with lent.take() as first:
            assert first.autocommit
            shown = await (await first.execute("show statement_timeout")).fetchone()
            assert shown == (f"{STATEMENT_TIMEOUT_MS // 1000}s",)
        async with lent.take() as second:
            assert second is first
        await lent.close()

    run(scenario())


def test_waiting_too_long_for_a_connection_raises_away(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TAKE_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        lent = Connections(database_url, limit=1)
        async with lent.take():
            with pytest.raises(Away):
                async with lent.take():
                    pass
        async with lent.take():
            pass
        await lent.close()

    run(scenario())


def test_a_refused_statement_leaves_the_connection_usable(database_url: str) -> None:
    async def scenario() -> None:
        lent = Connections(database_url)
        with pytest.raises(psycopg.errors.DivisionByZero):
            async with lent.take() as first:
                await first.execute("select 1 / 0")
        async with lent.take() as second:
            assert second is first
        await lent.close()

    run(scenario())


async def leave_within_transaction(lent: Connections) -> AsyncConnection:
    """Take a connection and fail in the middle of a transaction."""
    with suppress(RuntimeError):
        async with lent.take() as taken:
            await taken.execute("begin")
            raise RuntimeError
    return taken


def test_a_connection_left_within_a_transaction_is_not_lent_again(database_url: str) -> None:
    async def scenario() -> None:
        lent = Connections(database_url)
        first = await leave_within_transaction(lent)
        async with lent.take() as second:
            assert second is not first
        await lent.close()

    run(scenario())


def test_at_most_one_visitor_sees_that_the_database_went_away(database_url: str) -> None:
    async def scenario() -> None:
        lent = Connections(database_url, limit=3)
        async with lent.take() as one, lent.take() as two, lent.take() as three:
            pids = [connection.info.backend_pid for connection in (one, two, three)]
        async with await db.connect(database_url) as killer:
            await killer.execute("select pg_terminate_backend(pid) from unnest(%s::int[]) pid", (pids,))
        # If the server's last message has arrived already, no visitor gets an error: the pool opens a new
        # connection.
        with suppress(Away):
            async with lent.take() as connection:
                await connection.execute("select 1")
        async with lent.take() as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)
        await lent.close()

    run(scenario())


def test_a_statement_that_takes_too_long_is_ended(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STATEMENT_TIMEOUT_MS", 50)

    async def scenario() -> None:
        lent = Connections(database_url)
        with pytest.raises(Away):
            async with lent.take() as connection:
                await connection.execute("select pg_sleep(60)")
        await lent.close()

    run(scenario())


def test_whoever_waits_for_anothers_lock_gives_the_connection_back_before_others_give_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connections.LOCK_TIMEOUT_MS < connections.TAKE_TIMEOUT_S * 1000
    monkeypatch.setattr(connections, "LOCK_TIMEOUT_MS", 50)

    async def scenario() -> None:
        lent = Connections(database_url)
        async with await db.connect(database_url) as holder, holder.transaction():
            await holder.execute("select pg_advisory_xact_lock(7)")
            with pytest.raises(Away):
                async with lent.take() as connection:
                    await connection.execute("select pg_advisory_xact_lock(7)")
        await lent.close()

    run(scenario())
