"""What a sub-user sees of the own wallet: its head, what moved it, and whether it has changed.

Rules: nothing here writes or locks. Every question names merchant and user, and an entry that doesn't touch
this wallet does not exist for it. Lists are pages by key, newest first. An entry is shown as a change of this
one wallet, whatever else it moves: the merchant's fee and an operator's name are not the sub-user's affair.
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
from merchant_wallet.book.verification.entry_schemas import OperatorFacts

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("activity.sql"))
MAX_PAGE: Final = 100

Direction = Literal["in", "out"]
Wallet = tuple[int, int]
"""The merchant's id and the user's."""

COMPLETED: Final = "completed"

_ADJUST: Final = "adjust"
_DEPOSIT: Final = "deposit"


class ActivityLine(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as a change of one wallet by `amount_units`, always above 0, in `direction`.

    `partner` is the merchant's name, the address on `chain` that a deposit came from, or None for an
    operator, who gives a `reason`. Of a deposit there is also what was sent, in units of USDT, and the rate
    in 10**-8 where it was exchanged.
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

    @property
    def signed_units(self) -> int:
        """The change with its sign."""
        return self.amount_units if self.direction == "in" else -self.amount_units

    @property
    def status(self) -> str:
        """An entry is never open: it was committed with its money, and nothing takes it back."""
        return COMPLETED


class WalletShown(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a wallet: `day_debited_units` counts UTC day `day`, days since the epoch."""

    merchant_id: int
    user_id: int
    ext_user_id: str
    username: str
    language: str | None
    currency: str
    balance_units: int
    evm_address: bytes
    tron_address: bytes
    paused: bool
    limit_debit_units: int | None
    limit_day_units: int | None
    day: int
    day_debited_units: int
    has_pin: bool
    pin_set_ms: int | None
    pin_locked_until_ms: int
    merchant_name: str
    require_pin: bool
    is_suspended: bool
    frame_origins: tuple[str, ...]
    latest_entry_id: int

    @property
    def version(self) -> tuple[int, int]:
        """What is different once the wallet has changed: its balance and its latest entry, 0 for none."""
        return self.balance_units, self.latest_entry_id


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the database gives it."""

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
    """The head of a wallet, None when the merchant has no such sub-user."""
    async with conn.cursor(row_factory=kwargs_row(_make_wallet)) as cursor:
        await cursor.execute(QUERIES["read_wallet"].text, {"merchant_id": merchant_id, "user_id": user_id})
        return await cursor.fetchone()


async def read_balances(conn: Connection, pairs: Iterable[Wallet]) -> dict[Wallet, tuple[int, int]]:
    """Balance and latest entry's id, as in `WalletShown.version`, of many wallets; unknown ones lack."""
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
    """A page of at most `limit` (1 to 100) entries of a wallet, newest first, below the entry `before_id`.

    `direction` leaves those that came in, or went out. Raises ValueError for a limit outside its bounds.
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


async def show_entry(conn: Connection, merchant_id: int, user_id: int, entry_id: int) -> ActivityLine | None:
    """One entry of a wallet, None when there is none of this id that touches it."""
    if not 1 <= entry_id <= MAX_ID:
        return None
    # The first entry at or below the id is this one, or it is none of the wallet's.
    found = await list_activity(conn, merchant_id, user_id, before_id=entry_id + 1, limit=1)
    return found[0] if found and found[0].entry_id == entry_id else None


def _make_wallet(*, frame_origins: list[str], **values: Any) -> WalletShown:
    return WalletShown(frame_origins=tuple(frame_origins), **values)


def _make_line(row: _Row) -> ActivityLine:
    return ActivityLine(
        entry_id=row.entry_id,
        kind=row.kind,
        at_ms=row.at_ms,
        direction="in" if row.is_in else "out",
        amount_units=row.amount_units,
        currency=row.currency,
        balance_units=row.balance_units,
        partner=_name_partner(row),
        # Of an operator's entry it is the platform's own name for it.
        mc_order_id=None if row.kind == _ADJUST else row.mc_order_id,
        chain=row.chain,
        tx_hash=row.tx_hash,
        sent_units=row.sent_units,
        # On a transfer the rate is the merchant's fee.
        rate_e8=row.rate_e8 or None if row.kind == _DEPOSIT else None,
        reason=msgspec.json.decode(row.facts, type=OperatorFacts).reason if row.kind == _ADJUST else None,
    )


def _name_partner(row: _Row) -> str | None:
    if row.kind == _ADJUST:
        return None
    if row.chain is not None and row.sender is not None:
        return format_address(row.chain, row.sender)
    return row.merchant_name
