"""Ids that name their book: a 20-bit range number, then a 33-bit counter.

Rules: every id is positive and below 2**53, so that a JSON reader that keeps numbers as doubles keeps it
exactly. A range belongs to one book alone and range 0 is never given out; the counter is kept in the book's
row. Nothing is drawn from a sequence shared between machines.
"""

from typing import Final

RANGE_BITS: Final = 20
COUNTER_BITS: Final = 33
MAX_RANGE: Final = 2**RANGE_BITS - 1
MAX_COUNTER: Final = 2**COUNTER_BITS - 1
MAX_ID: Final = 2 ** (RANGE_BITS + COUNTER_BITS) - 1


def compose(range_no: int, counter: int) -> int:
    """The id of one range and counter.

    Raises ValueError when either is outside its bits or the range is 0.
    """
    if not 1 <= range_no <= MAX_RANGE:
        raise ValueError(f"range {range_no} is not between 1 and {MAX_RANGE}")
    if not 0 <= counter <= MAX_COUNTER:
        raise ValueError(f"counter {counter} is not between 0 and {MAX_COUNTER}")
    return range_no << COUNTER_BITS | counter


def range_of(composed_id: int) -> int:
    """The range number inside an id; 0 or more than MAX_RANGE when no book can have made that id."""
    return composed_id >> COUNTER_BITS


def counter_of(composed_id: int) -> int:
    """The counter inside an id."""
    return composed_id & MAX_COUNTER
