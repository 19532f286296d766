"""Commands to a book on behalf of a user, and their records in the audit log.

Rules: a book commits by itself. So the log gets one entry before, with what is asked, and one after, with the
outcome. If the second is missing, the outcome is unknown: look before you ask again.
"""

from typing import Any

import msgspec

from merchant_wallet.base.codes import Refused
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome, read_audited_fields
from merchant_wallet.console.request import Connection, ConsoleRequest, record_change


async def ask_book(
    request: ConsoleRequest, conn: Connection, merchant_id: int, command: Command, action: str, subject: str
) -> Outcome:
    """Send a command to a book. Returns the outcome when it is committed and logged.

    Raises Refused if the book refuses, Unavailable, CommandFailed.
    """
    asked: dict[str, Any] = msgspec.to_builtins(command)
    await record_change(request, conn, f"{action}.asked", subject, merchant_id, after=asked)
    try:
        outcome = await request.context.ask(merchant_id, command, request.request_id)
    except Refused as refused:
        told = {"refused": refused.refusal.code, "reason": refused.refusal.msg}
        await record_change(request, conn, f"{action}.refused", subject, merchant_id, after=told)
        raise
    done = {"done": True, **read_audited_fields(outcome)}
    await record_change(request, conn, action, subject, merchant_id, after=done)
    return outcome
