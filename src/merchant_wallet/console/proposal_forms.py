"""Proposals made from forms, and what a page says about the second person beforehand.

Rules:
- A form that may need a second person has a field for the reason. Without a reason nothing is proposed or
  changed.
- If one person is enough (in the sandbox), the page says that two are needed outside the sandbox.
"""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from merchant_wallet.approvals import changes, decisions
from merchant_wallet.approvals.changes import Facts, ProposedChange
from merchant_wallet.approvals.decisions import ProposalRefusal, ProposalRefused
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.custody.cold.two_person_changes import ColdRefusal
from merchant_wallet.custody.rescues.two_person_changes import RescueRefusal
from merchant_wallet.web.languages import N_

PROPOSALS: Final = "/console/proposals"
REASON: Final = "reason"
NO_REASON: Final = N_("Say why, in 1 to 500 characters. The second person decides by this reason.")
NEEDS_REASON: Final = N_("Nothing was changed. Another person must agree and needs your reason.")
PROPOSED: Final = N_("Proposed. It takes effect when another person accepts it.")
OVER: Final = N_("It was changed meanwhile, so this decision is not possible. Look at it again.")
OTHERWISE: Final = N_("It was refused: {why}")
RULE_REFUSED: Final = N_("The change is not allowed now: {why}")
STALE: Final = N_("The value was changed after this was proposed. Propose it again.")
REFUSALS: Final[Mapping[ProposalRefusal, str]] = {
    ProposalRefusal.NOT_YET: N_(
        "Your approvals do not count yet. A new, reset, enabled or promoted operator must wait first."
    ),
    ProposalRefusal.PROPOSED_ALREADY: N_(
        "The same change is already proposed. Accept, refuse or withdraw that proposal first."
    ),
    ProposalRefusal.PROPOSER_CHANGED: N_(
        "The proposer's account was disabled, reset or changed after this was proposed. Propose it again."
    ),
    ProposalRefusal.DECIDER_CHANGED: N_("Your account was disabled or reset, or has lost the right."),
    ProposalRefusal.OWN: N_("It is your own proposal: another person must accept it."),
    ProposalRefusal.NOTHING_TO_PROPOSE: N_("The value is already set."),
}
NAMING_REFUSALS: Final[Mapping[ProposalRefusal, str]] = {
    ProposalRefusal.DECIDED_ALREADY: N_("{name} has already decided it. Look at it again."),
    ProposalRefusal.NOT_ITS_PROPOSER: N_("Only {name} can withdraw it. You can refuse it."),
    ProposalRefusal.TOO_MANY: N_(
        "{most} proposals of this merchant's own people wait already. Wait until some are decided."
    ),
    ProposalRefusal.EXPIRED: N_("It has expired. Propose it again."),
}
"""How a page words the refusals that name a person or a thing."""
OUTCOMES: Final[Mapping[str, str]] = {
    changes.STALE: STALE,
    ProposalRefusal.PROPOSER_CHANGED.value: REFUSALS[ProposalRefusal.PROPOSER_CHANGED],
    **{refusal.value: refusal.value for refusal in (*ColdRefusal, *RescueRefusal)},
}
"""Why a proposal failed without the rule of its kind. What is stored of it is the sentence."""


class Unproposed(Exception):
    """The change needs a second person and can't be proposed like this. Nothing was changed."""

    def __init__(self, errors: Mapping[str, str], problem: str) -> None:
        super().__init__(problem)
        self.errors = errors
        self.problem = problem


def url_of(change: ProposedChange) -> str:
    """The URL of a proposal's page."""
    return f"{PROPOSALS}/{change.proposal_no}"


def find_reason_error(request: ConsoleRequest, told: str = NO_REASON) -> dict[str, str]:
    """The error of the reason in a form that proposes or refuses something."""
    try:
        decisions.check_reason(request.form.text(REASON))
    except ProposalRefused:
        return {REASON: request.translate(told)}
    return {}


def read_reason(request: ConsoleRequest) -> dict[str, str]:
    """The typed reason, for the audit log if one person is enough. Raises Unproposed."""
    text = request.form.text(REASON)
    if not text:
        return {}
    if errors := find_reason_error(request):
        raise Unproposed(errors, errors[REASON])
    return {REASON: decisions.check_reason(text)}


async def propose(
    request: ConsoleRequest,
    conn: Connection,
    kind: str,
    subject: str,
    before: Facts,
    after: Facts,
    merchant_id: int | None = None,
) -> ProposedChange:
    """Propose the change of a form, with its reason. Raises Unproposed."""
    if errors := find_reason_error(request):
        raise Unproposed(errors, request.translate(NEEDS_REASON))
    try:
        return await changes.propose(
            conn,
            kind,
            subject,
            before,
            after,
            request.form.text(REASON),
            person=request.person,
            at_ms=request.at_ms,
            lasts_ms=request.context.settings.proposal_deadline_s * 1000,
            merchant_id=merchant_id,
        )
    except ProposalRefused as refused:
        raise Unproposed({}, describe_refusal(request, refused)) from None


def describe_refusal(request: ConsoleRequest, refused: ProposalRefused) -> str:
    """Why a proposal or a decision was refused, in the user's language."""
    known = REFUSALS.get(refused.refusal) or NAMING_REFUSALS.get(refused.refusal)
    return request.translate(known or OTHERWISE, **refused.values, why=refused)


def describe_outcome(request: ConsoleRequest, change: ProposedChange) -> str:
    """Why a proposal failed, or the reason of its refusal; otherwise empty."""
    if change.outcome is None or change.state != decisions.FAILED:
        return change.outcome or ""
    known = OUTCOMES.get(change.outcome)
    return request.translate(RULE_REFUSED, why=change.outcome) if known is None else request.translate(known)


def redirect_to(request: ConsoleRequest, change: ProposedChange) -> Response:
    """Redirect to the page of a new proposal."""
    return request.redirect(url_of(change), PROPOSED)


async def list_about(request: ConsoleRequest, conn: Connection, subject: str) -> list[ProposedChange]:
    """The open proposals about one subject, for its page."""
    return await changes.list_open(conn, at_ms=request.at_ms, subject=subject)
