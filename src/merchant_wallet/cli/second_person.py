"""What a command does if a change needs two people: it proposes the change, and another person accepts it.

Rules:
- You count as the name you are logged in with. The console and the command line share the same proposals.
- If nobody else could accept, the command makes the change alone, with a reason. The audit log then says
  `alone`. A platform without operators needs no reason.
- A reason is always kept in the audit log, also if one person is enough.
- In the sandbox one person is enough, unless WALLET_SANDBOX_TWO_PEOPLE says otherwise.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.session import SOURCE, Session, find_actor

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.approvals.decisions import Person


NOBODY_ELSE: Final = (
    "Two people are needed for this, and nobody else could accept it now: make another operator with "
    "`merchant-wallet operator create`."
)


async def find_person(session: Session) -> "Person":
    """The person at the terminal, and from when that person's approvals count."""
    from merchant_wallet.approvals.decisions import Person
    from merchant_wallet.operators.waits import read_eligible_ms

    actor = find_actor()
    return Person(actor, SOURCE, await read_eligible_ms(session.conn, actor))


async def propose(
    session: Session,
    kind: str,
    subject: str,
    facts: tuple[Mapping[str, Any], Mapping[str, Any]],
    reason: str | None,
    *,
    merchant_id: int | None = None,
    about: str = "",
    may_be_alone: bool = True,
) -> "ProposedChange | None":
    """Propose a change that needs a second person. None: this person may make it now.

    `about` is the operator who is changed, and who is not counted as someone who could accept. Unless
    `may_be_alone`, nobody makes it alone outside the sandbox. Raises ProposalRefused, and Failure without a
    reason.
    """
    from merchant_wallet.approvals import changes
    from merchant_wallet.base.clock import now_ms

    if not may_be_alone and session.settings.needs_two_people and not await _has_operators(session):
        raise Failure(NOBODY_ELSE, REFUSED)
    if not await _needs_two(session):
        return None
    if not reason:
        raise Failure(
            "This needs a second person: say why with --reason, and another person accepts it.", REFUSED
        )
    person, at_ms = await find_person(session), now_ms()
    if not await _has_decider(session, kind, [person.actor, about], at_ms):
        if not may_be_alone:
            raise Failure(NOBODY_ELSE, REFUSED)
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
    """Whether two people are needed. Not for a platform's first operator: nobody could accept."""
    return session.settings.needs_two_people and await _has_operators(session)


async def _has_operators(session: Session) -> bool:
    from merchant_wallet.operators.records import list_operators

    return bool(await list_operators(session.conn, limit=1))


async def _has_decider(session: Session, kind: str, besides: list[str], at_ms: int) -> bool:
    """Whether somebody else could accept a proposal of this kind now."""
    from merchant_wallet.operators.waits import count_deciders
    from merchant_wallet.web.proposal_rights import RIGHTS

    return bool(await count_deciders(session.conn, RIGHTS[kind], besides, at_ms=at_ms))


def describe_lone_change(session: Session, reason: str | None) -> dict[str, Any]:
    """What the audit log stores if a change needed a second person and there was none."""
    if not session.settings.needs_two_people:
        return describe_reason(reason)
    return {"alone": True, "reason": None, **describe_reason(reason)}


def describe_reason(reason: str | None) -> dict[str, Any]:
    """The reason as the audit log stores it. Raises ProposalRefused for an invalid one."""
    from merchant_wallet.approvals.decisions import check_reason

    return {} if reason is None else {"reason": check_reason(reason)}


def describe(change: "ProposedChange") -> dict[str, Any]:
    """A proposal as a document. Its facts are objects."""
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
    """A proposal's document for people: the facts before and after in words."""
    from functools import partial

    from merchant_wallet.console.fact_words import say_facts
    from merchant_wallet.web.languages import Language, translate

    say = partial(translate, Language.EN)
    return {**document, **{name: say_facts(document[name], {}, say) for name in ("before", "after")}}


def print_proposal(document: Mapping[str, Any], as_json: bool) -> None:
    """Print one proposal's document."""
    terminal.print_answer(document if as_json else flatten(document), as_json)


def print_changed(done: "dict[str, Any] | ProposedChange", as_json: bool, **more: Any) -> None:
    """Print what was changed, or the proposal that was made instead, with more fields."""
    if isinstance(done, dict):
        terminal.print_answer({**done, **more}, as_json)
    else:
        print_proposed(done, as_json, **more)


def print_proposed(change: "ProposedChange", as_json: bool, **more: Any) -> None:
    """Print a proposal that was made instead of the change, with more fields, and what to do next."""
    print_proposal({**describe(change), **more}, as_json)
    terminal.note(
        f"Nothing was changed yet. Another person accepts it in the console, or with "
        f"`merchant-wallet proposals accept {change.proposal_no}`."
    )
