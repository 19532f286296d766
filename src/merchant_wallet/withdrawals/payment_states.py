"""The life of one attempt to pay an order, as tables. Pure.

An attempt is in one `State` at a time. Each state has one `Action`, which does the I/O and is answered by
one `Event`. `STEPS` says which state an event leads to; a pair that is not in it is a fault. A state without
an action ends the attempt. `payment` runs the tables.

Rules that the tables hold:
- Bytes are sent only after they are stored.
- A second transfer is signed only when one that is stuck or refused is replaced at the same nonce, or when
  the chain has proven that all earlier ones are void. An attempt does so at most once.
- A nonce is released only while nothing signed for it is stored. If the signer was asked and did not say no,
  it may have signed: the order keeps the nonce until it fails. The same holds for a nonce from an earlier
  attempt.
- An order is failed only on proof: the recipient can't be paid and nothing signed can count, or the chain
  proves that nothing was or will be paid.
- An order is settled only by a final transfer that is exactly the order.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from merchant_wallet.base.state_table import next_state
from merchant_wallet.chains.protocol import Blocked, Expired, FinalRecord, ProvenUnpaid, Unpayable, Verdict
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.chains.transport import NodeRefused


class State(Enum):
    """What an attempt does now and why, or how it ended."""

    # Nothing is signed and stored for the order.
    CHECKING = auto()
    """Nothing is reserved yet."""
    CHECKING_RESERVED = auto()
    """An earlier attempt reserved. The signer may have signed for its nonce."""
    CHECKING_MOVED = auto()
    """The reservation is in an earlier hot wallet, whose key is not here."""
    RELEASING_MOVED = auto()
    RESERVING = auto()
    SIGNING = auto()
    """This attempt reserved: nobody has signed for the nonce."""
    SIGNING_RESERVED = auto()
    """The signer may have signed for the nonce before, so the order keeps it until it fails."""
    STORING = auto()
    RELEASING_BLOCKED = auto()
    RELEASING_FAILED = auto()

    # A signed transfer is stored. It may be on the chain.
    JUDGING = auto()
    SENDING = auto()
    SENDING_STUCK = auto()
    """The newest transfer waits for too long, but it may only have been forgotten by the nodes."""
    JUDGING_SENT = auto()

    # Another transfer is signed, once in an attempt.
    CHECKING_STOPS = auto()
    CHECKING_REFUSED = auto()
    """No node has the newest transfer, and enough nodes refuse it. Its fee may be too low for them."""
    REPLACING = auto()
    """At the same nonce, so that only one of them can count."""
    CHECKING_REBUILD = auto()
    CHECKING_EXPIRED = auto()
    REBUILDING = auto()
    """All that was signed is void."""
    STORING_AGAIN = auto()
    SENDING_AGAIN = auto()
    JUDGING_AGAIN = auto()

    # The attempt is over.
    WAITING = auto()
    """The transfer is on its way."""
    RETRYING = auto()
    """The new transfer expired at once. The next attempt begins without a pause."""
    BLOCKED = auto()
    """An obstacle may pass. The order waits."""
    IRREPLACEABLE = auto()
    """A stuck transfer can't be replaced. It may still count, so the order waits."""
    UNPAYABLE = auto()
    """The recipient can't be paid, and nothing that was signed counts: the order fails."""
    PROVEN_UNPAID = auto()
    """The chain proves that nothing was or will be paid: the order fails."""
    PAID = auto()
    SUSPECT = auto()
    """The chain's final record is not the order: order and hot wallet are frozen."""
    FAILED = auto()
    """An error that decides nothing, or the claim was lost. Another attempt follows."""


class Event(Enum):
    """How an action went."""

    PAYABLE = auto()
    UNPAYABLE = auto()
    """Proof that the recipient can't be paid now."""
    ALLOWED = auto()
    BLOCKED = auto()
    """An obstacle that may pass; the signer's refusal is one."""
    RESERVED = auto()
    RELEASED = auto()
    SIGNED = auto()
    UNANSWERED = auto()
    """The signer was perhaps asked and gave no answer: it may have signed."""
    STORED = auto()
    SENT = auto()
    """The newest transfer was sent for the first time."""
    SENT_AGAIN = auto()
    REFUSED = auto()
    """Enough nodes refused the bytes, and none of them has the transfer."""
    PENDING = auto()
    MINED = auto()
    """A transfer is in a block that is not final yet."""
    STUCK = auto()
    EXPIRED = auto()
    PROVEN_UNPAID = auto()
    FINAL = auto()
    """A transfer is final, and is exactly the order."""
    DIFFERENT = auto()
    """A transfer is final, and is not the order."""
    FAILED = auto()
    """Any other error. The action may have had its effect all the same, but nothing was signed by it."""


