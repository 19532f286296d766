"""What operators do about callbacks: send them again, pause and resume them, one or all of a merchant.

Rules: a change and its entry in the audit log are one transaction, or around it if the cell is apart.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit.cell_changes import Told, change_cell
from merchant_wallet.audit.records import Author
from merchant_wallet.callbacks import outbox

Connection = AsyncConnection[Any]

RESEND: Final = "callback.resend"
PAUSE: Final = "callback.pause"
RESUME: Final = "callback.resume"
ALL: Final = "all callbacks"
PARKED: Final = "all that are parked"


async def resend(home: Connection, cell: Connection, author: Author, merchant_id: int, event_id: str) -> bool:
    """Send a callback now. False if there is none with this id."""
    async with _change(home, cell, author, merchant_id, RESEND, event_id) as told:
        if is_done := await outbox.send_again(cell, merchant_id, event_id):
            told.after = {"resent": 1}
    return is_done


async def resend_parked(home: Connection, cell: Connection, author: Author, merchant_id: int) -> int:
    """Send all parked callbacks of a merchant now. Returns how many."""
    async with _change(home, cell, author, merchant_id, RESEND, PARKED) as told:
        count = await outbox.send_dead_letters_again(cell, merchant_id)
        told.after = {"resent": count}
    return count


async def pause(home: Connection, cell: Connection, author: Author, merchant_id: int, event_id: str) -> bool:
    """Pause a callback. False if it is not due."""
    async with _change(home, cell, author, merchant_id, PAUSE, event_id) as told:
        if is_done := await outbox.pause(cell, merchant_id, event_id):
            told.after = {"paused": True}
    return is_done


async def resume(home: Connection, cell: Connection, author: Author, merchant_id: int, event_id: str) -> bool:
    """Resume a callback. False if it was not paused."""
    async with _change(home, cell, author, merchant_id, RESUME, event_id) as told:
        if is_done := await outbox.resume(cell, merchant_id, event_id):
            told.after = {"resumed": True}
    return is_done


async def pause_all(home: Connection, cell: Connection, author: Author, merchant_id: int) -> bool:
    """Pause all callbacks of a merchant. False if they were paused."""
    async with _change(home, cell, author, merchant_id, PAUSE, ALL) as told:
        if is_done := await outbox.pause_merchant(cell, merchant_id, author.actor, author.at_ms):
            told.after = {"paused": True}
    return is_done


async def resume_all(home: Connection, cell: Connection, author: Author, merchant_id: int) -> bool:
    """Resume all callbacks of a merchant. False if they were not paused."""
    async with _change(home, cell, author, merchant_id, RESUME, ALL) as told:
        if is_done := await outbox.resume_merchant(cell, merchant_id):
            told.after = {"resumed": True}
    return is_done


def _change(
    home: Connection, cell: Connection, author: Author, merchant_id: int, action: str, which: str
) -> AbstractAsyncContextManager[Told]:
    return change_cell(author, home, cell, action, f"callback {which}", merchant_id)
