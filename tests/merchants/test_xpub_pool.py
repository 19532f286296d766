"""The pool of accounts: the lowest free one is given out, once; an empty pool raises a sentence."""

import asyncio

import pytest

from merchant_wallet.base.addresses import derive_account_xpub
from merchant_wallet.base.chains import COIN_TYPES
from merchant_wallet.base.db import connect
from merchant_wallet.merchants import store, xpub_pool
from merchant_wallet.merchants.keys import Keyring

pytestmark = pytest.mark.anyio

KEYRING = Keyring(bytes(range(32)))
SEED = bytes(range(64))
NOW_MS = 1_763_712_000_000


def accounts(first: int, count: int) -> list[tuple[int, dict[str, str]]]:
    """Accounts of one seed, as its holder derives them."""
    return [
        (number, {chain: derive_account_xpub(SEED, coin, number) for chain, coin in COIN_TYPES.items()})
        for number in range(first, first + count)
    ]


async def read_account_no(conn: store.Connection, merchant_id: int) -> int | None:
    """The account of a merchant. None if it has none, as in the sandbox."""
    query = "select account_no from xpub_pool where merchant_id = %s"
    row = await (await conn.execute(query, [merchant_id])).fetchone()
    return None if row is None else int(row[0])


async def open_merchant(conn: store.Connection, name: str = "Shop") -> store.NewMerchant:
    return await store.create(conn, KEYRING, name, seed=None, at_ms=NOW_MS)


async def test_new_merchants_take_the_lowest_accounts_in_order(conn: store.Connection) -> None:
    derived = accounts(0, 3)
    await xpub_pool.add(conn, derived)
    for number, xpubs in derived:
        merchant = (await open_merchant(conn, f"Shop {number} of three")).merchant
        assert merchant.account_xpubs == xpubs
        assert await read_account_no(conn, merchant.merchant_id) == number
    assert await xpub_pool.read_size(conn) == (3, 0)


async def test_an_empty_pool_opens_no_merchant_and_says_what_to_do(conn: store.Connection) -> None:
    with pytest.raises(xpub_pool.PoolEmpty, match="keys derive"):
        await open_merchant(conn)
    assert await store.list_merchants(conn) == []
    await xpub_pool.add(conn, accounts(0, 1))
    await open_merchant(conn)
    with pytest.raises(xpub_pool.PoolEmpty):
        await open_merchant(conn, "Second")


async def test_an_opening_that_fails_gives_its_account_back(conn: store.Connection) -> None:
    await xpub_pool.add(conn, accounts(0, 2))
    async with conn.transaction(force_rollback=True):
        await open_merchant(conn)
        assert await xpub_pool.read_size(conn) == (2, 1)
    assert await xpub_pool.read_size(conn) == (2, 2)


async def test_openings_at_once_take_different_accounts(database_url: str) -> None:
    async with await connect(database_url) as conn:
        await xpub_pool.add(conn, accounts(0, 12))

    async def open_one(number: int) -> int:
        async with await connect(database_url) as own:
            return (await open_merchant(own, f"Shop {number}!")).merchant.merchant_id

    opened = await asyncio.gather(*map(open_one, range(12)))
    async with await connect(database_url) as conn:
        taken = [await read_account_no(conn, merchant_id) for merchant_id in opened]
    assert sorted(number for number in taken if number is not None) == list(range(12))


async def test_an_account_that_is_there_already_stays_as_it_is(conn: store.Connection) -> None:
    await xpub_pool.add(conn, accounts(0, 2))
    taken = (await open_merchant(conn)).merchant
    strange = {"ERC20": "other", "TRC20": "other"}
    await xpub_pool.add(conn, [(0, strange), (1, strange), (2, strange)])
    assert await read_account_no(conn, taken.merchant_id) == 0
    assert await xpub_pool.find_first_and_last(conn) == [accounts(0, 1)[0], (2, strange)]
    assert await xpub_pool.read_size(conn) == (3, 2)


async def test_a_pool_that_was_never_filled_has_no_edges(conn: store.Connection) -> None:
    assert await xpub_pool.find_first_and_last(conn) == []
    assert await xpub_pool.read_size(conn) == (0, 0)


async def test_in_the_sandbox_no_account_is_taken_and_such_merchants_are_strangers(
    conn: store.Connection,
) -> None:
    await xpub_pool.add(conn, accounts(0, 1))
    made = await store.create(conn, KEYRING, "Play", seed=KEYRING.sandbox_seed(), at_ms=NOW_MS)
    merchant_id = made.merchant.merchant_id
    assert await read_account_no(conn, merchant_id) is None
    assert await xpub_pool.read_size(conn) == (1, 1)
    real = (await open_merchant(conn, "Real")).merchant.merchant_id
    assert await xpub_pool.find_merchants_without_account(conn) == [merchant_id]
    assert await read_account_no(conn, real) == 0
