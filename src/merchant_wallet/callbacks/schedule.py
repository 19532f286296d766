"""When a callback that was not taken is sent again. Pure.

Rules: the first attempt is made at once, then one after each of `PAUSES_S`, each lengthened or shortened by
up to a tenth so that what failed together does not come again together; after the last one an operator
decides.
"""

from typing import Final

PAUSES_S: Final = (15, 60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400)
SPREAD: Final = 10
"""A tenth, as a divisor."""


def pause_ms(retry_no: int, draw: float) -> int:
    """Milliseconds until the repeat that follows `retry_no` repeats, which must not be the last.

    `draw` is a random number from 0 to 1; 0.5 gives the pause without lengthening.
    """
    pause = PAUSES_S[retry_no] * 1000
    return pause + round((2 * draw - 1) * (pause // SPREAD))
