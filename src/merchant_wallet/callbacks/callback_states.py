"""The life of a callback, as a table. Pure.

A callback is due from the commit of its event on. After each failed attempt it is sent again later. After the
last repeat it is a dead letter. An operator can pause a due callback, and have any callback sent again.

Rules of the table:
- A successful answer delivers a callback in any state, even if it is recorded late.
- A failed attempt changes only a callback that is due. If an operator or a later attempt has moved it, the
  failure is only kept with the attempt.
- No callback is lost: an operator can have it sent again from every state.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from merchant_wallet.callbacks.schedule import PAUSES_S


class State(StrEnum):
    """What a callback waits for. The database uses the same words."""

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
"""States that command line, URLs and metrics have always shown under another name."""

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
"""Every step of a callback. An event that a state lacks changes nothing."""


def show_name(state: str) -> str:
    """The name under which command line, URLs and metrics show a state."""
    return SHOWN_NAMES.get(state, state)


def read_shown_name(name: str) -> str:
    """The state with this shown name. An unknown name is returned unchanged."""
    return next((state for state, shown in SHOWN_NAMES.items() if shown == name), name)


def read_attempt(*, is_success: bool, has_url: bool, retry_no: int) -> Event:
    """The event of an attempt after `retry_no` repeats.

    Without a URL nothing can be repeated.
    """
    if is_success:
        return Event.SUCCEEDED
    return Event.FAILED if has_url and retry_no < len(PAUSES_S) else Event.EXHAUSTED
