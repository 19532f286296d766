"""Movements of the platform's own money, into custody and out of it, as operators recorded them.

Rules:
- A record explains a transfer that no order and no deposit explains. It moves nothing itself.
- Recording a movement again changes nothing.
- A correction names the record that it takes back: the same transaction and amount, the other direction. A
  record is corrected once. Then neither of the two explains anything, and the movement may be recorded anew.
- Records are never changed. The database holds all of this with keys.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("treasury.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


class TreasuryShown(msgspec.Struct, frozen=True):
    """One record. `corrects` is the record that it takes back, `corrected_by` the one that takes it back."""

    chain: str
    movement_no: int
    direction: str
    amount_units: int
    tx_hash: str
    reason: str
    actor: str
    recorded_ms: int
    corrects: int | None = None
    corrected_by: int | None = None


async def record_treasury(
    connection: AsyncConnection,
    chain: str,
    direction: str,
    amount_units: int,
    *,
    tx_hash: str,
    reason: str,
    actor: str,
    now_ms: int,
    corrects: int | None = None,
    replaces: int | None = None,
) -> int | None:
    """Store an operator's movement, IN or OUT of custody. None if it is stored already.

    `corrects`: the record that this one takes back. `replaces`: the corrected record that it repeats.
    """
    rows = await _rows(
        connection,
        "record_treasury",
        chain=chain,
        direction=direction,
        amount_units=amount_units,
        tx_hash=tx_hash,
        reason=reason,
        actor=actor,
        now_ms=now_ms,
        corrects=corrects,
        replaces=replaces,
    )
    return rows[0][0] if rows else None


async def list_treasury(connection: AsyncConnection, limit: int) -> list[TreasuryShown]:
    """What operators recorded, newest first."""
    return [TreasuryShown(*row) for row in await _rows(connection, "list_treasury", limit=limit)]


async def list_of_transaction(connection: AsyncConnection, chain: str, tx_hash: str) -> list[TreasuryShown]:
    """What operators recorded of a transaction, oldest first."""
    rows = await _rows(connection, "list_of_transaction", chain=chain, tx_hash=tx_hash)
    return [TreasuryShown(*row) for row in rows]


async def _rows(connection: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
