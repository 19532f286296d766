"""The SQL of payouts: the payer's queue, its claims, signed transfers and frozen orders.

Rules:
- Orders are in their cell, payouts in home. What is read from both is read by key, one after the other.
- Each write is one statement that commits by itself.
- An approved order is put into home's queue, then its cell notes that. If a process ends in between, the next
  one puts it in again, and nothing changes. A payout that is closed is never claimed again.
- A claim has a fencing token that only grows. A write names the token. If a later claim has taken the order,
  the write changes nothing and raises `ClaimLost`. Then the old claim's holder must stop.
- `reservations` has what is reserved in the hot wallet.
- Statements are in `payouts.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book import early_approvals
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.chains.protocol import Obstacle, SignedTransfer
from merchant_wallet.hot_wallet import stops, store
from merchant_wallet.hot_wallet.funds import Reservation

QUERIES: Final = Queries(Path(__file__).with_name("payouts.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
MAX_QUEUED: Final = 200
"""So many orders are put into the queue at once."""

OrderKey = tuple[int, int]
"""The ids of a merchant and an order."""


class Phase(StrEnum):
    """What the payer has to do with an order. Home may be one step behind the order's status."""

    WAITING = "waiting"
    """The order is not approved yet."""
    QUEUED = "queued"
    """The order is approved."""
    TAKEN_UP = "taken_up"
    FAILED = "failed"
    """The order's hold is to be refunded."""
    CLOSED = "closed"
    """Nothing, for ever: the order has ended."""


def phase_of(order: Withdrawal) -> Phase:
    """What an order's status says about its payout. Pure."""
    if order.status == PENDING:
        return Phase.WAITING if order.approved_ms is None else Phase.QUEUED
    return {PROCESSING: Phase.TAKEN_UP, FAILED: Phase.FAILED}.get(order.status, Phase.CLOSED)


class ClaimLost(Exception):
    """Another worker has claimed the order since. The text names the order."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One worker's right to process an order, until it expires and another worker takes a higher token."""

    merchant_id: int
    order_id: int
    fence: int
    failures: int


class PayoutsStopped(Exception):
    """Nothing may be signed on the chain any more: it is stopped, or its wallet is frozen. The text
    says so.
    """


class CurrentObstacle(msgspec.Struct, frozen=True, gc=False):
    """What blocked an order at its last attempt, and since when."""

    kind: str
    since_ms: int


class PayableOrder(msgspec.Struct, frozen=True, gc=False):
    """An order, with what the payer has decided and done about it before.

    `given_up_cause`: it can never be paid, for ever. `current_obstacle`: what it waits for.
    """

    withdrawal: Withdrawal
    merchant_active: bool
    settings_version: int
    given_up_cause: str | None
    reservation: Reservation | None
    current_obstacle: CurrentObstacle | None

    def count_waited_ms(self, kind: str, now_ms: int) -> int:
        """How long it has waited for an obstacle of this kind. 0 if it waits for none, or for another."""
        obstacle = self.current_obstacle
        return now_ms - obstacle.since_ms if obstacle is not None and obstacle.kind == kind else 0


class StoredTransfer(msgspec.Struct, frozen=True, gc=False):
    """One signed transfer of an order. `broadcast_ms` is when a node first took it."""

    attempt_no: int
    signed: SignedTransfer
    signed_ms: int
    broadcast_ms: int | None


class FrozenOrder(msgspec.Struct, frozen=True, gc=False):
    """An order that waits for an operator."""

    merchant_id: int
    order_id: int
    cause: str
    frozen_ms: int


class BlockedOrder(msgspec.Struct, frozen=True, gc=False):
    """An order that waits for an obstacle to pass."""

    merchant_id: int
    order_id: int
    chain: str
    kind: str
    cause: str
    since_ms: int


class PayoutShown(msgspec.Struct, frozen=True, gc=False):
    """The state of one order's payout, for an operator."""

    claimed_by: str
    claimed_until_ms: int
    failures: int
    given_up_cause: str | None
    frozen_cause: str | None
    frozen_ms: int | None
    obstacle_kind: str | None
    obstacle_cause: str | None
    obstacle_ms: int | None
    wallet: bytes | None
    nonce: int | None


async def queue_new(home: AsyncConnection, cell: AsyncConnection, *, limit: int = MAX_QUEUED) -> int:
    """Put a cell's approved orders into the queue. Returns how many the cell had."""
    new = await (await cell.execute(_TEXTS["list_unqueued"], {"limit": limit})).fetchall()
    if new:
        merchant_ids, order_ids, chains, approved_ms = (list(column) for column in zip(*new, strict=True))
        keys = {"merchant_ids": merchant_ids, "order_ids": order_ids}
        await home.execute(_TEXTS["queue_orders"], {**keys, "chains": chains, "approved_ms": approved_ms})
        await cell.execute(_TEXTS["mark_queued"], keys)
    return len(new)


