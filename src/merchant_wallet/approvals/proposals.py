"""Adjustments that one person proposes and another carries out.

Who may propose and decide is in `decisions`. Rules:
- `take` marks the proposal as accepted before the book is asked. So nobody else decides it meanwhile.
- The entry has the proposal's number as its name. So the book makes it once, however often it is asked.
- If an accepted proposal has no entry, its result is not known yet. `carry_out` asks the book again.
- The book's answer is stored last, under the proposal's lock. So a refusal is stored only while nobody else
  asks.
- Who accepted must still be allowed to when the book is asked, and stays so until it has answered (see
  `standing`). Otherwise the book only says whether it has made the entry before, and the proposal fails if it
  has not.
"""

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from merchant_wallet.approvals.decisions import (
    ACCEPTED,
    FAILED,
    REFUSED,
    WITHDRAWN,
    ProposalRefusal,
    ProposalRefused,
    check_decision,
    check_limit,
    check_proposer,
    check_reason,
)
from merchant_wallet.approvals.standing import may_still_ask, may_still_propose
from merchant_wallet.audit.records import Author, Hold, hold_nothing
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.commands import Adjust, Command, FindAdjustment
from merchant_wallet.book.outcomes import Adjusted, Outcome

QUERIES: Final = Queries(Path(__file__).with_name("proposals.sql"))
UNFINISHED_AFTER_MS: Final = 60_000
"""An acceptance counts as unfinished only after this time. Until then its own process may finish it."""

Ask = Callable[[int, Command], Awaitable[Outcome]]
"""Sends a command to a merchant's book. Returns the outcome, which may be a refusal, after the commit."""


class Proposal(msgspec.Struct, frozen=True):
    """A proposed adjustment and its result.

    `signed_units` credits if positive. `outcome` is the sentence of the person or book that refused it.
    """

    merchant_id: int
    proposal_no: int
    currency: str
    signed_units: int
    reason: str
    ext_user_id: str | None
    proposed_by: str
    proposed_ms: int
    state: str
    decided_by: str | None
    decided_ms: int | None
    outcome: str | None
    entry_id: int | None
    expires_ms: int | None

    @property
    def is_unfinished(self) -> bool:
        """Whether it was accepted and the book's answer is not known yet."""
        return self.state == ACCEPTED and self.entry_id is None


async def propose(
    conn: AsyncConnection,
    merchant_id: int,
    currency: str,
    signed_units: int,
    reason: str,
    *,
    proposed_by: str,
    at_ms: int,
    ext_user_id: str | None = None,
    eligible_ms: int = 0,
    lasts_ms: int | None = None,
) -> Proposal:
    """Propose to credit (or, negative, debit) a merchant's balance or a sub-user's wallet.

    `eligible_ms` is the time from which the proposer's approvals count. The proposal can be accepted for
    `lasts_ms`. Raises ProposalRefused for anything that could never be carried out.
    """
    _check(currency, signed_units, ext_user_id)
    check_proposer(proposed_by, eligible_ms, at_ms)
    values = {
        "merchant_id": merchant_id,
        "currency": currency,
        "signed_units": signed_units,
        "reason": check_reason(reason),
        "ext_user_id": ext_user_id,
        "proposed_by": proposed_by,
        "proposed_ms": at_ms,
        "proposer_eligible_ms": eligible_ms,
        "expires_ms": None if lasts_ms is None else at_ms + lasts_ms,
    }
    async with conn.transaction():
        return await _insert(conn, values)


async def _insert(conn: AsyncConnection, values: dict[str, Any]) -> Proposal:
    # Of two proposals at the same time, the second must see the first.
    await conn.execute(QUERIES["lock_proposing"].text, values)
    if await _fetch(conn, "find_same_open", values):
        raise ProposalRefused(ProposalRefusal.PROPOSED_ALREADY)
    found = await _fetch(conn, "insert_proposal", values)
    if not found:
        raise ProposalRefused(ProposalRefusal.NO_SUCH_ACCOUNT, merchant=values["merchant_id"])
    return found[0]


def _check(currency: str, signed_units: int, ext_user_id: str | None) -> None:
    if currency not in CURRENCIES:
        raise ProposalRefused(ProposalRefusal.CURRENCY_UNKNOWN, currencies=" or ".join(CURRENCIES))
    if not 0 < abs(signed_units) <= MAX_BALANCE_UNITS:
        raise ProposalRefused(ProposalRefusal.AMOUNT_OUT_OF_RANGE)
    if ext_user_id is not None and not (1 <= len(ext_user_id) <= 20 and ext_user_id.isprintable()):
        raise ProposalRefused(ProposalRefusal.SUB_USER_MALFORMED)


