"""Deposits as operators look for them, newest first: by status, chain, merchant, address or transaction.

Rules: amounts are units, moments milliseconds, addresses 20 bytes. A merchant's id narrows everything to that
merchant. What a deposit's status means stands with the watcher.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.db import Queries
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.reporting import paging
from merchant_wallet.reporting.paging import (
    HIGHEST,
    LAST_TEXT,
    LOWEST,
    Connection,
    Order,
    Page,
    Row,
    fetch,
)

QUERIES: Final = Queries(Path(__file__).with_name("deposits.sql"))
STATUSES: Final = tuple(state.value for state in State)
_NEWEST: Final = Order(
    "deposits by moment",
    ("seen_ms", "chain", "tx_hash", "log_index"),
    (HIGHEST, LAST_TEXT, LAST_TEXT, 2**31 - 1),
)


class DepositLine(msgspec.Struct, frozen=True):
    """One deposit in a list; without a user it came to the merchant's own address.

    What it was credited with is in `currency`; `rate_e8` is 0 where nothing was exchanged.
    """

    merchant_id: int
    merchant_name: str
    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    status: str
    sender: bytes
    address: bytes
    user_id: int | None
    ext_user_id: str | None
    amount_units: int
    seen_ms: int
    final_ms: int | None
    cause: str | None
    entry_id: int | None
    currency: str | None
    credited_units: int | None
    rate_e8: int | None


class DepositFilter(msgspec.Struct, frozen=True):
    """What a list of deposits is narrowed to; nothing named is everything. `to_ms` itself is left out."""

    merchant_id: int | None = None
    statuses: tuple[str, ...] = ()
    chain: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    address: bytes | None = None


async def list_deposits(
    conn: Connection, wanted: DepositFilter, *, after: str | None = None, limit: int = 50
) -> Page[DepositLine]:
    """A page of deposits. Raises ValueError for a filter, a limit or a key that there is not."""
    values = _values(wanted)
    name = "page_by_moment" if wanted.merchant_id is None else "page_of_merchant_by_moment"
    if wanted.address is not None:
        name = "page_by_address"
        values["merchant_id"] = await _find_owner(conn, wanted.address, wanted.merchant_id)
    is_filtered = wanted.address is not None and bool(wanted.statuses or wanted.chain)
    read = paging.reader(conn, QUERIES[name], values, is_filtered=is_filtered)
    return await paging.read_page(_NEWEST, read, _show, after, limit)


def _values(wanted: DepositFilter) -> dict[str, Any]:
    return {
        "merchant_id": wanted.merchant_id,
        "statuses": paging.check_words("status", wanted.statuses, STATUSES),
        "chains": paging.check_words("chain", [wanted.chain] if wanted.chain else [], CODES),
        "from_ms": LOWEST if wanted.from_ms is None else wanted.from_ms,
        "to_ms": HIGHEST if wanted.to_ms is None else wanted.to_ms,
        "address": wanted.address,
    }


async def _find_owner(conn: Connection, address: bytes, merchant_id: int | None) -> int:
    """The merchant whose deposits at an address are listed: the one asked for, else its owner, else 0."""
    if merchant_id is not None:
        return merchant_id
    owners = await fetch(conn, QUERIES["find_owner"].text, {"address": address})
    return int(owners[0]["merchant_id"]) if owners else 0


async def find_deposits(
    conn: Connection, tx_hash: str, merchant_id: int | None = None, *, limit: int = 50
) -> list[DepositLine]:
    """The deposits of one transaction, on either chain."""
    paging.check_limit(limit)
    values = {
        "tx_hash": tx_hash.replace("\0", ""),
        "chains": list(CODES),
        "merchant_id": merchant_id,
        "limit": limit,
    }
    return [_show(row) for row in await fetch(conn, QUERIES["find_by_transaction"].text, values)]


def _show(row: Row) -> DepositLine:
    return DepositLine(**{name: value for name, value in row.items() if name != "is_edge"})
