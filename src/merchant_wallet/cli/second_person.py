"""What a command does where two people are asked for: it proposes, and another person accepts.

Rules:
- You count as the name you are logged in with. The console and the command line decide the same proposals.
- While nobody else could accept, the shell is the second person: the command does it alone, with a reason.
  The audit log's entry then says `alone`. A platform without any operator asks for no reason.
- A reason that is given stands in the audit log, also where one person is enough.
- In the sandbox one person is enough, unless WALLET_SANDBOX_TWO_PEOPLE says otherwise.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.session import SOURCE, Session, name_actor

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.approvals.decisions import Person


async def name_person(session: Session) -> "Person":
    """Who is at the terminal, and from when that person's word counts."""
    from merchant_wallet.approvals.decisions import Person
    from merchant_wallet.operators.waits import read_wait_end

    actor = name_actor()
    return Person(actor, SOURCE, await read_wait_end(session.conn, actor))


async def propose(
    session: Session,
    kind: str,
    subject: str,
    facts: tuple[Mapping[str, Any], Mapping[str, Any]],
    reason: str | None,
    *,
    merchant_id: int | None = None,
    about: str = "",
) -> "ProposedChange | None":
    """Propose a change that needs a second person; None when this person does it now.

    `about` is an operator whom it concerns, and who is not counted as able to decide it. Raises Failure
    without a reason, ProposalRefused.
    """
    from merchant_wallet.approvals import changes
    from merchant_wallet.base.clock import now_ms

    if not await _needs_two(session):
        return None
    if not reason:
        raise Failure(
            "This needs a second person: say why with --reason, and another person accepts it.", REFUSED
        )
    person, at_ms = await name_person(session), now_ms()
    if not await _has_decider(session, kind, [person.actor, about], at_ms):
        terminal.note("Nobody else could accept it now, so it is done at once; the audit log says that.")
        return None
    return await changes.propose(
        session.conn,
        kind,
        subject,
        *facts,
        reason,
        person=person,
        at_ms=at_ms,
        lasts_ms=session.settings.proposal_deadline_s * 1000,
        merchant_id=merchant_id,
    )


async def _needs_two(session: Session) -> bool:
    """Whether two people are asked for; not for a platform's first operator, whom nobody could accept."""
    from merchant_wallet.operators.records import list_operators

    return session.settings.needs_two_people and bool(await list_operators(session.conn, limit=1))


async def _has_decider(session: Session, kind: str, besides: list[str], at_ms: int) -> bool:
    """Whether anybody but these people could accept a proposal of this kind now."""
    from merchant_wallet.operators.waits import count_deciders
    from merchant_wallet.web.guards import RIGHTS

    return bool(await count_deciders(session.conn, RIGHTS[kind], besides, at_ms=at_ms))


def tell_alone(session: Session, reason: str | None) -> dict[str, Any]:
    """What the audit log keeps beside a change that needed a second person and had none."""
    if not session.settings.needs_two_people:
        return tell_reason(reason)
    return {"alone": True, "reason": None, **tell_reason(reason)}


def tell_reason(reason: str | None) -> dict[str, Any]:
    """The reason that was given, as the audit log keeps it. Raises ProposalRefused for one that can't be."""
    from merchant_wallet.approvals.decisions import check_reason

    return {} if reason is None else {"reason": check_reason(reason)}


def describe(change: "ProposedChange") -> dict[str, Any]:
    """A proposal as a document; its facts are objects."""
    return {
        "proposalNo": change.proposal_no,
        "kind": change.kind,
        "subject": change.subject,
        "merchantId": change.merchant_id,
        "state": change.state,
        "before": change.before,
        "after": change.after,
        "reason": change.reason,
        "proposedBy": change.proposed_by,
        "proposedMs": change.proposed_ms,
        "expiresMs": change.expires_ms,
        "decidedBy": change.decided_by,
        "decidedMs": change.decided_ms,
        "outcome": change.outcome,
    }


def flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """A proposal's document for people: what it holds before and after as one text each."""
    texts = {name: tell_facts(document[name]) for name in ("before", "after")}
    return {**document, **texts}


def tell_facts(facts: Mapping[str, Any]) -> str:
    """Facts in one line."""
    return ", ".join(f"{name}: {_tell_fact(name, value)}" for name, value in facts.items())


def _tell_fact(name: str, value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False) if value else "none"
    return terminal.show_value(name, value)


def print_proposal(document: Mapping[str, Any], as_json: bool) -> None:
    """Print one proposal's document."""
    terminal.print_answer(document if as_json else flatten(document), as_json)


def print_proposed(change: "ProposedChange", as_json: bool) -> None:
    """Print a proposal that was made instead of the change, and how it goes on."""
    print_proposal(describe(change), as_json)
    terminal.note(
        f"Nothing was changed yet. Another person accepts it in the console, or with "
        f"`merchant-wallet proposals accept {change.proposal_no}`."
    )
