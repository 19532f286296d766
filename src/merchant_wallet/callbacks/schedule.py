"""When a callback that failed is sent again. Pure.

Rules:
- The first attempt is made at once, then one after each of `PAUSES_S`.
- Each pause is changed by up to a tenth, so that callbacks that failed together do not come back together.
- After the last attempt an operator decides.
"""

from typing import Final

PAUSES_S: Final = (15, 60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400)
JITTER_DIVISOR: Final = 10
"""A tenth, as a divisor."""


def compute_pause_ms(retry_no: int, draw: float) -> int:
    """Milliseconds until the next attempt, after `retry_no` repeats. The last repeat has none.

    `draw` is a random number from 0 to 1. With 0.5 the pause is unchanged.
    """
    pause = PAUSES_S[retry_no] * 1000
    return pause + round((2 * draw - 1) * (pause // JITTER_DIVISOR))
