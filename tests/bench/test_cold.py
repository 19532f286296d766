"""The invented sub-users: all of them are registered in books that verify, and requests name no others."""

import asyncio
import random
from typing import Any

import pytest
from bench.cold import add_up, register_sub_users
from bench.database import BenchDatabase, open_bench_database
from bench.large import check_book
from bench.merchants import BenchMerchant

from merchant_wallet.merchants import store

MERCHANTS = 3
SUB_USERS = 5
DRAWS = 200


async def open_merchants(database: BenchDatabase) -> list[BenchMerchant]:
    """Merchants that have no sub-users yet."""
    opened = [await database.open_merchant(f"cold {number}") for number in range(MERCHANTS)]
    return [
        BenchMerchant(merchant.merchant_id, merchant.app_key, "secret", {}, [], [], SUB_USERS)
        for merchant in opened
    ]


async def read_set(database: BenchDatabase, statement: bytes, merchant: BenchMerchant) -> set[Any]:
    """The values of a query about one merchant."""
    found = await database.connection.execute(statement, {"merchant_id": merchant.merchant_id})
    return {row[0] for row in await found.fetchall()}


@pytest.mark.parametrize("group_size", [1, 2 * SUB_USERS, 1000])
def test_every_invented_sub_user_is_registered_and_can_be_drawn(
    database_url: str, monkeypatch: pytest.MonkeyPatch, group_size: int
) -> None:
    monkeypatch.setattr("bench.cold.GROUP_SIZE", group_size)
    told: list[int] = []

    async def scenario() -> None:
        async with open_bench_database(database_url) as database:
            merchants = await open_merchants(database)
            await register_sub_users(database_url, merchants, lambda what, done, total: told.append(done))
            await add_up(database_url, merchants, lambda *_: None)
            assert (
                await database.count(b"select sum(sub_users) from figure_cursor")
                == len(merchants) * SUB_USERS
            )
            for merchant in merchants:
                await check_book(database_url, merchant, lambda *_: None)
                await check_draws(database, merchant)
                index = await store.take_address_index(database.connection, merchant.merchant_id)
                assert index == SUB_USERS

    asyncio.run(scenario())
    assert told == sorted(told)
    assert told[-1] == MERCHANTS * SUB_USERS


async def check_draws(database: BenchDatabase, merchant: BenchMerchant) -> None:
    """What requests name is what was registered, and all of it."""
    names = b"select ext_user_id from sub_user where merchant_id = %(merchant_id)s::bigint"
    addresses = b"""select '0x' || encode(evm_address, 'hex') from sub_user
                     where merchant_id = %(merchant_id)s::bigint"""
    draw = random.Random(1)
    assert {merchant.draw_name(draw) for _ in range(DRAWS)} == await read_set(database, names, merchant)
    assert {merchant.draw_address(draw) for _ in range(DRAWS)} == await read_set(
        database, addresses, merchant
    )
