"""A web process as a member of a group: what its supervisor passes to it.

Rules:
- It runs the same command line as its supervisor. A variable of the environment makes it a member.
- It stops on SIGTERM, and when its supervisor ends. On `HAND_OVER` it leaves the socket to the others, and
  ends when its connections have ended. It is told so again and again: a signal may be lost.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import IO, Final

import msgspec
import structlog

log = structlog.get_logger("server")

VARIABLE: Final = "MERCHANT_WALLET_WEB_MEMBER"
CHECK: Final = "MERCHANT_WALLET_WEB_CHECK"
"""With this variable the program only checks that it can start."""
HAND_OVER: Final = signal.SIGUSR1
READY_PREFIX: Final = "ready: "
FAILED_PREFIX: Final = "failed: "
CHECK_TIMEOUT_S: Final = 60.0
LAST_WORDS_S: Final = 1.0
REMINDER_S: Final = 1.0
"""A member that shall hand over is told so this often."""


class Membership(msgspec.Struct, frozen=True):
    """What a member inherits: descriptors, its seat, and the folder of the sockets between members.

    `is_kept`: systemd keeps the listening socket open.
    """

    listening_fd: int
    shared_fd: int
    parent_fd: int
    seat: int
    is_kept: bool
    folder: str

    def list_fds(self) -> tuple[int, ...]:
        """The descriptors."""
        return self.listening_fd, self.shared_fd, self.parent_fd


class Member:
    """A member as its supervisor sees it. `is_old`: it was started before the replacement that is running.

    Without `output` it was started by the supervisor's former program, and was ready then.
    """

    def __init__(self, pid: int, seat: int, output: IO[str] | None = None) -> None:
        self.pid = pid
        self.seat = seat
        self.is_old = self.is_leaving = False
        self.is_ready = output is None
        self.failure = ""
        self.started_s = time.monotonic()
        self._left_s = self._told_s = 0.0
        self._listener: threading.Thread | None = None
        if output is not None:
            self._listener = threading.Thread(target=self._listen, args=(output,), daemon=True)
            self._listener.start()

    def _listen(self, output: IO[str]) -> None:
        with output:
            for line in output:
                if line.startswith(READY_PREFIX):
                    self.is_ready = True
                elif line.startswith(FAILED_PREFIX):
                    self.failure = line.removeprefix(FAILED_PREFIX).strip()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. It is not reaped yet, so the pid is its own."""
        os.kill(self.pid, number)

    def hand_over(self) -> None:
        """Let it leave its connections to the others."""
        self.is_leaving = True
        self._left_s = self._told_s = time.monotonic()
        self.signal(HAND_OVER)

    def remind(self, limit_s: float) -> None:
        """Say it again to a member that is leaving, and kill it when it has taken more than this time."""
        now_s = time.monotonic()
        if now_s >= self._left_s + limit_s:
            log.error("a web process did not hand over in time and is killed", pid=self.pid, limit_s=limit_s)
            self.signal(signal.SIGKILL)
            self._left_s = now_s
        elif now_s >= self._told_s + REMINDER_S:
            self._told_s = now_s
            self.signal(HAND_OVER)

    def reap(self) -> int | None:
        """Its exit status, once it has ended: a negative one is the signal that killed it."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        # What it has said last is known when its output has ended.
        if self._listener is not None:
            self._listener.join(LAST_WORDS_S)
        return os.waitstatus_to_exitcode(status)


def start_member(membership: Membership, inherited: Iterable[int]) -> Member:
    """Start a member. `inherited` are further descriptors that it needs. Raises OSError."""
    environment = {**os.environ, VARIABLE: msgspec.json.encode(membership).decode()}
    environment.pop("NOTIFY_SOCKET", None)
    started = subprocess.Popen(
        own_command(),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(*membership.list_fds(), *inherited),
        # Ctrl-C reaches only the supervisor.
        start_new_session=True,
    )
    # The member is reaped by its pid, as those are that the supervisor's former program has started.
    started.returncode = 0
    return Member(started.pid, membership.seat, started.stdout)


def take_membership() -> Membership | None:
    """What the supervisor of this process passed to it. Processes that it starts do not inherit it."""
    passed = os.environ.pop(VARIABLE, None)
    if passed is None:
        return None
    membership = msgspec.json.decode(passed, type=Membership)
    for fd in membership.list_fds():
        os.set_inheritable(fd, False)
    return membership


def own_command() -> list[str]:
    """The command line of this process, with the program that its path names now.

    A path may be a symbolic link that an upgrade has moved. Then this is the new version.
    """
    program = sys.argv[0]
    if os.path.isfile(program) and os.access(program, os.X_OK):
        return list(sys.argv)
    return [sys.executable, *sys.orig_argv[1:]]


def check_program() -> str:
    """Why the program that would be executed now can't start; empty if it can."""
    try:
        done = subprocess.run(
            own_command(),
            env={**os.environ, CHECK: "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-500:] or "it has ended"
