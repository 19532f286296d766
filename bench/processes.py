"""Several web processes on one port: `python -m bench.processes`. Transfers over HTTP with 1, 2 and 4.

Rules:
- Every number of processes has the same data folder, so `up` is started again for each. They take turns, so
  all see the same machine.
- `--web-cpus` pins the web processes. Start the bench under `taskset` to pin everything else.
- `--share` gives each web process only this share of a core (cgroups, as root). So four processes with 0.25
  are four slow cores, and their sum can be compared on a machine that has only two.
"""

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from bench.__main__ import console, prepare
from bench.merchants import HOT, THOUSAND
from bench.meters import family_of, list_processes, read_family_mib
from bench.rows import LoadGenerator, Plan, Row
from bench.service import CONSOLE_SCRIPT, RunningService, open_service
from bench.signed_requests import DEBIT, RequestWriter, find_memory
from bench.stages import WARM_UP_REQUESTS
from bench.wrk import find_wrk

GROUPS: Final = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
PERIOD_US: Final = 10_000
COUNTS: Final = "1,2,4"


def main(
    counts: Annotated[str, typer.Option(help="Numbers of web processes.")] = COUNTS,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    seconds: Annotated[int, typer.Option(min=1)] = 8,
    connections: Annotated[int, typer.Option(min=1)] = 256,
    web_cpus: Annotated[str, typer.Option(metavar="LIST", help="Pin the web processes, as 0,1.")] = "",
    share: Annotated[float, typer.Option(help="Share of a core for each web process; 0 is all.")] = 0.0,
) -> None:
    """Measure transfers of one merchant and of a thousand with several numbers of web processes."""
    folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-bench-"))
    slices = Path(tempfile.mkdtemp(prefix="merchant-wallet-bench-", dir=find_memory()))
    rates: dict[tuple[int, str], list[float]] = {}
    try:
        with open_service(CONSOLE_SCRIPT, folder / "data", folder / "log") as service:
            prepare(service, folder, [HOT, THOUSAND])
        writer = RequestWriter(folder / "merchants.json", slices, 2)
        loads = LoadGenerator(find_wrk(console.print), writer, lambda row: None)
        for _ in range(rounds):
            for count in map(int, counts.split(",")):
                settings = {"WALLET_PROCESSES": str(count)}
                with open_service(CONSOLE_SCRIPT, folder / "data", folder / "log", settings) as service:
                    _pin(service.web_pid, web_cpus)
                    with _limit(service.web_pid, share):
                        for row in _measure(service, loads, connections, seconds):
                            rates.setdefault((count, row.merchants), []).append(row.rate)
                            _say(count, row, read_family_mib(service.web_pid))
        writer.close()
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(slices)
    for (count, merchants), found in sorted(rates.items(), key=lambda item: (item[0][1], item[0][0])):
        console.print(f"{merchants}, {count} processes: median {statistics.median(found):,.0f} a second")


def _measure(service: RunningService, loads: LoadGenerator, connections: int, seconds: int) -> Iterator[Row]:
    for population in (HOT, THOUSAND):
        loads.warm_up(service, population, DEBIT, WARM_UP_REQUESTS)
        yield loads.measure(service, Plan("processes", population, DEBIT, connections, seconds))


def _say(count: int, row: Row, mib: float) -> None:
    cost = row.cost
    console.print(
        f"{count} processes, {row.merchants}: {row.rate:,.0f} a second, p50 {row.p50_ms:.1f} ms, "
        f"p99 {row.p99_ms:.1f} ms, {row.failures} failures; web {cost.web_cpu:.0f} %, "
        f"postgres {cost.postgres_cpu:.0f} %, wrk {cost.wrk_cpu:.0f} %, others {cost.other_cpu:.0f} %; "
        f"web memory {mib:.0f} MiB"
    )


def _pin(head: int, cpus: str) -> None:
    if not cpus:
        return
    for pid in family_of(head, list_processes()):
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {int(cpu) for cpu in cpus.split(",")})


@contextmanager
def _limit(head: int, share: float) -> Iterator[None]:
    """Give each process of the family only a share of a core."""
    if not share:
        yield
        return
    quota_us, parent = int(share * PERIOD_US), next(path for path in GROUPS if path.is_dir())
    groups = []
    for pid in family_of(head, list_processes()):
        group = parent / f"merchant-wallet-bench-{pid}"
        group.mkdir()
        groups.append((group, pid))
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (group / "cgroup.procs").write_text(str(pid))
    try:
        yield
    finally:
        for group, pid in groups:
            (parent / "cgroup.procs").write_text(str(pid))
            group.rmdir()


if __name__ == "__main__":
    typer.run(main)
