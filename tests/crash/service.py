"""A whole service, started as an operator does, in its own folder; and a check for processes that it left.

`prepared_folder` is one folder with a database, a merchant and its sub-user alice. Every test gets a copy,
since creating a database takes longer than most tests.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.crash.shop import FUNDS, MASTER_KEY, issue_first, open_merchant, run
from tests.folders import copy_folder, make_folder
from tests.waits import TIMEOUT_S, wait_until

from merchant_wallet import postgres
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Adjust, Register, Submission
from merchant_wallet.book.writer import Writer
from merchant_wallet.postgres.migrate import migrate

PROGRAM = Path(sys.executable).with_name("merchant-wallet")


def parents() -> dict[int, int]:
    """Every live process's parent, by pid; a zombie counts as dead."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # It ended meanwhile.
        if state != "Z":
            found[int(stat.parent.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    """The live descendants of this process."""
    parent_of = parents()
    below = {pid}
    while more := {child for child, parent in parent_of.items() if parent in below} - below:
        below |= more
    return below - {pid}


def read_command(pid: int) -> list[bytes]:
    """The words that the process was started with; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def is_side(pid: int, side: str) -> bool:
    words = read_command(pid)
    return b"merchant_wallet.processes.side_process" in words and side.encode() in words


def alive(pids: set[int]) -> set[int]:
    """Those of the pids that still run."""
    return pids & parents().keys()


def kill_all(pids: set[int]) -> None:
    """kill -9 each of them that has not ended by then."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # It ended together with one that was killed before.


class Service:
    """`merchant-wallet up` on one data folder."""

    def __init__(self, data: Path, app_key: str = "", secret: str = "") -> None:
        self.data = data
        self.app_key = app_key
        self.secret = secret
        self.url = ""
        self.said: list[str] = []
        self.process: subprocess.Popen[Any] | None = None
        self.seen: set[int] = set()

    def command(self, port: int = 0) -> list[str]:
        """The command line of `up`."""
        return [str(PROGRAM), "up", "--data", str(self.data), "--port", str(port)]

    def environment(self) -> dict[str, str]:
        """No limit on requests, warnings only, no other settings of this machine."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WALLET_")}
        return {**kept, "WALLET_RATE_LIMIT": "0", "WALLET_LOG_LEVEL": "warning"}

    def start(self, port: int = 0, *, before: Callable[[], None] | None = None) -> "Service":
        """Start, and wait for the line that says it is ready. `before` runs first in the new process."""
        with (self.data.parent / "up.log").open("a") as log:
            self.process = subprocess.Popen(
                self.command(port),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                preexec_fn=before,
                cwd="/",
            )
        self._listen(self.process)
        return self

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Read the output of `up` until it ends, so that it never waits for a reader."""
        ready = threading.Event()
        assert process.stdout is not None
        output = process.stdout

        def read() -> None:
            for line in output:
                self.said.append(line.rstrip("\n"))
                if line.startswith("ready: "):
                    self.url = line.removeprefix("ready: ").strip()
                    ready.set()
            output.close()
            ready.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert ready.wait(TIMEOUT_S), "not ready in time"
        assert process.poll() is None, self.errors()
        self.look()

    @property
    def pid(self) -> int:
        """The pid of `up`."""
        assert self.process is not None
        return self.process.pid

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def errors(self) -> str:
        """Its standard error output."""
        return (self.data.parent / "up.log").read_text()

    def look(self) -> set[int]:
        """All processes of the service, beginning with `up`. They are remembered for `leavings`."""
        pids = {self.pid, *descendants(self.pid)}
        self.seen |= pids
        return pids

    def side(self, side: str) -> int:
        """The pid of the live `serve` or `work` process. Of several web processes it is the supervisor: their
        command lines are the same.
        """

        def find() -> int | None:
            parent_of = parents()
            found = {pid for pid in self.look() - {self.pid} if pid in parent_of and is_side(pid, side)}
            return next((pid for pid in found if parent_of[pid] not in found), None)

        found = wait_until(find, f"there is a {side} process")
        assert found is not None
        return found

    def postmaster(self) -> int:
        """The pid in PostgreSQL's own pid file."""
        return int((self.data / "postgres" / "postmaster.pid").read_text().split()[0])

    def database_url(self) -> str:
        """The URL of the folder's PostgreSQL."""
        url = postgres.locate(self.data)
        assert url is not None, "no database runs on this folder"
        return url

    def kill(self, *, database: bool = False) -> None:
        """kill -9 `up`, the web process and the workers; the database too if asked."""
        pids = self.look()
        victims = {self.pid, self.side("serve"), self.side("work")}
        if database:
            victims |= pids & ({self.postmaster()} | descendants(self.postmaster()))
        kill_all(victims)
        self._reap()
        wait_until(lambda: not alive(victims), "the killed are gone")

    def kill_up(self) -> None:
        """kill -9 `up` alone."""
        self.look()
        os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask `up` to stop, wait, and return its exit status."""
        self.look()
        os.kill(self.pid, number)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        return self.process.wait(TIMEOUT_S)

    def leavings(self) -> set[int]:
        """Processes that this service ever had and that still run."""
        return alive(self.seen)

    def end(self) -> None:
        """Leave nothing running, whatever a test did."""
        if self.process is not None and self.process.poll() is None:
            self.look()
            self.process.kill()
            self._reap()
        kill_all(self.leavings())
        wait_until(lambda: not self.leavings(), "the service has ended")
        note = self.data / "runtime.json"
        if note.exists():
            shutil.rmtree(json.loads(note.read_text())["socket_dir"], ignore_errors=True)


async def furnish(url: str) -> tuple[str, str]:
    """A merchant with a million KFB and alice; its key and secret."""
    opened = await open_merchant(url)
    issued = await issue_first(url, opened.merchant)
    writer = Writer(url)
    for command in (
        Adjust(KFB, FUNDS, "opening balance", "test", None),
        Register("alice", KFB, *issued),
    ):
        await writer.submit(opened.merchant.merchant_id, Submission(command))
    await writer.close()
    return opened.merchant.app_key, opened.app_secret


@pytest.fixture(scope="session")
def prepared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A stopped service's folder, and its merchant's key and secret. All modules and workers of a run copy
    the same one, and the last of them removes it.
    """
    own = tmp_path_factory.getbasetemp()
    # A worker's folder is in the folder of the run.
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "service"
    shared.mkdir(exist_ok=True)
    note = shared / "prepared.json"
    with (shared / "users.lock").open("a") as users, (shared / "build.lock").open("a") as building:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(building, fcntl.LOCK_EX)
        if not note.exists():
            note.write_text(json.dumps(prepare_folder()))
        fcntl.flock(building, fcntl.LOCK_UN)
        data, app_key, secret = json.loads(note.read_text())
        yield Path(data), app_key, secret
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note.unlink()
            shutil.rmtree(Path(data).parent)


def prepare_folder() -> tuple[str, str, str]:
    """Make such a folder."""
    data = make_folder("merchant-wallet-crash-") / "data"
    # This database may be lost, so it is created without syncing. The service itself starts it with full
    # durability.
    running = postgres.start(data, lambda _: None, overrides={"fsync": "off"})
    try:
        migrate(running.url, lambda _: None)
        key_file = data / "master.key"
        key_file.touch(mode=0o600)
        key_file.write_text(MASTER_KEY.hex() + "\n")
        app_key, secret = run(furnish(running.url))
    finally:
        running.stop()
    os.sync()
    return str(data), app_key, secret


@pytest.fixture
def service(prepared_folder: tuple[Path, str, str]) -> Iterator[Service]:
    """A service that is not started yet, on a prepared folder. At the end none of its processes runs."""
    source, app_key, secret = prepared_folder
    parent = make_folder("merchant-wallet-crash-")
    copy_folder(source, parent / "data")
    made = Service(parent / "data", app_key, secret)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(parent)
