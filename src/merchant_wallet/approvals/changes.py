"""Proposed changes of any kind except adjustments. Two people are needed to change what protects money.

Rules:
- A proposal has the old value (`before`) and the new one (`after`). The second person sees both.
- Acceptance carries the change out, by the act that one person does alone where one is enough. The author is
  who accepted. Lock, comparison, change, proposal and audit entry are one transaction.
- The value is read again under its lock. If it is no longer `before`, the proposal fails and nothing changes.
- The proposal also fails if the same change was accepted meanwhile, or if its proposer could not propose it
  any more.
- The rule of the kind is checked again too. If it refuses, the proposal fails, and `outcome` says why.
- A merchant's own people have few open proposals at a time: theirs must not hide others'.
- Proposing, refusing and withdrawing write their audit entry in the same transaction.
- The caller passes the time, and checks the right to propose and to decide. It is read again under the locks
  (see `standing`).
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.approvals.decisions import (
    ACCEPTED,
    FAILED,
    OPEN,
    REFUSED,
    WITHDRAWN,
    Person,
    ProposalRefusal,
    ProposalRefused,
    check_decision,
    check_limit,
    check_proposer,
    check_reason,
    is_expired,
)
from merchant_wallet.approvals.standing import may_still_ask, may_still_propose, require_standing
from merchant_wallet.audit import records as audit
from merchant_wallet.audit.records import Author
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT

Connection = AsyncConnection[Any]
Facts = Mapping[str, Any]
"""Plain values by name, in the form of the audit log."""

QUERIES: Final = Queries(Path(__file__).with_name("changes.sql"))
MAX_OPEN_OF_MERCHANT: Final = 10
"""So many proposals of one merchant's own people wait at most. Inbox and lists show the oldest hundred."""
_OF_MERCHANT: Final = "merchant:"
"""How the actor of a merchant's own person begins."""
STALE: Final = "The value was changed after this was proposed. Propose it again."


class ChangeRefused(ValueError):
    """A change can't be carried out now. The text is a sentence that says why."""


class ProposedChange(msgspec.Struct, frozen=True):
    """A proposed change and its result. `outcome` says why it was refused or failed."""

    proposal_no: int
    kind: str
    subject: str
    merchant_id: int | None
    before: dict[str, Any]
    after: dict[str, Any]
    reason: str
    proposed_by: str
    proposed_ms: int
    expires_ms: int | None
    state: str
    decided_by: str | None
    decided_ms: int | None
    outcome: str | None

    def is_open(self, at_ms: int) -> bool:
        """Whether it can still be accepted."""
        return self.state == OPEN and not is_expired(self, at_ms)


