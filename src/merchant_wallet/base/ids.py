"""Ids that contain their book: a 20-bit range number, then a 33-bit counter.

Every id is positive and below 2**53, so a JSON reader that stores numbers as doubles keeps it exactly. A
range belongs to one book, and range 0 is never used. The book's row has the counter. No sequence is shared
between books.
"""

from typing import Final

RANGE_BITS: Final = 20
COUNTER_BITS: Final = 33
MAX_RANGE: Final = 2**RANGE_BITS - 1
MAX_COUNTER: Final = 2**COUNTER_BITS - 1
MAX_ID: Final = 2 ** (RANGE_BITS + COUNTER_BITS) - 1


def compose(range_no: int, counter: int) -> int:
    """The id of a range and a counter.

    Raises ValueError if either is out of range.
    """
    if not 1 <= range_no <= MAX_RANGE:
        raise ValueError(f"range {range_no} is not between 1 and {MAX_RANGE}")
    if not 0 <= counter <= MAX_COUNTER:
        raise ValueError(f"counter {counter} is not between 0 and {MAX_COUNTER}")
    return range_no << COUNTER_BITS | counter


def range_of(composed_id: int) -> int:
    """The range number of an id. It is 0 or more than MAX_RANGE if no book can have made that id."""
    return composed_id >> COUNTER_BITS


def counter_of(composed_id: int) -> int:
    """The counter of an id."""
    return composed_id & MAX_COUNTER
