"""`up`: starts and supervises everything on one machine: PostgreSQL, the web side and the worker side.

Rules:
- Children run in sessions of their own, so Ctrl-C reaches only this process. It stops web and workers first,
  the database last.
- A child that ends by itself is started again after a growing pause. So is the database. Only a failure of
  the first start ends this process.
- The sides keep running while the database is away and connect again by themselves.
- When this process is killed, the children read end of file on their pipe and stop. The next `up` on the same
  folder takes the database over.
"""

import asyncio
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import structlog

from merchant_wallet import postgres
from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.restarts import Backoff
from merchant_wallet.base.setting_sources import put_into_environment
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability import logs
from merchant_wallet.operators.bootstrap import ensure_first
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.jobs import JobInTheWay
from merchant_wallet.processes.base import is_key_proven, prepare_master_key, require_supported
from merchant_wallet.processes.instances import find_contract_limit
from merchant_wallet.processes.listening_socket import BIND_RETRY_S, is_taken
from merchant_wallet.processes.migrations import migrate_cells, migrate_home
from merchant_wallet.processes.own_postgres import OwnPostgres, require_own
from merchant_wallet.processes.runtime_file import remove_runtime_file, write_runtime_file
from merchant_wallet.processes.side_users import (
    SideUser,
    SideUsers,
    can_web_read,
    choose_users,
    give_files,
    grant_capabilities,
    make_environment,
)
from merchant_wallet.processes.signers import require_signer
from merchant_wallet.processes.start_checks import name_service_links
from merchant_wallet.processes.wal_shipping import remove_credentials

log = structlog.get_logger("up")

SIDES: Final = ("serve", "work")
POLL_S: Final = 0.2
UP: Final = "up"
"""Who migrates, as others that wait for it read."""
KILL_MARGIN_S: Final = 10.0
READY_PREFIX: Final = "ready: "
FAILED_PREFIX: Final = "failed: "

START_FAILURES: Final = (OSError, subprocess.SubprocessError)
"""Errors of starting a side. SubprocessError means that it can't become the side's user."""

WORKER_ONLY: Final = frozenset(
    {
        "WALLET_KEYSTORE_PASSPHRASE",
        "WALLET_KEYSTORE_PASSPHRASE_FILE",
        "WALLET_SIGNER_SOCKET",
        "WALLET_CHECKPOINT_KEY",
        "WALLET_CHECKPOINT_KEY_FILE",
    }
)
"""Settings that the web side never gets: with them it could sign payments or checkpoints."""

Say = Callable[[str], None]


class ChildProcess:
    """One side of the service as a child process. `messages` gets its lines: ready or failed."""

    def __init__(self, side: str, messages: "queue.Queue[tuple[str, str]]") -> None:
        self.side = side
        self._messages = messages
        self._process: subprocess.Popen[str] | None = None
        self._started_s = 0.0
        self._due_s = 0.0
        self._backoff = Backoff()
        self.user: SideUser | None = None
        self.fds: tuple[int, ...] = ()

    def start(self, environment: Mapping[str, str], pipe: int) -> None:
        """Start the process, as the side's own user if it has one."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "merchant_wallet.processes.side_process", self.side, str(pipe)],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(pipe, *self.fds),
            start_new_session=True,
            preexec_fn=self.user.drop() if self.user else None,
            cwd="/" if self.user else None,
        )
        self._started_s = time.monotonic()
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith((READY_PREFIX, FAILED_PREFIX)):
                self._messages.put((self.side, line.strip()))

    def check_process(self, environment: Mapping[str, str], pipe: int) -> None:
        """If the process has ended by itself, start it again after its pause."""
        if self._process is None:
            if time.monotonic() >= self._due_s:
                self._start_again(environment, pipe)
            return
        status = self._process.poll()
        if status is not None:
            pause_s = self._note_end()
            log.error(
                "a side ended by itself and is started again", side=self.side, status=status, pause_s=pause_s
            )

    def _start_again(self, environment: Mapping[str, str], pipe: int) -> None:
        self._started_s = time.monotonic()
        try:
            self.start(environment, pipe)
        except START_FAILURES as error:
            # The machine may lack memory or processes for a while.
            log.error("a side can't be started", side=self.side, reason=str(error), pause_s=self._note_end())

    def _note_end(self) -> float:
        now_s = time.monotonic()
        pause_s = self._backoff.next_pause_s(now_s - self._started_s)
        self._process, self._due_s = None, now_s + pause_s
        return pause_s

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, ends_s: float) -> None:
        """Wait for the process to end. Kill it if it takes too long."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.1, ends_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.error("a side did not stop in time and is killed", side=self.side, pid=self._process.pid)
            self._process.kill()
            self._process.wait()
        self._process = None


