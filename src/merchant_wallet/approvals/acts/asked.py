"""Acts that people ask for: asking, cancelling and listing them.

Rules:
- Asking writes the audit entry `KIND.asked` in the same transaction. The outcome has an entry of its own,
  `KIND` or `KIND.failed`, in the transaction that ends the act.
- Of one kind and subject only one act is under way. Who asks again gets that one.
- An act that no worker has begun can be cancelled, and lapses after `expires_ms`. One that was begun lapses
  when its worker has been away for as long: nobody expects it any more.
- The caller checks the right. Where two people are needed, accepting a proposal asks for the act: the
  `apply` of its kind calls `ask` (see `approvals.changes`).
- Functions take a connection to home. They raise `psycopg.Error`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.audit import records as audit
from merchant_wallet.audit.records import Author
from merchant_wallet.base.bell import ring
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT, MINUTE_MS

Connection = AsyncConnection[Any]
Facts = Mapping[str, Any]

QUERIES: Final = Queries(Path(__file__).with_name("asked.sql"))

WAITING: Final = "waiting"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
LAPSED: Final = "lapsed"

REASON: Final = "reason"
"""The fact of an author that an act keeps."""
PROPOSAL_NO: Final = "proposalNo"
"""The argument of an act that was asked for by accepting a proposal."""
LASTS_MS: Final = 15 * MINUTE_MS
"""An act that no worker had within this time lapses: it was asked for a moment that is gone."""
MAX_PAGE: Final = 200


class AskedAct(msgspec.Struct, frozen=True):
    """An act that somebody asked for. `fence` counts the claims of workers.

    `progress` is what its worker says (see `stage`). `result` is set when it is done, `cause` when it failed
    or lapsed.
    """

    act_no: int
    kind: str
    subject: str
    merchant_id: int | None
    arguments: dict[str, Any]
    reason: str
    asked_by: str
    asked_ms: int
    expires_ms: int
    state: str
    fence: int
    worker: str | None
    begun_ms: int | None
    progress: str
    result: dict[str, Any] | None
    cause: str | None
    ended_ms: int | None

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.ended_ms is None

    @property
    def stage(self) -> tuple[str, int, int]:
        """How far it is: a word, how much is done, and of how much. Zeros if nothing is counted."""
        word, _, counts = self.progress.partition(" ")
        done, _, total = counts.partition(" ")
        return word, int(done or 0), int(total or 0)


class Asked(msgspec.Struct, frozen=True):
    """An act, and whether this request made it. Otherwise the same was under way."""

    act: AskedAct
    is_new: bool


def format_own_subject(merchant_id: int, subject: str) -> str:
    """The subject of an act about what other merchants may have by the same name. Pure.

    Acts of one kind and subject exclude each other. The audit log has the merchant beside the subject.
    """
    return f"merchant {merchant_id} {subject}"


def _name_subject(act: AskedAct) -> str:
    """How the audit log names what an act is about."""
    return act.subject.removeprefix(f"merchant {act.merchant_id} ")


async def ask(
    conn: Connection,
    kind: str,
    subject: str,
    arguments: Facts,
    *,
    author: Author,
    merchant_id: int | None = None,
    lasts_ms: int = LASTS_MS,
) -> Asked:
    """Ask for an act. `kind` is also the audit log's action, such as `sweep.run`.

    Raises FactsRefused, and what the author's `hold` raises.
    """
    values = {
        "kind": kind,
        "subject": subject[: audit.MAX_SUBJECT],
        "merchant_id": merchant_id,
        "arguments": Jsonb(dict(arguments)),
        "reason": author.facts.get(REASON) or "",
        "asked_by": author.actor,
        "asked_ms": author.at_ms,
        "expires_ms": author.at_ms + lasts_ms,
    }
    async with conn.transaction():
        author = await author.held(conn)
        made = await _fetch(conn, "ask", values)
        if not made:
            return Asked((await _fetch(conn, "find_open", values))[0], False)
        told = {**arguments, "actNo": made[0].act_no}
        await author.record(conn, f"{kind}.asked", _name_subject(made[0]), merchant_id, after=told)
        await ring(conn)
    return Asked(made[0], True)


async def cancel(conn: Connection, act_no: int, *, author: Author) -> AskedAct | None:
    """Cancel an act that no worker has begun. None if it was begun or has ended."""
    async with conn.transaction():
        found = await _fetch(conn, "cancel", {"act_no": min(act_no, MAX_BIGINT), "now_ms": author.at_ms})
        if not found:
            return None
        (act,) = found
        told = {"actNo": act_no}
        await author.record(conn, f"{act.kind}.cancel", _name_subject(act), act.merchant_id, after=told)
    return act


async def show(conn: Connection, act_no: int) -> AskedAct | None:
    """One act; None if there is none with this number."""
    found = await _fetch(conn, "read", {"act_no": min(act_no, MAX_BIGINT)})
    return found[0] if found else None


async def list_last(conn: Connection, *, before_no: int | None = None, limit: int = 20) -> list[AskedAct]:
    """The newest acts before a number."""
    before = MAX_BIGINT if before_no is None else before_no
    return await _fetch(conn, "list_last", {"before_no": before, "limit": min(limit, MAX_PAGE)})


async def list_last_of(conn: Connection, subject: str, *, limit: int = 20) -> list[AskedAct]:
    """The newest acts about one subject."""
    return await _fetch(conn, "list_last_of", {"subject": subject, "limit": min(limit, MAX_PAGE)})


async def record_outcome(
    conn: Connection, act: AskedAct, told: Facts, at_ms: int, before: Facts | None = None
) -> None:
    """The audit entry of an act that has ended, in the transaction that ended it."""
    action = act.kind if act.state == DONE else f"{act.kind}.{act.state}"
    author = author_of(act, at_ms)
    await author.record(conn, action, _name_subject(act), act.merchant_id, before=before, after=told)


def author_of(act: AskedAct, at_ms: int) -> Author:
    """The worker that carries an act out. Its entries name who asked, why, and on which proposal. Pure."""
    facts: dict[str, Any] = {"actNo": act.act_no, "askedBy": act.asked_by}
    if act.reason:
        facts[REASON] = act.reason
    if PROPOSAL_NO in act.arguments:
        facts[PROPOSAL_NO] = act.arguments[PROPOSAL_NO]
    return Author(WORKER, WORKER, at_ms, facts)


WORKER: Final = "worker"
"""Actor and source of an outcome in the audit log, which names who asked."""


async def _fetch(conn: Connection, name: str, values: Mapping[str, Any]) -> list[AskedAct]:
    cursor = await conn.execute(QUERIES[name].text, values)
    return [AskedAct(*row) for row in await cursor.fetchall()]