async def peek_due(
    home: AsyncConnection,
    now_ms: int,
    *,
    cell_id: int,
    full_chains: Sequence[str],
    hold_refunds: bool,
    limit: int,
) -> list[tuple[OrderKey, str]]:
    """Orders of a cell that can be processed now and their chains, except `full_chains`. The longest waiting
    come first.

    Nothing is locked: each must still be claimed.
    """
    parameters = {
        "now_ms": now_ms,
        "cell_id": cell_id,
        "full_chains": list(full_chains),
        "hold_refunds": hold_refunds,
        "limit": limit,
    }
    cursor = await home.execute(_TEXTS["peek_due"], parameters)
    return [((merchant_id, order_id), chain) for merchant_id, order_id, chain in await cursor.fetchall()]


async def peek_expired(
    connection: AsyncConnection, now_ms: int, *, after: OrderKey, limit: int
) -> list[OrderKey]:
    """Unapproved orders after their deadline, the next page after `after`."""
    parameters = {"now_ms": now_ms, "after_merchant_id": after[0], "after_order_id": after[1], "limit": limit}
    cursor = await connection.execute(_TEXTS["peek_expired"], parameters)
    return [(merchant_id, order_id) for merchant_id, order_id in await cursor.fetchall()]


async def claim(
    home: AsyncConnection, key: OrderKey, *, claimed_by: str, now_ms: int, until_ms: int
) -> Claim | None:
    """Claim an order until `until_ms`. None if another worker holds it, it rests, is frozen or is closed."""
    merchant_id, order_id = key
    parameters = {
        "merchant_id": merchant_id,
        "order_id": order_id,
        "claimed_by": claimed_by,
        "now_ms": now_ms,
        "until_ms": until_ms,
    }
    cursor = await home.execute(_TEXTS["claim"], parameters)
    row = await cursor.fetchone()
    return None if row is None else Claim(merchant_id, order_id, *row)


async def read_order(home: AsyncConnection, cell: AsyncConnection, claim: Claim) -> PayableOrder:
    """The claimed order. Raises CellClosed if its book has moved, LookupError if it is gone."""
    key = _make_key_params(claim)
    row = await (await cell.execute(_TEXTS["read_order"], key)).fetchone()
    decisions = await (await home.execute(_TEXTS["read_decisions"], key)).fetchone()
    if row is None:
        await refuse_closed(cell, claim.merchant_id)
    if row is None or decisions is None:
        raise LookupError(f"order {claim.order_id} of merchant {claim.merchant_id} is gone")
    withdrawal = Withdrawal(*row)
    active, version, given_up_cause, wallet, nonce, kind, since_ms = decisions
    reservation = None if wallet is None else Reservation(bytes(wallet), nonce)
    current_obstacle = None if kind is None else CurrentObstacle(kind, since_ms)
    return PayableOrder(withdrawal, active, version, given_up_cause, reservation, current_obstacle)


async def find_early_approval(home: AsyncConnection, cell: AsyncConnection, claim: Claim) -> str | None:
    """Who approved the claimed order before that person's approvals counted. None if nobody did."""
    found = await early_approvals.find_early_approval(
        home, cell, claim.merchant_id, claim.order_id, claim.order_id
    )
    return None if found is None else found[1]


async def read_signed(connection: AsyncConnection, merchant_id: int, order_id: int) -> list[StoredTransfer]:
    """Everything that was ever signed for an order, oldest first."""
    parameters = {"merchant_id": merchant_id, "order_id": order_id}
    cursor = await connection.execute(_TEXTS["read_signed"], parameters)
    return [
        StoredTransfer(number, SignedTransfer(bytes(raw), tx_hash, block), signed_ms, broadcast_ms)
        for number, raw, tx_hash, block, signed_ms, broadcast_ms in await cursor.fetchall()
    ]


async def read_entry(cell: AsyncConnection, claim: Claim) -> tuple[Entry, bytes | None] | None:
    """The entry that created the order, and the hash before it (None for the book's first entry)."""
    cursor = await cell.execute(_TEXTS["read_entry"], _make_key_params(claim))
    row = await cursor.fetchone()
    if row is None:
        return None
    kind, mc_order_id, at_ms, rate_e8, facts, own_hash, previous_hash = row
    cursor = await cell.execute(_TEXTS["read_postings"], _make_key_params(claim))
    postings = tuple(Posting(*columns) for columns in await cursor.fetchall())
    entry = Entry(claim.order_id, kind, mc_order_id, at_ms, rate_e8, facts, postings, bytes(own_hash))
    return entry, previous_hash


