"""The goals for two cores shared with the load generator, with fsync. Pure.

Rules: a figure has a name: `row:column`, or a name that a stage gives. A goal without its figure was not
measured and is neither met nor missed.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from bench.rows import Row

FLOOD_SHARE: Final = "flood:share of the speed alone"
FLOOD_FAIRNESS: Final = "flood:share of the speed beside transfers"
MILLION_MIB: Final = "memory:web process after a million transfers"
CALLBACK_RATE: Final = "callbacks:delivered per second"
LARGE_SHARE: Final = "large:share of the small book's speed"
PAGE_P99: Final = "pages:p99 of the slowest page in ms"
PAGES_SHARE: Final = "pages:share of the transfers' speed alone"
PAGES_SHARE_LOW: Final = "pages:that share's interval of 95 %, from"
PAGES_SHARE_HIGH: Final = "pages:that share's interval of 95 %, to"

Verdict = Literal["met", "missed", "not measured"]


class Goal(msgspec.Struct, frozen=True):
    """A figure and its bound: at least `bound`, or below it where `below` is true."""

    text: str
    figure: str
    bound: float
    below: bool = False

    @property
    def wanted(self) -> str:
        """The bound as people read it."""
        return f"{'<' if self.below else '≥'} {self.bound:,g}"


class Judgement(msgspec.Struct, frozen=True):
    """A goal, the measured figure, and whether it is met."""

    goal: str
    wanted: str
    measured: float | None
    verdict: Verdict


GOALS: Final = (
    Goal(
        "one merchant, transfers, 256 connections, per second",
        "hot/transferFromUserToMerchant/256:rate",
        8000,
    ),
    Goal(
        "one merchant, transfers, 64 connections, per second", "hot/transferFromUserToMerchant/64:rate", 6000
    ),
    Goal("the same, p99 in ms", "hot/transferFromUserToMerchant/64:p99_ms", 40, below=True),
    Goal("one merchant, transfers, 1 connection, per second", "hot/transferFromUserToMerchant/1:rate", 600),
    Goal(
        "1,000 merchants, transfers, 256 connections, per second",
        "thousand/transferFromUserToMerchant/256:rate",
        2500,
    ),
    Goal("reads (balance), 256 connections, per second", "hot/getMerchantBalance/256:rate", 8000),
    Goal("transfers beside a flood of reads, share of their speed alone", FLOOD_SHARE, 0.5),
    Goal("web process after a million transfers, MiB", MILLION_MIB, 150, below=True),
    Goal("callbacks delivered per second", CALLBACK_RATE, 200),
    Goal("transfers at 5,000,000 entries, share of the speed at 10,000", LARGE_SHARE, 0.85),
    Goal("the console's slowest page over the same book, p99 in ms", PAGE_P99, 100, below=True),
    Goal("transfers while somebody goes through the console, share of their speed alone", PAGES_SHARE, 0.95),
)


def figures_of(rows: Iterable[Row]) -> dict[str, float]:
    """The figures of single rows."""
    figures = {}
    for row in rows:
        figures[f"{row.name}:rate"] = row.rate
        figures[f"{row.name}:p50_ms"] = row.p50_ms
        figures[f"{row.name}:p99_ms"] = row.p99_ms
    return figures


def judge(goal: Goal, figures: Mapping[str, float]) -> Judgement:
    """Compare one goal with the figures."""
    measured = figures.get(goal.figure)
    if measured is None:
        return Judgement(goal.text, goal.wanted, None, "not measured")
    met = measured < goal.bound if goal.below else measured >= goal.bound
    return Judgement(goal.text, goal.wanted, measured, "met" if met else "missed")


def judge_all(figures: Mapping[str, float]) -> list[Judgement]:
    """Compare every goal with the figures."""
    return [judge(goal, figures) for goal in GOALS]