async def show(conn: AsyncConnection, proposal_no: int) -> Proposal | None:
    """One proposal; None if there is none with this number."""
    found = await _fetch(conn, "read_proposal", {"proposal_no": proposal_no})
    return found[0] if found else None


async def list_open(
    conn: AsyncConnection,
    *,
    now_ms: int = 0,
    merchant_id: int | None = None,
    after_no: int = 0,
    limit: int = 50,
) -> list[Proposal]:
    """Proposals that wait for a decision, oldest first, of one merchant or all.

    The last one's number is the next page's `after_no`.
    Proposals that have expired by `now_ms` are left out.
    """
    values = {
        "now_ms": now_ms,
        "merchant_id": merchant_id,
        "after_no": after_no,
        "page": check_limit(limit),
    }
    return await _fetch(conn, "list_open", values)


async def list_decided(
    conn: AsyncConnection,
    *,
    now_ms: int = 0,
    merchant_id: int | None = None,
    before_no: int | None = None,
    limit: int = 50,
) -> list[Proposal]:
    """Proposals that were decided or have expired by `now_ms`, newest first, of one merchant or all.

    The last one's number is the next page's `before_no`.
    """
    values = {
        "now_ms": now_ms,
        "before_no": MAX_BIGINT if before_no is None else before_no,
        "page": check_limit(limit),
    }
    if merchant_id is None:
        return await _fetch(conn, "list_decided", values)
    return await _fetch(conn, "list_decided_of_merchant", {**values, "merchant_id": merchant_id})


async def list_unfinished(conn: AsyncConnection, *, now_ms: int, limit: int = 50) -> list[Proposal]:
    """Acceptances older than a minute without the book's answer. They should be carried out again."""
    return await _fetch(
        conn, "list_unfinished", {"before_ms": now_ms - UNFINISHED_AFTER_MS, "page": check_limit(limit)}
    )


async def take(
    conn: AsyncConnection,
    proposal_no: int,
    decided_by: str,
    at_ms: int,
    eligible_ms: int = 0,
    *,
    roles: Collection[str],
    hold: Hold = hold_nothing,
) -> Proposal:
    """Accept an open proposal before the book is asked. `eligible_ms` as in `propose`.

    `roles` are the roles that may propose an adjustment. `hold` checks whatever else the decider needs, under
    the proposal's lock. Raises ProposalRefused, also if the proposer could not propose it any more, and what
    `hold` raises.
    """
    async with conn.transaction():
        taken = await _decide(conn, proposal_no, ACCEPTED, decided_by, at_ms, None, eligible_ms)
        # Under the lock of the proposal, for which this may have waited.
        if not await may_still_ask(conn, decided_by, at_ms, roles):
            raise ProposalRefused(ProposalRefusal.DECIDER_CHANGED)
        await hold(conn)
        if not await may_still_propose(conn, taken, roles):
            raise ProposalRefused(ProposalRefusal.PROPOSER_CHANGED)
        return taken


async def refuse(
    conn: AsyncConnection, proposal_no: int, decided_by: str, at_ms: int, reason: str
) -> Proposal:
    """Refuse an open proposal. No money moves. Raises ProposalRefused."""
    return await _decide(conn, proposal_no, REFUSED, decided_by, at_ms, check_reason(reason))


async def withdraw(conn: AsyncConnection, proposal_no: int, decided_by: str, at_ms: int) -> Proposal:
    """Withdraw one's own open proposal. Raises ProposalRefused."""
    return await _decide(conn, proposal_no, WITHDRAWN, decided_by, at_ms, None)


async def _decide(
    conn: AsyncConnection,
    proposal_no: int,
    state: str,
    decided_by: str,
    at_ms: int,
    outcome: str | None,
    eligible_ms: int = 0,
) -> Proposal:
    async with conn.transaction():
        proposal = await _lock(conn, proposal_no)
        check_decision(proposal, state, decided_by, eligible_ms, at_ms)
        values = {
            "merchant_id": proposal.merchant_id,
            "proposal_no": proposal_no,
            "state": state,
            "decided_by": decided_by,
            # The clocks of two machines may differ. A decision is never before its proposal.
            "decided_ms": max(at_ms, proposal.proposed_ms),
            "decider_eligible_ms": eligible_ms,
            "outcome": outcome,
        }
        return (await _fetch(conn, "decide", values))[0]


