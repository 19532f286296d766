"""Asking a book for a change on somebody's word, and how the audit log tells it.

Rules: a book commits by itself, so the log has an entry of what is asked, written before, and one of what
came of it. Where the second is missing, whoever asked was never told: look before asking again.
"""

from typing import Any, Final

import msgspec

from merchant_wallet.base.codes import Refused
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.console.request import Connection, ConsoleRequest, record_change

_TOLD: Final = {
    "entry_id": "entryId",
    "status": "txnStatus",
    "first_approved_by": "firstApprovedBy",
    # Whose word it was: an order that somebody else approved meanwhile is answered as it stands.
    "approved_by": "approvedBy",
}


async def ask_book(
    request: ConsoleRequest, conn: Connection, merchant_id: int, command: Command, action: str, subject: str
) -> Outcome:
    """Have a book carry a command out; gives the outcome once it is committed and logged.

    Raises Refused for the book's refusal, Unavailable, CommandFailed.
    """
    asked: dict[str, Any] = msgspec.to_builtins(command)
    await record_change(request, conn, f"{action}.asked", subject, merchant_id, after=asked)
    try:
        outcome = await request.context.ask(merchant_id, command, request.request_id)
    except Refused as refused:
        told = {"refused": refused.refusal.code, "reason": refused.refusal.msg}
        await record_change(request, conn, f"{action}.refused", subject, merchant_id, after=told)
        raise
    found = {
        told: value for name, told in _TOLD.items() if (value := getattr(outcome, name, None)) is not None
    }
    await record_change(request, conn, action, subject, merchant_id, after={"done": True, **found})
    return outcome
