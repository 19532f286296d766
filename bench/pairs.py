"""Compares a speed with and without another load, and gives a confidence interval of the share. Pure.

Rules:
- Both speeds are measured in pairs of short windows within one run, so both see the same machine.
- Which window of a pair comes first is random with a fixed seed.
- The share is a ratio of sums, so a single window that hung can't dominate it.
- The interval is a bootstrap: the pairs are resampled with replacement. It assumes nothing about the noise.
"""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

SEED: Final = 1
RESAMPLES: Final = 2000
OUTSIDE: Final = 0.025
"""The part of the resampled shares beyond each end of the 95 % interval."""


class Pair(NamedTuple):
    """The speeds in two adjacent windows: without the other load and with it."""

    alone: float
    beside: float


class Share(NamedTuple):
    """The speed with the other load as a share of that without. `low` and `high` are the 95 % interval."""

    share: float
    low: float
    high: float
    pairs: int

    def describe(self) -> str:
        """The figures as text."""
        interval = f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.share:.3f}, 95 % interval {interval}, {self.pairs} pairs of windows"


def draw_turns(seed: int = SEED) -> Iterator[tuple[bool, bool]]:
    """An endless sequence of pairs: whether the other load runs in the first and in the second window."""
    draw = random.Random(seed)
    while True:
        first = draw.random() < 0.5
        yield first, not first


async def take_pairs(
    read_speed: Callable[[], Awaitable[float]],
    beside: Callable[[], AbstractContextManager[None]],
    is_running: Callable[[], bool],
) -> list[Pair]:
    """Measure pairs until the run ends. The pair in which it ended is left out."""
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
    """The share that these pairs show. Raises ValueError for fewer than two pairs."""
    if len(pairs) < 2:
        raise ValueError(f"an interval takes two pairs of windows, there are {len(pairs)}")
    draw = random.Random(SEED)
    shares = sorted(_share(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    beyond = int(OUTSIDE * RESAMPLES)
    return Share(_share(pairs), shares[beyond], shares[-1 - beyond], len(pairs))


def _share(pairs: Sequence[Pair]) -> float:
    return sum(pair.beside for pair in pairs) / sum(pair.alone for pair in pairs)
