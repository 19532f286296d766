"""Rollback signs: evidence that the database was rolled back or rewritten.

Rules:
- Workers write signs (see `comparison`), and so does `book accept-rollback`. The web process reads them.
- A sign stays open until a person accepts it, even if its cause has disappeared.
- While a sign is open, no order is claimed, no transfer is signed, and no order expires. The statements of
  `withdrawals` and `sweeps` that do these things read the table themselves. The book reads it before an order
  is taken up, expires, is refunded, or is cancelled by its merchant.

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
    """Evidence of a rollback.

    `subject` is what was compared with the database: a book's checkpoint, the audit log's checkpoint, the
    signer's record, or the key that signs checkpoints. `merchant_id` is 0 except for books. `kind`: `behind`
    means that the database lacks what was seen before; `diverged`, that it has something else; `unreadable`,
    that the evidence itself was changed. `cause` is a sentence without its full stop.
    """

    merchant_id: int
    subject: Subject
    kind: Kind
    cause: str
    since_ms: int


async def list_signs(conn: Connection) -> list[RollbackSign]:
    """All open signs, oldest first. Empty while nothing is wrong."""
    cursor = await conn.execute(QUERIES["list_signs"].text)
    return [RollbackSign(*row) for row in await cursor.fetchall()]


async def has_open_sign(conn: Connection) -> bool:
    """Whether any sign is open. Then nothing may be signed or paid."""
    cursor = await conn.execute(QUERIES["has_open_sign"].text)
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def record_signs(conn: Connection, signs: Iterable[RollbackSign]) -> list[RollbackSign]:
    """Store signs, and return the new ones. The first cause of a subject is kept."""
    new = []
    for sign in signs:
        cursor = await conn.execute(QUERIES["record_sign"].text, msgspec.structs.asdict(sign))
        if cursor.rowcount == 1:
            new.append(sign)
    return new


def format_moment(at_ms: int) -> str:
    """A time as it is written in causes. Raises ValueError, OverflowError for a time out of range."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")


@asynccontextmanager
async def locked(conn: Connection) -> AsyncIterator[None]:
    """A transaction in which nobody else writes or accepts signs."""
    async with conn.transaction():
        await conn.execute(QUERIES["lock_signs"].text)
        yield
