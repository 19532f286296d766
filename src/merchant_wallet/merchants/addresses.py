"""A merchant's own deposit addresses. USDT that arrives there is added to the merchant's balance.

They come from the merchant's extended public keys, one for each family of chains, and never change. Home
adds them to the platform-wide list, so no address is issued twice. Then the merchant's cell gets them. These
are two commits. After the first one a transfer belongs to nobody yet. Giving the addresses again is harmless.
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


class AddressTaken(Exception):
    """An address of this merchant was issued to another one. The keys are not the merchant's alone."""


async def give_addresses(
    home: Connection, cell: Connection, merchant_id: int, account_xpubs: Mapping[str, str]
) -> dict[str, bytes]:
    """Give a merchant its addresses, unless it has them. Returns them by key name, 20 bytes each.

    Raises AddressTaken.
    """
    if found := await read_addresses(cell, merchant_id):
        return found
    await write_addresses(cell, merchant_id, await issue_own_addresses(home, merchant_id, account_xpubs))
    return await read_addresses(cell, merchant_id)


async def issue_own_addresses(
    home: Connection, merchant_id: int, account_xpubs: Mapping[str, str]
) -> dict[str, bytes]:
    """Issue a merchant's own addresses, unless that was done before. Raises AddressTaken."""
    own = derive_own_addresses(account_xpubs)
    values = {"merchant_id": merchant_id, "addresses": list(own.values())}
    await home.execute(QUERIES["insert_own"].text, values)
    row = await (await home.execute(QUERIES["count_own"].text, values)).fetchone()
    if row is None or row[0] != len(own):
        raise AddressTaken(f"An address of merchant {merchant_id} was issued to another merchant.")
    return own


def derive_own_addresses(account_xpubs: Mapping[str, str]) -> dict[str, bytes]:
    """A merchant's own addresses by key name, 20 bytes each. Pure."""
    return {name: address_of_merchant(account_xpubs[name]) for name in KEY_NAMES}


async def write_addresses(cell: Connection, merchant_id: int, own: Mapping[str, bytes]) -> None:
    """Write a merchant's own addresses to its cell, unless they are there."""
    values = {"merchant_id": merchant_id, "chains": list(own), "addresses": list(own.values())}
    await cell.execute(QUERIES["insert_addresses"].text, values)


async def write_issued(conn: Connection, merchant_id: int, addresses: Iterable[bytes]) -> None:
    """Add addresses to the platform-wide list. Raises UniqueViolation if one of them was issued before."""
    values = {"merchant_id": merchant_id, "addresses": list(addresses)}
    await conn.execute(QUERIES["insert_issued"].text, values)


async def read_addresses(conn: Connection, merchant_id: int) -> dict[str, bytes]:
    """A merchant's own addresses by key name, 20 bytes each. Empty if it has none yet."""
    rows = await conn.execute(QUERIES["read_addresses"].text, {"merchant_id": merchant_id})
    return {chain: bytes(address) for chain, address in await rows.fetchall()}


async def give_missing_addresses(home: Connection, cell: Connection) -> None:
    """Give addresses to merchants of a cell that were created before merchants had them."""
    rows = await (await cell.execute(QUERIES["list_without"].text)).fetchall()
    if not rows:
        return
    merchants = {"merchant_ids": [merchant_id for (merchant_id,) in rows]}
    found = await home.execute(QUERIES["read_xpubs"].text, merchants)
    for merchant_id, account_xpubs in await found.fetchall():
        await give_addresses(home, cell, merchant_id, account_xpubs)
        log.info("merchant was given deposit addresses", merchant_id=merchant_id)
