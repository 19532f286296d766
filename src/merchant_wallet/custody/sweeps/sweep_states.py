"""The life of a sweep, as a table. Pure.

Coin for the fee is sent to the deposit address first, if it has too little. Then the token moves, or in a
rescue something else.

Rules that the table holds:
- The token, or what is rescued, moves only after the coin has arrived finally.
- A sweep is done only by its final transfer from the address.
- A sweep that was continued moves nothing itself any more. Its successor does.
- A sweep that has ended never changes.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from merchant_wallet.base.state_table import next_state


class State(StrEnum):
    """Where a sweep stands. The database has the same words."""

    TOP_UP = "top_up"
    """Coin is sent to the address."""
    TOKEN = "token"
    """The token is moved from there."""
    RESCUE = "rescue"
    """Another token, or coin, is moved from there."""
    DONE = "done"
    CONTINUED = "continued"
    """Fees have risen. Its successor sends more coin and moves the token."""
    FAILED = "failed"
    """It moved nothing and never will. An operator must ask for another try."""
    DROPPED = "dropped"
    """Nothing was ever signed for it. It is planned again."""


class Event(Enum):
    """What happens to a sweep."""

    FINAL = auto()
    """The chain's final record is exactly the present transaction."""
    FUNDED = auto()
    """The same of the top-up of a rescue."""
    FAILED = auto()
    """Nothing that was signed for the present transaction has moved or will move anything."""
    CONTINUED = auto()
    """Within its budget it needs more coin than was sent."""
    UNSIGNED = auto()
    """Nothing was ever signed for it, for too long."""


STEPS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.TOP_UP: {
        Event.FINAL: State.TOKEN,
        Event.FUNDED: State.RESCUE,
        Event.FAILED: State.FAILED,
        Event.UNSIGNED: State.DROPPED,
    },
    State.TOKEN: {
        Event.FINAL: State.DONE,
        Event.FAILED: State.FAILED,
        Event.CONTINUED: State.CONTINUED,
        Event.UNSIGNED: State.DROPPED,
    },
    State.RESCUE: {
        Event.FINAL: State.DONE,
        Event.FAILED: State.FAILED,
        Event.CONTINUED: State.CONTINUED,
    },
    State.DONE: {},
    State.CONTINUED: {},
    State.FAILED: {},
    State.DROPPED: {},
}
"""Every legal step."""


def step(state: State, event: Event) -> State:
    """The state that an event leads to. Raises IllegalStep."""
    return next_state(STEPS, state, event)
