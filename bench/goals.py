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
FAIRNESS_P99: Final = "fairness/one beside 4,000:p99_ms"
WRITER_ALONE_P99: Final = "fairness:p99 in ms of one command in the writer alone"
WRITER_BESIDE_P99: Final = "fairness:p99 in ms of one command in the writer beside 4,000"
MILLION_MIB: Final = "memory:web process after a million transfers"
COLD_SHARE: Final = "cold:share of the warm speed"
COLD_MIB: Final = "cold:web process after a million transfers"
CALLBACK_RATE: Final = "callbacks:delivered per second"
LARGE_SHARE: Final = "large:share of the small book's speed"
PAGE_P99: Final = "pages:p99 of the slowest page in ms"
PAGES_SHARE: Final = "pages:share of the transfers' speed alone"
PAGES_SHARE_LOW: Final = "pages:that share's interval of 95 %, from"
PAGES_SHARE_HIGH: Final = "pages:that share's interval of 95 %, to"

HOT_256: Final = "hot/transferFromUserToMerchant/256"
THOUSAND_256: Final = "thousand/transferFromUserToMerchant/256"
CEILING_256: Final = "ceiling/transferFromUserToMerchant/256"
CEILING_SHARE: Final = "hot:share of the ceiling"
THOUSAND_SHARE: Final = "thousand:share of one merchant's speed"
SHARES: Final = {CEILING_SHARE: (HOT_256, CEILING_256), THOUSAND_SHARE: (THOUSAND_256, HOT_256)}
"""Speeds as shares of another row's."""

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
    Goal("one merchant, transfers, 256 connections, share of the ceiling", CEILING_SHARE, 0.75),
    Goal(
        "one merchant, transfers, 64 connections, per second", "hot/transferFromUserToMerchant/64:rate", 9000
    ),
    Goal("the same, p99 in ms", "hot/transferFromUserToMerchant/64:p99_ms", 20, below=True),
    Goal(
        "one merchant, transfers, 16 connections, per second", "hot/transferFromUserToMerchant/16:rate", 4000
    ),
    Goal("one merchant, transfers, 1 connection, per second", "hot/transferFromUserToMerchant/1:rate", 1500),
    Goal("1,000 merchants, transfers, 256 connections, share of one merchant's speed", THOUSAND_SHARE, 0.7),
    Goal(
        "the same, PostgreSQL's processor time for a transfer in ms",
        f"{THOUSAND_256}:postgres_ms",
        0.12,
        below=True,
    ),
    Goal("one request beside another merchant's 4,000 connections, p99 in ms", FAIRNESS_P99, 50, below=True),
    Goal(
        "one command beside another merchant's 4,000 in the writer, p99 in ms",
        WRITER_BESIDE_P99,
        50,
        below=True,
    ),
    Goal("transfers over a million sub-users, share of the warm speed", COLD_SHARE, 0.8),
    Goal("web process after a million transfers over a million sub-users, MiB", COLD_MIB, 120, below=True),
    Goal("reads (balance), 256 connections, per second", "hot/getMerchantBalance/256:rate", 8000),
    Goal("transfers beside a flood of reads, share of their speed alone", FLOOD_SHARE, 0.5),
    Goal("web process after a million transfers of one merchant, MiB", MILLION_MIB, 150, below=True),
    Goal("callbacks delivered per second", CALLBACK_RATE, 200),
    Goal("transfers at 5,000,000 entries, share of the speed at 10,000", LARGE_SHARE, 0.85),
    Goal("the console's slowest page over the same book, p99 in ms", PAGE_P99, 100, below=True),
    Goal("transfers while somebody goes through the console, share of their speed alone", PAGES_SHARE, 0.95),
)


def figures_of(rows: Iterable[Row]) -> dict[str, float]:
    """The figures of single rows, and the shares of their speeds."""
    figures = {}
    for row in rows:
        figures[f"{row.name}:rate"] = row.rate
        figures[f"{row.name}:p50_ms"] = row.p50_ms
        figures[f"{row.name}:p99_ms"] = row.p99_ms
        if row.cost.postgres_cpu is not None and row.rate:
            # Hundredths of a core are 10 ms of each second.
            figures[f"{row.name}:postgres_ms"] = 10 * row.cost.postgres_cpu / row.rate
    for share, (part, whole) in SHARES.items():
        if figures.get(f"{whole}:rate") and f"{part}:rate" in figures:
            figures[share] = figures[f"{part}:rate"] / figures[f"{whole}:rate"]
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
