"""Children of tests that are to die: forked, in a moment, from one process that has imported their programs.

To start Python and import a program costs a good part of a second each time, and the tests that kill see
hundreds die. A worker's nursery starts with its first child and ends with the worker. Each child is a
process of its own, which a minder watches over; its process id is no other's until the test lets go of it.
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

ROOT: Final = Path(__file__).parents[1]
PROGRAMS: Final = (
    "tests.callbacks.dying_messenger",
    "tests.deposits.dying_watcher",
    "tests.sweeps.killed_sweeper",
    "tests.withdrawals.dying_payer",
)
"""Each has a function `main` that takes its arguments."""
STOPPED: Final = "stopped"
PATIENCE_S: Final = 120.0


class Child:
    """A process that runs one of the programs."""

    def __init__(self, minder: socket.socket) -> None:
        minder.settimeout(PATIENCE_S)
        self._news = minder.makefile("rb")
        self._minder = minder
        self._ended = False
        try:
            self.pid = int(self._news.readline())
        except BaseException:
            self._news.close()
            minder.close()
            raise

    def await_news(self) -> int | str:
        """Wait for what becomes of it: `STOPPED`, or how it ended, as a return code."""
        news = self._news.readline().decode().strip()
        if news == STOPPED:
            return STOPPED
        self._ended = True
        return int(news)

    def wake(self) -> None:
        """Let one that is stopped go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Kill it if it still lives, and let go of it."""
        try:
            if not self._ended:
                os.kill(self.pid, signal.SIGKILL)
        finally:
            self._news.close()
            self._minder.close()


def bear(program: str, *arguments: str) -> Child:
    """Start one of the programs."""
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_nursery(), [json.dumps([program, *arguments]).encode()], [theirs.fileno()])
    return Child(ours)


@cache
def _nursery() -> socket.socket:
    """Where this process's nursery takes orders."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
            stdin=subprocess.DEVNULL,
            # A Ctrl-C is the worker's to hear.
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
    # It ends by itself, when this process has closed its side by ending.
    nursery.returncode = 0
    atexit.register(ours.close)
    return ours


def _serve(orders: socket.socket) -> None:
    for program in PROGRAMS:
        import_module(program)
    # Minders are nobody's to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        order, (told,), _, _ = _receive(orders)
        if os.fork() == 0:
            orders.close()
            _mind(socket.socket(fileno=told), *json.loads(order))
        os.close(told)


def _receive(orders: socket.socket) -> tuple[bytes, Sequence[int], int, object]:
    received = socket.recv_fds(orders, 65_536, 1)
    if not received[0]:
        sys.exit()
    return received


def _mind(test: socket.socket, program: str, *arguments: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        test.close()
        _live(program, *arguments)
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
        # Until the test lets go it is not reaped.
        test.recv(1)
        os._exit(0)


def _live(program: str, *arguments: str) -> NoReturn:
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