class Action(Enum):
    """The I/O of a state."""

    CHECK_PAYABLE = auto()
    RESERVE = auto()
    SIGN = auto()
    STORE = auto()
    RELEASE = auto()
    SEND = auto()
    JUDGE = auto()
    CHECK_STOPS = auto()
    CHECK_REBUILD = auto()


ACTIONS: Final[Mapping[State, Action]] = {
    State.CHECKING: Action.CHECK_PAYABLE,
    State.CHECKING_RESERVED: Action.CHECK_PAYABLE,
    State.CHECKING_MOVED: Action.CHECK_PAYABLE,
    State.RELEASING_MOVED: Action.RELEASE,
    State.RESERVING: Action.RESERVE,
    State.SIGNING: Action.SIGN,
    State.SIGNING_RESERVED: Action.SIGN,
    State.STORING: Action.STORE,
    State.RELEASING_BLOCKED: Action.RELEASE,
    State.RELEASING_FAILED: Action.RELEASE,
    State.JUDGING: Action.JUDGE,
    State.SENDING: Action.SEND,
    State.SENDING_STUCK: Action.SEND,
    State.JUDGING_SENT: Action.JUDGE,
    State.CHECKING_STOPS: Action.CHECK_STOPS,
    State.CHECKING_REFUSED: Action.CHECK_REBUILD,
    State.REPLACING: Action.SIGN,
    State.CHECKING_REBUILD: Action.CHECK_REBUILD,
    State.CHECKING_EXPIRED: Action.CHECK_PAYABLE,
    State.REBUILDING: Action.SIGN,
    State.STORING_AGAIN: Action.STORE,
    State.SENDING_AGAIN: Action.SEND,
    State.JUDGING_AGAIN: Action.JUDGE,
}
"""What each state does. States that are missing here end the attempt."""

# The attempt ends, and a reservation stays as it is.
_EITHER: Final = {Event.BLOCKED: State.BLOCKED, Event.FAILED: State.FAILED}
_CHECKED: Final = {**_EITHER, Event.UNPAYABLE: State.UNPAYABLE}
_KEEPS_NONCE: Final = {**_CHECKED, Event.UNANSWERED: State.FAILED}
_DECIDED: Final = {
    **_EITHER,
    Event.PROVEN_UNPAID: State.PROVEN_UNPAID,
    Event.FINAL: State.PAID,
    Event.DIFFERENT: State.SUSPECT,
}

