"""The cost of a run: CPU time and memory from /proc (Linux), and the disk's latency by a trial.

Rules: the CPU time of a process tree is that of its living processes and of the children that its root has
waited for, so database sessions that ended are counted. Memory is what is resident.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

PROC: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
MIB: Final = 1024 * 1024
SYNCS: Final = 300
SYNC_BYTES: Final = 8192


class Stat(NamedTuple):
    """One process: its parent, and its CPU seconds without and with its waited-for children."""

    parent: int
    own_s: float
    buried_s: float


class Busy(NamedTuple):
    """CPU seconds of the whole machine: used, and stolen by the host of a virtual machine."""

    worked_s: float
    stolen_s: float


class Disk(msgspec.Struct, frozen=True):
    """How long this disk takes to write and sync 8 KiB, in milliseconds."""

    fdatasync_p50_ms: float
    fdatasync_p99_ms: float


def read_stat(text: str) -> Stat:
    """A process from the text of its /proc/PID/stat. Its name may contain spaces and brackets (proc(5))."""
    fields = text[text.rindex(")") + 2 :].split()
    user, system, child_user, child_system = (int(field) for field in fields[11:15])
    return Stat(int(fields[1]), (user + system) / TICKS_PER_S, (child_user + child_system) / TICKS_PER_S)


def list_processes() -> dict[int, Stat]:
    """All processes."""
    found = {}
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                found[int(folder.name)] = read_stat((folder / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # It ended between the two looks.
    return found


def family_of(head: int, processes: dict[int, Stat]) -> set[int]:
    """A process and all that descend from it."""
    family = {head}
    while more := {pid for pid, stat in processes.items() if stat.parent in family and pid not in family}:
        family |= more
    return family


def read_processor_s(head: int) -> float:
    """The CPU seconds so far of a process and all its descendants."""
    processes = list_processes()
    family = family_of(head, processes) & processes.keys()
    return sum(processes[pid].own_s + processes[pid].buried_s for pid in family)


def read_busy(text: str) -> Busy:
    """The machine's seconds from the text of /proc/stat (proc(5)). Waiting for a disk does not count."""
    user, nice, system, _, _, interrupts, soft, stolen = (int(field) for field in text.split()[1:9])
    return Busy((user + nice + system + interrupts + soft) / TICKS_PER_S, stolen / TICKS_PER_S)


def read_machine_busy() -> Busy:
    """What the whole machine has used so far."""
    return read_busy((PROC / "stat").read_text())


def read_resident_mib(pid: int) -> float:
    """The memory of one process that is in RAM."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES / MIB


def read_family_mib(head: int) -> float:
    """The memory of a process and all its descendants, without what they share with other processes."""
    total = 0
    for pid in family_of(head, list_processes()):
        rollup = (PROC / str(pid) / "smaps_rollup").read_text()
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    return total / 1024


def find_process(head: int, words: Iterable[str]) -> int:
    """The descendant of a process whose command line has all these words. Raises LookupError."""
    wanted = {word.encode() for word in words}
    for pid in sorted(family_of(head, list_processes())):
        try:
            line = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended between the two looks.
        if wanted <= set(line):
            return pid
    raise LookupError(f"no process below {head} has {' '.join(words)} in its command line")


def compute_percentile(values: Iterable[float], hundredths: int) -> float:
    """The smallest value that at least this percentage of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * hundredths // 100) - 1)]


def try_disk(folder: Path) -> Disk:
    """Write and fdatasync 8 KiB again and again, as a database's log does, in a temporary file."""
    path = folder / "fdatasync"
    block, took_ms = os.urandom(SYNC_BYTES), []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, bytes(SYNC_BYTES * SYNCS), 0)
        os.fsync(descriptor)
        for number in range(SYNCS):
            began = time.perf_counter()
            os.pwrite(descriptor, block, number * SYNC_BYTES)
            os.fdatasync(descriptor)
            took_ms.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(descriptor)
        path.unlink()
    return Disk(compute_percentile(took_ms, 50), compute_percentile(took_ms, 99))
