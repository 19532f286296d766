"""The results of a run, as a table for people and a file for programs."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.goals import Judgement
from bench.meters import Disk
from bench.rows import Row
from merchant_wallet.processes.python_build import runs_optimised

COLUMNS = (
    "per s",
    "p50 ms",
    "p99 ms",
    "answers",
    "failures",
    "web",
    "postgres",
    "wrk",
    "others",
    "stolen",
    "web MiB",
)
COLOURS = {"met": "green", "missed": "red", "not measured": "dim"}


class Machine(msgspec.Struct, frozen=True):
    """The machine that was measured."""

    processors: int
    processor: str
    system: str
    python: str
    python_optimised: bool
    measured: str


class Report(msgspec.Struct, frozen=True):
    """All results of a run."""

    machine: Machine
    disk: Disk
    rows: list[Row]
    figures: dict[str, float]
    goals: list[Judgement]


def read_machine() -> Machine:
    """This machine, now."""
    return Machine(
        processors=len(os.sched_getaffinity(0)),
        processor=_processor_name(),
        system=platform.platform(),
        python=platform.python_version(),
        python_optimised=runs_optimised(),
        measured=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write_report(report: Report, path: Path) -> None:
    """Write the report as JSON, in a new file or over the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def format_row(row: Row) -> str:
    """One row as a line, shown during the run."""
    marks = "  (used up early)" if row.used_up else ""
    if row.failures:
        marks += f"  FAILED {format_failures(row)}"
    return f"{row.name:<44} {row.rate:>8,.0f}/s  p50 {row.p50_ms:>7.1f} ms  p99 {row.p99_ms:>7.1f} ms{marks}"


def format_failures(row: Row) -> str:
    """What went wrong in a row; empty if nothing did."""
    found = {**row.refusals, **{name: count for name, count in row.errors.items() if count}}
    return " ".join(f"{name}×{count}" for name, count in found.items())


def format_machine(machine: Machine) -> str:
    """The machine as a line."""
    build = "optimised" if machine.python_optimised else "built without optimisation, about a fifth slower"
    return (
        f"{machine.processors} processors ({machine.processor}), {machine.system}, "
        f"Python {machine.python} ({build})"
    )


def print_report(report: Report, console: Console) -> None:
    """Print machine, rows and goals."""
    machine, disk = report.machine, report.disk
    console.print(format_machine(machine))
    console.print(f"disk: fdatasync p50 {disk.fdatasync_p50_ms:.2f} ms, p99 {disk.fdatasync_p99_ms:.2f} ms")
    console.print(_rows_table(report.rows))
    console.print(_goals_table(report.goals))
    for name, figure in report.figures.items():
        console.print(f"{name}: {_format_figure(figure)}")


def _rows_table(rows: Sequence[Row]) -> Table:
    table = Table(title="Measured (processor figures: hundredths of one core)", title_justify="left")
    table.add_column("row", no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.rate:,.0f}",
            f"{row.p50_ms:.1f}",
            f"{row.p99_ms:.1f}",
            f"{row.answers:,}",
            format_failures(row) or "0",
            f"{row.cost.web_cpu:.0f}",
            "" if row.cost.postgres_cpu is None else f"{row.cost.postgres_cpu:.0f}",
            f"{row.cost.wrk_cpu:.0f}",
            f"{row.cost.other_cpu:.0f}",
            f"{row.cost.stolen_cpu:.0f}",
            f"{row.cost.web_mib:.0f}",
        )
    return table


def _goals_table(goals: Sequence[Judgement]) -> Table:
    table = Table(title="Goals (two cores shared with the load generator, fsync on)", title_justify="left")
    table.add_column("goal")
    for name in ("wanted", "measured", "verdict"):
        table.add_column(name, justify="right")
    for goal in goals:
        measured = "" if goal.measured is None else _format_figure(goal.measured)
        table.add_row(goal.goal, goal.wanted, measured, f"[{COLOURS[goal.verdict]}]{goal.verdict}")
    return table


def _format_figure(figure: float) -> str:
    return f"{figure:,.4g}" if figure < 1000 else f"{figure:,.0f}"
