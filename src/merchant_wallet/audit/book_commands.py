"""A command to a book that a person gives, and its records in the audit log, which is in home.

Rules:
- A book commits by itself. So the log gets one entry before, with what is asked, and one after, with the
  outcome. If the second is missing, the outcome is unknown: look before you ask again.
- The author's right is read again before the book is asked, and held until it has answered.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import psycopg

from merchant_wallet.audit.records import Author, Connection, Hold, hold_nothing
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.book.commands import Adjust, Approve, Cancel, Command, Refund, WithdrawFees
from merchant_wallet.book.errors import CommitUnknown
from merchant_wallet.book.outcomes import Outcome, read_audited_fields

Submit = Callable[[int, Command], Awaitable[Outcome]]
"""Sends a command to a merchant's book. Returns the outcome, which may be a refusal, after the commit."""


class Act(NamedTuple):
    """How the audit log names a command: the action, and on what."""

    action: str
    subject: str


def name_act(merchant_id: int, command: Command) -> Act:
    """How the audit log names a command that a person gives. Pure. Raises TypeError for any other command."""
    match command:
        case Approve(order_id=order_id):
            return Act("withdrawal.approve", f"order {order_id}")
        case Cancel(order_id=order_id):
            return Act("withdrawal.cancel", f"order {order_id}")
        case Refund(order_id=order_id):
            return Act("withdrawal.refund", f"order {order_id}")
        case WithdrawFees():
            return Act("fees.withdraw", f"merchant {merchant_id}")
        case Adjust(signed_units=signed_units, ext_user_id=ext_user_id):
            about = f"merchant {merchant_id}" if ext_user_id is None else f"sub-user {ext_user_id}"
            return Act("book.credit" if signed_units > 0 else "book.debit", about)
        case _:
            raise TypeError(f"nobody gives a {type(command).__name__}")


async def ask_book(
    author: Author,
    home: Connection,
    submit: Submit,
    merchant_id: int,
    command: Command,
    act: Act | None = None,
    check: Hold = hold_nothing,
) -> Outcome:
    """Have a book carry a command out. Returns the outcome once it is committed and recorded.

    `act` is for the sandbox, whose acts have names of their own. `check` looks at what else is needed, in the
    transaction that waits for the book. It raises Refused. What it writes is undone if the book refuses, and
    stays if nobody knows what the book has done.

    Raises Refused if the book refuses, and what `submit` and the author's `hold` raise. Must not be called in
    a transaction.
    """
    action, subject = name_act(merchant_id, command) if act is None else act
    asked: dict[str, Any] = msgspec.to_builtins(command)
    await author.record(home, f"{action}.asked", subject, merchant_id, after=asked)
    done, outcome = author.afterwards, None
    try:
        async with home.transaction():
            await author.hold(home)
            await check(home)
            outcome = await _submit(submit, merchant_id, command)
            if isinstance(outcome, Refusal):
                raise Refused(outcome)
            if not isinstance(outcome, CommitUnknown):
                told = {"done": True, **read_audited_fields(outcome), **_describe_repeat(outcome)}
                await done.later().record(home, action, subject, merchant_id, after=told)
    except Refused as refused:
        told = {"refused": refused.refusal.code, "reason": refused.refusal.msg}
        await done.later().record(home, f"{action}.refused", subject, merchant_id, after=told)
        raise
    except psycopg.OperationalError:
        if not isinstance(outcome, CommitUnknown):
            raise
        # Home is away as well.
    if isinstance(outcome, CommitUnknown):
        raise outcome
    return outcome


async def _submit(submit: Submit, merchant_id: int, command: Command) -> Outcome | CommitUnknown:
    try:
        return await submit(merchant_id, command)
    except CommitUnknown as unknown:
        return unknown


def _describe_repeat(outcome: Outcome) -> dict[str, bool]:
    return {"repeated": True} if getattr(outcome, "repeated", False) else {}
