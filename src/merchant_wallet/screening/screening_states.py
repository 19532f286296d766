"""The life of a screening, as a table. Pure.

Rules that the table holds:
- An order is paid, and a deposit credited, only when its screening is passed or released.
- What is held is released by a person alone. What is released stays released, unless a new round begins: the
  list has an address now that it did not have then.
- A list that changes can still hold or refuse what has passed. The statements see to it that an order is not
  signed yet.
- A refused order is failed, so its screening never changes again. A refused deposit is held, and a person may
  still release it.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from merchant_wallet.base.state_table import next_state


class State(StrEnum):
    """Where a screening stands. The database, the command line and the pages have the same words."""

    OPEN = "open"
    """Nothing is decided: an answer is missing, or it is outside the payout hours."""
    PASSED = "passed"
    HELD = "held"
    """A person must decide."""
    REFUSED = "refused"
    RELEASED = "released"
    """A person decided that it is paid or credited."""


class Event(Enum):
    """What happens to a screening."""

    PASSED = auto()
    HELD = auto()
    REFUSED = auto()
    RELEASED = auto()
    """People release it."""
    REJECTED = auto()
    """A person refuses it."""
    ASKED_AGAIN = auto()
    """A person wants another answer."""


CLEARED: Final = frozenset({State.PASSED, State.RELEASED})
"""It may be paid or credited."""

_DECIDED: Final = {
    Event.RELEASED: State.RELEASED,
    Event.REJECTED: State.REFUSED,
    Event.ASKED_AGAIN: State.OPEN,
}

OF_ORDERS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.OPEN: {
        **_DECIDED,
        Event.PASSED: State.PASSED,
        Event.HELD: State.HELD,
        Event.REFUSED: State.REFUSED,
    },
    State.PASSED: {Event.HELD: State.HELD, Event.REFUSED: State.REFUSED},
    State.HELD: _DECIDED,
    State.REFUSED: {},
    State.RELEASED: {},
}
"""Every legal step of the screening of an order."""

OF_DEPOSITS: Final[Mapping[State, Mapping[Event, State]]] = {
    **OF_ORDERS,
    State.REFUSED: {Event.RELEASED: State.RELEASED, Event.ASKED_AGAIN: State.OPEN},
}
"""Every legal step of the screening of a deposit."""


def step(state: State, event: Event, *, is_order: bool) -> State:
    """The state that an event leads to. Raises IllegalStep."""
    return next_state(OF_ORDERS if is_order else OF_DEPOSITS, state, event)


def allows(state: State, event: Event, *, is_order: bool) -> bool:
    """Whether an event is possible in a state."""
    return event in (OF_ORDERS if is_order else OF_DEPOSITS)[state]
