"""Fork server for tests that need processes: it has imported their programs and forks quickly.

Starting Python and importing a program takes about half a second, and these tests kill hundreds of processes.
The fork server of a pytest worker starts with its first child and ends with the worker. It imports a program
when that is first asked for. A monitor process
waits for each child and reports its state. It reaps the child only when the test lets go, so the pid is not
reused.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from tests.waits import TIMEOUT_S

ROOT: Final = Path(__file__).parents[1]
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

    def has_news(self) -> bool:
        """Whether `wait_for_state` would return at once."""
        return bool(select.select([self._monitor], [], [], 0)[0])

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


def fork_program(
    program: str,
    *arguments: str,
    environment: Mapping[str, str] = os.environ,
    output: tuple[int, int] | None = None,
) -> ForkedProcess:
    """Run the function `main` of a module with these arguments and this environment. `output` are descriptors
    for what it writes: standard output and standard error. (`forked_program` passes standard input, too.)
    """
    ours, theirs = socket.socketpair()
    with theirs:
        order = json.dumps([dict(environment), program, *arguments]).encode()
        socket.send_fds(fork_server(), [order], [theirs.fileno(), *(output or ())])
    return ForkedProcess(ours)


@cache
def fork_server() -> socket.socket:
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
    # Nobody waits for monitor processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        order, (told, *streams), _, _ = _receive(orders)
        environment, program, *arguments = json.loads(order)
        if program not in sys.modules:
            import_module(program)
            # Children that collect garbage would copy every page of it.
            gc.freeze()
        if os.fork() == 0:
            orders.close()
            os.environ.clear()
            os.environ.update(environment)
            _monitor_child(socket.socket(fileno=told), streams, program, *arguments)
        for descriptor in (told, *streams):
            os.close(descriptor)


def _receive(orders: socket.socket) -> tuple[bytes, Sequence[int], int, object]:
    received = socket.recv_fds(orders, 65_536, 4)
    if not received[0]:
        sys.exit()
    return received


def _monitor_child(test: socket.socket, streams: Sequence[int], program: str, *arguments: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        test.close()
        for number, descriptor in enumerate(streams, start=3 - len(streams)):
            os.dup2(descriptor, number)
    for descriptor in streams:
        os.close(descriptor)
    if pid == 0:
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
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as told_from:
        _serve(told_from)
