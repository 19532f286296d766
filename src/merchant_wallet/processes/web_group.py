"""Several web processes on one port, and their supervisor, which starts, replaces and stops them.

Rules:
- The supervisor has the listening socket and answers nothing. The members accept on the same socket. So a
  connection that waits in its backlog is never lost when a member ends.
- A member that ends by itself is started again after a growing pause. So is one that is killed before it is
  ready, up to `MAX_KILLED` times for each member.
- The first start fails if a member refuses to start, or is killed each time. Then the exit status is the
  member's own, or 1. A member's death by a signal is never the group's exit status.
- SIGTERM stops all members. SIGHUP replaces them, one after the other: a new one is ready before an old one
  hands over. First the supervisor executes its own program again, so that a new version takes over. Its pid
  stays. If the new program can't start, nothing is replaced.
- When the supervisor is killed, the members read end of file on their pipe and stop.
"""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from socket import socket
from types import FrameType
from typing import Final

import msgspec
import structlog
import uvloop

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.restarts import Backoff
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.siblings import FIRST_SEAT, LAYOUT, SEATS, Siblings, create_shared_memory
from merchant_wallet.observability.sibling_figures import end_seat
from merchant_wallet.processes import ending, systemd
from merchant_wallet.processes.listening_socket import bind, resolve_host, take_systemd_socket, url_of
from merchant_wallet.processes.web_member import Member, Membership, check_program, own_command, start_member

log = structlog.get_logger("server")

SUCCESSOR: Final = "MERCHANT_WALLET_WEB_GROUP"
"""What a supervisor leaves for the program that it executes."""
SUPERVISOR_SEAT: Final = 1
POLL_S: Final = 0.1
KILL_MARGIN_S: Final = 10.0
MAX_KILLED: Final = 5
"""So often a member may be killed before it is ready: the machine may lack memory for a while."""
CANNOT_START: Final = 1


class Inheritance(msgspec.Struct, frozen=True):
    """What survives the execution of another program. Members are (pid, seat, is_leaving).

    `folder` is where members have sockets for each other.
    """

    layout: str
    listening_fd: int
    shared_fd: int
    read_fd: int
    write_fd: int
    is_kept: bool
    members: list[tuple[int, int, bool]]
    folder: str = ""

    def list_fds(self) -> tuple[int, ...]:
        """The descriptors."""
        return self.listening_fd, self.shared_fd, self.read_fd, self.write_fd


async def _bind(settings: Settings) -> socket:
    return await bind(await resolve_host(settings.host), settings.port)


def _make_folder() -> str:
    """A folder that nobody but this user may enter."""
    return tempfile.mkdtemp(prefix="merchant-wallet-")


def open_inheritance(settings: Settings) -> Inheritance:
    """What the former program has left, or else a new socket, pipe and memory. Raises CannotListen."""
    left = os.environ.pop(SUCCESSOR, None)
    if left is None:
        passed = take_systemd_socket(os.environ)
        listening = passed or uvloop.run(_bind(settings))
        pipe, is_kept = os.pipe(), passed is not None
        shared_fd = create_shared_memory()
        return Inheritance(LAYOUT, listening.detach(), shared_fd, *pipe, is_kept, [], _make_folder())
    found = msgspec.json.decode(left, type=Inheritance)
    for fd in found.list_fds():
        os.set_inheritable(fd, False)
    if not found.folder:
        found = msgspec.structs.replace(found, folder=_make_folder())
    if found.layout == LAYOUT:
        return found
    # The old members use their own memory until they end.
    return msgspec.structs.replace(found, layout=LAYOUT, shared_fd=create_shared_memory())


