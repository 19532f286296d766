"""Maintenance tasks, on a real database."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs
from tests.rows import each_row

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import (
    count_days_to_keep,
    drop_old_nonces,
    ensure_nonce_partitions,
    list_nonce_days,
    make_nonce_partition_task,
)
from merchant_wallet.processes.maintenance import Maintenance, TasksFailed, make_id_range_task

pytestmark = pytest.mark.new_database

TODAY = 20_412


def on_database(url: str, scenario: Callable[[psycopg.AsyncConnection], Awaitable[None]]) -> None:
    async def run() -> None:
        async with await connect(url) as connection:
            await scenario(connection)

    asyncio.run(run())


async def claim(connection: psycopg.AsyncConnection, nonce: str, day: int) -> None:
    await connection.execute(
        "insert into nonce (merchant_id, nonce, day, group_id) values (1001, %s, %s, gen_random_uuid())",
        (nonce, day),
    )


def test_partitions_are_made_from_yesterday_to_the_days_ahead_and_once(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        assert await ensure_nonce_partitions(connection, TODAY) == [TODAY - 1, TODAY, TODAY + 1]
        assert await ensure_nonce_partitions(connection, TODAY) == []
        assert await ensure_nonce_partitions(connection, TODAY + 1) == [TODAY + 2]
        await claim(connection, "n", TODAY)
        with pytest.raises(psycopg.errors.UniqueViolation):
            await claim(connection, "n", TODAY)
        with pytest.raises(psycopg.errors.CheckViolation):
            await claim(connection, "n", TODAY + 4)

    on_database(database_url, scenario)


def test_partitions_made_by_several_at_once_are_made_once(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        others = [await connect(database_url) for _ in range(6)]
        made = await asyncio.gather(*(ensure_nonce_partitions(other, TODAY) for other in others))
        assert sorted(day for days in made for day in days) == [TODAY - 1, TODAY, TODAY + 1]
        for other in others:
            await other.close()

    on_database(database_url, scenario)


def test_a_partition_is_made_while_others_hold_nonces_in_open_transactions(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        await ensure_nonce_partitions(connection, TODAY)
        async with await connect(database_url) as busy, busy.transaction():
            await claim(busy, "uncommitted", TODAY)
            await connection.execute("set lock_timeout = '5s'")
            assert await ensure_nonce_partitions(connection, TODAY + 1) == [TODAY + 2]

    on_database(database_url, scenario)


def test_only_days_beyond_those_kept_are_dropped(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        await ensure_nonce_partitions(connection, TODAY)
        await claim(connection, "old", TODAY - 1)
        await claim(connection, "new", TODAY)
        assert await drop_old_nonces(connection, TODAY, 1) == []
        assert await drop_old_nonces(connection, TODAY + 1, 1) == [TODAY - 1]
        cursor = await connection.execute("select nonce from nonce")
        assert await cursor.fetchall() == [("new",)]
        assert await list_nonce_days(connection) == [TODAY, TODAY + 1]

    on_database(database_url, scenario)


def test_partitions_with_names_of_no_day_are_passed_over(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        await ensure_nonce_partitions(connection, TODAY)
        for name, day in (("nonce_-5", -5), ("nonce_by_hand", 77)):
            await connection.execute(
                sql.SQL("create table {} partition of nonce for values in ({})").format(
                    sql.Identifier(name), sql.Literal(day)
                )
            )
        assert await list_nonce_days(connection) == [TODAY - 1, TODAY, TODAY + 1]
        assert await drop_old_nonces(connection, TODAY + 1, 1) == [TODAY - 1]

    on_database(database_url, scenario)


def test_a_day_that_is_in_use_is_dropped_later(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        await ensure_nonce_partitions(connection, TODAY)
        async with await connect(database_url) as busy, busy.transaction():
            await busy.execute("select 1 from nonce")
            assert await drop_old_nonces(connection, TODAY + 1, 1) == []
        assert await drop_old_nonces(connection, TODAY + 1, 1) == [TODAY - 1]

    on_database(database_url, scenario)


def test_several_that_drop_at_once_hinder_nobody(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        await ensure_nonce_partitions(connection, TODAY)
        others = [await connect(database_url) for _ in range(4)]
        await asyncio.gather(*(drop_old_nonces(other, TODAY + 2, 1) for other in others))
        await drop_old_nonces(connection, TODAY + 2, 1)
        assert await list_nonce_days(connection) == [TODAY + 1]
        for other in others:
            await other.close()

    on_database(database_url, scenario)


@pytest.mark.parametrize("keep_days", [0, -1])
def test_nonces_are_never_dropped_before_they_are_a_day_old(database_url: str, keep_days: int) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        with pytest.raises(ValueError, match="at least one day"):
            await drop_old_nonces(connection, TODAY, keep_days)

    on_database(database_url, scenario)


@each_row(("tolerance_s", "days"), [(1, 1), (300, 1), (43_199, 1), (43_200, 2), (86_400, 3)])
def test_days_kept_are_more_than_twice_the_tolerance(tolerance_s: int, days: int) -> None:
    assert count_days_to_keep(tolerance_s) == days
    assert days * 86_400 > 2 * tolerance_s


def test_the_nonce_partition_task_makes_and_drops_as_the_days_go_by(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        task = make_nonce_partition_task(300)
        for day in range(TODAY, TODAY + 10):
            await task(connection, day * DAY_MS + 1)
        assert await list_nonce_days(connection) == list(range(TODAY + 8, TODAY + 11))

    on_database(database_url, scenario)


def test_a_clock_that_is_a_month_ahead_drops_no_nonces_of_the_databases_day(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        today = now_ms() // DAY_MS
        await ensure_nonce_partitions(connection, today)
        await make_nonce_partition_task(300)(connection, (today + 30) * DAY_MS)
        assert {today, today + 1} < set(await list_nonce_days(connection))

    on_database(database_url, scenario)


def test_ranges_are_given_to_every_book_that_runs_short(database_url: str) -> None:
    async def scenario(connection: psycopg.AsyncConnection) -> None:
        given = []

        async def find_short(_: psycopg.AsyncConnection) -> list[int]:
            return [1001, 1003]

        async def allocate(
            home: psycopg.AsyncConnection, cell: psycopg.AsyncConnection, merchant_id: int
        ) -> None:
            given.append(merchant_id)

        await make_id_range_task(find_short, allocate)(connection, 0)
        assert given == [1001, 1003]

    on_database(database_url, scenario)


def test_a_task_that_fails_is_reported_and_hinders_no_other(database_url: str) -> None:
    async def scenario() -> None:
        done = []

        async def broken(connection: psycopg.AsyncConnection, at_ms: int) -> None:
            raise RuntimeError("no room on the disk")

        async def sound(connection: psycopg.AsyncConnection, at_ms: int) -> None:
            done.append(at_ms)

        tasks = {"checkpoints": broken, "nonces": sound}
        maintenance = Maintenance(partial(connect, database_url), tasks, clock=lambda: 42)
        with capture_logs() as logs, pytest.raises(TasksFailed, match="checkpoints"):
            await maintenance.do_all()
        await maintenance.close()
        assert done == [42]
        assert [(line["task"], line["log_level"]) for line in logs] == [("checkpoints", "error")]

    asyncio.run(scenario())


def test_upkeep_does_its_duties_at_once_and_closes_its_connection_when_it_stops(database_url: str) -> None:
    async def scenario() -> None:
        stop, used = asyncio.Event(), []

        async def task(connection: psycopg.AsyncConnection, at_ms: int) -> None:
            used.append(connection)
            stop.set()

        await Maintenance(partial(connect, database_url), {"only": task}).run(stop, interval_s=3_600)
        assert [connection.closed for connection in used] == [True]

    asyncio.run(scenario())
