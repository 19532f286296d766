"""The pool of accounts for new merchants' deposit addresses, in production.

The holder of the seed adds extended public keys ahead, in order. A new merchant gets the lowest free account,
in the transaction that creates it. An account is given out once. One that a lost merchant had leaves the
pool, and waits for that merchant (table `lost_xpub`). The sandbox does not use the pool: its seed
is the service's own, and a merchant's account number is its id.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]
Xpubs = Mapping[str, str]

QUERIES = Queries(Path(__file__).with_name("xpub_pool.sql"))


class PoolEmpty(Exception):
    """Every account of the pool belongs to a merchant. The text says what to do."""


class Account(NamedTuple):
    """An account of the pool: its number below the seed, and its extended public key on each chain."""

    account_no: int
    xpubs: dict[str, str]


class PoolSize(NamedTuple):
    """How many accounts were ever added, and how many of them are free."""

    accounts: int
    free: int


async def take(conn: Connection, merchant_id: int) -> Account:
    """Give a merchant its account, in the caller's transaction. Raises PoolEmpty."""
    row = await _fetch(conn, "take_account", {"merchant_id": merchant_id})
    if row is None:
        raise PoolEmpty(
            "No account is left for a new merchant's deposit addresses: "
            "run `merchant-wallet keys derive` where the keystore is."
        )
    return Account(**row)


async def list_free(conn: Connection) -> list[Account]:
    """All free accounts, the lowest first."""
    return await _list(conn, "list_free")


async def list_lost(conn: Connection) -> list[Account]:
    """All accounts that left the pool with lost merchants, the lowest first."""
    return await _list(conn, "list_lost")


async def give(conn: Connection, account_no: int, merchant_id: int) -> None:
    """Give a merchant its account again, in the caller's transaction, whether it is free or lost.

    Raises PoolEmpty.
    """
    values = {"account_no": account_no, "merchant_id": merchant_id}
    for name in ("give_account", "give_lost_account"):
        if (await conn.execute(QUERIES[name].text, values)).rowcount:
            return
    raise PoolEmpty(
        f"Account {account_no}, which gives the addresses of merchant {merchant_id}, was given to another"
        " merchant at this moment. Restore home's back-up again."
    )


async def drop_lowest(conn: Connection, count: int) -> list[int]:
    """Take the lowest free accounts out of the pool: merchants had them whom nobody knows any more.

    Returns their numbers. The next account to derive follows the last one, which stays. Raises PoolEmpty.
    """
    free = await list_free(conn)
    if len(free) <= count:
        raise PoolEmpty(
            f"The last {count} merchants are lost, so nobody may get their accounts. The pool has {len(free)}"
            " free ones: run `merchant-wallet keys derive` where the keystore is, then this again."
        )
    account_nos = [account.account_no for account in free[:count]]
    await conn.execute(QUERIES["drop_accounts"].text, {"account_nos": account_nos})
    return account_nos


async def add(conn: Connection, accounts: Iterable[tuple[int, Xpubs]]) -> None:
    """Add accounts, all or none."""
    listed = list(accounts)
    values = {
        "account_nos": [number for number, _ in listed],
        "xpubs": [Jsonb(dict(xpubs)) for _, xpubs in listed],
    }
    await conn.execute(QUERIES["insert_accounts"].text, values)


async def find_first_and_last(conn: Connection) -> list[Account]:
    """The first and the last account. Empty if the pool was never filled."""
    return await _list(conn, "read_edges")


async def read_size(conn: Connection) -> PoolSize:
    """The size of the pool."""
    row = await _fetch(conn, "count_accounts", {})
    assert row is not None, "a count always has a row"
    return PoolSize(**row)


async def find_merchants_without_account(conn: Connection) -> list[int]:
    """The first few merchants whose addresses come from no account of the pool."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES["find_merchants_without_account"].text)
        return [row["merchant_id"] async for row in cursor]


async def _list(conn: Connection, name: str) -> list[Account]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text)
        return [Account(**row) for row in await cursor.fetchall()]


async def _fetch(conn: Connection, name: str, values: Mapping[str, Any]) -> DictRow | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchone()
