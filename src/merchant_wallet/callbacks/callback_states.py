"""The life of a callback, as a table. Pure.

A callback is due from the commit of what it tells. Each attempt that fails has it sent again later, and after
the last repeat it is a dead letter. An operator can pause a callback that is due, and have any callback sent
again.

Rules that the table holds:
- An answer of success delivers a callback in any state: it is a fact, however late it is written down.
- A failed attempt decides only about a callback that is due. If an operator or a later attempt has moved it,
  the failure is kept with the attempt and changes nothing else.
- No callback is lost: from every state an operator can have it sent again.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from merchant_wallet.callbacks.schedule import PAUSES_S


class State(StrEnum):
    """What a callback waits for. The database has the same words."""

    DUE = "due"
    DELIVERED = "delivered"
    DEAD_LETTER = "dead_letter"
    """The last attempt failed. An operator decides."""
    PAUSED = "paused"


class Event(Enum):
    """What happens to a callback."""

    SUCCEEDED = auto()
    """The merchant's server answered with success."""
    FAILED = auto()
    """An attempt failed, and another one follows."""
    EXHAUSTED = auto()
    """An attempt failed, and no other one follows."""
    SENT_AGAIN = auto()
    """An operator has it sent now. The schedule of repeats begins anew."""
    PAUSED = auto()
    RESUMED = auto()


SHOWN_NAMES: Final[Mapping[str, str]] = {State.DEAD_LETTER: "parked"}
"""States that command line, URLs and metrics have always called by another name."""

UNDELIVERED: Final = tuple(state for state in State if state is not State.DELIVERED)

STEPS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.DUE: {
        Event.SUCCEEDED: State.DELIVERED,
        Event.FAILED: State.DUE,
        Event.EXHAUSTED: State.DEAD_LETTER,
        Event.SENT_AGAIN: State.DUE,
        Event.PAUSED: State.PAUSED,
    },
    State.DELIVERED: {Event.SUCCEEDED: State.DELIVERED, Event.SENT_AGAIN: State.DUE},
    State.DEAD_LETTER: {Event.SUCCEEDED: State.DELIVERED, Event.SENT_AGAIN: State.DUE},
    State.PAUSED: {
        Event.SUCCEEDED: State.DELIVERED,
        Event.SENT_AGAIN: State.DUE,
        Event.RESUMED: State.DUE,
    },
}
"""Every step of a callback. An event that a state does not have changes nothing."""


def shown_name(state: str) -> str:
    """The name under which command line, URLs and metrics show a state."""
    return SHOWN_NAMES.get(state, state)


def read_shown_name(name: str) -> str:
    """The state that is shown under this name. A name that no state has is given back."""
    return next((state for state, shown in SHOWN_NAMES.items() if shown == name), name)


def read_attempt(*, is_success: bool, has_url: bool, retry_no: int) -> Event:
    """The event that an attempt after `retry_no` repeats is.

    Without a URL there is nothing to repeat.
    """
    if is_success:
        return Event.SUCCEEDED
    return Event.FAILED if has_url and retry_no < len(PAUSES_S) else Event.EXHAUSTED
