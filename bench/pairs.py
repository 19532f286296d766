"""A speed without and with something beside it, in pairs of short windows within one run, so that both meet
the same machine; and how sure the share of the one in the other is. Pure.

Rules: which of a pair's windows comes first is drawn with a seed. The share is one of totals, which a single
window that stood still can't carry away. Its interval comes of drawing the pairs anew with replacement: the
figure's own spread, whatever a machine's noise looks like.
"""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

SEED: Final = 1
RESAMPLES: Final = 2000
OUTSIDE: Final = 0.025
"""What of the resampled shares lies beyond either end of the interval of 95 %."""


class Pair(NamedTuple):
    """The speeds in two windows next to each other, by whether something ran beside."""

    alone: float
    beside: float


class Share(NamedTuple):
    """The speed beside as a share of that alone, within `low` to `high` in 95 of 100 such measurements."""

    share: float
    low: float
    high: float
    pairs: int

    def tell(self) -> str:
        """The figures as a person reads them."""
        interval = f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.share:.3f}, 95 % interval {interval}, {self.pairs} pairs of windows"


def draw_turns(seed: int = SEED) -> Iterator[tuple[bool, bool]]:
    """Pair after pair, without end: whether something runs beside in the first window, and in the second."""
    draw = random.Random(seed)
    while True:
        first = draw.random() < 0.5
        yield first, not first


async def take_pairs(
    read_speed: Callable[[], Awaitable[float]],
    beside: Callable[[], AbstractContextManager[None]],
    is_running: Callable[[], bool],
) -> list[Pair]:
    """Pairs until the run is over; the pair within which it ended is left out."""
    pairs = []
    for turns in draw_turns():
        speeds = {}
        for turn in turns:
            with beside() if turn else nullcontext():
                speeds[turn] = await read_speed()
        if not is_running():
            break
        pairs.append(Pair(speeds[False], speeds[True]))
    return pairs


def judge_pairs(pairs: Sequence[Pair]) -> Share:
    """The share that these pairs show. Raises ValueError for fewer than two, which have no spread."""
    if len(pairs) < 2:
        raise ValueError(f"an interval takes two pairs of windows, there are {len(pairs)}")
    draw = random.Random(SEED)
    shares = sorted(_share(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    beyond = int(OUTSIDE * RESAMPLES)
    return Share(_share(pairs), shares[beyond], shares[-1 - beyond], len(pairs))


def _share(pairs: Sequence[Pair]) -> float:
    return sum(pair.beside for pair in pairs) / sum(pair.alone for pair in pairs)
