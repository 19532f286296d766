"""What a sub-user sees of its wallet: the summary, the entries, and whether anything has changed.

Rules:
- Nothing here writes or locks.
- Every query names merchant and user. Entries that do not touch the wallet are never returned.
- Lists are paged by key, newest first.
- An entry is shown as one change of this wallet. The merchant's fee and the operator's name are left out.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row, kwargs_row

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.sub_user import CONTROLS_READ, Controls
from merchant_wallet.book.verification.entry_schemas import OperatorFacts

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("activity.sql"), CONTROLS_READ)
MAX_PAGE: Final = 100

Direction = Literal["in", "out"]
Wallet = tuple[int, int]
"""The merchant's id and the user's id."""

COMPLETED: Final = "completed"

_ADJUST: Final = "adjust"
_DEPOSIT: Final = "deposit"
_SANDBOX: Final = "sandbox:"
"""How the actor begins that gives test money."""


class ActivityLine(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, shown as a change of one wallet. `amount_units` is always above 0.

    `partner` is the merchant's name, or for a deposit the sender's address on `chain`, or None for an
    adjustment by an operator, which has a `reason`. `is_test`: the sandbox gave this money. A deposit
    also has `sent_units` of USDT and, if it was exchanged, its rate in 10**-8.
    """

    entry_id: int
    kind: str
    at_ms: int
    direction: Direction
    amount_units: int
    currency: str
    balance_units: int
    partner: str | None
    mc_order_id: str | None = None
    chain: str | None = None
    tx_hash: str | None = None
    sent_units: int | None = None
    rate_e8: int | None = None
    reason: str | None = None
    is_test: bool = False

    @property
    def signed_units(self) -> int:
        """The change with its sign."""
        return self.amount_units if self.direction == "in" else -self.amount_units

    @property
    def status(self) -> str:
        """Always completed: an entry exists only once its money has moved."""
        return COMPLETED


class WalletShown(Controls, frozen=True, kw_only=True):
    """The summary of a wallet. `day_debited_units` is for UTC day `day` (days since the epoch).

    `links_void_until_ms` is when the PIN was last reset, or 0: links made until then open nothing.
    """

    merchant_id: int
    user_id: int
    ext_user_id: str
    username: str
    language: str | None
    currency: str
    balance_units: int
    evm_address: bytes
    tron_address: bytes
    day: int
    day_debited_units: int
    has_pin: bool
    pin_set_ms: int | None
    pin_locked_until_ms: int
    links_void_until_ms: int
    merchant_name: str
    require_pin: bool
    is_suspended: bool
    frame_origins: tuple[str, ...]
    latest_entry_id: int

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever the wallet changes: the balance and the id of the latest entry, or 0."""
        return self.balance_units, self.latest_entry_id


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the query returns it."""

    entry_id: int
    kind: str
    at_ms: int
    is_in: bool
    amount_units: int
    currency: str
    balance_units: int
    mc_order_id: str | None
    rate_e8: int
    facts: str
    merchant_name: str
    chain: str | None
    tx_hash: str | None
    sender: bytes | None
    sent_units: int | None


async def read_wallet(conn: Connection, merchant_id: int, user_id: int) -> WalletShown | None:
    """The summary of a wallet, or None if the merchant has no such sub-user."""
    async with conn.cursor(row_factory=kwargs_row(_make_wallet)) as cursor:
        await cursor.execute(QUERIES["read_wallet"].text, {"merchant_id": merchant_id, "user_id": user_id})
        return await cursor.fetchone()


async def read_balances(conn: Connection, pairs: Iterable[Wallet]) -> dict[Wallet, tuple[int, int]]:
    """`WalletShown.version` of many wallets. Unknown wallets are missing from the result."""
    wanted = sorted(set(pairs))
    values = {
        "merchant_ids": [merchant_id for merchant_id, _ in wanted],
        "user_ids": [user_id for _, user_id in wanted],
    }
    rows = await conn.execute(QUERIES["read_balances"].text, values)
    return {(merchant, user): (units, entry) for merchant, user, units, entry in await rows.fetchall()}


async def list_activity(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    before_id: int | None = None,
    limit: int = 20,
    direction: Direction | None = None,
) -> list[ActivityLine]:
    """A page of `limit` (1 to 100) entries of a wallet with ids below `before_id`, newest first.

    `direction` selects incoming or outgoing entries. Raises ValueError for a limit out of range.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"A page has 1 to {MAX_PAGE} entries.")
    values = {
        "merchant_id": merchant_id,
        "user_id": user_id,
        "before_id": MAX_ID + 1 if before_id is None else before_id,
        "limit": limit,
        "takes_in": direction != "out",
        "takes_out": direction != "in",
    }
    async with conn.cursor(row_factory=class_row(_Row)) as cursor:
        await cursor.execute(QUERIES["page_activity"].text, values)
        return [_make_line(row) for row in await cursor.fetchall()]


async def find_first_ms(conn: Connection, merchant_id: int, user_id: int) -> int | None:
    """When the first entry of a wallet was made, or None."""
    values = {"merchant_id": merchant_id, "user_id": user_id}
    row = await (await conn.execute(QUERIES["find_first_entry"].text, values)).fetchone()
    return None if row is None else int(row[0])


async def show_entry(conn: Connection, merchant_id: int, user_id: int, entry_id: int) -> ActivityLine | None:
    """One entry of a wallet, or None if the entry does not exist or does not touch the wallet."""
    if not 1 <= entry_id <= MAX_ID:
        return None
    # If the newest entry at or below this id has another id, the wallet has no such entry.
    found = await list_activity(conn, merchant_id, user_id, before_id=entry_id + 1, limit=1)
    return found[0] if found and found[0].entry_id == entry_id else None


def _make_wallet(*, frame_origins: list[str], **values: Any) -> WalletShown:
    return WalletShown(frame_origins=tuple(frame_origins), **values)


def _make_line(row: _Row) -> ActivityLine:
    facts = msgspec.json.decode(row.facts, type=OperatorFacts) if row.kind == _ADJUST else None
    return ActivityLine(
        entry_id=row.entry_id,
        kind=row.kind,
        at_ms=row.at_ms,
        direction="in" if row.is_in else "out",
        amount_units=row.amount_units,
        currency=row.currency,
        balance_units=row.balance_units,
        partner=_format_partner(row),
        # For an adjustment this is the operator's reference, which the sub-user must not see.
        mc_order_id=None if row.kind == _ADJUST else row.mc_order_id,
        chain=row.chain,
        tx_hash=row.tx_hash,
        sent_units=row.sent_units,
        # For a transfer this is the rate of the merchant's fee, which the sub-user must not see.
        rate_e8=row.rate_e8 or None if row.kind == _DEPOSIT else None,
        reason=None if facts is None else facts.reason,
        is_test=facts is not None and facts.actor.startswith(_SANDBOX),
    )


def _format_partner(row: _Row) -> str | None:
    if row.kind == _ADJUST:
        return None
    if row.chain is not None and row.sender is not None:
        return format_address(row.chain, row.sender)
    return row.merchant_name