async def store_signed(
    connection: AsyncConnection,
    claim: Claim,
    chain: str,
    wallet: bytes,
    attempt_no: int,
    signed: SignedTransfer,
    now_ms: int,
) -> None:
    """Store signed bytes as the order's transfer number `attempt_no`. They never change.

    Raises ClaimLost, also if another number is next or the order was given up or frozen. Raises
    PayoutsStopped if the chain's payouts or this wallet were stopped, even if they run again by now. Raises
    WalletMoved. Then the bytes must never be broadcast.
    """
    parameters = {
        **_make_key_params(claim),
        "chain": chain,
        "wallet": wallet,
        "attempt_no": attempt_no,
        "raw": signed.raw,
        "tx_hash": signed.tx_hash,
        "built_at_block": signed.built_at_block,
        "now_ms": now_ms,
    }
    try:
        await _write(connection, "store_signed", claim, parameters)
    except ClaimLost:
        cursor = await connection.execute(_TEXTS["is_next"], parameters)
        if await cursor.fetchone() != (True,):
            raise
        causes = await stops.find_stop_causes(connection, chain)
        if not causes and await store.find_address(connection, chain) != wallet:
            raise store.has_moved(chain, wallet) from None
        why = causes[0] if causes else "payouts were stopped for a moment"
        raise PayoutsStopped(f"order {claim.order_id} could not be signed any more: {why}") from None


async def mark_broadcast(connection: AsyncConnection, claim: Claim, attempt_no: int, now_ms: int) -> None:
    """Record when a node first took the bytes. Nothing depends on it."""
    await connection.execute(
        _TEXTS["mark_broadcast"], {**_make_key_params(claim), "attempt_no": attempt_no, "now_ms": now_ms}
    )


async def release(
    connection: AsyncConnection,
    claim: Claim,
    *,
    now_ms: int,
    delay_ms: int,
    phase: Phase | None = None,
    failures: int = 0,
    obstacle: Obstacle | None = None,
) -> None:
    """Release the claim and let the order rest. `obstacle` is what it waits for. Raises ClaimLost.

    `phase` is what is to be done next; without it that stays as it was.
    """
    parameters = {
        **_make_key_params(claim),
        "now_ms": now_ms,
        "until_ms": now_ms + delay_ms,
        "phase": phase,
        "failures": failures,
        "obstacle_kind": obstacle.kind if obstacle else None,
        "obstacle_cause": obstacle.cause if obstacle else None,
    }
    await _write(connection, "release", claim, parameters)


async def thaw(home: AsyncConnection, merchant_id: int, order_id: int) -> FrozenOrder | None:
    """Let a frozen order go on. Returns how it was frozen; None if it was not.

    Its cell is next (`book.frozen_orders`).
    """
    cursor = await home.execute(_TEXTS["thaw"], {"merchant_id": merchant_id, "order_id": order_id})
    row = await cursor.fetchone()
    return None if row is None else FrozenOrder(*row)


async def wake(home: AsyncConnection, merchant_id: int, order_id: int, now_ms: int) -> None:
    """Make an order that waits for an obstacle due now."""
    values = {"merchant_id": merchant_id, "order_id": order_id, "now_ms": now_ms}
    await home.execute(_TEXTS["wake"], values)


async def list_frozen(connection: AsyncConnection) -> list[FrozenOrder]:
    """All orders that wait for an operator, the longest waiting first."""
    cursor = await connection.execute(_TEXTS["list_frozen"])
    return [FrozenOrder(*row) for row in await cursor.fetchall()]


async def list_blocked(connection: AsyncConnection, *, limit: int = 1000) -> list[BlockedOrder]:
    """The orders that wait for an obstacle to pass, the longest waiting first."""
    cursor = await connection.execute(_TEXTS["list_blocked"], {"limit": limit})
    return [BlockedOrder(*row) for row in await cursor.fetchall()]


async def show_payout(connection: AsyncConnection, merchant_id: int, order_id: int) -> PayoutShown | None:
    """The state of an order's payout. None if the payer has not looked at it yet."""
    parameters = {"merchant_id": merchant_id, "order_id": order_id}
    cursor = await connection.execute(_TEXTS["show_payout"], parameters)
    row = await cursor.fetchone()
    return None if row is None else PayoutShown(*row)


def _make_key_params(claim: Claim) -> dict[str, object]:
    return {"merchant_id": claim.merchant_id, "order_id": claim.order_id, "fence": claim.fence}


async def _write(connection: AsyncConnection, name: str, claim: Claim, parameters: dict[str, object]) -> None:
    cursor = await connection.execute(_TEXTS[name], parameters)
    if cursor.rowcount != 1:
        raise ClaimLost(f"order {claim.order_id}: fence {claim.fence} has been passed")
