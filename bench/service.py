"""The service under load: `merchant-wallet up` with a temporary data folder, or the ceiling.

Rules: the user's own WALLET_ settings are not used. The settings of the bench are listed here. The log goes
to a file, which is shown if the service does not start.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.meters import find_process
from merchant_wallet import postgres

READY_PREFIX: Final = "ready: "
READY_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 90.0
LOG_TAIL: Final = 3000
CONSOLE_SCRIPT: Final = Path(sys.executable).with_name("merchant-wallet")
SETTINGS: Final = {"WALLET_FAILED_AUTH_LIMIT": "0", "WALLET_SOURCE_CONNECTIONS": "0"}
"""All requests come from one source. Everything else has its default, including the request log and fsync."""


class ServiceFailed(Exception):
    """A service did not start or stop properly. The text has the end of its log."""


class RunningService(msgspec.Struct, frozen=True):
    """A running service. `postgres_pid` and `database_url` are None where there is no database."""

    address: str
    web_pid: int
    postgres_pid: int | None = None
    database_url: str | None = None


@contextmanager
def open_service(
    program: Path, data: Path, log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[RunningService]:
    """`up` with this data folder and further settings, until the block ends. Raises ServiceFailed."""
    command = [str(program), "up", "--data", str(data), "--port", "0"]
    with _run(command, log, settings or {}) as (process, address):
        url = postgres.locate(data)
        pid = int((data / "postgres" / "postmaster.pid").read_text().split()[0])
        yield RunningService(
            address, find_process(process.pid, ("merchant_wallet.processes.side_process", "serve")), pid, url
        )


@contextmanager
def open_ceiling(merchants_path: Path, log: Path) -> Iterator[RunningService]:
    """The HTTP path without a database, until the block ends. Raises ServiceFailed."""
    with _run([sys.executable, "-m", "bench.ceiling", str(merchants_path)], log) as (process, address):
        yield RunningService(address, process.pid)


@contextmanager
def _run(
    command: Sequence[str], log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that prints `ready: ADDRESS`, ended with SIGTERM."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WALLET_")}
    with log.open("ab") as log_file:
        process = subprocess.Popen(
            command,
            env={**environment, **SETTINGS, **(settings or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log_file,
            text=True,
            # Ctrl-C reaches only the bench, which then stops the service in order.
            start_new_session=True,
        )
        try:
            yield process, _wait_ready(process, log)
        finally:
            _stop(process, log)


def _wait_ready(process: subprocess.Popen[str], log: Path) -> str:
    said: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(READY_PREFIX):
                said.put(line.removeprefix(READY_PREFIX).strip())
        said.put("")

    threading.Thread(target=listen, daemon=True).start()
    try:
        address = said.get(timeout=READY_TIMEOUT_S)
    except queue.Empty:
        address = ""
    if not address:
        raise ServiceFailed(f"The service did not become ready. The end of its log:\n{_tail(log)}")
    return address


def _stop(process: subprocess.Popen[str], log: Path) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise ServiceFailed(
            f"The service did not stop and was killed. The end of its log:\n{_tail(log)}"
        ) from None


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-LOG_TAIL:]
