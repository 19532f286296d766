"""Whether a person still may do what that person was allowed to when it was checked.

Rules:
- It is read under a lock that lasts until the caller's transaction ends. To disable, reset or demote the
  person, or to end a session, takes the other side of this lock (`operators.records.await_acts`). So either
  the act was first, or it sees that the right is gone. The lock is fair: further acts wait behind it.
- It is read last before the act is recorded in the audit log, after the act's other locks. Before a book is
  asked it is read first, and the transaction stays open until the book has answered.
- Who was disabled meanwhile, or whose waiting period began again, may not.
- An operator at the console needs the same role as before and the same session. At the terminal no role is
  needed. A person without an operator's account exists only at the terminal, and always may.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from merchant_wallet.approvals.decisions import Decidable, Person
from merchant_wallet.audit.records import Hold
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("standing.sql"))
SESSIONS: Final = Queries(Path(__file__).with_name("sessions.sql"))
RIGHT_LOST: Final = "Your account was disabled or reset, or has lost the right. Nothing was changed."
_CONSOLE: Final = "operator:"


class RightLost(Exception):
    """Who acts may not any more. The caller's transaction is to be rolled back."""

    def __init__(self) -> None:
        super().__init__(RIGHT_LOST)


class Standing(NamedTuple):
    """An operator as it is now. `waits_anew`: a waiting period began after the time of the check."""

    is_active: bool
    role: str
    merchant_id: int | None
    waits_anew: bool


async def require_standing(conn: AsyncConnection[Any], person: Person, at_ms: int) -> None:
    """Check that a person still has the rights that were checked at `at_ms`. Raises RightLost."""
    standing = await _read(conn, person.actor, at_ms)
    if standing is None:
        # A person of the console always has an account.
        lost = bool(person.session_id)
    elif not standing.is_active or standing.waits_anew:
        lost = True
    elif person.session_id:
        same = (standing.role, standing.merchant_id) == (person.role, person.merchant_id)
        lost = not same or not await _has_session(conn, person)
    else:
        lost = False
    if lost:
        raise RightLost


def hold_of(person: Person, at_ms: int) -> Hold:
    """The `hold` of an author whose rights were checked at `at_ms`: it raises RightLost."""

    async def hold(conn: AsyncConnection[Any]) -> None:
        await require_standing(conn, person, at_ms)

    return hold


async def may_still_propose(conn: AsyncConnection[Any], proposal: Decidable, roles: Collection[str]) -> bool:
    """Whether the proposer could still propose it. `roles` are the roles that may."""
    return await may_still_ask(conn, proposal.proposed_by, proposal.proposed_ms, roles)


async def may_still_ask(conn: AsyncConnection[Any], actor: str, at_ms: int, roles: Collection[str]) -> bool:
    """Whether a person who asked for something at a time still could. `roles` are the roles that may."""
    standing = await _read(conn, actor, at_ms)
    if standing is None:
        return True
    may = standing.role in roles or not actor.startswith(_CONSOLE)
    return standing.is_active and not standing.waits_anew and may


async def _read(conn: AsyncConnection[Any], actor: str, at_ms: int) -> Standing | None:
    """The operator behind an actor, who stays so until the caller's transaction ends. None without one."""
    if conn.info.transaction_status == TransactionStatus.IDLE:
        raise RuntimeError("who may act is read in the transaction of the act")
    values = {"actor": actor, "at_ms": at_ms}
    await conn.execute(QUERIES["lock_standing"].text, values)
    # A statement of its own: it must see what was committed while the lock was waited for.
    row = await (await conn.execute(QUERIES["read_standing"].text, values)).fetchone()
    return None if row is None else Standing(*row)


async def _has_session(conn: AsyncConnection[Any], person: Person) -> bool:
    values = {"actor": person.actor, "token_hash": bytes.fromhex(person.session_id)}
    return await (await conn.execute(SESSIONS["find_session"].text, values)).fetchone() is not None
