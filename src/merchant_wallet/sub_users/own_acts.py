"""What a sub-user changes on the wallet page, in the audit log.

Rules: an entry is written last in the transaction of the change. It names the sub-user as who acted, by the
merchant's own id for it, and never holds a PIN.
"""

from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit import records as audit

Connection = AsyncConnection[Any]

DOOR: Final = "sub-user"
"""By which door a sub-user comes, as an actor names it."""


async def note(
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
    """Write down what a sub-user did to its own wallet."""
    await audit.append(
        conn,
        actor=f"{DOOR}:{ext_user_id}",
        action=action,
        subject=f"sub-user {ext_user_id}",
        merchant_id=merchant_id,
        before=before,
        after=after,
        source=source,
        at_ms=at_ms,
    )
