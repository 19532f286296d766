"""Who may propose, and who may decide a proposal. Pure.

Rules:
- The name in an actor identifies the person: `cli:ann` and `operator:Ann` are one person.
- A proposal is decided once. Its proposer can't accept it. Only its proposer can withdraw it.
- A person whose approvals do not count yet can neither propose nor accept: an operator who is new, was reset,
  was enabled again or got more rights. Everybody may refuse, since that changes nothing.
- While a proposal is open, the same can't be proposed again. So a double click makes one proposal.
- A proposal can't be accepted after its proposer's account lost its standing; see `proposers`.
- After its deadline a proposal can only be refused or withdrawn.
"""

from typing import Final, Protocol

import msgspec

from merchant_wallet.book.actors import person_of

OPEN: Final = "open"
ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
WITHDRAWN: Final = "withdrawn"
FAILED: Final = "failed"

MAX_REASON: Final = 500
MAX_PAGE: Final = 200
HIGHEST_NO: Final = 2**63 - 1

NOT_YET: Final = (
    "Your word does not count yet: an operator who is new, was reset, was let in again or got more rights "
    "waits before it does."
)
PROPOSED_ALREADY: Final = "The same is proposed already: accept, refuse or withdraw that proposal first."
PROPOSER_CHANGED: Final = (
    "The proposer's account was disabled, reset or changed after this was proposed: propose it again."
)
OWN: Final = "Another person must accept it: this proposal is your own."
DECIDED_ALREADY: Final = "Proposal {number} was decided already: {state} by {name}."
NOT_ITS_PROPOSER: Final = "Only {name} can withdraw it; you can refuse it."
EXPIRED: Final = "Proposal {number} has expired: propose it again."
NOTHING_TO_PROPOSE: Final = "There is nothing to propose: the value is that already."


class ProposalRefused(ValueError):
    """A proposal can't be made or decided like this. The text is a sentence that says why.

    `sentence` is the text without its `values`. Pages use it as the key of the translation.
    """

    def __init__(self, sentence: str, **values: object) -> None:
        super().__init__(sentence.format(**values) if values else sentence)
        self.sentence = sentence
        self.values = values


class Person(msgspec.Struct, frozen=True):
    """Who proposes or decides, from which source address, and from when that person's approvals count."""

    actor: str
    source: str
    counts_ms: int = 0


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
    """The reason without surrounding spaces. Raises ProposalRefused."""
    text = reason.strip()
    if not 1 <= len(text) <= MAX_REASON or not text.isprintable():
        raise ProposalRefused(f"reason must be 1 to {MAX_REASON} printable characters.")
    return text


def check_proposer(actor: str, counts_ms: int, at_ms: int) -> None:
    """Raise ProposalRefused if this person can't propose."""
    if not person_of(actor).strip():
        raise ProposalRefused("A proposal needs the name of the person who makes it.")
    if at_ms < counts_ms:
        raise ProposalRefused(NOT_YET)


def check_decision(proposal: Decidable, state: str, actor: str, counts_ms: int, at_ms: int) -> None:
    """Raise ProposalRefused if this person can't decide the proposal this way."""
    if not person_of(actor).strip():
        raise ProposalRefused("A decision needs the name of the person who makes it.")
    number = proposal.proposal_no
    if proposal.state != OPEN:
        raise ProposalRefused(DECIDED_ALREADY, number=number, state=proposal.state, name=proposal.decided_by)
    if state == WITHDRAWN and not is_own(proposal, actor):
        raise ProposalRefused(NOT_ITS_PROPOSER, name=proposal.proposed_by)
    if state != ACCEPTED:
        return
    if is_own(proposal, actor):
        raise ProposalRefused(OWN)
    if is_expired(proposal, at_ms):
        raise ProposalRefused(EXPIRED, number=number)
    if at_ms < counts_ms:
        raise ProposalRefused(NOT_YET)


def check_limit(limit: int) -> int:
    """A page's length. Raises ValueError."""
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"A page has 1 to {MAX_PAGE} proposals.")
    return limit
