"""Books with sub-users whose rows are inserted directly, for tests without movements of money."""

from typing import Any

from psycopg import AsyncConnection

Connection = AsyncConnection[Any]

NOW_MS = 1_763_712_000_000
SHOP, OTHER = 1001, 1002
HERE = "192.0.2.7"
"""A sub-user's address on the network."""


async def open_book(conn: Connection, merchant_id: int) -> None:
    """A merchant called Shop with an empty book."""
    values = {"m": merchant_id, "key": f"mk_{merchant_id}", "hash": bytes(32), "range": merchant_id - 1000}
    await conn.execute(
        "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
        " values (%(m)s, 'Shop', %(key)s, 'KFB', 0)",
        values,
    )
    await conn.execute(
        "insert into book (merchant_id, id_range, head_hash, last_ms) values (%(m)s, %(range)s, %(hash)s, 0)",
        values,
    )


async def add_sub_user(conn: Connection, ext_user_id: str, user_id: int, merchant_id: int = SHOP) -> None:
    """A sub-user with 5 KFB. Its addresses are its id, once plain and once with a bit set."""
    values = {
        "m": merchant_id,
        "id": user_id,
        "ext": ext_user_id,
        "evm": evm_of(user_id),
        "tron": tron_of(user_id),
        "now": NOW_MS,
    }
    await conn.execute(
        "insert into account (merchant_id, account_id, kind, currency, balance, day, day_debited)"
        " values (%(m)s, %(id)s, 'subuser', 'KFB', 5000000, 20413, 70)",
        values,
    )
    await conn.execute(
        "insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address,"
        " tron_address, created_ms)"
        " values (%(m)s, %(id)s, %(ext)s, %(ext)s, %(id)s, %(evm)s, %(tron)s, %(now)s)",
        values,
    )
    await conn.execute(
        "insert into wallet_address (merchant_id, address, user_id)"
        " values (%(m)s, %(evm)s, %(id)s), (%(m)s, %(tron)s, %(id)s)",
        values,
    )


def evm_of(user_id: int) -> bytes:
    """The EVM address of a sub-user."""
    return user_id.to_bytes(20, "big")


def tron_of(user_id: int) -> bytes:
    """The TRON address of a sub-user."""
    return b"\x01" + user_id.to_bytes(19, "big")
