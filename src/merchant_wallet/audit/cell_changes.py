"""A change of a merchant's cell, and its record in the audit log, which is in home.

- In the default cell both are one transaction.
- In home the author's right is held until the change is committed.
- An apart cell commits by itself. So the log gets one entry before, with what is asked, and one after. If the
  second is missing, the outcome is unknown: look before you ask again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author, Facts

Connection = AsyncConnection[Any]

UNCHANGED = "nothing was changed"


@dataclass(slots=True)
class Told:
    """What the audit log stores of a change.

    Without facts nothing was changed, unless the caller says that it is done.
    """

    before: Facts | None = None
    after: Facts | None = None
    is_done: bool = False

    @property
    def has_changed(self) -> bool:
        """Whether something was changed."""
        return self.is_done or self.before is not None or self.after is not None


@asynccontextmanager
async def change_cell(
    author: Author, home: Connection, cell: Connection, action: str, subject: str, merchant_id: int | None
) -> AsyncIterator[Told]:
    """A transaction that changes a merchant's cell. The caller makes the change and says what to record.

    In the default cell `cell` is `home` itself. Must not be called in a transaction.
    """
    told = Told()
    if cell is home:
        async with home.transaction():
            yield told
            if told.has_changed:
                await author.record(home, action, subject, merchant_id, before=told.before, after=told.after)
        return
    refused, done = f"{action}.refused", author.afterwards
    await author.record(home, f"{action}.asked", subject, merchant_id)
    cause = None
    try:
        async with home.transaction(), cell.transaction():
            try:
                await author.hold(home)
                yield told
            except Exception as error:
                cause = error
                raise
    finally:
        # Not after a commit that failed: its outcome is unknown.
        if cause is not None:
            await done.later().record(home, refused, subject, merchant_id, after={"reason": str(cause)})
    if told.has_changed:
        await done.later().record(home, action, subject, merchant_id, before=told.before, after=told.after)
    else:
        await done.later().record(home, refused, subject, merchant_id, after={"reason": UNCHANGED})
