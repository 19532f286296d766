"""Ends everything that a demo starts, whatever way the demo is stopped.

Three processes: the front, which `make` starts and which has the terminal; the guard, in a session of its
own; and the story, which starts the programs.

Rules:
- Front and guard run the same code. Each waits for a signal or for the end of its child. Then it stops all
  its children, waits for them and removes the folder.
- Both are subreapers (prctl(2)): a program whose parent was killed becomes their child. So if the story, the
  front or the guard is killed, one of the others still ends every program.
- The kernel sends SIGTERM to the guard when the front ends, and to the front when `make` ends.
- Everything that the demo writes is in the folder, its secrets too: it is the story's TMPDIR.
"""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

INTERRUPTED: Final = 128 + signal.SIGINT
"""The exit status of a program that Ctrl-C ended, as shells report it."""
FAILED: Final = 1
STOP_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.1
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def run_guarded(tell: Callable[[Path], int]) -> int:
    """Call `tell` in a process of its own, with a new folder. Returns its exit status, or INTERRUPTED."""
    awaited = set(_STOP_SIGNALS)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # `nohup make demo` outlives its terminal.
        awaited.discard(signal.SIGHUP)
    _control_process(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # Blocked signals stay pending until `sigwait`, so none is lost and none interrupts the end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*awaited, signal.SIGCHLD})
    folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-demo-"))
    # If we are root, the database runs as another user, who must pass through this folder.
    folder.chmod(0o711)

    def run_story() -> int:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*awaited, signal.SIGCHLD})
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        return tell(folder)

    def run_guard() -> int:
        os.setsid()
        return _watch(run_story, folder, awaited)

    return _watch(run_guard, folder, awaited)


def succeed_when_stopped() -> None:
    """In the story: to be stopped is the expected end from now on."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))


def _watch(act: Callable[[], int], folder: Path, awaited: set[signal.Signals]) -> int:
    """Call `act` in a child until it ends or a signal comes, then end what is left.

    Returns the exit status of the child.
    """
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _control_process(_PR_SET_PDEATHSIG, signal.SIGTERM)
        _exit_with(act if os.getppid() == parent else lambda: INTERRUPTED)
    status = _wait(child, awaited)
    if list_children(os.getpid()):
        # A reader that is gone, as after Ctrl-C in `make demo | tee`, must not keep the programs running.
        with suppress(OSError):
            os.write(1, b"  \xc2\xb7 stopping the service and removing its folder\n")
        _end_children()
    if folder.exists():
        shutil.rmtree(folder)
    return status


def _exit_with(act: Callable[[], int]) -> NoReturn:
    """Call `act` and end this process, without the exit handlers that belong to its parent."""
    status = FAILED
    try:
        status = act()
        sys.stdout.flush()
    except SystemExit:
        # rich ends the program so when nobody reads its output any more.
        status = FAILED
    except BaseException:
        # Where the terminal is closed, nobody can be told.
        with suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(status)


def _wait(child: int, awaited: set[signal.Signals]) -> int:
    """Wait for a child and interrupt it when a signal comes. Returns its exit status as shells report it."""
    while True:
        if signal.sigwait({*awaited, signal.SIGCHLD}) != signal.SIGCHLD:
            os.kill(child, signal.SIGINT)
        ended = _reap()
        if child in ended:
            code = os.waitstatus_to_exitcode(ended[child])
            return code if code >= 0 else 128 - code


def _end_children() -> None:
    """End all children, and those that become ours when their parents end. Kill what takes too long.

    Both signals are needed: what a shell starts in the background ignores SIGINT, and PostgreSQL waits for
    its clients after SIGTERM alone.
    """
    asked: set[int] = set()
    ends_s = time.monotonic() + STOP_TIMEOUT_S
    while children := list_children(os.getpid()):
        is_late = time.monotonic() > ends_s
        # Until it is reaped, the id of a child belongs to no other program.
        for child in children if is_late else children - asked:
            for number in (signal.SIGKILL,) if is_late else (signal.SIGTERM, signal.SIGINT):
                os.kill(child, number)
        asked |= children
        time.sleep(POLL_S)
        _reap()


def list_children(parent: int) -> set[int]:
    """The children of a process, also those that have ended and were not reaped."""
    children = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It may have ended meanwhile.
            # The name in parentheses may contain anything: pid (name) state ppid …
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == str(parent):
                children.add(int(folder.name))
    return children


def _reap() -> dict[int, int]:
    """The wait statuses of the children that have ended."""
    ended = {}
    with suppress(ChildProcessError):  # There is none left.
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


def _control_process(option: int, value: int) -> None:
    """prctl(2), which Python lacks. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl failed")
