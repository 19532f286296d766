"""Merchants' own deposit addresses: given at the creation or later, once and for ever."""

import pytest

from merchant_wallet.base.addresses import ExtendedPublicKey, address_of_child, derive_account
from merchant_wallet.base.chains import COIN_TYPES
from merchant_wallet.merchants import store
from merchant_wallet.merchants.addresses import (
    AddressTaken,
    give_addresses,
    give_missing_addresses,
    read_addresses,
)
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.store import Connection

pytestmark = pytest.mark.anyio

KEYRING = Keyring(bytes(32))
SEED = bytes(range(64))


async def open_merchant(conn: Connection, name: str = "Shop") -> int:
    made = await store.create(conn, KEYRING, name, seed=SEED, at_ms=1)
    return made.merchant.merchant_id


async def given(conn: Connection) -> set[bytes]:
    rows = await (await conn.execute("select address from issued_address")).fetchall()
    return {bytes(row[0]) for row in rows}


async def test_a_new_merchant_has_an_address_on_each_chain(conn: Connection) -> None:
    merchant_id = await open_merchant(conn)
    own = await read_addresses(conn, merchant_id)
    expected = {
        chain: derive_account(SEED, coin, merchant_id).child(1).child(0).public().address()
        for chain, coin in COIN_TYPES.items()
    }
    assert own == expected
    assert await given(conn) == set(own.values())


async def test_no_sub_user_ever_gets_a_merchants_own_address(conn: Connection) -> None:
    merchant = await store.load(conn, KEYRING, await open_merchant(conn))
    assert merchant is not None
    own = set((await read_addresses(conn, merchant.merchant_id)).values())
    xpubs = merchant.account_xpubs.values()
    assert not own & {address_of_child(xpub, index) for xpub in xpubs for index in range(20)}
    assert own == {ExtendedPublicKey.parse(xpub).child(1).child(0).address() for xpub in xpubs}


async def test_merchants_from_before_are_given_theirs_once(conn: Connection) -> None:
    first, second = await open_merchant(conn), await open_merchant(conn, "Other")
    before = await read_addresses(conn, first), await read_addresses(conn, second)
    await conn.execute("delete from merchant_address")
    await conn.execute("delete from issued_address")
    for _ in range(2):
        await give_missing_addresses(conn, conn)
        assert (await read_addresses(conn, first), await read_addresses(conn, second)) == before
    assert len(await given(conn)) == 4


async def test_an_address_that_another_merchant_has_is_not_given(conn: Connection) -> None:
    merchant_id, other = await open_merchant(conn), await open_merchant(conn, "Other")
    merchant = await store.load(conn, KEYRING, merchant_id)
    assert merchant is not None
    own = await read_addresses(conn, merchant_id)
    await conn.execute("delete from merchant_address where merchant_id = %s", [merchant_id])
    await conn.execute(
        "update issued_address set merchant_id = %s where address = %s", [other, min(own.values())]
    )
    with pytest.raises(AddressTaken, match=f"merchant {merchant_id}"):
        await give_addresses(conn, conn, merchant_id, merchant.account_xpubs)
    assert await read_addresses(conn, merchant_id) == {}


async def test_addresses_that_were_issued_by_a_killed_process_are_given(conn: Connection) -> None:
    merchant_id = await open_merchant(conn)
    merchant = await store.load(conn, KEYRING, merchant_id)
    assert merchant is not None
    own = await read_addresses(conn, merchant_id)
    await conn.execute("delete from merchant_address")
    assert await give_addresses(conn, conn, merchant_id, merchant.account_xpubs) == own
    assert await given(conn) == set(own.values())
