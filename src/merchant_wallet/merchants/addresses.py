"""A merchant's own deposit addresses. USDT that arrives there is added to the merchant's balance.

They come from the merchant's extended public keys, one for each family of chains, and never change. The same
commit adds them to the platform-wide list, so no address is issued twice.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.addresses import address_of_merchant
from merchant_wallet.base.chains import KEY_NAMES
from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("addresses.sql"))

log = structlog.get_logger(__name__)


async def give_addresses(
    conn: Connection, merchant_id: int, account_xpubs: Mapping[str, str]
) -> dict[str, bytes]:
    """Give a merchant its addresses, unless it has them. Returns them by key name, 20 bytes each."""
    own = {name: address_of_merchant(account_xpubs[name]) for name in KEY_NAMES}
    values = {"merchant_id": merchant_id, "chains": list(own), "addresses": list(own.values())}
    async with conn.transaction():
        inserted = await (await conn.execute(QUERIES["insert_addresses"].text, values)).fetchall()
        if inserted:
            await write_issued(conn, merchant_id, own.values())
    return await read_addresses(conn, merchant_id)


async def write_issued(conn: Connection, merchant_id: int, addresses: Iterable[bytes]) -> None:
    """Add addresses to the platform-wide list. Raises UniqueViolation if one of them was issued before."""
    values = {"merchant_id": merchant_id, "addresses": list(addresses)}
    await conn.execute(QUERIES["insert_issued"].text, values)


async def read_addresses(conn: Connection, merchant_id: int) -> dict[str, bytes]:
    """A merchant's own addresses by key name, 20 bytes each. Empty if it has none yet."""
    rows = await conn.execute(QUERIES["read_addresses"].text, {"merchant_id": merchant_id})
    return {chain: bytes(address) for chain, address in await rows.fetchall()}


async def give_missing_addresses(conn: Connection, at_ms: int) -> None:
    """The maintenance task that gives addresses to merchants created before merchants had them."""
    rows = await (await conn.execute(QUERIES["list_without"].text)).fetchall()
    for merchant_id, account_xpubs in rows:
        await give_addresses(conn, merchant_id, account_xpubs)
        log.info("merchant was given deposit addresses", merchant_id=merchant_id)
