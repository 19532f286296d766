"""The demo's guard: however a demo is stopped, no program and no secret of it stays behind."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from demo.guard import list_children
from tests.test_demo import (
    END_TIMEOUT_S,
    ROOT,
    assert_nothing_is_left,
    end_users,
    environment,
    performance,
    read_until,
    users_of,
)
from tests.waits import wait_until

pytestmark = pytest.mark.timeout(3 * END_TIMEOUT_S)

STORY = """
import subprocess, sys, time
from demo.guard import run_guarded, succeed_when_stopped

def tell(folder):
    (folder / "secret").write_text("a key")
    # Like the service: in a session of its own, with a child in yet another one.
    subprocess.Popen(["sh", "-c", "setsid sleep 1000 & echo started; wait"], start_new_session=True)
    if "--serve" in sys.argv:
        succeed_when_stopped()
    while True:
        time.sleep(0.05)
        print("...", flush=True)

sys.exit(run_guarded(tell))
"""


class Running(NamedTuple):
    """The processes of a story that has started its programs."""

    starter: int
    front: int
    guard: int
    story: int
    program: int


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder for the demo's temporary folder; its name has a space."""
    path = tmp_path / "a place"
    path.mkdir()
    yield path
    end_users(path)


def start(folder: Path, *arguments: str) -> tuple["subprocess.Popen[str]", Running]:
    """A story below a shell, which stands for `make`."""
    starter = subprocess.Popen(
        ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", STORY, *arguments],
        cwd=ROOT,
        env=environment(folder),
        # Below nohup it would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    read_until(starter, "started")
    return starter, find_processes(starter.pid)


def find_processes(starter: int) -> Running:
    chain = [starter]
    while len(chain) < len(Running._fields):
        (child,) = wait_until(lambda: list_children(chain[-1]), "the next process")
        chain.append(child)
    return Running(*chain)


def assert_all_ends(folder: Path) -> None:
    wait_until(lambda: users_of(folder) == {}, lambda: str(users_of(folder)))
    wait_until(lambda: list(folder.iterdir()) == [], lambda: str(list(folder.rglob("*"))))


@pytest.mark.parametrize(
    "victims",
    # The last one is a shell's `kill -9 %1`, which does not reach other sessions.
    [("starter",), ("front",), ("guard",), ("story",), ("starter", "front")],
    ids=" ".join,
)
def test_whichever_process_is_killed_the_others_end_and_the_secret_is_gone(
    folder: Path, victims: tuple[str, ...]
) -> None:
    starter, running = start(folder)
    with starter:
        for name in victims:
            os.kill(getattr(running, name), signal.SIGKILL)
        assert_all_ends(folder)


def test_what_a_killed_program_started_ends_with_the_demo(folder: Path) -> None:
    starter, running = start(folder)
    with starter:
        os.kill(running.program, signal.SIGKILL)
        os.kill(running.front, signal.SIGINT)
        starter.communicate(timeout=END_TIMEOUT_S)
    assert_nothing_is_left(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("arguments", "status"), [((), 130), (("--serve",), 0)])
def test_a_signal_ends_all_and_the_status_says_whether_it_was_expected(
    folder: Path, number: signal.Signals, arguments: tuple[str, ...], status: int
) -> None:
    starter, running = start(folder, *arguments)
    with starter:
        os.kill(running.front, number)
        os.kill(running.front, number)  # An impatient second one changes nothing.
        said, _ = starter.communicate(timeout=END_TIMEOUT_S)
    assert starter.returncode == status
    assert said.endswith("  · stopping the service and removing its folder\n")
    assert_nothing_is_left(folder)


def test_ctrl_c_in_a_pipe_whose_reader_ends_first_leaves_nothing(folder: Path) -> None:
    starter, running = start(folder)
    with starter:
        assert starter.stdout is not None
        starter.stdout.close()
        os.kill(running.front, signal.SIGINT)
        starter.wait(END_TIMEOUT_S)
    assert_nothing_is_left(folder)


def test_a_closed_terminal_leaves_nothing(folder: Path) -> None:
    terminal, inside = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    demo = subprocess.Popen(
        [sys.executable, "-c", STORY],
        cwd=ROOT,
        env=environment(folder),
        start_new_session=True,
        preexec_fn=take_terminal,
        stdin=inside,
        stdout=inside,
        stderr=inside,
    )
    with demo:
        os.close(inside)
        said = b""
        while b"started" not in said:
            said += os.read(terminal, 100)
        os.close(terminal)
        demo.wait(END_TIMEOUT_S)
    assert_nothing_is_left(folder)


def test_a_demo_under_nohup_outlives_its_terminal(folder: Path) -> None:
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{STORY}"
    demo = subprocess.Popen(
        [sys.executable, "-c", ignoring], cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, text=True
    )
    with demo:
        read_until(demo, "started")
        demo.send_signal(signal.SIGHUP)
        read_until(demo, "...")
        read_until(demo, "...")
        assert demo.poll() is None
        demo.send_signal(signal.SIGTERM)
        demo.communicate(timeout=END_TIMEOUT_S)
    assert_nothing_is_left(folder)


@pytest.mark.parametrize("victim", ["the demo", "the service"])
def test_a_killed_demo_or_service_leaves_no_postgresql(folder: Path, victim: str) -> None:
    with performance(folder) as demo:
        read_until(demo, "serving at")
        users = users_of(folder)
        assert any("postgres" in line for line in users.values())
        (service,) = [process for process, line in users.items() if "merchant-wallet up" in line]
        os.kill(demo.pid if victim == "the demo" else service, signal.SIGKILL)
        assert_all_ends(folder)
