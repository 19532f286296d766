"""What a merchant never runs out of: id ranges for its book, address indexes for its wallets."""

import asyncio

import pytest

from merchant_wallet.base import ids
from merchant_wallet.base.db import connect
from merchant_wallet.merchants import store
from merchant_wallet.merchants.id_ranges import RangesExhausted, allocate_range, find_books_short_of_ids
from merchant_wallet.merchants.keys import Keyring

pytestmark = pytest.mark.anyio

KEYRING = Keyring(bytes(range(32)))
NOW_MS = 1_763_712_000_000


async def open_merchant(conn: store.Connection, name: str = "Shop") -> int:
    new = await store.create(conn, KEYRING, name, seed=KEYRING.sandbox_seed(), at_ms=NOW_MS)
    return new.merchant.merchant_id


async def count(conn: store.Connection, table: str) -> int:
    row = await (await conn.execute(f"select count(*) from {table}".encode())).fetchone()
    assert row is not None
    return int(row[0])


async def test_no_address_index_is_given_twice(database_url: str) -> None:
    async with await connect(database_url) as conn, await connect(database_url) as other:
        merchant_id = await open_merchant(conn)

        async def take(own: store.Connection) -> list[int]:
            return [await store.take_address_index(own, merchant_id) for _ in range(20)]

        taken = [index for part in await asyncio.gather(take(conn), take(other)) for index in part]
        assert sorted(taken) == list(range(40))


async def test_several_callers_at_once_give_a_book_one_further_range(database_url: str) -> None:
    async with await connect(database_url) as conn:
        merchant_id = await open_merchant(conn)

    async def allocate(_: int) -> bool:
        async with await connect(database_url) as own:
            return await allocate_range(own, own, merchant_id)

    assert sum(await asyncio.gather(*map(allocate, range(6)))) == 1
    async with await connect(database_url) as conn:
        cursor = await conn.execute("select id_range, next_range from book")
        assert await cursor.fetchall() == [(1, 2)]
        cursor = await conn.execute("select range_no, merchant_id from id_range order by range_no")
        assert await cursor.fetchall() == [(1, merchant_id), (2, merchant_id)]


async def test_books_and_ranges_grow_side_by_side(database_url: str) -> None:
    async with await connect(database_url) as conn, await connect(database_url) as other:
        merchants = [await open_merchant(conn, f"Shop {n}") for n in range(4)]

        async def allocate_all() -> list[bool]:
            return [await allocate_range(conn, conn, merchant_id) for merchant_id in merchants]

        async def open_more() -> None:
            for number in range(4, 8):
                await open_merchant(other, f"Shop {number}")

        allocated, _ = await asyncio.gather(allocate_all(), open_more())
        assert allocated == [True] * 4
        cursor = await conn.execute("select range_no from id_range order by range_no")
        assert [row[0] for row in await cursor.fetchall()] == list(range(1, 13))


async def test_a_book_that_is_not_there_gets_no_range(conn: store.Connection) -> None:
    assert await allocate_range(conn, conn, 999) is False
    assert await count(conn, "id_range") == 0


async def test_when_all_ranges_are_given_out_it_is_said(conn: store.Connection) -> None:
    merchant_id, other = [await open_merchant(conn, name) for name in ("A", "B")]
    await conn.execute("insert into id_range (range_no, merchant_id) values (%s, %s)", [ids.MAX_RANGE, other])
    with pytest.raises(RangesExhausted):
        await allocate_range(conn, conn, merchant_id)
    with pytest.raises(RangesExhausted):
        await open_merchant(conn, "One too many")
    assert await count(conn, "merchant") == 2


async def test_only_books_near_their_end_without_a_further_range_are_short_of_ids(
    conn: store.Connection,
) -> None:
    near, far, supplied = [await open_merchant(conn, name) for name in ("A", "B", "C")]
    left = {near: 100, far: 101, supplied: 100}
    for merchant_id, remaining in left.items():
        await conn.execute(
            "update book set id_counter = %s where merchant_id = %s",
            [ids.MAX_COUNTER - remaining, merchant_id],
        )
    await allocate_range(conn, conn, supplied)
    assert await find_books_short_of_ids(conn, 100) == [near]
