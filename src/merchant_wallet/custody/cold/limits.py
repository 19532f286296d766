"""How much money may stay hot on a chain, and what should move now. Pure.

Rules:
- Above `most_units` everything above the target goes to the cold wallet.
- Below `least_units` the hot wallet is refilled to the target.
- Without limits nothing is suggested.
"""

from typing import Final, Literal, NamedTuple

import msgspec

TO_COLD: Final = "to_cold"
TO_HOT: Final = "to_hot"
Direction = Literal["to_cold", "to_hot"]

SIGNER: Final = "signer"
ELSEWHERE: Final = "elsewhere"
RECORDED: Final = "recorded"
Way = Literal["signer", "elsewhere", "recorded"]


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The limits of one chain's hot wallet, in units of 10^-6 USDT. least ≤ target ≤ most."""

    least_units: int
    target_units: int
    most_units: int


class Suggestion(NamedTuple):
    """What should move now."""

    direction: Direction
    amount_units: int


def suggest(hot_units: int | None, limits: Limits | None) -> Suggestion | None:
    """What should move between hot and cold wallet. None if nothing should, or if something is unknown."""
    if hot_units is None or limits is None:
        return None
    if hot_units > limits.most_units:
        return Suggestion(TO_COLD, hot_units - limits.target_units)
    if hot_units < limits.least_units:
        return Suggestion(TO_HOT, limits.target_units - hot_units)
    return None


def is_in_order(limits: Limits) -> bool:
    """Whether limits make sense."""
    return 0 <= limits.least_units <= limits.target_units <= limits.most_units
