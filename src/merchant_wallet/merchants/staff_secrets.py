"""Who of the platform's people made a key or a secret of a merchant.

Rules:
- It is noted in the transaction that makes the secret. Rows are never changed.
- Who made one could order in the merchant's name. So that person's approvals of this merchant's orders do not
  count for a time (see `operators.order_approvals`).
- A merchant's own people are not meant: they approve nothing.
"""

from pathlib import Path
from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.store import Connection

QUERIES: Final = Queries(Path(__file__).with_name("staff_secrets.sql"))
_MERCHANT: Final = "merchant:"


async def note_author(conn: Connection, author: Author, merchant_id: int, key_no: int, wait_ms: int) -> None:
    """`note` that the author made a secret."""
    await note(conn, author.actor, merchant_id, key_no, at_ms=author.at_ms, wait_ms=wait_ms)


async def note(
    conn: Connection, actor: str, merchant_id: int, key_no: int, *, at_ms: int, wait_ms: int
) -> None:
    """Note that this person made a secret. The person's approvals do not count for `wait_ms`."""
    if actor.startswith(_MERCHANT):
        return
    values = {
        "actor": actor,
        "merchant_id": merchant_id,
        "key_no": key_no,
        "at_ms": at_ms,
        "wait_ms": wait_ms,
    }
    await conn.execute(QUERIES["note"].text, values)
