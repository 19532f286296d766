"""What the payer remembers: its queue, its claims, the signed bytes, and orders that are frozen.

Rules: each function is one statement that commits by itself. A claim is a fence number that only grows; a
write names the fence and changes nothing when a later claim has taken the order: then `Fenced` is raised and
whoever held the old claim must leave the order alone. Statements are in `payouts.sql`. All raise
`psycopg.Error` as the database does. Moments are milliseconds.
"""

from pathlib import Path
from typing import Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("payouts.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
_WITHDRAWAL_COLUMNS: Final = len(Withdrawal.__struct_fields__)

OrderKey = tuple[int, int]
"""A merchant's id and an order's."""


class Fenced(Exception):
    """Another worker has taken the order since; the text names the order."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One worker's right to work on an order, until it lapses and another worker takes a higher fence."""

    merchant_id: int
    order_id: int
    fence: int
    failures: int


class PayableOrder(msgspec.Struct, frozen=True, gc=False):
    """An order as it stands, with what the payer has decided about it before."""

    withdrawal: Withdrawal
    merchant_active: bool
    settings_version: int
    signed: SignedTransfer | None
    unpayable_cause: str | None


class FrozenOrder(msgspec.Struct, frozen=True, gc=False):
    """An order that waits for an operator; with `freezes_wallet` its chain's new payouts wait too."""

    merchant_id: int
    order_id: int
    cause: str
    frozen_ms: int
    freezes_wallet: bool


async def peek_due(
    connection: AsyncConnection, now_ms: int, *, hold_refunds: bool, limit: int
) -> list[OrderKey]:
    """Orders that can be worked on now, oldest first. Takes no lock: each is still to be claimed."""
    parameters = {"now_ms": now_ms, "hold_refunds": hold_refunds, "limit": limit}
    cursor = await connection.execute(_TEXTS["peek_due"], parameters)
    return [(merchant_id, order_id) for merchant_id, order_id in await cursor.fetchall()]


async def peek_expired(
    connection: AsyncConnection, now_ms: int, *, after: OrderKey, limit: int
) -> list[OrderKey]:
    """Orders past their deadline that nobody approved, the next page after `after`."""
    parameters = {"now_ms": now_ms, "after_merchant_id": after[0], "after_order_id": after[1], "limit": limit}
    cursor = await connection.execute(_TEXTS["peek_expired"], parameters)
    return [(merchant_id, order_id) for merchant_id, order_id in await cursor.fetchall()]


async def claim(
    connection: AsyncConnection, key: OrderKey, *, claimed_by: str, now_ms: int, until_ms: int
) -> Claim | None:
    """Take an order until `until_ms`; None when another worker holds it, it rests or it is frozen."""
    merchant_id, order_id = key
    parameters = {
        "merchant_id": merchant_id,
        "order_id": order_id,
        "claimed_by": claimed_by,
        "now_ms": now_ms,
        "until_ms": until_ms,
    }
    cursor = await connection.execute(_TEXTS["claim"], parameters)
    row = await cursor.fetchone()
    return None if row is None else Claim(merchant_id, order_id, *row)


async def read_order(connection: AsyncConnection, held: Claim) -> PayableOrder:
    """The claimed order as it stands now."""
    cursor = await connection.execute(_TEXTS["read_order"], _name(held))
    row = await cursor.fetchone()
    if row is None:
        raise LookupError(f"order {held.order_id} of merchant {held.merchant_id} is gone")
    withdrawal = Withdrawal(*row[:_WITHDRAWAL_COLUMNS])
    merchant_active, settings_version, raw, tx_hash, unpayable_cause = row[_WITHDRAWAL_COLUMNS:]
    signed = None if raw is None else SignedTransfer(bytes(raw), tx_hash)
    return PayableOrder(withdrawal, merchant_active, settings_version, signed, unpayable_cause)


async def read_entry(connection: AsyncConnection, held: Claim) -> tuple[Entry, bytes | None] | None:
    """The entry that opened the order, and the hash before it (None: it is the book's first entry)."""
    cursor = await connection.execute(_TEXTS["read_entry"], _name(held))
    row = await cursor.fetchone()
    if row is None:
        return None
    kind, mc_order_id, at_ms, rate_e8, facts, own_hash, previous_hash = row
    cursor = await connection.execute(_TEXTS["read_postings"], _name(held))
    postings = tuple(Posting(*columns) for columns in await cursor.fetchall())
    entry = Entry(held.order_id, kind, mc_order_id, at_ms, rate_e8, facts, postings, bytes(own_hash))
    return entry, previous_hash


async def store_signed(connection: AsyncConnection, held: Claim, signed: SignedTransfer, now_ms: int) -> None:
    """Write the signed bytes down, once for ever. Raises Fenced; then they must never be broadcast."""
    parameters = {**_name(held), "raw": signed.raw, "tx_hash": signed.tx_hash, "now_ms": now_ms}
    await _write(connection, "store_signed", held, parameters)


async def store_unpayable(connection: AsyncConnection, held: Claim, cause: str, now_ms: int) -> None:
    """Write down that nothing is signed and never will be. Raises Fenced; then nothing must be failed."""
    await _write(connection, "store_unpayable", held, {**_name(held), "cause": cause, "now_ms": now_ms})


async def release(connection: AsyncConnection, held: Claim, until_ms: int, failures: int) -> None:
    """Give the claim up and let the order rest until a moment. Raises Fenced."""
    await _write(connection, "release", held, {**_name(held), "until_ms": until_ms, "failures": failures})


async def freeze(connection: AsyncConnection, held: Claim, cause: str, now_ms: int, *, wallet: bool) -> None:
    """Stop the order until it is thawed; with `wallet` new payouts on its chain too. Raises Fenced."""
    await _write(
        connection, "freeze", held, {**_name(held), "cause": cause, "now_ms": now_ms, "wallet": wallet}
    )


async def thaw(connection: AsyncConnection, merchant_id: int, order_id: int) -> bool:
    """An operator's word that a frozen order may go on; False when it was not frozen."""
    cursor = await connection.execute(_TEXTS["thaw"], {"merchant_id": merchant_id, "order_id": order_id})
    return cursor.rowcount == 1


async def list_frozen(connection: AsyncConnection) -> list[FrozenOrder]:
    """All orders that wait for an operator, the longest waiting first."""
    cursor = await connection.execute(_TEXTS["list_frozen"])
    return [FrozenOrder(*row) for row in await cursor.fetchall()]


def _name(held: Claim) -> dict[str, object]:
    return {"merchant_id": held.merchant_id, "order_id": held.order_id, "fence": held.fence}


async def _write(connection: AsyncConnection, name: str, held: Claim, parameters: dict[str, object]) -> None:
    cursor = await connection.execute(_TEXTS[name], parameters)
    if cursor.rowcount != 1:
        raise Fenced(f"order {held.order_id}: fence {held.fence} has been passed")
