"""Durations of tests: each run writes them to `build/test-durations.tsv`, slowest first.

One line for each test: its id and the seconds of set-up, call and tear-down. `python -m tests.durations`
prints the fifty slowest and the sum of each folder. A fixture of a whole file counts for the test that sets
it up first.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).parents[1] / "build" / "test-durations.tsv"
PHASES: Final = ("setup", "call", "teardown")
SLOWEST: Final = 50


@dataclass
class Duration:
    """Seconds of one test, by phase."""

    test: str
    by_phase_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    @property
    def total_s(self) -> float:
        """Seconds of all phases."""
        return sum(self.by_phase_s.values())

    @property
    def folder(self) -> str:
        """The folder of the test, for example `tests/book`."""
        return str(Path(self.test.split("::")[0]).parent)


class DurationRecorder:
    """A pytest plugin that adds up the reports of all workers and writes the file at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._durations: dict[str, Duration] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the seconds of one phase. The report of a worker that crashed has none."""
        if report.when not in PHASES:
            return
        duration = self._durations.setdefault(report.nodeid, Duration(report.nodeid))
        duration.by_phase_s[report.when] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(exist_ok=True)
        slowest = sorted(self._durations.values(), key=lambda duration: -duration.total_s)
        lines = [
            "\t".join([duration.test, *(f"{seconds:.3f}" for seconds in duration.by_phase_s.values())])
            for duration in slowest
        ]
        self._path.write_text("".join(f"{line}\n" for line in ["\t".join(["test", *PHASES]), *lines]))


def read(path: Path) -> list[Duration]:
    """Read a file of durations."""
    _, *lines = path.read_text().splitlines()
    rows = (line.rsplit("\t", len(PHASES)) for line in lines)
    return [Duration(test, dict(zip(PHASES, map(float, seconds), strict=True))) for test, *seconds in rows]


def format_tables(durations: Sequence[Duration]) -> str:
    """The slowest tests and the sum of each folder, as Markdown."""
    slowest = sorted(durations, key=lambda duration: -duration.total_s)[:SLOWEST]
    folders: dict[str, list[Duration]] = defaultdict(list)
    for duration in durations:
        folders[duration.folder].append(duration)
    sums = [(f"{folder} ({len(those)})", _sum(those)) for folder, those in folders.items()]
    return "\n".join(
        [
            *_table("test", ((duration.test, duration) for duration in slowest)),
            "",
            *_table("folder (tests)", sorted(sums, key=lambda row: -row[1].total_s)),
            "",
            *_table("all", [(f"{len(durations)} tests", _sum(durations))]),
        ]
    )


def _sum(durations: Iterable[Duration]) -> Duration:
    total = Duration("")
    for duration in durations:
        for phase, seconds in duration.by_phase_s.items():
            total.by_phase_s[phase] += seconds
    return total


def _table(title: str, rows: Iterable[tuple[str, Duration]]) -> list[str]:
    return [
        f"| {title} | set-up s | call s | tear-down s | sum s |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {' | '.join(f'{seconds:.1f}' for seconds in duration.by_phase_s.values())}"
            f" | {duration.total_s:.1f} |"
            for name, duration in rows
        ),
    ]


if __name__ == "__main__":
    print(format_tables(read(Path(sys.argv[1]) if sys.argv[1:] else FILE)))
