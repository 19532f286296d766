"""The running service: `merchant-wallet up` in a temporary folder, and the command line beside it.

Rules:
- Of the reader's own settings only `WALLET_SANDBOX_TWO_PEOPLE` is used. Commands take it from the service.
- The service runs in its own session, so Ctrl-C does not reach it.
- The demo leaves the end of the service to its guard. Other callers call `stop`.
"""

import os
import queue
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

FAVOURITE_PORT: Final = 8080
START_TIMEOUT_S: Final = 300.0
COMMAND_TIMEOUT_S: Final = 300.0
STOP_TIMEOUT_S: Final = 60.0
CONFIRM_MS: Final = 2500
"""Long enough to see a withdrawal while it is being paid, also on a slow machine."""
READY_PREFIX: Final = "ready: "
SIGN_IN: Final = ("operator", "password", "console")
"""The lines with which `up` tells, once, how to sign in to the console."""
LOG_LINES_SHOWN: Final = 12
TWO_PEOPLE: Final = "WALLET_SANDBOX_TWO_PEOPLE"
# The second person is made during the demo, and would have to wait for a day.
SETTINGS_FOR_TWO: Final = {TWO_PEOPLE: "true", "WALLET_OPERATOR_WAIT_S": "0", "WALLET_SECRET_WAIT_S": "0"}


class Failure(Exception):
    """A step failed. The text says which and why."""


def find_installed_program() -> Path:
    """The `merchant-wallet` command of the running Python. Raises Failure."""
    program = Path(sys.executable).with_name("merchant-wallet")
    if not program.exists():
        raise Failure(f"there is no {program}: run 'make setup' first")
    return program


def choose_port(progress: Callable[[str], None]) -> int:
    """The usual port if it is free, else 0: the service then takes any free port, and `progress` is told."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", FAVOURITE_PORT))
        except OSError:
            progress(f"another program has port {FAVOURITE_PORT}: the service takes a free one")
            return 0
    return FAVOURITE_PORT


class Deployment:
    """The service and its folder, from `start` to `stop`."""

    def __init__(self, program: Path, data: Path | None = None) -> None:
        """`data` is an empty folder. Without it a new one is made."""
        self.program = program
        self.data = data or Path(tempfile.mkdtemp(prefix="merchant-wallet-demo-"))
        # If we are root, the database runs as another user, who must pass through this folder. Secret files
        # in it have their own modes.
        self.data.chmod(0o711)
        self.log = self.data / "up.log"
        self.settings: dict[str, str] = {}
        self.two_people = SETTINGS_FOR_TWO if os.environ.get(TWO_PEOPLE) == "true" else {}
        self.sign_in: dict[str, str] = {}
        self.url = ""
        self.is_sandbox = True
        self._up: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._heard: queue.Queue[str | None] = queue.Queue()

    def set(self, settings: Mapping[str, str]) -> None:
        """Add settings for everything that is started from now on."""
        self.settings |= settings

    def start(self, port: int, progress: Callable[[str], None], *options: str) -> str:
        """Start everything and return the base URL. `progress` gets messages meanwhile. Raises Failure."""
        self.is_sandbox = "--no-sandbox" not in options
        self._up = subprocess.Popen(
            [self.program, "up", "--port", str(port), *options],
            env={**self._environment(), **self.two_people},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(self._up,), daemon=True)
        self._listener.start()
        self.url = self._wait_ready(progress)
        return self.url

    def run(self, *arguments: str) -> str:
        """Run a `merchant-wallet` command and return its output. Raises Failure with its error message."""
        try:
            done = subprocess.run(
                [self.program, *arguments],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(
                f"'{format_command(arguments)}' took longer than {COMMAND_TIMEOUT_S:g} s"
            ) from error
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise Failure(f"'{format_command(arguments)}' ended with status {done.returncode}: {said}")
        return done.stdout.rstrip()

    def wait(self) -> NoReturn:
        """Wait while the service runs. Raises Failure if it ends by itself."""
        assert self._up is not None, "started before it is waited for"
        status = self._up.wait()
        raise Failure(f"the service ended by itself with status {status}.{self._last_lines()}")

    def stop(self) -> None:
        """Stop the service and remove the folder. Raises Failure if it can't be stopped in order."""
        if self._up is not None and self._listener is not None:
            self._up.send_signal(signal.SIGTERM)
            try:
                self._up.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                # Its children end with it. The database may need the folder for a moment.
                self._up.kill()
                raise Failure(
                    f"the service did not stop in {STOP_TIMEOUT_S:g} s and was killed; {self.data} is kept"
                ) from error
            self._listener.join()
        shutil.rmtree(self.data)

    def _environment(self) -> dict[str, str]:
        """The reader's environment without settings of the service, plus the demo's settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WALLET_")}
        ours = {
            "WALLET_DATA": str(self.data),
            "WALLET_LOG_FORMAT": "json",
            "WALLET_SANDBOX_CONFIRM_MS": str(CONFIRM_MS),
        }
        return {**kept, **ours, **self.settings, "PYTHONUNBUFFERED": "1"}

    def _listen(self, up: "subprocess.Popen[str]") -> None:
        assert up.stdout is not None
        with self.log.open("w") as log, up.stdout:
            for line in up.stdout:
                log.write(line)
                log.flush()
                # Lines of the log are JSON objects. All other lines are for a person.
                if not line.startswith("{"):
                    self._heard.put(line.strip())
        self._heard.put(None)

    def _wait_ready(self, progress: Callable[[str], None]) -> str:
        ends_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                line = self._heard.get(timeout=max(0.0, ends_s - time.monotonic()))
            except queue.Empty:
                raise Failure(
                    f"the service was not ready after {START_TIMEOUT_S:g} s.{self._last_lines()}"
                ) from None
            if line is None:
                raise Failure(f"the service did not start.{self._last_lines()}")
            if line.startswith(READY_PREFIX):
                return line.removeprefix(READY_PREFIX)
            name, _, said = line.partition(": ")
            if name in SIGN_IN:
                self.sign_in[name] = said
            elif line:
                progress(line)

    def _last_lines(self) -> str:
        lines = self.log.read_text().splitlines()[-LOG_LINES_SHOWN:] if self.log.exists() else []
        return (
            "".join(["\nIts last words:", *(f"\n  {line}" for line in lines)])
            if lines
            else " It said nothing."
        )


def format_command(arguments: tuple[str, ...]) -> str:
    """A command as a person would type it."""
    return shlex.join(["merchant-wallet", *arguments])