STEPS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.CHECKING: {**_CHECKED, Event.PAYABLE: State.RESERVING},
    State.CHECKING_RESERVED: {**_CHECKED, Event.PAYABLE: State.SIGNING_RESERVED},
    State.CHECKING_MOVED: {**_CHECKED, Event.PAYABLE: State.RELEASING_MOVED},
    State.RELEASING_MOVED: {**_EITHER, Event.RELEASED: State.RESERVING},
    State.RESERVING: {**_CHECKED, Event.RESERVED: State.SIGNING},
    State.SIGNING: {
        Event.SIGNED: State.STORING,
        Event.UNPAYABLE: State.UNPAYABLE,
        Event.BLOCKED: State.RELEASING_BLOCKED,
        Event.FAILED: State.RELEASING_FAILED,
        Event.UNANSWERED: State.FAILED,
    },
    State.SIGNING_RESERVED: {**_KEEPS_NONCE, Event.SIGNED: State.STORING},
    State.STORING: {**_EITHER, Event.STORED: State.SENDING},
    State.RELEASING_BLOCKED: {**_EITHER, Event.RELEASED: State.BLOCKED},
    State.RELEASING_FAILED: {**_EITHER, Event.RELEASED: State.FAILED},
    State.JUDGING: {
        **_DECIDED,
        Event.PENDING: State.SENDING,
        Event.MINED: State.WAITING,
        Event.STUCK: State.SENDING_STUCK,
        Event.EXPIRED: State.CHECKING_REBUILD,
    },
    State.SENDING: {
        **_EITHER,
        Event.SENT: State.JUDGING_SENT,
        Event.SENT_AGAIN: State.WAITING,
        Event.REFUSED: State.CHECKING_REFUSED,
    },
    State.SENDING_STUCK: {
        **_EITHER,
        Event.SENT: State.JUDGING_SENT,
        Event.SENT_AGAIN: State.CHECKING_STOPS,
        # Nodes may refuse bytes whose fee is too low by now. Only a replacement helps.
        Event.REFUSED: State.CHECKING_STOPS,
    },
    State.JUDGING_SENT: {
        **_DECIDED,
        Event.PENDING: State.WAITING,
        Event.MINED: State.WAITING,
        Event.STUCK: State.CHECKING_STOPS,
        Event.EXPIRED: State.CHECKING_REBUILD,
    },
    State.CHECKING_STOPS: {**_EITHER, Event.ALLOWED: State.REPLACING},
    State.CHECKING_REFUSED: {**_EITHER, Event.ALLOWED: State.REPLACING},
    # What was signed may still count, so an unpayable recipient proves nothing about the order.
    State.REPLACING: {
        **_KEEPS_NONCE,
        Event.UNPAYABLE: State.IRREPLACEABLE,
        Event.SIGNED: State.STORING_AGAIN,
    },
    State.CHECKING_REBUILD: {**_EITHER, Event.ALLOWED: State.CHECKING_EXPIRED},
    State.CHECKING_EXPIRED: {**_CHECKED, Event.PAYABLE: State.REBUILDING},
    State.REBUILDING: {**_KEEPS_NONCE, Event.SIGNED: State.STORING_AGAIN},
    State.STORING_AGAIN: {**_EITHER, Event.STORED: State.SENDING_AGAIN},
    State.SENDING_AGAIN: {**_EITHER, Event.REFUSED: State.FAILED, Event.SENT: State.JUDGING_AGAIN},
    State.JUDGING_AGAIN: {
        **_DECIDED,
        Event.PENDING: State.WAITING,
        Event.MINED: State.WAITING,
        Event.STUCK: State.WAITING,
        Event.EXPIRED: State.RETRYING,
    },
}
"""Every legal step of an attempt."""


def begin(*, is_signed: bool, is_reserved: bool, is_moved: bool) -> State:
    """The first state of an attempt at an order.

    `is_signed`: signed transfers are stored. `is_moved`: the reservation is in another hot wallet.
    """
    if is_signed:
        return State.JUDGING
    if is_moved:
        return State.CHECKING_MOVED
    return State.CHECKING_RESERVED if is_reserved else State.CHECKING


def step(state: State, event: Event) -> State:
    """The state that an event leads to. Raises IllegalStep."""
    return next_state(STEPS, state, event)


def read_verdict(verdict: Verdict, *, is_exact: bool, has_nonces: bool) -> Event:
    """The event that a chain's verdict is. `is_exact` is about a final transfer: whether it is the order.

    Only a chain with nonces lets a stuck transfer be replaced.
    """
    if isinstance(verdict, FinalRecord):
        return Event.FINAL if is_exact else Event.DIFFERENT
    if isinstance(verdict, ProvenUnpaid):
        return Event.PROVEN_UNPAID
    if isinstance(verdict, Expired):
        return Event.EXPIRED
    if verdict.is_mined:
        return Event.MINED
    return Event.STUCK if verdict.stuck and has_nonces else Event.PENDING


def read_error(action: Action, error: Exception, *, has_nonces: bool) -> Event:
    """The event that an error of an action is. Every state with the action has a step for it.

    Only a chain with nonces lets a refused transfer be replaced.
    """
    # Elsewhere a signed transfer may still count, so the error proves nothing about the order.
    if action in (Action.CHECK_PAYABLE, Action.RESERVE, Action.SIGN) and isinstance(error, Unpayable):
        return Event.UNPAYABLE
    if isinstance(error, Blocked):
        return Event.BLOCKED
    # What was refused may still count. Only the same nonce makes sure that its replacement counts alone.
    if action is Action.SEND and has_nonces and isinstance(error, NodeRefused):
        return Event.REFUSED
    # A chain asks the signer last, so any other error comes before that.
    if action is Action.SIGN and isinstance(error, SignerAway | TimeoutError):
        return Event.UNANSWERED
    return Event.FAILED
