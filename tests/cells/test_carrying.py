"""Merchants in an apart cell: created and changed in home, then carried to the cell, killed at each step."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from tests.cells.conftest import TwoDatabases
from tests.cells.killable import FAR_ID, KEYRING, NOW_MS
from tests.cells.killed import kill_at_each_step
from tests.crash.shop import run

from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import connect
from merchant_wallet.book import chart
from merchant_wallet.merchants import store
from merchant_wallet.merchants.addresses import derive_own_addresses
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.cells import carrying
from merchant_wallet.merchants.cells.carrying import carry, carry_waiting, find_and_carry, write_settings
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.updates import CellUpdates
from merchant_wallet.merchants.settings import SettingRefused

COPY = b"""select merchant_id, name, status, currency_mode, deposit_notify_url, require_pin, frame_origins
 from merchant order by merchant_id"""


@asynccontextmanager
async def _open_both(two: TwoDatabases) -> AsyncIterator[tuple[AsyncConnection, AsyncConnection]]:
    async with await connect(two.home) as home, await connect(two.cell) as cell:
        yield home, cell


async def _rows(conn: AsyncConnection, query: bytes, *values: object) -> list[tuple[Any, ...]]:
    return await (await conn.execute(query, values)).fetchall()


async def _create(home: AsyncConnection, name: str, cell_id: int = FAR_ID) -> int:
    """Home's part of a new merchant."""
    seed = KEYRING.sandbox_seed()
    made = await store.create(home, KEYRING, name, seed=seed, at_ms=NOW_MS, cell_id=cell_id)
    return made.merchant.merchant_id


async def _open_merchants(two: TwoDatabases, names: Sequence[str]) -> dict[str, int]:
    async with _open_both(two) as (home, cell):
        merchants = {name: await _create(home, name) for name in names}
        for merchant_id in merchants.values():
            assert await carry(home, cell, FAR_ID, merchant_id)
    return merchants


async def _carry_waiting(two: TwoDatabases) -> int:
    async with _open_both(two) as (home, cell):
        return await carry_waiting(home, cell, FAR_ID)


async def _check_cell(two: TwoDatabases) -> None:
    """What home says of its merchants is what the cell has, and nothing waits."""
    async with _open_both(two) as (home, cell):
        assert await _rows(cell, COPY) == await _rows(home, COPY)
        versions = b"select merchant_id, settings_version from book order by merchant_id"
        settings = b"select merchant_id, settings_version, carried_version from merchant order by merchant_id"
        said = await _rows(home, settings)
        assert await _rows(cell, versions) == [row[:2] for row in said]
        assert all(version == carried for _, version, carried in said)
        for merchant_id, _, _ in said:
            await _check_book(home, cell, merchant_id)


async def _check_book(home: AsyncConnection, cell: AsyncConnection, merchant_id: int) -> None:
    accounts = b"select account_id, kind, currency from account where merchant_id = %s order by 1"
    assert await _rows(cell, accounts, merchant_id) == sorted(map(tuple, chart.FIXED))
    merchant = await store.load(home, KEYRING, merchant_id)
    assert merchant is not None
    own = derive_own_addresses(merchant.account_xpubs)
    addresses = b"select chain, address from merchant_address where merchant_id = %s"
    assert dict(await _rows(cell, addresses, merchant_id)) == own
    issued = b"select address from issued_address where merchant_id = %s"
    assert {address for (address,) in await _rows(home, issued, merchant_id)} == set(own.values())
    ranges = await _rows(home, b"select range_no::int from id_range where merchant_id = %s", merchant_id)
    book = b"select id_range::int, last_ms, entry_count from book where merchant_id = %s"
    assert await _rows(cell, book, merchant_id) == [(ranges[0][0], NOW_MS, 0)]


