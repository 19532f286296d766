"""Compares the signer's record with the database: was an order signed that the database does not know?

Rules:
- The signer records each payment before it gives out the signature (see `chains.keys.signing_journal`). The
  payer takes an order up before it is signed. So a recorded order that the database does not know, or that
  nobody took up, shows a rollback.
- An order that was taken up without stored bytes shows nothing: a worker may have died in between.
- A transfer to a cold wallet that home does not know shows a rollback as well.
- Only the end of the record is read. Payments that a person has accepted are not checked again.

Statements are in `signer_record.sql`. All raise OSError for the file, `psycopg.Error` for the database.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.evidence import NO_MERCHANT, RollbackEvidence, format_moment
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import COUNTER_BITS, MAX_ID
from merchant_wallet.chains.keys.signing_journal import Release, SignedPayment

QUERIES: Final = Queries(Path(__file__).with_name("signer_record.sql"))
TAIL_BYTES: Final = 256 * 1024
"""About a thousand payments."""

LAST_MOMENT_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""

Connection = AsyncConnection[Any]


class RecordUnreadable(Exception):
    """A line of the signer's record has another form. The text says so, without a full stop."""

    def __init__(self, record: Path) -> None:
        super().__init__(f"{record.name} has lines of another form")


async def find_signer_evidence(
    home: Connection, cells: ReachedCells, record: Path, now_ms: int
) -> RollbackEvidence | None:
    """The evidence that the signer's record gives; None if there is none or no record.

    Orders of cells that are away are left out; `cells` then says which.
    """
    try:
        payments = await asyncio.to_thread(read_last_payments, record)
    except RecordUnreadable as unreadable:
        return RollbackEvidence(NO_MERCHANT, "signer", "unreadable", str(unreadable), now_ms)
    cursor = await home.execute(QUERIES["read_accepted"].text)
    row = await cursor.fetchone()
    accepted_ms = row[0] if row is not None and row[0] is not None else -1
    newer = [one for one in payments if one.at_ms > accepted_ms]
    unknown = await _find_unknown(home, cells, [one for one in newer if not one.is_cold])
    unknown += await _find_unknown_cold(home, [one for one in newer if one.is_cold])
    if not unknown:
        return None
    first = min(unknown, key=lambda payment: payment.at_ms)
    moment = format_moment(first.at_ms)
    others = f", and {len(unknown) - 1} more later" if len(unknown) > 1 else ""
    what = "cold transfer" if first.is_cold else "order"
    cause = f"{what} {first.payout_id} was signed at {moment}, which this database has not taken up{others}"
    return RollbackEvidence(NO_MERCHANT, "signer", "behind", cause, now_ms)


async def _find_unknown(
    home: Connection, cells: ReachedCells, payments: Iterable[SignedPayment]
) -> list[SignedPayment]:
    """The payments whose order the database does not know or nobody has taken up, by the order's id."""
    latest = {payment.payout_id: payment for payment in payments}
    owners = await find_merchants(home, list(latest))
    unknown = {order_id for order_id, owner in owners.items() if owner is None}
    orders = [(order_id, owner) for order_id, owner in owners.items() if owner is not None]
    cell_ids = await cells.find_cells([owner for _, owner in orders])
    for cell_id, those in cells.group(orders, [cell_ids[owner] for _, owner in orders]).items():
        unknown.update(await cells.ask(cell_id, partial(_list_not_taken_up, those)))
    return [latest[order_id] for order_id in sorted(unknown)]


async def _find_unknown_cold(home: Connection, payments: Sequence[SignedPayment]) -> list[SignedPayment]:
    """The transfers to cold wallets that home does not know."""
    latest = {payment.payout_id: payment for payment in payments}
    values = {"transfer_ids": list(latest)}
    cursor = await home.execute(QUERIES["list_known_cold"].text, values)
    known = {transfer_id for (transfer_id,) in await cursor.fetchall()}
    return [payment for transfer_id, payment in sorted(latest.items()) if transfer_id not in known]


async def _list_not_taken_up(orders: Sequence[tuple[int, int]], cell: Connection) -> list[int]:
    order_ids, merchant_ids = ([order[place] for order in orders] for place in range(2))
    values = {"order_ids": order_ids, "merchant_ids": merchant_ids}
    taken = await (await cell.execute(QUERIES["list_taken_up"].text, values)).fetchall()
    return sorted(set(order_ids) - {order_id for (order_id,) in taken})


async def find_merchants(home: Connection, order_ids: Sequence[int]) -> dict[int, int | None]:
    """The merchants of these orders; None if nobody has the range of ids that an order's id contains."""
    values = {"order_ids": order_ids, "counter_bits": COUNTER_BITS}
    rows = await (await home.execute(QUERIES["find_merchants"].text, values)).fetchall()
    return {order_id: merchant_id for order_id, (merchant_id,) in zip(order_ids, rows, strict=True)}


def read_last_payments(record: Path, *, whole: bool = False) -> list[SignedPayment]:
    """The newest payments of the record, or all of them, oldest first. A missing record has none.

    Raises RecordUnreadable, OSError.
    """
    try:
        descriptor = os.open(record, os.O_RDONLY)
    except FileNotFoundError:
        return []
    try:
        size = os.fstat(descriptor).st_size
        start = 0 if whole else max(0, size - TAIL_BYTES)
        tail = os.pread(descriptor, size - start, start)
    finally:
        os.close(descriptor)
    # The first line may have begun before the tail. The last line may be torn.
    lines = tail.split(b"\n")[1 if start else 0 : -1]
    entries = [_parse(line, record) for line in lines]
    return [entry for entry in entries if isinstance(entry, SignedPayment)]


def _parse(line: bytes, record: Path) -> SignedPayment | Release:
    try:
        entry: SignedPayment | Release = msgspec.json.decode(line, type=SignedPayment | Release)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RecordUnreadable(record) from None
    # The database accepts no other ids, and dates end with the year 9999.
    if not (0 < entry.payout_id <= MAX_ID and 0 <= entry.at_ms <= LAST_MOMENT_MS):
        raise RecordUnreadable(record)
    return entry
