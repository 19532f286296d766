"""One number out of what several nodes say, so that no single node of three moves it. Pure.

Rules:
- With two nodes nobody knows which one is wrong, so the caller takes the side that does no harm.
- With three or more, one outlier on that side is left out.
"""

from collections.abc import Sequence
from typing import Final

_ENOUGH: Final = 3


def cautious_low(said: Sequence[int]) -> int:
    """The lowest answer; the second lowest of three or more. Raises ValueError when nobody answered."""
    return sorted(said)[_place(said)]


def cautious_high(said: Sequence[int]) -> int:
    """The highest answer; the second highest of three or more. Raises ValueError when nobody answered."""
    return sorted(said, reverse=True)[_place(said)]


def _place(said: Sequence[int]) -> int:
    if not said:
        raise ValueError("nobody answered")
    return 1 if len(said) >= _ENOUGH else 0