class WebGroup:
    """The supervisor of a group."""

    def __init__(self, settings: Settings, on_ready: Callable[[str], None], inheritance: Inheritance) -> None:
        self._settings = settings
        self._on_ready = on_ready
        self._owned = inheritance
        self._listening = socket(fileno=inheritance.listening_fd)
        self._siblings = Siblings(inheritance.shared_fd, SUPERVISOR_SEAT)
        self._inherited = _list_inheritable()
        self._members = [_adopt(*member) for member in inheritance.members]
        self._was_ready = bool(self._members)
        self._is_announced = False
        self._killed: Counter[int] = Counter()
        """How often the member of each seat was killed before it was ready."""
        self._backoff = Backoff(immediate_first=True)
        self._due_s = 0.0
        self._hand_over_limit_s = ending.hand_over_limit_s(settings) + KILL_MARGIN_S
        self._stopping = threading.Event()
        self._is_replacement_wanted = False
        self.status = 0

    def ask_to_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Begin to stop. Used as a signal handler."""
        self._stopping.set()

    def ask_to_replace(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Begin to replace the members. Used as a signal handler."""
        self._is_replacement_wanted = True

    def run(self, is_orphan: Callable[[], bool]) -> None:
        """Run until asked to stop. Raises ConfigError if the first start fails."""
        try:
            while not self._stopping.wait(POLL_S) and not is_orphan():
                self._reap()
                self._step()
                for member in self._members:
                    if member.is_leaving:
                        member.remind(self._hand_over_limit_s)
        finally:
            self._stop()

    def _reap(self) -> None:
        for member in list(self._members):
            status = member.reap()
            if status is not None:
                self._members.remove(member)
                end_seat(self._siblings, member.seat)
                self._siblings.clear(member.seat)
                if not member.is_leaving:
                    self._note_end(member, status)

    def _note_end(self, member: Member, status: int) -> None:
        """A member has ended by itself."""
        if not member.is_ready and status <= 0:
            self._killed[member.seat] += 1
        killed = self._killed[member.seat]
        cannot_start = not member.is_ready and (status > 0 or killed > MAX_KILLED)
        if cannot_start and not self._was_ready:
            self.status = max(status, CANNOT_START)
            self._stopping.set()
            if member.failure:
                raise ConfigError(f"{member.failure}.")
            log.error("the web processes can't start", status=status, killed=killed)
            return
        if cannot_start and any(each.is_old for each in self._members):
            log.error("a new web process can't start; the old ones stay", reason=member.failure)
            self._killed.clear()
            for each in self._members:
                each.is_old = False
        pause_s = self._backoff.next_pause_s(time.monotonic() - member.started_s)
        self._due_s = time.monotonic() + pause_s
        log.error("a web process ended by itself", pid=member.pid, status=status, pause_s=pause_s)

    def _step(self) -> None:
        """Start what is missing, let old members go, say when all is ready."""
        staying = [member for member in self._members if not member.is_leaving]
        old = [member for member in staying if member.is_old]
        wanted, all_ready = self._settings.processes, all(member.is_ready for member in staying)
        if old:
            # One after the other: a new one, then an old one less.
            if all_ready:
                self._replace_one(old[0], len(staying) > wanted)
        elif len(staying) < wanted:
            self._start()
        elif all_ready and not self._is_announced:
            self._announce()
        elif all_ready and self._is_replacement_wanted:
            self._is_replacement_wanted = False
            self._execute_again()

    def _replace_one(self, old: Member, is_replaced: bool) -> None:
        if is_replaced:
            old.hand_over()
        else:
            self._start()

    def _start(self) -> None:
        if time.monotonic() < self._due_s:
            return
        owned, taken = self._owned, {member.seat for member in self._members}
        free = set(range(FIRST_SEAT, SEATS)) - taken
        if not free:
            # Members that hand over have them all. The first of them to end makes room.
            return
        seat = min(free)
        membership = Membership(
            owned.listening_fd, owned.shared_fd, owned.read_fd, seat, owned.is_kept, owned.folder
        )
        try:
            self._members.append(start_member(membership, self._inherited))
        except OSError as error:
            if not self._was_ready:
                raise
            # The machine may lack memory or processes for a while.
            self._due_s = time.monotonic() + self._backoff.next_pause_s(0.0)
            log.error("a web process can't be started", reason=str(error))

    def _announce(self) -> None:
        self._was_ready = self._is_announced = True
        self._killed.clear()
        log.info("web processes ready", count=self._settings.processes)
        self._on_ready(url_of(self._settings.host, self._listening))
        systemd.notify_ready()

    def _execute_again(self) -> None:
        """Continue as the program that the command line names now."""
        systemd.notify_reloading()
        fault = check_program()
        if fault:
            log.error("the program can't start, so the web processes are not replaced", reason=fault)
            systemd.notify_ready()
            return
        log.info("replacing the web processes")
        members = [(member.pid, member.seat, member.is_leaving) for member in self._members]
        left = msgspec.structs.replace(self._owned, members=members)
        for fd in left.list_fds():
            os.set_inheritable(fd, True)
        # A second SIGHUP must not end the new program before it handles it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        command = own_command()
        os.execve(command[0], command, {**os.environ, SUCCESSOR: msgspec.json.encode(left).decode()})

    def _stop(self) -> None:
        systemd.notify_stopping()
        settings = self._settings
        ends_s = time.monotonic() + settings.unready_s + settings.drain_timeout_s + KILL_MARGIN_S
        for member in self._members:
            member.signal(signal.SIGTERM)
        while self._members:
            if time.monotonic() > ends_s:
                log.error("web processes did not stop in time and are killed", count=len(self._members))
                for member in self._members:
                    member.signal(signal.SIGKILL)
                ends_s += KILL_MARGIN_S
            self._members = [member for member in self._members if member.reap() is None]
            time.sleep(POLL_S / 2)
        self._listening.close()
        shutil.rmtree(self._owned.folder, ignore_errors=True)


def _adopt(pid: int, seat: int, is_leaving: bool) -> Member:
    member = Member(pid, seat)
    member.is_old = True
    if is_leaving:
        member.hand_over()
    return member


def _list_inheritable() -> tuple[int, ...]:
    """Descriptors that whoever started this process has passed on, for example an open folder."""
    found = (int(name) for name in os.listdir("/proc/self/fd"))
    return tuple(fd for fd in found if fd > 2 and _is_inheritable(fd))


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        # The descriptor of the listing itself.
        return False


def run_group(settings: Settings, on_ready: Callable[[str], None], parent_fd: int | None) -> int:
    """Run `settings.processes` web processes until SIGTERM, SIGINT or the parent's end.

    Returns the exit status. Raises ConfigError if the first start fails.
    """
    group = WebGroup(settings, on_ready, open_inheritance(settings))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, group.ask_to_stop)
    signal.signal(signal.SIGHUP, group.ask_to_replace)

    def is_orphan() -> bool:
        return parent_fd is not None and _has_ended(parent_fd)

    group.run(is_orphan)
    return group.status


def _has_ended(parent_fd: int) -> bool:
    os.set_blocking(parent_fd, False)
    try:
        return not os.read(parent_fd, 1)
    except BlockingIOError:
        return False