class Applied(msgspec.Struct, frozen=True):
    """A change was made and recorded. `shown` is only for the person who accepted, such as a new password."""

    shown: Any = None

    def __repr__(self) -> str:
        return "Applied()"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change. `name` is also the audit log's action, such as `merchant.set`.

    `read` locks the value and returns it in the form of `before`. `apply` changes it in the same transaction,
    for the author who accepted, and records that. Both may raise ChangeRefused, which rolls back what they
    did.
    """

    name: str
    read: Callable[[Connection, ProposedChange], Awaitable[Facts]]
    apply: Callable[[Connection, ProposedChange, Author], Awaitable[Applied]]


class Decided(msgspec.Struct, frozen=True):
    """A proposal after its acceptance: `accepted`, or `failed` with its outcome. `shown` as in Applied."""

    change: ProposedChange
    shown: Any = None

    def __repr__(self) -> str:
        return f"Decided({self.change!r})"


async def propose(
    conn: Connection,
    kind: str,
    subject: str,
    before: Facts,
    after: Facts,
    reason: str,
    *,
    person: Person,
    at_ms: int,
    lasts_ms: int,
    merchant_id: int | None = None,
) -> ProposedChange:
    """Propose a change of `subject` from `before` to `after`. It can be accepted for `lasts_ms`.

    Raises ProposalRefused, RightLost, FactsRefused.
    """
    check_proposer(person.actor, person.eligible_ms, at_ms)
    _check_difference(before, after)
    values = {
        "kind": kind,
        "subject": subject[: audit.MAX_SUBJECT],
        "merchant_id": merchant_id,
        "before": Jsonb(dict(before)),
        "after": Jsonb(dict(after)),
        "reason": check_reason(reason),
        "proposed_by": person.actor,
        "proposed_ms": at_ms,
        "proposer_eligible_ms": person.eligible_ms,
        "expires_ms": at_ms + lasts_ms,
    }
    async with conn.transaction():
        made = await _insert(conn, values)
        await require_standing(conn, person, at_ms)
        facts = {**made.after, "proposalNo": made.proposal_no, "reason": made.reason}
        await _record(conn, f"{kind}.propose", made, person, at_ms, before=before, after=facts)
    return made


async def accept(
    conn: Connection, kind: Kind, proposal_no: int, *, person: Person, at_ms: int, roles: Collection[str]
) -> Decided:
    """Accept an open proposal of this kind and carry it out, in one transaction.

    `roles` are the roles that may propose and accept it. Returns the proposal with its result. It is `failed`
    if the value has changed, the rule refuses, or the proposer could not propose it any more. Raises
    ProposalRefused or RightLost if this person can't accept it.
    """
    async with conn.transaction():
        change = await _lock(conn, proposal_no)
        if change.kind != kind.name:
            raise ProposalRefused(ProposalRefusal.OTHER_KIND, number=proposal_no, kind=change.kind)
        check_decision(change, ACCEPTED, person.actor, person.eligible_ms, at_ms)
        try:
            applied = await _carry_out(conn, kind, change, person, at_ms, roles)
        except ChangeRefused as refused:
            await _check_decider(conn, person, at_ms, roles)
            failed = await _decide(conn, change, FAILED, person, at_ms, str(refused))
            facts = {"proposalNo": proposal_no, "outcome": failed.outcome}
            await _record(conn, f"{kind.name}.fail", failed, person, at_ms, after=facts)
            return Decided(failed)
        accepted = await _decide(conn, change, ACCEPTED, person, at_ms, None)
    return Decided(accepted, applied.shown)


async def refuse(
    conn: Connection, proposal_no: int, reason: str, *, person: Person, at_ms: int
) -> ProposedChange:
    """Refuse an open proposal. Raises ProposalRefused, RightLost."""
    return await _reject(conn, proposal_no, REFUSED, person, at_ms, check_reason(reason))


async def withdraw(conn: Connection, proposal_no: int, *, person: Person, at_ms: int) -> ProposedChange:
    """Withdraw one's own open proposal. Raises ProposalRefused."""
    return await _reject(conn, proposal_no, WITHDRAWN, person, at_ms, None)


async def show(conn: Connection, proposal_no: int) -> ProposedChange | None:
    """One proposed change; None if there is none with this number."""
    found = await _fetch(conn, "read_change", {"proposal_no": min(proposal_no, MAX_BIGINT)})
    return found[0] if found else None


async def list_open(
    conn: Connection, *, at_ms: int, kind: str | None = None, subject: str | None = None, limit: int = 50
) -> list[ProposedChange]:
    """Proposals that can be accepted now, oldest first: all, or those of one kind and subject."""
    values = {"at_ms": at_ms, "kind": kind, "subject": subject, "page": check_limit(limit)}
    return await _fetch(conn, "list_open_changes", values)


async def list_decided(
    conn: Connection, *, at_ms: int, before_no: int | None = None, limit: int = 50
) -> list[ProposedChange]:
    """Proposals before a number that were decided or have expired, newest first."""
    before = MAX_BIGINT if before_no is None else before_no
    values = {"at_ms": at_ms, "before_no": before, "page": check_limit(limit)}
    return await _fetch(conn, "list_decided_changes", values)


def _check_difference(before: Facts, after: Facts) -> None:
    if dict(before) == dict(after):
        raise ProposalRefused(ProposalRefusal.NOTHING_TO_PROPOSE)
    audit.check_facts(before)
    audit.check_facts(after)


