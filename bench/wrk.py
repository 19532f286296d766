"""The load generator: Debian's `wrk`, which `walk.lua` gives prepared requests, and its results.

Rules: latencies are wrk's own, corrected for requests that it could not send while it waited. Rates are
counted answers over the time between the first and the last of them, for each thread.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

SCRIPT: Final = Path(__file__).with_name("walk.lua")
RESULT_PREFIX: Final = "result: "
ANSWER_TIMEOUT_S: Final = 10
MARGIN_S: Final = 60.0
MAX_THREADS: Final = 2
HOW_TO_INSTALL: Final = "The load generator `wrk` is missing. Type: sudo apt-get install -y wrk"


class WrkFailed(Exception):
    """wrk is missing or failed. The text says what to do."""


class ThreadResult(msgspec.Struct, frozen=True):
    """The counts of one thread of wrk. `seconds` from its first answer to its last."""

    answered: int
    seconds: float
    used_up: bool
    refusals: dict[str, int]


class Result(msgspec.Struct, frozen=True):
    """The result of a run of wrk. Latencies in microseconds. Refusals are answers with a code other than
    200.
    """

    threads: list[ThreadResult]
    p50_us: int
    p99_us: int
    max_us: int
    errors: dict[str, int]

    @property
    def answered(self) -> int:
        """Answers of any code."""
        return sum(thread.answered for thread in self.threads)

    @property
    def rate(self) -> float:
        """Answers a second, over all threads."""
        return sum((t.answered - 1) / t.seconds for t in self.threads if t.seconds > 0)

    @property
    def used_up(self) -> bool:
        """Whether a thread ran out of requests, so that the run was shorter than planned."""
        return any(thread.used_up for thread in self.threads)

    @property
    def refusals(self) -> dict[str, int]:
        """The number of answers for each code other than 200."""
        total: Counter[str] = Counter()
        for thread in self.threads:
            total.update(thread.refusals)
        return dict(sorted(total.items()))


def find_wrk(say: Callable[[str], None]) -> str:
    """The program's path. As root on Debian it is installed if missing. Raises WrkFailed."""
    found = shutil.which("wrk")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        say("wrk is missing; installing it with apt-get")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            ["apt-get", "install", "-y", "wrk"], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise WrkFailed(f"{HOW_TO_INSTALL} (apt-get said: {done.stderr.strip()[-300:]})")
        found = shutil.which("wrk")
    if found is None:
        raise WrkFailed(HOW_TO_INSTALL)
    return found


def choose_threads(connections: int) -> int:
    """How many threads, and so slices, a run of this many connections has."""
    return min(connections, MAX_THREADS)


class WrkRun:
    """A running wrk. `slices` is the common prefix of the slices' file names."""

    def __init__(self, program: str, address: str, slices: Path, connections: int, seconds: int) -> None:
        self._seconds = seconds
        self._wrk = subprocess.Popen(
            [
                program,
                f"--threads={choose_threads(connections)}",
                f"--connections={connections}",
                f"--duration={seconds}s",
                f"--timeout={ANSWER_TIMEOUT_S}s",
                f"--script={SCRIPT}",
                address,
                "--",
                str(slices),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def is_running(self) -> bool:
        """Whether it still sends."""
        return self._wrk.poll() is None

    def wait(self) -> Result:
        """Wait for the end of the run and read its result. Raises WrkFailed."""
        try:
            output, _ = self._wrk.communicate(timeout=self._seconds + MARGIN_S)
        except BaseException:
            self._wrk.kill()
            self._wrk.wait()
            raise
        return read_output(output)


def read_output(output: str) -> Result:
    """The result in wrk's output. Raises WrkFailed."""
    for line in output.splitlines():
        if line.startswith(RESULT_PREFIX):
            return msgspec.json.decode(line.removeprefix(RESULT_PREFIX), type=Result)
    raise WrkFailed(f"wrk gave no result. It said:\n{output.strip()}")