async def _lock(conn: AsyncConnection, proposal_no: int) -> Proposal:
    found = await _fetch(conn, "lock_proposal", {"proposal_no": proposal_no})
    if not found:
        raise ProposalRefused(ProposalRefusal.UNKNOWN, number=proposal_no)
    return found[0]


def command_of(proposal: Proposal) -> Adjust:
    """The command of an accepted proposal. It is always the same, with the same name."""
    assert proposal.decided_by is not None
    return Adjust(
        currency=proposal.currency,
        signed_units=proposal.signed_units,
        reason=proposal.reason,
        actor=proposal.decided_by,
        ext_user_id=proposal.ext_user_id,
        name=f"proposal-{proposal.proposal_no}",
        proposed_by=proposal.proposed_by,
    )


async def accept(
    conn: AsyncConnection,
    ask: Ask,
    proposal_no: int,
    decided_by: str,
    at_ms: int,
    eligible_ms: int = 0,
    *,
    roles: Collection[str],
    hold: Hold = hold_nothing,
) -> Proposal:
    """Accept a proposal and carry it out. Returns it with its result; `failed` if the book refused.

    `roles` and `hold` as in `take`.

    Raises ProposalRefused, and what `ask` raises. Then it stays accepted, and `carry_out` finds out the
    result. Raises RuntimeError inside a transaction, since its rollback would forget what the book has done.
    """
    if conn.info.transaction_status != TransactionStatus.IDLE:
        raise RuntimeError("an acceptance must be committed before the book is asked")
    taken = await take(conn, proposal_no, decided_by, at_ms, eligible_ms, roles=roles, hold=hold)
    return await carry_out(conn, ask, taken.proposal_no, roles=roles)


async def carry_out(conn: AsyncConnection, ask: Ask, proposal_no: int, *, roles: Collection[str]) -> Proposal:
    """Let the book make the entry of an accepted proposal, once, and store the answer.

    It may be called again at any time, also after a crash. A finished proposal is returned as it is. `roles`
    as in `take`. Raises ProposalRefused if nobody accepted it, and what `ask` raises.
    """
    async with conn.transaction():
        proposal = await _lock(conn, proposal_no)
        if proposal.state not in (ACCEPTED, FAILED):
            raise ProposalRefused(ProposalRefusal.NOT_ACCEPTED, number=proposal_no, state=proposal.state)
        if proposal.is_unfinished:
            assert proposal.decided_by is not None
            assert proposal.decided_ms is not None
            may = await may_still_ask(conn, proposal.decided_by, proposal.decided_ms, roles)
            command = command_of(proposal)
            if not may:
                command = FindAdjustment(**msgspec.structs.asdict(command))
            await note_outcome(conn, proposal, await ask(proposal.merchant_id, command))
            return await _lock(conn, proposal_no)
        return proposal


async def record_outcome(conn: AsyncConnection, author: Author, done: Proposal, stage: str) -> None:
    """Record in the audit log what became of an accepted proposal. `stage` is `accept` or `carry_out`.

    What the book refused is recorded as `adjustment.fail`.
    """
    facts = {"state": done.state, "entryId": done.entry_id, "outcome": done.outcome}
    subject = format_subject(done)
    action = "adjustment.fail" if done.state == FAILED else f"adjustment.{stage}"
    await author.record(conn, action, subject, done.merchant_id, after=facts)


def format_subject(proposal: Proposal) -> str:
    """The name of an adjustment in the audit log."""
    return f"proposal {proposal.proposal_no}"


async def note_outcome(conn: AsyncConnection, proposal: Proposal, outcome: Outcome) -> bool:
    """Store the book's answer. False if it was known already. Raises TypeError for any other outcome."""
    values: dict[str, Any] = {"merchant_id": proposal.merchant_id, "proposal_no": proposal.proposal_no}
    if isinstance(outcome, Adjusted):
        name, values["entry_id"] = "note_entry", outcome.entry_id
    elif isinstance(outcome, Refusal):
        name, values["outcome"] = "note_refusal", outcome.msg
    else:
        raise TypeError(f"the book answered an adjustment with {type(outcome).__name__}")
    cursor = await conn.execute(QUERIES[name].text, values)
    return await cursor.fetchone() is not None


async def _fetch(conn: AsyncConnection, name: str, values: dict[str, Any]) -> list[Proposal]:
    cursor = await conn.execute(QUERIES[name].text, values)
    return [Proposal(*row) for row in await cursor.fetchall()]