async def _insert(conn: Connection, values: dict[str, Any]) -> ProposedChange:
    # Of two proposals at the same time, the second must see the first.
    await conn.execute(QUERIES["lock_proposing"].text, values)
    if await _fetch(conn, "find_same_open", values):
        raise ProposalRefused(ProposalRefusal.PROPOSED_ALREADY)
    if values["proposed_by"].startswith(_OF_MERCHANT):
        row = await (await conn.execute(QUERIES["count_open_of_merchant"].text, values)).fetchone()
        if row is not None and row[0] >= MAX_OPEN_OF_MERCHANT:
            raise ProposalRefused(ProposalRefusal.TOO_MANY, most=MAX_OPEN_OF_MERCHANT)
    return (await _fetch(conn, "insert_change", values))[0]


async def _carry_out(
    conn: Connection, kind: Kind, change: ProposedChange, person: Person, at_ms: int, roles: Collection[str]
) -> Applied:
    async with conn.transaction():
        before = dict(await kind.read(conn, change))
        # Under the locks of the proposal and of the value, for which this may have waited.
        await _check_decider(conn, person, at_ms, roles)
        if not await may_still_propose(conn, change, roles):
            raise ChangeRefused(ProposalRefusal.PROPOSER_CHANGED.value)
        if before != change.before:
            raise ChangeRefused(STALE)
        if await _fetch(conn, "find_same_accepted", {"proposal_no": change.proposal_no}):
            # The value equals `before`, but it was changed and changed back.
            raise ChangeRefused(STALE)
        return await kind.apply(conn, change, _author_of(change, person, at_ms))


async def _check_decider(conn: Connection, person: Person, at_ms: int, roles: Collection[str]) -> None:
    """Check that who accepts still may. Raises ProposalRefused, RightLost."""
    if not await may_still_ask(conn, person.actor, at_ms, roles):
        raise ProposalRefused(ProposalRefusal.DECIDER_CHANGED)
    await require_standing(conn, person, at_ms)


async def _reject(
    conn: Connection, proposal_no: int, state: str, person: Person, at_ms: int, outcome: str | None
) -> ProposedChange:
    async with conn.transaction():
        change = await _lock(conn, proposal_no)
        check_decision(change, state, person.actor, person.eligible_ms, at_ms)
        await require_standing(conn, person, at_ms)
        decided = await _decide(conn, change, state, person, at_ms, outcome)
        facts = {"proposalNo": proposal_no, "outcome": outcome}
        what = "refuse" if state == REFUSED else "withdraw"
        await _record(conn, f"{change.kind}.{what}", decided, person, at_ms, after=facts)
    return decided


async def _lock(conn: Connection, proposal_no: int) -> ProposedChange:
    found = await _fetch(conn, "lock_change", {"proposal_no": min(proposal_no, MAX_BIGINT)})
    if not found:
        raise ProposalRefused(ProposalRefusal.UNKNOWN, number=proposal_no)
    return found[0]


async def _decide(
    conn: Connection, change: ProposedChange, state: str, person: Person, at_ms: int, outcome: str | None
) -> ProposedChange:
    values = {
        "proposal_no": change.proposal_no,
        "state": state,
        "decided_by": person.actor,
        # The clocks of two machines may differ. A decision is never before its proposal.
        "decided_ms": max(at_ms, change.proposed_ms),
        "decider_eligible_ms": person.eligible_ms,
        "outcome": outcome,
    }
    return (await _fetch(conn, "decide_change", values))[0]


def _author_of(change: ProposedChange, person: Person, at_ms: int) -> Author:
    """Who carries a proposal out: the person who accepts it."""
    facts = {
        "proposalNo": change.proposal_no,
        audit.PROPOSED_BY: change.proposed_by,
        "reason": change.reason,
    }
    return Author(person.actor, person.source, at_ms, facts)


async def _record(
    conn: Connection,
    action: str,
    change: ProposedChange,
    person: Person,
    at_ms: int,
    *,
    before: Facts | None = None,
    after: Facts | None = None,
) -> None:
    await audit.append(
        conn,
        actor=person.actor,
        action=action,
        subject=change.subject,
        merchant_id=change.merchant_id,
        before=before,
        after=after,
        source=person.source,
        at_ms=at_ms,
    )


async def _fetch(conn: Connection, name: str, values: dict[str, Any]) -> list[ProposedChange]:
    cursor = await conn.execute(QUERIES[name].text, values)
    return [ProposedChange(*row) for row in await cursor.fetchall()]
