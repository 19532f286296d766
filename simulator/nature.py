"""Nature: kills, stops, cuts, delays and servers that die or restart, from one stream of random numbers.

Rules:
- `end` makes everything well again: stopped processes continue, delays end, dead servers are started.
- Only processes of this world are touched: `up` and what descends from it.
- After a death merchants get some answers before the next fault: a world that is always dead shows nothing.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from simulator.deployment import APART, Deployment

LONGEST_STOP_S: Final = 2.0
LONGEST_DELAY_S: Final = 1.5
LONGEST_PAUSE_S: Final = 2.5
DEADLY: Final = ("kill", "database")
Recover = Callable[[asyncio.Event], Awaitable[None]]


class Nature:
    """What happens to the deployment by itself."""

    def __init__(
        self, deployment: Deployment, faults: Sequence[str], recover: Recover, random: Random
    ) -> None:
        """`recover` waits until merchants are answered again, or its event is set."""
        self.counts: Counter[str] = Counter()
        self._deployment = deployment
        self._faults = tuple(faults)
        self._recover = recover
        self._random = random

    async def live(self, ends: asyncio.Event) -> None:
        """One fault after the other, until `ends` is set."""
        bodies = {
            "kill": self._kill,
            "stop": self._stop,
            "cut": self._cut,
            "delay": self._delay,
            "database": self._end_database,
        }
        while self._faults and not ends.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(0.3, LONGEST_PAUSE_S)):
                    await ends.wait()
            if not ends.is_set():
                fault = self._random.choice(self._faults)
                await bodies[fault]()
                if fault in DEADLY:
                    await self._recover(ends)

    async def _kill(self) -> None:
        pid = self._choose_process()
        if pid is not None and _signal(pid, signal.SIGKILL):
            self.counts["kill"] += 1

    async def _stop(self) -> None:
        pid = self._choose_process()
        if pid is None or not _signal(pid, signal.SIGSTOP):
            return
        self.counts["stop"] += 1
        try:
            await asyncio.sleep(self._random.uniform(0.1, LONGEST_STOP_S))
        finally:
            _signal(pid, signal.SIGCONT)

    async def _cut(self) -> None:
        border = self._random.choice([*self._deployment.borders.values()])
        self.counts[f"cut {border.name}"] += border.cut() > 0

    async def _delay(self) -> None:
        border = self._random.choice([*self._deployment.borders.values()])
        border.delay_s = self._random.uniform(0.02, LONGEST_DELAY_S)
        self.counts[f"delay {border.name}"] += 1
        try:
            await asyncio.sleep(self._random.uniform(0.2, LONGEST_DELAY_S))
        finally:
            border.delay_s = 0.0

    async def _end_database(self) -> None:
        server = self._random.choice((self._deployment.home, self._deployment.apart))
        name = "home" if server.name != APART else APART
        if self._random.random() < 0.5:
            self.counts[f"server {name} died"] += 1
            await server.kill()
        else:
            self.counts[f"server {name} restarted"] += 1
            await server.stop()
        try:
            await asyncio.sleep(self._random.uniform(0.0, 1.0))
        finally:
            await server.start()

    def _choose_process(self) -> int | None:
        root = self._deployment.pid
        return None if root is None else self._random.choice(sorted({root, *_list_descendants(root)}))


def _list_descendants(root: int) -> set[int]:
    """The live processes below this one. A zombie counts as dead."""
    parent_of = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # It ended meanwhile.
        if state != "Z":
            parent_of[int(stat.parent.name)] = int(parent)
    below = {root}
    while more := {child for child, parent in parent_of.items() if parent in below} - below:
        below |= more
    return below - {root}


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal. Returns whether the process was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
