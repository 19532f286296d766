"""Who of the platform's people made a key or a secret of a merchant, or an account of its people.

Rules:
- It is noted in the transaction that makes the secret. Rows are never changed.
- Who made one could order in the merchant's name: an account of the merchant's people makes keys. So that
  person's approvals of this merchant's orders do not count for a time (see `operators.order_approvals`).
- The person does not wait if nobody else could approve. Whoever was disabled or got another role a short time
  ago counts as somebody else: one person alone may disable the others.
- A merchant's own people are not meant: they approve nothing.
- If home was restored alone, it may have lost who made secrets that cells have orders of. Then nobody's
  approvals of these merchants' orders count for a time (`note_lost`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.base.db import Queries
from merchant_wallet.book.actors import EVERYONE
from merchant_wallet.merchants.store import Connection

QUERIES: Final = Queries(Path(__file__).with_name("staff_secrets.sql"))
ACCOUNT: Final = 0
"""Instead of a key's number: somebody got access to an account of the merchant's people."""
_MERCHANT: Final = "merchant:"


async def note(conn: Connection, author: Author, merchant_id: int, key_no: int, wait_ms: int) -> None:
    """Note who made a secret: the author, and who proposed it. Their approvals do not count for `wait_ms`."""
    values = {"merchant_id": merchant_id, "key_no": key_no, "at_ms": author.at_ms, "wait_ms": wait_ms}
    for actor in author.people:
        if not actor.startswith(_MERCHANT):
            await conn.execute(QUERIES["note"].text, {**values, "actor": actor})


async def note_lost(conn: Connection, merchant_ids: Sequence[int], *, at_ms: int, wait_ms: int) -> None:
    """Note that anybody may have made a secret of these merchants. Nobody's approvals count for `wait_ms`."""
    values = {"merchant_ids": merchant_ids, "everyone": EVERYONE, "at_ms": at_ms, "wait_ms": wait_ms}
    await conn.execute(QUERIES["note_lost"].text, values)
