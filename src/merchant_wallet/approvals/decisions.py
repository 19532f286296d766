"""Who may propose, and who may decide a proposal. Pure.

Rules:
- The name in an actor identifies the person: `cli:ann` and `operator:Ann` are one person.
- A proposal is decided once. Its proposer can't accept it. Only its proposer can withdraw it.
- A person whose approvals do not count yet can neither propose nor accept: an operator who is new, was reset,
  was enabled again or got more rights. Everybody may refuse, since that changes nothing.
- While a proposal is open, the same can't be proposed again. So a double click makes one proposal.
- A proposal can't be accepted once its proposer may no longer propose it; see `standing`.
- After its deadline a proposal can only be refused or withdrawn.
"""

from enum import Enum
from typing import Final, Protocol

import msgspec

from merchant_wallet.base.invisible_text import clean
from merchant_wallet.book.actors import person_of

OPEN: Final = "open"
ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
WITHDRAWN: Final = "withdrawn"
FAILED: Final = "failed"

MAX_REASON: Final = 500
MAX_PAGE: Final = 200
"""The proposals of a page."""
MAX_READ: Final = 20_000
"""The proposals of one read: counts and notifications are about all that wait."""


class ProposalRefusal(Enum):
    """Why a proposal or a decision is refused. The value is the sentence, with fields in braces."""

    NOT_YET = "Your approvals do not count yet. A new, reset, enabled or promoted operator must wait first."
    PROPOSED_ALREADY = "The same change is already proposed. Accept, refuse or withdraw that proposal first."
    PROPOSER_CHANGED = (
        "The proposer's account was disabled, reset or changed after this was proposed. Propose it again."
    )
    DECIDER_CHANGED = "Your account was disabled or reset, or has lost the right."
    OWN = "Another person must accept it: this proposal is your own."
    DECIDED_ALREADY = "Proposal {number} was decided already: {state} by {name}."
    NOT_ITS_PROPOSER = "Only {name} can withdraw it. You can refuse it."
    EXPIRED = "Proposal {number} has expired: propose it again."
    TOO_MANY = "{most} proposals of this merchant's own people wait already. Wait until some are decided."
    NOTHING_TO_PROPOSE = "The value is already set."
    UNKNOWN = "There is no proposal {number}."
    OTHER_KIND = "Proposal {number} is of another kind: {kind}."
    NOT_ACCEPTED = "Proposal {number} is {state}, so it can't be carried out."
    NO_REASON = "reason must be 1 to {most} printable characters."
    NO_PROPOSER = "A proposal needs the name of the person who makes it."
    NO_DECIDER = "A decision needs the name of the person who makes it."
    NO_SUCH_ACCOUNT = "merchant: there is no {merchant}, or it has USDT alone."
    CURRENCY_UNKNOWN = "currency must be {currencies}."
    AMOUNT_OUT_OF_RANGE = "amount must not be 0, nor more than a book can hold."
    SUB_USER_MALFORMED = "extUserId must be 1 to 20 printable characters."


class ProposalRefused(ValueError):
    """A proposal can't be made or decided like this. `refusal` is the rule, the text its sentence."""

    def __init__(self, refusal: ProposalRefusal, **values: object) -> None:
        super().__init__(refusal.value.format(**values))
        self.refusal = refusal
        self.values = values


class Person(msgspec.Struct, frozen=True):
    """Who acts, from which source address, and from when that person's approvals count.

    At the console also the session's id, and the role and the merchant that the rights were checked for.
    """

    actor: str
    source: str
    eligible_ms: int = 0
    session_id: str = ""
    role: str = ""
    merchant_id: int | None = None

    def __repr__(self) -> str:
        return f"Person({self.actor!r}, {self.source!r})"


class Decidable(Protocol):
    """The fields of a proposal that a decision depends on."""

    @property
    def proposal_no(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def proposed_by(self) -> str: ...
    @property
    def proposed_ms(self) -> int: ...
    @property
    def decided_by(self) -> str | None: ...
    @property
    def expires_ms(self) -> int | None: ...


def is_expired(proposal: Decidable, at_ms: int) -> bool:
    """Whether an open proposal has expired, so that nobody can accept it."""
    return proposal.state == OPEN and proposal.expires_ms is not None and at_ms > proposal.expires_ms


def is_own(proposal: Decidable, actor: str) -> bool:
    """Whether this person made the proposal, on any channel."""
    return person_of(proposal.proposed_by) == person_of(actor)


def check_reason(reason: str) -> str:
    """The reason as it is stored, with usual spaces and clean ends. Raises ProposalRefused."""
    text = clean(reason)
    if not 1 <= len(text) <= MAX_REASON or not text.isprintable():
        raise ProposalRefused(ProposalRefusal.NO_REASON, most=MAX_REASON)
    return text


def check_proposer(actor: str, eligible_ms: int, at_ms: int) -> None:
    """Raise ProposalRefused if this person can't propose."""
    if not person_of(actor).strip():
        raise ProposalRefused(ProposalRefusal.NO_PROPOSER)
    if at_ms < eligible_ms:
        raise ProposalRefused(ProposalRefusal.NOT_YET)


def check_decision(proposal: Decidable, state: str, actor: str, eligible_ms: int, at_ms: int) -> None:
    """Raise ProposalRefused if this person can't decide the proposal this way."""
    if not person_of(actor).strip():
        raise ProposalRefused(ProposalRefusal.NO_DECIDER)
    number = proposal.proposal_no
    if proposal.state != OPEN:
        told = {"number": number, "state": proposal.state, "name": proposal.decided_by}
        raise ProposalRefused(ProposalRefusal.DECIDED_ALREADY, **told)
    if state == WITHDRAWN and not is_own(proposal, actor):
        raise ProposalRefused(ProposalRefusal.NOT_ITS_PROPOSER, name=proposal.proposed_by)
    if state != ACCEPTED:
        return
    if is_own(proposal, actor):
        raise ProposalRefused(ProposalRefusal.OWN)
    if is_expired(proposal, at_ms):
        raise ProposalRefused(ProposalRefusal.EXPIRED, number=number)
    if at_ms < eligible_ms:
        raise ProposalRefused(ProposalRefusal.NOT_YET)


def check_limit(limit: int) -> int:
    """How many proposals are read. Raises ValueError."""
    if not 1 <= limit <= MAX_READ:
        raise ValueError(f"1 to {MAX_READ} proposals are read at once.")
    return limit
