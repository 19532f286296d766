"""The command line of the bench: `python -m bench`, or `make bench ARGS="…"`."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from bench import callbacks, deposits, pages, payouts
from bench.goals import CALLBACK_RATE, figures_of, judge_all
from bench.merchants import (
    LARGE,
    MerchantSet,
    Progress,
    prepare_merchants,
    write_merchants,
)
from bench.meters import Disk, try_disk
from bench.plans import Choice
from bench.report import Report, format_row, print_report, read_machine, write_report
from bench.rows import LIFE_S, LoadGenerator, Row
from bench.service import CONSOLE_SCRIPT, RunningService, ServiceFailed, open_service
from bench.signed_requests import RequestWriter, find_memory
from bench.stages import Benchmark, Figures
from bench.writers import PreparationFailed
from bench.wrk import WrkFailed, find_wrk
from merchant_wallet.base.config import load_or_create_master_key
from merchant_wallet.merchants.keys import Keyring

QUICK_S: Final = 5
FULL_S: Final = 8
RESULTS: Final = Path(__file__).with_name("results") / "latest.json"
SIGNERS: Final = 2
STEPS: Final = 10
"""How often progress is shown, from start to end."""

console = Console(stderr=True, highlight=False, soft_wrap=True)


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="The goals' rows alone, in one to two minutes.")
    ] = False,
    large: Annotated[
        bool, typer.Option("--large", help="A book of 5,000,000 entries too (some 10 minutes and 6 GB more).")
    ] = False,
    cold: Annotated[
        bool,
        typer.Option("--cold", help="Transfers to a million sub-users too (some 15 minutes and 2 GB more)."),
    ] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows whose name has this in it, or matches it with *.")
    ] = None,
    seconds: Annotated[
        int | None, typer.Option(min=1, max=LIFE_S, help="How long each row lasts (5 with --quick, else 8).")
    ] = None,
    json: Annotated[Path, typer.Option(metavar="FILE", help="Where the figures are written.")] = RESULTS,
    work: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder on the disk to measure; else the temporary one."),
    ] = None,
    program: Annotated[
        Path, typer.Option(metavar="FILE", help="The service's console script.")
    ] = CONSOLE_SCRIPT,
) -> None:
    """Measure requests a second on this machine, with the service and everything it needs started for it.

    Row names are group/operation/connections; the groups are hot (one merchant), thousand, ceiling, flood,
    fairness, memory, callbacks, payouts, deposits, cold, large and pages.

    Examples: --quick · --only hot/exchange · --only 'thousand/*/256' · --large --only large
    """
    seconds = seconds or (QUICK_S if quick else FULL_S)
    chosen = Choice(quick=quick, large=large, cold=cold, only=only, seconds=seconds)
    if chosen.is_empty:
        _give_up(
            f"No row is called {only!r}. The cold rows need --cold, the large rows and pages --large; "
            "--quick has the goals' rows alone."
        )
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        report = _measure(chosen, program, work)
    except (WrkFailed, ServiceFailed, PreparationFailed) as error:
        _give_up(str(error))
    write_report(report, json)
    print_report(report, Console(highlight=False, width=None if sys.stdout.isatty() else 150))
    failed = [row.name for row in report.rows if row.failures]
    console.print(f"written to {json}")
    if failed:
        _give_up(
            f"Not every answer was a success, so these rows measured something else: {', '.join(failed)}."
        )


def _measure(choice: Choice, program: Path, work: Path | None) -> Report:
    rows: list[Row] = []
    figures: Figures = {}

    def said(row: Row) -> None:
        rows.append(row)
        console.print(format_row(row))

    with _folder(work) as folder:
        disk = _try_disk(folder)
        if choice.populations:
            figures |= _measure_service(choice, program, folder, said)
        if choice.callbacks:
            delivered = callbacks.measure(folder / "callbacks", say=console.print)
            figures[CALLBACK_RATE] = delivered.rate
        figures |= _measure_chains(choice, folder)
    return _report(disk, rows, figures)


def _measure_service(choice: Choice, program: Path, folder: Path, said: Callable[[Row], None]) -> Figures:
    """The rows that need a running service."""
    wrk = find_wrk(console.print)
    if not program.exists():
        raise ServiceFailed(f"There is no {program}. Type: make setup")
    console.print("starting the service")
    with (
        _folder(find_memory()) as slices,
        open_service(program, folder / "data", folder / "service.log") as service,
    ):
        merchant_set = prepare(service, folder, choice.populations)
        request_writer = RequestWriter(folder / "merchants.json", slices, SIGNERS)
        try:
            load_generator = LoadGenerator(wrk, request_writer, said)
            benchmark = Benchmark(service, merchant_set, load_generator, console.print, _progress())
            figures = benchmark.run(choice, folder / "merchants.json", folder / "ceiling.log")
            if choice.pages:
                (merchant,) = merchant_set.populations[LARGE]
                figures |= pages.measure(
                    service, merchant, load_generator, pages.FULL, console.print, _progress()
                )
            return figures
        finally:
            request_writer.close()


def _measure_chains(choice: Choice, folder: Path) -> Figures:
    """The rows of payouts and deposits, which are shown as they are measured."""
    figures: Figures = {}
    if choice.payouts:
        for signed in payouts.measure(folder / "payouts", choice.payouts, say=console.print):
            console.print(signed.describe())
            figures |= signed.figures
    if choice.deposits:
        for scanned in deposits.measure(folder / "deposits", choice.deposits, say=console.print):
            console.print(scanned.describe())
            figures |= scanned.figures
    return figures


def _report(disk: Disk, rows: list[Row], figures: Figures) -> Report:
    return Report(read_machine(), disk, rows, figures, judge_all(figures_of(rows) | figures))


def _try_disk(folder: Path) -> Disk:
    disk = try_disk(folder)
    console.print(
        f"disk: fdatasync takes {disk.fdatasync_p50_ms:.2f} ms (p50), {disk.fdatasync_p99_ms:.2f} ms (p99)"
    )
    return disk


def prepare(service: RunningService, folder: Path, populations: list[str]) -> MerchantSet:
    assert service.database_url is not None
    keyring = Keyring(load_or_create_master_key(folder / "data"))
    merchant_set = asyncio.run(prepare_merchants(service.database_url, keyring, populations, _progress()))
    write_merchants(merchant_set, folder / "merchants.json")
    return merchant_set


def _progress() -> Progress:
    """Shows the progress of long work in ten steps."""
    told: dict[str, int] = {}

    def show_progress(what: str, done: int, total: int) -> None:
        step = STEPS * done // max(1, total)
        if step != told.get(what, 0):
            told[what] = step
            console.print(f"  {what}: {done:,} of {total:,}")

    return show_progress


@contextmanager
def _folder(inside: Path | None) -> Iterator[Path]:
    """A temporary folder, deleted at the end."""
    made = Path(tempfile.mkdtemp(prefix="merchant-wallet-bench-", dir=inside))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def _give_up(reason: str) -> NoReturn:
    console.print(reason, style="red", markup=False)
    raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
