"""PostgreSQL servers of the reader's machine: made in a temporary folder, killed, started again, removed.

Rules: each listens on a free port of 127.0.0.1, with one user and one password for all. Their settings are
PostgreSQL's own defaults, except those that are told to the reader.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from demo.deployment import Failure
from merchant_wallet.postgres.data_folder import DataFolder, PostgresError
from merchant_wallet.postgres.programs import choose_programs, open_log

OWNER: Final = "wallet"
START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
SETTINGS: Final = ("wal_level=logical", "listen_addresses=127.0.0.1", "max_connections=200")
QUIET: Final = ("unix_socket_directories=", "shared_buffers=64MB")


class Server:
    """One PostgreSQL server with an empty database `wallet`, once it is created."""

    def __init__(self, root: Path, name: str, password: str) -> None:
        self.name = name
        self.port = _find_port()
        self._password = password
        self._folder = DataFolder(root / name)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Its URL without user and password, as the reader types it."""
        return f"postgresql://127.0.0.1:{self.port}/{OWNER}"

    @property
    def url(self) -> str:
        """Its URL with user and password."""
        return f"postgresql://{OWNER}:{self._password}@127.0.0.1:{self.port}/{OWNER}"

    def create(self) -> None:
        """Make its folder, start it, and make the database. Raises Failure."""
        try:
            self._make_folder()
        except PostgresError as error:
            raise Failure(str(error)) from error
        self.start()
        with psycopg.connect(self.url.rpartition("/")[0] + "/postgres", autocommit=True) as connection:
            connection.execute(f"create database {OWNER}".encode())

    def start(self) -> None:
        """Start it and wait until it answers. Raises Failure."""
        chosen = [part for setting in (*SETTINGS, *QUIET, f"port={self.port}") for part in ("-c", setting)]
        arguments = ["-D", str(self._folder.cluster), *chosen]
        with open_log(self._folder) as output:
            self._process = self._programs.popen("postgres", arguments, output, subprocess.DEVNULL)
        ends_s = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > ends_s:
                raise Failure(f"the server {self.name} did not start:\n{self._folder.log_since(0)[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, as a power failure does."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End it in order, if it runs."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _make_folder(self) -> None:
        self._folder.root.mkdir(mode=0o711)
        # `choose_programs` tries whether the server's user can read this file.
        self._folder.lock.touch(mode=0o644)
        self._programs = choose_programs(self._folder)
        pwfile = self._folder.root / "password"
        pwfile.write_text(self._password)
        pwfile.chmod(0o600)
        if (account := self._programs.account) is not None:
            for path in (self._folder.root, pwfile):
                os.chown(path, account.uid, account.gid)
        choices = [f"--username={OWNER}", "--auth=scram-sha-256", f"--pwfile={pwfile}", "--encoding=UTF8"]
        sorting = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        arguments = [*choices, *sorting, "--no-instructions", f"--pgdata={self._folder.cluster}"]
        self._programs.run("initdb", arguments, self._folder)
        pwfile.unlink()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url.rpartition("/")[0] + "/postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


class Servers:
    """The servers of the demo, in one temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-servers-"))
        # If we are root, the servers run as another user, who must pass through this folder.
        self.folder.chmod(0o711)
        self._password = secrets.token_urlsafe(24)
        self._made: list[Server] = []

    def add(self, name: str) -> Server:
        """Make a server and start it. Raises Failure."""
        server = Server(self.folder, name, self._password)
        # Before it is created: an interrupt may come between its start and its first answer.
        self._made.append(server)
        server.create()
        return server

    def remove(self) -> None:
        """Stop all of them and delete the folder."""
        for server in self._made:
            server.stop()
        shutil.rmtree(self.folder)


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
