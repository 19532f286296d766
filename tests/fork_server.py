"""Fork server for tests that kill processes: it has imported their programs and forks quickly.

Starting Python and importing a program takes about half a second, and these tests kill hundreds of processes.
The fork server of a pytest worker starts with its first child and ends with the worker. A monitor process
waits for each child and reports its state. It reaps the child only when the test lets go, so the pid is not
reused.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from tests.waits import TIMEOUT_S

ROOT: Final = Path(__file__).parents[1]
PROGRAMS: Final = (
    "tests.callbacks.killable_sender",
    "tests.cells.killable",
    "tests.cells.killable_book_mover",
    "tests.cells.killable_mover",
    "tests.cli.killable_archive",
    "tests.cold.killable_cold_worker",
    "tests.deposits.killable_watcher",
    "tests.screening.killable_screener",
    "tests.notifications.killable_notifier",
    "tests.sweeps.killable_sweeper",
    "tests.withdrawals.killable_payer",
)
"""Each has a function `main` that takes the arguments."""
STOPPED: Final = "stopped"


class ForkedProcess:
    """A process that runs one of the programs."""

    def __init__(self, monitor: socket.socket) -> None:
        monitor.settimeout(TIMEOUT_S)
        self._states = monitor.makefile("rb")
        self._monitor = monitor
        self._ended = False
        try:
            self.pid = int(self._states.readline())
        except BaseException:
            self._states.close()
            monitor.close()
            raise

    def wait_for_state(self) -> int | str:
        """Wait until it stops or ends. Returns `STOPPED` or a return code."""
        state = self._states.readline().decode().strip()
        if state == STOPPED:
            return STOPPED
        self._ended = True
        return int(state)

    def resume(self) -> None:
        """Resume a stopped process."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it now."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it if it lives, and let it be reaped."""
        try:
            if not self._ended:
                os.kill(self.pid, signal.SIGKILL)
        finally:
            self._states.close()
            self._monitor.close()


def fork_program(program: str, *arguments: str) -> ForkedProcess:
    """Start one of the programs."""
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_fork_server(), [json.dumps([program, *arguments]).encode()], [theirs.fileno()])
    return ForkedProcess(ours)


@cache
def _fork_server() -> socket.socket:
    """The socket of this process's fork server."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
            stdin=subprocess.DEVNULL,
            # A Ctrl-C is for the worker only.
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
    # The fork server ends when this process ends and closes the socket.
    server.returncode = 0
    atexit.register(ours.close)
    return ours


def _serve(orders: socket.socket) -> None:
    for program in PROGRAMS:
        import_module(program)
    # Nobody waits for monitor processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        order, (told,), _, _ = _receive(orders)
        if os.fork() == 0:
            orders.close()
            _monitor_child(socket.socket(fileno=told), *json.loads(order))
        os.close(told)


def _receive(orders: socket.socket) -> tuple[bytes, Sequence[int], int, object]:
    received = socket.recv_fds(orders, 65_536, 1)
    if not received[0]:
        sys.exit()
    return received


def _monitor_child(test: socket.socket, program: str, *arguments: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        test.close()
        _run(program, *arguments)
    test.sendall(f"{pid}\n".encode())
    while True:
        seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        assert seen is not None
        if seen.si_code == os.CLD_STOPPED:
            os.waitid(os.P_PID, pid, os.WSTOPPED)
            test.sendall(f"{STOPPED}\n".encode())
            continue
        sign = 1 if seen.si_code == os.CLD_EXITED else -1
        test.sendall(f"{sign * seen.si_status}\n".encode())
        # The child is not reaped until the test lets go.
        test.recv(1)
        os._exit(0)


def _run(program: str, *arguments: str) -> NoReturn:
    code = 1
    try:
        sys.modules[program].main(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as told_from:
        _serve(told_from)
