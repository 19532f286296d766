"""Copies home's exchange rates and evidence of rollbacks to an apart cell, where its books read them.

Rules:
- Home is read by one statement. The cell changes in one transaction, which also notes when home was read, on
  home's clock.
- Copies that were read earlier than the present ones change nothing. So a process that is late brings no old
  rate back.
- Whoever changes a rate brings it to the cells at once (`reporting.rate_copies`). Workers compare all copies
  each second. A book in an apart cell uses no rate if that was more than a minute ago
  (see `read_rates` of the book). Without a rate it refuses an exchange.
- Payouts and sweeps read home's own evidence, at once. The copies are for what a book decides by itself.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, Rollback
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from merchant_wallet.base.db import Queries
from merchant_wallet.base.errors import TransientError

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("mirroring.sql"))


class Change(NamedTuple):
    """A change of a rate: its number in the history, and its time."""

    change_no: int
    changed_ms: int


NOTHING_COPIED: Final = Change(-1, 0)


class References(NamedTuple):
    """What home had at `read_ms`. `rates` is None if the cell has the newest change already."""

    read_ms: int
    change_no: int
    changed_ms: int
    rates: list[Any] | None
    evidence: list[Any]


class EvidenceDiffers(TransientError):
    """Evidence of rollbacks has changed as well, which only workers copy."""


async def mirror(home: Connection, cell: Connection, *, rates_alone: bool = False) -> bool:
    """Make the cell's copies what home has. False if somebody else has just done so.

    With `rates_alone` the evidence must be there already. Raises EvidenceDiffers.
    """
    found = await read_references(home, await read_copied(cell))
    return await write_references(cell, found, rates_alone=rates_alone)


async def read_copied(cell: Connection) -> Change:
    """The newest change of a rate that the cell has."""
    row = await _fetch(cell, "read_state")
    return NOTHING_COPIED if row is None else Change(*row)


async def read_references(home: Connection, copied: Change) -> References:
    """Read what cells copy from home. `copied` is the change that the cell has."""
    async with home.cursor(row_factory=class_row(References)) as cursor:
        await cursor.execute(QUERIES["read_references"].text, copied._asdict())
        found = await cursor.fetchone()
    assert found is not None, "a query without a condition always has its row"
    return found


async def write_references(cell: Connection, found: References, *, rates_alone: bool = False) -> bool:
    """Write to a cell what was read from home. False if somebody else has copied something meanwhile.

    Raises EvidenceDiffers, see `mirror`.
    """
    is_written = False
    async with cell.transaction():
        await cell.execute(QUERIES["begin_state"].text)
        copied = await _fetch(cell, "check_state", {"read_ms": found.read_ms})
        is_newest = copied == (found.change_no, found.changed_ms)
        if copied is None or (found.rates is None and not is_newest):
            # The next turn reads again.
            raise Rollback
        if not is_newest:
            await _replace_rates(cell, found)
        present = await _fetch(cell, "list_evidence")
        if present is None or present[0] != found.evidence:
            if rates_alone:
                raise EvidenceDiffers("evidence of a rollback is not copied yet")
            await _replace_evidence(cell, found.evidence)
        is_written = True
    return is_written


async def _replace_rates(cell: Connection, found: References) -> None:
    await cell.execute(QUERIES["delete_rates"].text)
    await cell.execute(QUERIES["insert_rates"].text, {"rates": Jsonb(found.rates)})
    await cell.execute(QUERIES["note_change"].text, found._asdict())


async def _replace_evidence(cell: Connection, evidence: list[Any]) -> None:
    await cell.execute(QUERIES["delete_evidence"].text)
    await cell.execute(QUERIES["insert_evidence"].text, {"evidence": Jsonb(evidence)})


async def _fetch(
    conn: Connection, name: str, values: Mapping[str, Any] | None = None
) -> tuple[Any, ...] | None:
    return await (await conn.execute(QUERIES[name].text, values)).fetchone()
