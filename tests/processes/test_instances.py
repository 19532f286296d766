"""The programs that run write down that they do, and contractions wait for them."""

import asyncio
from functools import partial

from tests.crash.shop import run
from tests.waits import eventually

from merchant_wallet.base.clock import MAX_SKEW_MS, now_ms
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.postgres.grants import Side
from merchant_wallet.postgres.migration_files import read_migrations
from merchant_wallet.processes.compared_clock import ComparedClock
from merchant_wallet.processes.instances import LIVE_MS, Presence, find_contract_limit, list_live

NEWEST = read_migrations()[-1].version


def _sides(url: str) -> list[str]:
    async def read() -> list[str]:
        async with await connect(url) as connection:
            return [instance.side for instance in await list_live(connection)]

    return run(read())


def test_a_program_is_there_from_its_first_note_until_it_stops(database_url: str) -> None:
    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(
            Presence(partial(connect, database_url), Side.WEB, ComparedClock(lambda: now_ms() + HOUR_MS)).run(
                stop
            )
        )
        async with await connect(database_url) as connection:

            async def is_there() -> bool:
                return [instance.side for instance in await list_live(connection)] == ["web"]

            await eventually(is_there)
            (web,) = await list_live(connection)
            assert web.clock_ahead_ms is not None
            assert abs(web.clock_ahead_ms - HOUR_MS) < MAX_SKEW_MS
            stop.set()
            await running
            assert await list_live(connection) == []

    run(scenario())


def test_a_program_that_was_killed_counts_as_gone_after_a_while(database_url: str) -> None:
    _start_old(database_url, NEWEST - 1)
    assert _sides(database_url) == ["worker"]
    with connect_sync(database_url) as connection:
        connection.execute("update instance set seen_ms = seen_ms - %s", [LIVE_MS + 1])
    assert _sides(database_url) == []


def test_the_oldest_program_says_how_far_a_contraction_may_go(database_url: str) -> None:
    assert find_contract_limit(database_url) == (None, [])
    _start_old(database_url, NEWEST)
    _start_old(database_url, NEWEST - 1)
    version, holders = find_contract_limit(database_url)
    assert version == NEWEST - 1
    assert holders == [f"worker 0.0.1 on elsewhere (pid {NEWEST - 1})"]


def test_on_a_schema_without_the_table_nobody_is_known(empty_database_url: str) -> None:
    assert find_contract_limit(empty_database_url) == (None, [])
    assert _sides(empty_database_url) == []


def _start_old(url: str, schema_version: int) -> None:
    """A program of another version, which knows migrations up to this one."""
    with connect_sync(url) as connection:
        connection.execute(
            "insert into instance (instance_id, side, version, schema_version, host, pid, started_ms,"
            " seen_ms)"
            " select gen_random_uuid(), 'worker', '0.0.1', %(version)s, 'elsewhere', %(version)s, ms, ms"
            "   from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) clock",
            {"version": schema_version},
        )
