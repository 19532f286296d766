"""Movements of the platform's own money, into custody and out of it, as operators recorded them.

Rules:
- A record explains a transfer that no order and no deposit explains. It moves nothing itself.
- Recording a movement again changes nothing.
- A record of the same transaction and amount in the other direction corrects the first one. Neither explains
  anything any more, and the right record may be made.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection, Rollback

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("treasury.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


class TreasuryShown(msgspec.Struct, frozen=True):
    """One movement that an operator recorded. With `corrected_ms` it does not count."""

    chain: str
    movement_no: int
    direction: str
    amount_units: int
    tx_hash: str
    reason: str
    actor: str
    recorded_ms: int
    corrected_ms: int | None


class Recorded(NamedTuple):
    """A new record's number, and the number of the record that it corrects."""

    movement_no: int
    corrects: int | None

    @property
    def facts(self) -> dict[str, Any]:
        """For people and for the audit log."""
        return {"no": self.movement_no, **({} if self.corrects is None else {"corrects": self.corrects})}


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
) -> Recorded | None:
    """Store an operator's movement, IN or OUT of custody, or a correction. None if it is stored already."""
    values = {
        "chain": chain,
        "direction": direction,
        "amount_units": amount_units,
        "tx_hash": tx_hash,
        "reason": reason,
        "actor": actor,
        "now_ms": now_ms,
    }
    async with connection.transaction() as change:
        corrected = await _rows(connection, "correct_treasury", **values)
        values["corrected_ms"] = now_ms if corrected else None
        rows = await _rows(connection, "record_treasury", **values)
        if not rows:
            raise Rollback(change)
    return Recorded(rows[0][0], corrected[0][0] if corrected else None) if rows else None


async def list_treasury(connection: AsyncConnection, limit: int) -> list[TreasuryShown]:
    """Movements that operators recorded, newest first."""
    return [TreasuryShown(*row) for row in await _rows(connection, "list_treasury", limit=limit)]


async def _rows(connection: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
