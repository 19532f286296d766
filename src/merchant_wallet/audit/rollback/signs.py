"""The signs that stand: what shows that the database was rolled back or rewritten.

Rules:
- Workers write signs (see `comparison`). The web side only reads them.
- A sign stands until a person accepts it, even when what it saw has passed.
- While any sign stands, no order is claimed, no transfer is signed, no order expires. The statements of
  `withdrawals` and `sweeps` that do these things look at the table themselves. The book looks at it before
  an order is taken up, expires, is refunded, or is cancelled by its merchant.

Statements are in `signs.sql`. All raise `psycopg.Error`.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("signs.sql"))
NO_MERCHANT: Final = 0

Subject = Literal["book", "audit", "signer", "key"]
Kind = Literal["behind", "diverged", "unreadable"]
Connection = AsyncConnection[Any]


class RollbackSign(msgspec.Struct, frozen=True, gc=False):
    """One thing that shows a rollback.

    `subject` is what was compared with the database: a book's checkpoint, the audit log's checkpoint, the
    signer's record, or the key that signs checkpoints. `merchant_id` is 0 for all but books. `kind`:
    `behind`, the database lacks what was seen before; `diverged`, it holds something else; `unreadable`, the
    evidence itself was changed. `cause` is a sentence without its full stop.
    """

    merchant_id: int
    subject: Subject
    kind: Kind
    cause: str
    since_ms: int


async def list_signs(conn: Connection) -> list[RollbackSign]:
    """All signs that stand, the oldest first. Empty while nothing is wrong."""
    cursor = await conn.execute(QUERIES["list_signs"].text)
    return [RollbackSign(*row) for row in await cursor.fetchall()]


async def is_standing(conn: Connection) -> bool:
    """Whether any sign stands, so that nothing may be signed or paid."""
    cursor = await conn.execute(QUERIES["is_standing"].text)
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def record_signs(conn: Connection, signs: Iterable[RollbackSign]) -> list[RollbackSign]:
    """Write signs down; gives those that are new. The first cause of a subject stays."""
    new = []
    for sign in signs:
        cursor = await conn.execute(QUERIES["record_sign"].text, msgspec.structs.asdict(sign))
        if cursor.rowcount == 1:
            new.append(sign)
    return new


def format_moment(at_ms: int) -> str:
    """A moment as the causes of signs name it. Raises ValueError, OverflowError for one beyond all years."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")


@asynccontextmanager
async def locked(conn: Connection) -> AsyncIterator[None]:
    """A transaction in which nobody else writes or accepts signs."""
    async with conn.transaction():
        await conn.execute(QUERIES["lock_signs"].text)
        yield
