"""The table of pairs: which structural acts ran beside each other, and beside which streams of money. Pure.

Rules:
- Two acts are a pair when one begins while the other runs. A movement of money counts for every act that
  runs when its answer comes.
- The planner picks the act whose pairs with the running acts were seen least.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

ACTS: Final = ("move", "archive", "restore", "close", "rotation", "restart", "resize")
STREAMS: Final = ("transfer", "exchange", "withdrawal", "deposit", "callback")


class Overlaps:
    """Counts of pairs, and which acts run now."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.done: Counter[str] = Counter()
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> tuple[str, ...]:
        """The acts that run now."""
        return tuple(self._running.elements())

    def begin(self, act: str) -> None:
        """An act begins."""
        for other in self._running.elements():
            self.counts[_pair(act, other)] += 1
        self._running[act] += 1

    def end(self, act: str, is_done: bool) -> None:
        """An act ends, carried out or not."""
        self._running[act] -= 1
        self.done[act] += is_done

    def count_money(self, stream: str) -> None:
        """An amount has moved."""
        for act in {*self._running.elements()}:
            self.counts[act, stream] += 1

    def choose(self, candidates: Sequence[str]) -> str:
        """The act to begin now. Of several that are worth the same it is the first."""
        return min(candidates, key=lambda act: (self._find_least(act), self.done[act]))

    def _find_least(self, act: str) -> int:
        return min((self.counts[_pair(act, other)] for other in self._running.elements()), default=0)

    def write_table(self) -> list[str]:
        """The table, as lines."""
        columns = (*ACTS, *STREAMS)
        lines = [_write_row("", columns)]
        for act in ACTS:
            cells = [
                str(self.counts[_pair(act, other)] if other in ACTS else self.counts[act, other])
                for other in columns
            ]
            lines.append(_write_row(f"{act} ({self.done[act]})", cells))
        return lines


def _pair(one: str, other: str) -> tuple[str, str]:
    first, second = sorted((one, other), key=ACTS.index)
    return first, second


def _write_row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<14}" + "".join(f"{cell:>11}" for cell in cells)
