"""A merchant's own deposit addresses: USDT that reaches one is the merchant's balance.

Rules: they come from the merchant's extended public keys, one for each chain, and never change. They stand in
the platform's list of addresses too, in the same commit, so that none is ever given out twice.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.addresses import COIN_TYPES, address_of_merchant
from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("addresses.sql"))

log = structlog.get_logger(__name__)


async def give_addresses(
    conn: Connection, merchant_id: int, account_xpubs: Mapping[str, str]
) -> dict[str, bytes]:
    """Give a merchant its addresses unless it has them; gives them by chain, 20 bytes each."""
    own = {chain: address_of_merchant(account_xpubs[chain]) for chain in COIN_TYPES}
    values = {"merchant_id": merchant_id, "chains": list(own), "addresses": list(own.values())}
    async with conn.transaction():
        inserted = await (await conn.execute(QUERIES["insert_addresses"].text, values)).fetchall()
        if inserted:
            await conn.execute(QUERIES["insert_given"].text, values)
    return await read_addresses(conn, merchant_id)


async def read_addresses(conn: Connection, merchant_id: int) -> dict[str, bytes]:
    """A merchant's own addresses by chain, 20 bytes each; empty while it has none."""
    rows = await conn.execute(QUERIES["read_addresses"].text, {"merchant_id": merchant_id})
    return {chain: bytes(address) for chain, address in await rows.fetchall()}


async def give_missing_addresses(conn: Connection, at_ms: int) -> None:
    """The maintenance task that gives addresses to merchants that were opened before there were any."""
    rows = await (await conn.execute(QUERIES["list_without"].text)).fetchall()
    for merchant_id, account_xpubs in rows:
        await give_addresses(conn, merchant_id, account_xpubs)
        log.info("merchant was given deposit addresses", merchant_id=merchant_id)
