"""Audit log records of changes that a sub-user makes on the wallet page.

Rules: the record is written in the transaction of the change, or in home before and after it if the cell is
apart. The actor is the sub-user, by the merchant's own id. A record never holds a PIN.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit import cell_changes
from merchant_wallet.audit import records as audit
from merchant_wallet.audit.cell_changes import Told

Connection = AsyncConnection[Any]

ACTOR_PREFIX: Final = "sub-user"
"""The prefix of an actor that is a sub-user."""


def change_cell(
    home: Connection | None,
    cell: Connection,
    action: str,
    merchant_id: int,
    ext_user_id: str,
    *,
    source: str,
    at_ms: int,
) -> AbstractAsyncContextManager[Told]:
    """A transaction with a change by a sub-user, and its record. The default cell needs no `home`."""
    log = cell if home is None else home

    async def record(name: str, before: audit.Facts | None, after: audit.Facts | None) -> None:
        await audit.append(
            log,
            actor=f"{ACTOR_PREFIX}:{ext_user_id}",
            action=name,
            subject=f"sub-user {ext_user_id}",
            merchant_id=merchant_id,
            before=before,
            after=after,
            source=source,
            at_ms=at_ms,
        )

    return cell_changes.change_cell(log, cell, action, record)
