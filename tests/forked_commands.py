"""`merchant-wallet` in a process of its own that is forked, not started.

Rules:
- The process has imported the whole program before it runs. Python's start and the imports take a second of
  processor time each time.
- It gets arguments, an environment and output of its own, as a started one. It reads nothing.
- Tests of the start itself, of imports, of `python -m` and of the installed script don't use it.
"""

import json
import os
import signal
import tempfile
from collections.abc import Mapping
from typing import Final

from tests.fork_server import ForkedProcess, fork_program

MODULE: Final = "tests.forkable_command"


class ForkedCommand:
    """A running command."""

    def __init__(self, *arguments: object, environment: Mapping[str, str]) -> None:
        # Both are closed by `end`.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        reading, writing = os.pipe()
        self._output = open(reading, encoding="utf-8")  # noqa: SIM115
        try:
            self._process: ForkedProcess = fork_program(
                MODULE,
                json.dumps([str(argument) for argument in arguments]),
                environment=environment,
                output=(writing, self._errors.fileno()),
            )
        finally:
            os.close(writing)
        self._status: int | None = None

    def read_line(self) -> str:
        """The next line of its output, or an empty text at the end."""
        return self._output.readline().strip()

    def read_errors(self) -> str:
        """What it has written to standard error."""
        # A seek would move its own position.
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._status is None and not self._process.has_news()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._status is None:
            os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Wait for its end. Returns its exit status, or a signal's negative number."""
        if self._status is None:
            state = self._process.wait_for_state()
            assert isinstance(state, int)
            self._status = state
        return self._status

    def finish(self) -> tuple[int, str, str]:
        """Wait for its end. Returns its status, and the rest of what it wrote: output and errors."""
        output = self._output.read()
        return self.wait(), output, self.read_errors()

    def end(self) -> None:
        """Kill it if it runs."""
        self._process.end()
        self._output.close()
        self._errors.close()

    def __enter__(self) -> "ForkedCommand":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
