"""Addresses with more final deposits than sweeps: deposits are read from each cell, sweeps from home.

Rules:
- A cell's addresses come in pages from one query, so that they need not all fit into memory.
- Statements are in `sweeps.sql`. All raise `psycopg.Error`.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.chains import CHAINS, EVM
from merchant_wallet.chains.signer import Source
from merchant_wallet.custody.sweeps.store import QUERIES

PAGE: Final = 5000
"""Addresses that home is asked for at once."""

Connection = AsyncConnection[Any]


class Unswept(msgspec.Struct, frozen=True, gc=False):
    """An address with more deposits than sweeps, and the path of its key.

    Without `is_native` the address was issued for another family of chains, whose seed path has its key.
    """

    address: bytes
    merchant_id: int
    source: Source
    failed_cause: str | None
    is_native: bool


class Arrived(NamedTuple):
    """What came to an address, in units, and the path of its key below its merchant's account."""

    address: bytes
    merchant_id: int
    branch: int
    address_index: int
    is_native: bool
    arrived: int


async def list_unswept(databases: Databases, chain: str, min_units: int) -> list[Unswept]:
    """Addresses without an open sweep that have at least `min_units` of unswept deposits, by address."""
    found: list[Unswept] = []
    for cell in databases.cells:
        async for page in _page_arrived(cell, chain, min_units):
            found += await _find_unswept(databases.home, chain, page, min_units)
    return sorted(found, key=lambda unswept: unswept.address)


async def _page_arrived(cell: Connection, chain: str, min_units: int) -> AsyncIterator[list[Arrived]]:
    family = CHAINS[chain].family
    values = {
        "chain": chain,
        "min_units": min_units,
        "is_evm": family is EVM,
        "key_name": family.key_name,
    }
    # A cursor with a name stays at the server, which sends page by page.
    async with cell.transaction(), cell.cursor("arrived", row_factory=class_row(Arrived)) as cursor:
        await cursor.execute(QUERIES["sum_arrived"].text, values)
        while page := await cursor.fetchmany(PAGE):
            yield page


async def _find_unswept(
    home: Connection, chain: str, page: Sequence[Arrived], min_units: int
) -> list[Unswept]:
    values = {
        "chain": chain,
        "merchant_ids": [each.merchant_id for each in page],
        "addresses": [each.address for each in page],
    }
    swept = await (await home.execute(QUERIES["read_swept"].text, values)).fetchall()
    return [
        Unswept(
            bytes(each.address),
            each.merchant_id,
            Source(account_no, each.branch, each.address_index),
            failed_cause,
            each.is_native,
        )
        for each, (account_no, swept_units, is_open, failed_cause) in zip(page, swept, strict=True)
        if account_no is not None and not is_open and each.arrived - swept_units >= min_units
    ]