def test_a_creation_killed_at_any_step_is_whole_or_nothing_after_a_carry(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        points = []
        async for point in kill_at_each_step("create", *two_databases, lambda point: (point,)):
            points.append(point)
            await _carry_waiting(two_databases)
            await _check_cell(two_databases)
        async with await connect(two_databases.home) as home:
            created = {name for (name,) in await _rows(home, b"select name from merchant")}
            # The last one is that of the run that was not killed.
            in_home = [point for point in points if point in created]
            assert in_home == points[points.index(in_home[0]) :]
            assert len(points) > len(in_home) >= 2 * 6
            assert len(created) == len(in_home) + 1
        await _check_cell(two_databases)

    run(scenario())


def test_a_change_killed_at_any_step_is_carried_by_the_next_one_who_looks(
    two_databases: TwoDatabases,
) -> None:
    async def scenario() -> None:
        merchants = await _open_merchants(
            two_databases, [f"{w} {n}" for n in range(1, 20) for w in ("before", "after")]
        )
        points, waited = [], []
        async for point in kill_at_each_step(
            "change", *two_databases, lambda point: (merchants[point], f"new {point}")
        ):
            points.append(point)
            if await _carry_waiting(two_databases):
                waited.append(point)
            await _check_cell(two_databases)
        async with await connect(two_databases.home) as home:
            changed = await _rows(home, b"select name from merchant where name like 'new %%'")
        # After home's commit every kill leaves the change to be carried, and before it there is no change.
        assert waited == points[points.index(waited[0]) :]
        assert len(points) > len(waited) >= 2 * 4
        assert {name for (name,) in changed} >= {f"new {point}" for point in waited}
        assert len(changed) == len(waited) + 1

    run(scenario())


def test_a_carrier_that_is_late_brings_no_old_settings_back(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        merchant_id = (await _open_merchants(two_databases, ["Shop"]))["Shop"]
        async with _open_both(two_databases) as (home, cell):
            await store.suspend(home, merchant_id)
            async with home.cursor(row_factory=dict_row) as cursor:
                at = {"merchant_id": merchant_id, "cell_id": FAR_ID}
                await cursor.execute(carrying.QUERIES["read_waiting"].text, at)
                seen = await cursor.fetchone()
            assert seen is not None
            await store.resume(home, merchant_id)
            assert await carry(home, cell, FAR_ID, merchant_id)
            assert not await write_settings(cell, seen)
            assert await _rows(cell, b"select status from merchant") == [("active",)]
        await _check_cell(two_databases)

    run(scenario())


def test_many_who_carry_at_once_leave_the_newest_settings(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with await connect(two_databases.home) as home:
            merchant_id = await _create(home, "Shop")

        async def change_and_carry(number: int) -> None:
            async with _open_both(two_databases) as (home, cell):
                await carry(home, cell, FAR_ID, merchant_id)
                await store.change_settings(home, KEYRING, merchant_id, {"name": f"Shop {number}"})
                await carry(home, cell, FAR_ID, merchant_id)

        await asyncio.gather(*map(change_and_carry, range(8)))
        await _check_cell(two_databases)
        async with await connect(two_databases.home) as home:
            assert await store.read_settings_version(home, merchant_id) == 9

    run(scenario())


def test_a_book_that_was_opened_with_older_settings_gets_the_newest(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        merchant_id = (await _open_merchants(two_databases, ["Shop"]))["Shop"]
        async with _open_both(two_databases) as (home, cell):
            # As after a kill between the cell's commit and home's.
            await home.execute("update merchant set carried_version = 0")
            await store.suspend(home, merchant_id)
            assert await carry(home, cell, FAR_ID, merchant_id)
        await _check_cell(two_databases)

    run(scenario())


def test_a_process_that_reads_a_merchant_carries_its_settings_first(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        directory = Directory(two_databases.home)
        carry_found = partial(find_and_carry, directory)
        cache = MerchantCache(two_databases.home, KEYRING, note_cell=directory.note, carry=carry_found)
        async with await connect(two_databases.home) as home:
            merchant_id = await _create(home, "Shop")
            (ref,) = await store.list_merchants(home)
            opened = await cache.load(ref.app_key)
            await _check_cell(two_databases)
            await store.suspend(home, merchant_id)
            suspended = await cache.load(ref.app_key)
        await cache.close()
        assert opened is not None
        assert suspended is not None
        assert (opened.status, suspended.status) == ("active", "suspended")
        await _check_cell(two_databases)

    run(scenario())


def test_while_the_cell_is_away_home_has_the_change_and_a_merchant_can_be_read(
    two_databases: TwoDatabases,
) -> None:
    async def scenario() -> None:
        merchant_id = (await _open_merchants(two_databases, ["Shop"]))["Shop"]
        directory = Directory(two_databases.home)
        carry_found = partial(find_and_carry, directory)
        cache = MerchantCache(two_databases.home, KEYRING, note_cell=directory.note, carry=carry_found)
        async with _open_both(two_databases) as (home, cell):
            await cell.execute("update cell_state set is_open = false")
            await store.suspend(home, merchant_id)
            (ref,) = await store.list_merchants(home)
            read = await cache.load(ref.app_key)
            assert read is not None
            assert (read.status, read.is_carried) == ("suspended", False)
            with pytest.raises(CellClosed):
                await find_and_carry(directory, merchant_id)
            assert await _rows(cell, b"select status from merchant") == [("active",)]
            await cell.execute("update cell_state set is_open = true")
            assert await find_and_carry(directory, merchant_id)
        await cache.close()
        await _check_cell(two_databases)

    run(scenario())


def test_the_worker_carries_what_waits(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with await connect(two_databases.home) as home:
            first = await _create(home, "First")
        updates = CellUpdates(
            FAR_ID, partial(connect, two_databases.home), partial(connect, two_databases.cell)
        )
        await updates.update()
        await _check_cell(two_databases)
        async with await connect(two_databases.home) as home:
            await store.suspend(home, first)
            await _create(home, "Second")
        await updates.update()
        await updates.close()
        await _check_cell(two_databases)

    run(scenario())


def test_a_merchant_is_not_carried_to_a_cell_that_is_not_its_own(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(two_databases) as (home, cell):
            at_home = await _create(home, "Home", cell_id=0)
            assert not await carry(home, cell, FAR_ID, at_home)
            assert await _rows(cell, b"select from merchant") == []

    run(scenario())


def test_the_currency_mode_of_a_book_in_an_apart_cell_stays(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        merchant_id = (await _open_merchants(two_databases, ["Shop"]))["Shop"]
        async with await connect(two_databases.home) as home:
            with pytest.raises(SettingRefused, match="is in an apart cell"):
                await store.change_settings(home, KEYRING, merchant_id, {"currency-mode": "USDT"})
        await _check_cell(two_databases)

    run(scenario())
