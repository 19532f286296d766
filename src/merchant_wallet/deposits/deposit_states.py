"""The life of a deposit, as a table. Pure.

A transfer to one of our addresses is seen in a block that is not final yet. The chain may still take it back.
Once its block is final it is credited, unless it is too small or something about it needs a person.

Rules that the table holds:
- Only what is pending is credited, and only a final block makes a deposit pending.
- A credited or dropped deposit never changes its state.
- Only a person leads a held deposit to its credit.
- A held deposit whose block leaves the chain says so. Whoever releases it from screening does not credit it.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from merchant_wallet.base.state_table import next_state


class State(StrEnum):
    """Where a deposit stands. The database, the command line and the pages have the same words."""

    SEEN = "seen"
    """Its block is not final yet."""
    UNDONE = "undone"
    """Its block left the chain before it was final. It may come again in another one."""
    PENDING = "pending"
    """It is final, and credited next."""
    DUST = "dust"
    """It is final, but all that came to its address is below the minimum."""
    HELD = "held"
    """It is final, and a person must decide."""
    DROPPED = "dropped"
    """A person decided that nothing is credited."""
    CREDITED = "credited"


class Event(Enum):
    """What happens to a deposit."""

    SEEN = auto()
    """It is in a block that is not final yet."""
    UNDONE = auto()
    """Its block left the chain, or the final blocks don't have it."""
    FINAL = auto()
    """A final block has it, and it is large enough."""
    FINAL_SMALL = auto()
    """A final block has it, and it is below the minimum."""
    MINED_AGAIN = auto()
    """A final block has it, and its transaction was settled in another block before."""
    ORPHANED = auto()
    """The block that it was settled in has left the chain, although it was final."""
    ADDED_UP = auto()
    """All dust at its address reaches the minimum."""
    RELEASED = auto()
    """A person lets it be credited."""
    DROPPED = auto()
    SCREENED = auto()
    """Screening holds or refuses it."""
    CLEARED = auto()
    """A person has released it from screening."""
    CREDITED = auto()


_SETTLED: Final = {
    Event.FINAL: State.PENDING,
    Event.FINAL_SMALL: State.DUST,
    Event.MINED_AGAIN: State.HELD,
}
_RECONSIDERED: Final = {Event.MINED_AGAIN: State.HELD, Event.ORPHANED: State.HELD}

STEPS: Final[Mapping[State | None, Mapping[Event, State]]] = {
    None: {**_SETTLED, Event.SEEN: State.SEEN},
    State.SEEN: {**_SETTLED, Event.SEEN: State.SEEN, Event.UNDONE: State.UNDONE},
    State.UNDONE: {**_SETTLED, Event.SEEN: State.SEEN},
    State.PENDING: {**_RECONSIDERED, Event.SCREENED: State.HELD, Event.CREDITED: State.CREDITED},
    State.DUST: {**_RECONSIDERED, Event.ADDED_UP: State.PENDING},
    State.HELD: {
        **_RECONSIDERED,
        Event.RELEASED: State.PENDING,
        Event.CLEARED: State.PENDING,
        Event.DROPPED: State.DROPPED,
    },
    State.DROPPED: {},
    State.CREDITED: {},
}
"""Every legal step. A deposit that nobody knows yet is None."""

UNSETTLED: Final = frozenset({State.SEEN, State.UNDONE})
"""No final block had it yet."""
SETTLED: Final = frozenset(State) - UNSETTLED
OPEN: Final = frozenset(state for state in SETTLED if STEPS[state])
"""Settled, and neither credited nor dropped."""


def step(state: State | None, event: Event) -> State:
    """The state that an event leads to. Raises IllegalStep."""
    return next_state(STEPS, state, event)
