"""State machines that are written as tables. Pure.

A table maps each state to the events that it knows, and each of them to the state that follows.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

S = TypeVar("S", bound=Enum | None)
E = TypeVar("E", bound=Enum)
N = TypeVar("N", bound=Enum)


class IllegalStep(Exception):
    """An event that the state does not know: a fault of this program."""


def next_state(steps: Mapping[S, Mapping[E, N]], state: S, event: E) -> N:
    """The state that an event leads to. Raises IllegalStep."""
    found = steps.get(state, {}).get(event)
    if found is None:
        raise IllegalStep(f"{event.name} in {'no state' if state is None else state.name}")
    return found
