"""Audit log records of changes that a sub-user makes on the wallet page.

Rules: the record is written last in the transaction of the change. The actor is the sub-user, by the
merchant's own id. A record never holds a PIN.
"""

from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit import records as audit

Connection = AsyncConnection[Any]

ACTOR_PREFIX: Final = "sub-user"
"""The prefix of an actor that is a sub-user."""


async def record(
    conn: Connection,
    action: str,
    merchant_id: int,
    ext_user_id: str,
    *,
    before: audit.Facts | None = None,
    after: audit.Facts | None = None,
    source: str,
    at_ms: int,
) -> None:
    """Record a change by a sub-user."""
    await audit.append(
        conn,
        actor=f"{ACTOR_PREFIX}:{ext_user_id}",
        action=action,
        subject=f"sub-user {ext_user_id}",
        merchant_id=merchant_id,
        before=before,
        after=after,
        source=source,
        at_ms=at_ms,
    )