class ProcessSupervisor:
    """The database and the two sides, from start to stop."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], say: Say, progress: Say) -> None:
        self._settings = settings
        self._environment = {
            **put_into_environment(environment, with_file=False),
            "WALLET_DATA": str(settings.data.absolute()),
            "WALLET_HOST": settings.host,
            "WALLET_PORT": str(settings.port),
            "WALLET_PROCESSES": str(settings.processes),
            "WALLET_SANDBOX": "true" if settings.sandbox else "false",
        }
        self._say, self._progress = say, progress
        self._messages: queue.Queue[tuple[str, str]] = queue.Queue()
        self._children = [ChildProcess(side, self._messages) for side in SIDES]
        self._ready: set[str] = set()
        self._address = ""
        self._postgres: OwnPostgres | None = None
        self._urls: dict[str, str] = {}
        self._users = choose_users(settings)
        self._environments: dict[str, dict[str, str]] = {}
        self._read_fd, self._write_fd = os.pipe()
        self._stopping = threading.Event()
        self._has_runtime_file = False
        self._made_first = False

    def ask_to_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Begin to stop. Used as a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Start everything, keep it running until asked to stop, stop everything."""
        try:
            self._start()
            while not self._stopping.wait(POLL_S):
                self._read_messages()
                self._check_children()
        finally:
            self._stop()

    def _start(self) -> None:
        settings = self._settings
        if is_taken(settings.host, settings.port):
            # It may be the previous server, which is still finishing its requests.
            self._progress(
                f"another program has {settings.host} port {settings.port}: trying for {BIND_RETRY_S:g} s. "
                "Stop it, or choose a free port with --port 0"
            )
        url = self._find_database()
        if self._postgres is not None and asyncio.run(is_key_proven(settings, url)):
            # Migrations may take hours, and others write meanwhile. Only a first start waits for its key.
            self._postgres.start_shipping()
        limit = find_contract_limit(url).version
        try:
            applied = migrate_home(
                url, UP, self._progress, contract_to=limit, is_stopping=self._stopping.is_set
            )
        except JobInTheWay:
            # It was asked to stop while it waited.
            return
        _log_migrations(applied)
        roles = grant(
            url, {Side.WEB: postgres.WEB_ROLE, Side.WORKER: postgres.WORKER_ROLE} if self._postgres else None
        )
        self._migrate_cells(url, roles, limit)
        asyncio.run(prepare_master_key(self._settings, url))
        if self._postgres is not None:
            self._postgres.start_shipping()
        asyncio.run(self._check_checkpoint_key(url))
        asyncio.run(self._make_first_operator(url))
        self._write_runtime_file()
        if self._users is not None:
            self._prepare_users(self._users)
        for child in self._children:
            try:
                child.start(self._environment_of(child), self._read_fd)
            except START_FAILURES as error:
                raise ConfigError(f"The side `{child.side}` can't be started: {error}") from error

    async def _check_checkpoint_key(self, url: str) -> None:
        """Check the checkpoint key here, where a person reads the error, before the workers refuse it."""
        async with await db.connect(url) as connection:
            await open_service_signer(connection, self._settings, now_ms())

    def _migrate_cells(self, url: str, roles: Mapping[Side, str], limit: int | None) -> None:
        """Migrate the apart cells. One that is away does not hinder the start: its merchants wait."""
        cells = migrate_cells(
            url, dict(self._settings.cell_urls), roles, UP, self._progress, contract_to=limit
        )
        for cell, names in cells.applied.items():
            _log_migrations(names, cell=cell)
        for cell, cause in cells.left_out.items():
            log.warning("cell not migrated", cell=cell, cause=cause)

    def _find_database(self) -> str:
        """The owner's URL. If none was set, start the own PostgreSQL, with a role for each side."""
        url = self._settings.database_url
        if url is not None:
            require_own(self._settings)
            self._urls = dict.fromkeys(SIDES, url)
            return url
        self._postgres = OwnPostgres(self._settings, self._progress)
        self._urls = {"serve": self._postgres.web_url, "work": self._postgres.worker_url}
        return self._postgres.url

    async def _make_first_operator(self, url: str) -> None:
        """If there is no operator, make one and print its password, once."""
        async with await db.connect(url) as connection:
            made = await ensure_first(connection, now_ms())
        if made is not None:
            self._made_first = True
            self._say(f"operator: {made.operator.name}")
            self._say(f"password: {made.password}")

    def _prepare_users(self, users: SideUsers) -> None:
        """Give each side its user, its files, and the secrets that it can't read from files."""
        if self._postgres is not None:
            self._postgres.open_to(users.group)
        give_files(self._settings, users)
        users = grant_capabilities(self._settings, users)
        for child in self._children:
            child.user = users.of(child.side)
            self._environments[child.side] = make_environment(self._settings, self._environment, child.side)
        settings = self._settings
        for name, folder in (
            ("WALLET_CHECKPOINT_DIR", settings.checkpoint_folder),
            ("WALLET_ARCHIVE_DIR", settings.archive_folder),
        ):
            if folder.is_dir() and not can_web_read(folder, users):
                self._pass_open(name, folder)

    def _pass_open(self, name: str, folder: Path) -> None:
        """Pass a folder to the web side as an open descriptor: it can't open the path."""
        opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        for child in self._children:
            if child.side == "serve":
                child.fds = (*child.fds, opened)
        self._environments["serve"][name] = f"/proc/self/fd/{opened}"

    def _environment_of(self, child: ChildProcess) -> Mapping[str, str]:
        kept_back = WORKER_ONLY if child.side == "serve" else ()
        environment = dict(self._environments.get(child.side, self._environment))
        environment["WALLET_DATABASE_URL"] = self._urls[child.side]
        environment["WALLET_PORT"] = self._environment["WALLET_PORT"]
        told = remove_credentials(environment)
        return {name: text for name, text in told.items() if name not in kept_back}

    def _write_runtime_file(self) -> None:
        try:
            self._has_runtime_file = write_runtime_file(self._settings)
        except OSError as error:
            # The service runs without this file. Commands then need the variables.
            log.warning("commands won't find this service by its data folder", reason=str(error))

    def _read_messages(self) -> None:
        while not self._messages.empty():
            side, line = self._messages.get()
            if line.startswith(FAILED_PREFIX):
                self._report_failure(line.removeprefix(FAILED_PREFIX))
                continue
            address = line.removeprefix(READY_PREFIX)
            log.info("side ready", side=side)
            if side == "serve":
                self._address = address
                # When the web side is started again, it must listen on the same port.
                self._environment["WALLET_PORT"] = address.rsplit(":", 1)[1]
            if self._ready != set(SIDES):
                self._ready.add(side)
                if self._ready == set(SIDES):
                    if self._made_first:
                        self._say(f"console: {self._settings.public_url or self._address}/console")
                    self._say(f"{READY_PREFIX}{self._address}")
                    self._say(self._settings.mode_line)

    def _report_failure(self, sentence: str) -> None:
        """Raise ConfigError during the start: the operator must fix it. Later, the side is started again."""
        if self._ready != set(SIDES):
            raise ConfigError(f"{sentence}.")
        log.error("a side can't begin and is started again", reason=sentence)

    def _check_children(self) -> None:
        if self._postgres is not None:
            self._postgres.check()
        for child in self._children:
            child.check_process(self._environment_of(child), self._read_fd)

    def _stop_children(self) -> None:
        settings = self._settings
        ends_s = time.monotonic() + settings.unready_s + settings.drain_timeout_s + KILL_MARGIN_S
        for child in self._children:
            child.ask_to_stop()
        for child in self._children:
            child.wait(ends_s)

    def _stop(self) -> None:
        self._stop_children()
        if self._has_runtime_file:
            remove_runtime_file(self._settings.data)
        os.close(self._write_fd)
        os.close(self._read_fd)
        if self._postgres is not None:
            self._postgres.stop()


def _log_migrations(names: Sequence[str], **where: str) -> None:
    for name in names:
        log.info("migrated", migration=name, **where)


def run_up(settings: Settings, say: Say, progress: Say) -> int:
    """Run the whole service until SIGTERM or SIGINT. Returns the exit status.

    `say` gets the line `ready: http://HOST:PORT` and a line with the mode. If there was no operator yet, it
    first gets name and password of a new one. `progress` gets what happens until then.
    Raises ConfigError, postgres.PostgresError (AlreadyRunning among them), migrate.MigrationError,
    psycopg.OperationalError.
    """
    require_supported(settings)
    require_signer(settings)
    logs.set_up(settings.log_level, settings.log_format)
    name_service_links(os.environ)
    process_supervisor = ProcessSupervisor(settings, os.environ, say, progress)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, process_supervisor.ask_to_stop)
    process_supervisor.run()
    return 0
