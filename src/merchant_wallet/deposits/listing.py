"""Deposits as people see them: lists, one transaction, sums and how far the chains were read.

Rules: nothing here writes or locks. Lists are pages by key, newest first. A deposit's `status` is `seen`
(its block is not final), `undone` (its block has left the chain), `pending` (final, about to be credited),
`dust` (final, but too little until more comes), `held` (final, but a person must decide), `dropped` (a person
decided that nothing is credited) or `credited`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("listing.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

STATUSES: Final = ("seen", "undone", "pending", "dust", "held", "dropped", "credited")
OPEN: Final = ("seen", "pending", "dust", "held")
"""The standings that one may ask for without naming a merchant."""

PageKey = tuple[int, str, str, int]
"""Where a page ended: moment, chain, transaction, place in the logs."""

NEWEST: Final[PageKey] = (2**62, "", "", 0)


class DepositShown(msgspec.Struct, frozen=True):
    """A transfer that reached an address of ours, and what became of it.

    Without a user the address is the merchant's own. `confirmations` counts the blocks from its own to the
    head. What it was credited with is in the wallet's currency; `rate_e8` is 0 where nothing was exchanged.
    """

    merchant_id: int
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
    confirmations: int | None
    entry_id: int | None
    currency: str | None
    arrival_units: int | None
    rate_e8: int | None

    @property
    def page_key(self) -> PageKey:
        """Where the page goes on that ends with this one."""
        return self.seen_ms, self.chain, self.tx_hash, self.log_index


class CursorShown(msgspec.Struct, frozen=True):
    """How far a chain was read, and what keeps it from being read on."""

    chain: str
    final_number: int
    head_number: int
    alert: str | None
    moved_ms: int


async def list_deposits(
    connection: AsyncConnection,
    merchant_id: int,
    *,
    user_id: int | None = None,
    status: str | None = None,
    before: PageKey = NEWEST,
    limit: int = 100,
) -> list[DepositShown]:
    """A merchant's deposits or those of one of its wallets, newest first, before the end of a page."""
    seen_ms, chain, tx_hash, log_index = before
    values = {
        "merchant_id": merchant_id,
        "user_id": user_id,
        "status": status,
        "seen_ms": seen_ms,
        "chain": chain,
        "tx_hash": tx_hash,
        "log_index": log_index,
        "limit": limit,
    }
    query = "page_deposits" if user_id is None else "page_wallet_deposits"
    return await _read(connection, query, values)


async def list_uncredited(
    connection: AsyncConnection, wallets: Iterable[tuple[int, int]], *, limit: int = 20
) -> dict[tuple[int, int], list[DepositShown]]:
    """What is not credited among the newest `limit` deposits of each wallet, by merchant's and user's id.

    One question, however many wallets; those without any such deposit lack.
    """
    wanted = sorted(set(wallets))
    values = {
        "merchant_ids": [merchant_id for merchant_id, _ in wanted],
        "user_ids": [user_id for _, user_id in wanted],
        "limit": limit,
    }
    found: dict[tuple[int, int], list[DepositShown]] = {}
    for shown in await _read(connection, "page_deposits_of_wallets", values):
        assert shown.user_id is not None
        found.setdefault((shown.merchant_id, shown.user_id), []).append(shown)
    return found


async def list_open_deposits(
    connection: AsyncConnection, status: str, *, limit: int = 100
) -> list[DepositShown]:
    """The newest deposits of all merchants in one of the standings of `OPEN`. Raises ValueError."""
    if status not in OPEN:
        raise ValueError(f"deposits that stand as {status} are listed by merchant")
    return await _read(connection, "page_open_deposits", {"status": status, "limit": limit})


async def find_deposits(connection: AsyncConnection, tx_hash: str) -> list[DepositShown]:
    """The deposits of one transaction."""
    return await _read(connection, "find_deposits", {"tx_hash": tx_hash})


async def sum_uncredited(connection: AsyncConnection) -> dict[str, int]:
    """Units by chain that have arrived for good and are in no book yet: pending and dust."""
    rows = await connection.execute(_TEXTS["sum_uncredited"])
    return {chain: units for chain, units in await rows.fetchall()}


async def list_cursors(connection: AsyncConnection) -> list[CursorShown]:
    """How far each chain was read."""
    rows = await connection.execute(_TEXTS["list_cursors"])
    return [CursorShown(*row) for row in await rows.fetchall()]


async def _read(connection: AsyncConnection, name: str, values: dict[str, Any]) -> list[DepositShown]:
    rows = await connection.cursor(binary=True).execute(_TEXTS[name], values)
    return [DepositShown(*row) for row in await rows.fetchall()]
