"""Evidence that the database was rolled back or rewritten.

Rules:
- Workers write evidence (see `comparison`), and so does `book accept-rollback`. The web process reads it.
- Evidence stays open until a person accepts it, even if its cause has disappeared.
- While evidence is open, no order is claimed, no transfer is signed, and no order expires. The statements of
  `withdrawals` and `sweeps` that do these things read the table themselves. The book reads it before an order
  is taken up, expires, is refunded, or is cancelled by its merchant.

Statements are in `evidence.sql`. All raise `psycopg.Error`.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("evidence.sql"))
NO_MERCHANT: Final = 0
ROLLED_BACK: Final = (
    "The database counts as rolled back: `merchant-wallet book accept-rollback` comes first, see `doctor`."
)
"""Why nobody creates or moves anything now: cells may have what home does not know."""

Subject = Literal["book", "audit", "signer", "key", "home"]
Kind = Literal["behind", "diverged", "unreadable"]
Connection = AsyncConnection[Any]


class RollbackEvidence(msgspec.Struct, frozen=True, gc=False):
    """One piece of evidence of a rollback.

    `subject` is what was compared with the database: a book's checkpoint, the audit log's checkpoint, the
    signer's record, the key that signs checkpoints, or what cells have seen of home. `merchant_id` is 0
    except for books. `kind`: `behind` means that the database lacks what was seen before; `diverged`, that it
    has something else; `unreadable`, that the file itself was changed. `cause` is a sentence without its full
    stop.
    """

    merchant_id: int
    subject: Subject
    kind: Kind
    cause: str
    since_ms: int


async def list_evidence(conn: Connection) -> list[RollbackEvidence]:
    """All open evidence, oldest first. Empty while nothing is wrong."""
    cursor = await conn.execute(QUERIES["list_evidence"].text)
    return [RollbackEvidence(*row) for row in await cursor.fetchall()]


async def has_open_evidence(conn: Connection) -> bool:
    """Whether any evidence is open. Then nothing may be signed or paid."""
    cursor = await conn.execute(QUERIES["has_open_evidence"].text)
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def record_evidence(conn: Connection, found: Iterable[RollbackEvidence]) -> list[RollbackEvidence]:
    """Store evidence, and return what is new. The first cause of a subject is kept."""
    new = []
    for evidence in found:
        cursor = await conn.execute(QUERIES["record_evidence"].text, msgspec.structs.asdict(evidence))
        if cursor.rowcount == 1:
            new.append(evidence)
    return new


def format_moment(at_ms: int) -> str:
    """A time as it is written in causes. Raises ValueError, OverflowError for a time out of range."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")


@asynccontextmanager
async def locked(conn: Connection) -> AsyncIterator[None]:
    """A transaction in which nobody else writes or accepts evidence."""
    async with conn.transaction():
        await conn.execute(QUERIES["lock_evidence"].text)
        yield
