"""Three PostgreSQL under Patroni, and etcd, on loopback. Patroni's settings are `deploy/patroni.yml`.

Rules: of the file only names, addresses, folders and passwords are replaced, and for the asynchronous drill
`synchronous_mode`. Patroni runs as the user of the own PostgreSQL: as root as `nobody`. Everybody reaches a
server, and a server reaches etcd, over links that can be cut.
"""

import os
import secrets
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
from tests.crash.service import parents
from tests.failover.links import Link, open_links
from tests.ports import find_port
from tests.tools import COMMAND, find_tool
from tests.waits import wait_until

from merchant_wallet.postgres.data_folder import DataFolder
from merchant_wallet.postgres.programs import choose_programs

ROOT: Final = Path(__file__).parents[2]
CONFIGURATION: Final = ROOT / "deploy/patroni.yml"
NAMES: Final = ("db1", "db2", "db3")
DATABASE: Final = "wallet"


class Missing(Exception):
    """A program of the drill is not installed. The text says what to do."""


def find_program(name: str) -> Path:
    """The program. Raises Missing."""
    found = find_tool(name)
    if found is None:
        raise Missing(f"{name} is missing: type `{COMMAND}`")
    return found


class Node:
    """One database server: Patroni, and the PostgreSQL that it starts."""

    def __init__(
        self, name: str, root: Path, patroni: Path, etcd_port: int, password: str, *, synchronous: bool
    ) -> None:
        self.name = name
        self._port, self.rest_port = find_port(), find_port()
        self._link, self._etcd_link = Link(self._port), Link(etcd_port)
        self.links = [self._link, self._etcd_link]
        self.port = self._link.port
        self._synchronous = synchronous
        self._root = root / name
        self._root.mkdir()
        folder = DataFolder(self._root)
        # `choose_programs` tries whether the server's user can read this file.
        folder.lock.touch(mode=0o644)
        self._programs = replace(choose_programs(folder), path=patroni.parent)
        self._bin = choose_programs(folder).path
        self.file = self._root / "patroni.yml"
        self.file.write_text(self._render(password))
        for path in (self._root, self.file):
            self._give(path)
        self._process: subprocess.Popen[bytes] | None = None

    def _give(self, path: Path) -> None:
        if self._programs.account:
            os.chown(path, self._programs.account.uid, self._programs.account.gid)

    def _render(self, password: str) -> str:
        text = CONFIGURATION.read_text()
        here = "127.0.0.1"
        for before, after in (
            ("name: db1", f"name: {self.name}"),
            # Otherwise Patroni asks etcd for its own address, and leaves the link out.
            (
                "hosts: 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379",
                f"hosts: {here}:{self._etcd_link.port}\n  use_proxies: true",
            ),
            ("10.0.0.1:8008", f"{here}:{self.rest_port}"),
            ("connect_address: 10.0.0.1:5432", f"connect_address: {here}:{self.port}"),
            ("10.0.0.1:5432", f"{here}:{self._port}"),
            ("10.0.0.0/24", "127.0.0.0/8"),
            ("/var/lib/postgresql/wallet", str(self._root / "data")),
            ("/usr/lib/postgresql/18/bin", str(self._bin)),
            ("/var/lib/postgresql/.pgpass-patroni", str(self._root / "pgpass")),
            ("/var/run/postgresql", str(self._root)),
            ("SUPERUSER_PASSWORD", password),
            ("REPLICATION_PASSWORD", password),
            ("REWIND_PASSWORD", password),
        ):
            assert before in text, before
            text = text.replace(before, after)
        if not self._synchronous:
            text = text.replace("synchronous_mode: quorum", "synchronous_mode: off")
            text = text.replace("synchronous_mode_strict: true", "synchronous_mode_strict: false")
        return text

    def start(self) -> None:
        """Start Patroni, which starts PostgreSQL."""
        with (self._root / "patroni.log").open("ab") as log:
            self._process = self._programs.popen("patroni", [str(self.file)], log, subprocess.DEVNULL)

    def list_postgres(self) -> list[int]:
        """PostgreSQL's processes, the postmaster first."""
        try:
            postmaster = int((self._root / "data/postmaster.pid").read_text().split()[0])
        except FileNotFoundError:
            return []
        return [postmaster, *(pid for pid, parent in parents().items() if parent == postmaster)]

    def kill_postgres(self) -> None:
        """kill -9 all of PostgreSQL. Patroni lives."""
        for pid in self.list_postgres():
            _signal(pid, signal.SIGKILL)

    def kill(self) -> None:
        """kill -9 everything, as if the machine had lost its power."""
        if self._process is not None:
            self._process.kill()
        self.kill_postgres()
        if self._process is not None:
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop every process of the server. Its connections stay open."""
        self.hang()
        for pid in self.list_postgres():
            _signal(pid, signal.SIGSTOP)

    def hang(self) -> None:
        """Stop Patroni. PostgreSQL goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let everything go on that was stopped."""
        assert self._process is not None
        for pid in self.list_postgres():
            _signal(pid, signal.SIGCONT)
        self._process.send_signal(signal.SIGCONT)

    def cut(self) -> None:
        """Unplug the server's network."""
        for link in self.links:
            link.cut()

    def mend(self) -> None:
        """Plug it in again."""
        for link in self.links:
            link.mend()

    @property
    def is_alive(self) -> bool:
        """Whether Patroni runs."""
        return self._process is not None and self._process.poll() is None

    def is_primary(self) -> bool:
        """What Patroni answers a load balancer that looks for the primary."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.rest_port}/primary", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def log_tail(self) -> str:
        """The end of Patroni's and PostgreSQL's log."""
        return (self._root / "patroni.log").read_text(errors="replace")[-4000:]


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        # It ended, for example together with one that was killed before.
        return


class Cluster:
    """etcd and three nodes, from start to stop."""

    def __init__(self, root: Path, *, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self._etcd_program, self._patroni = find_program("etcd"), find_program("patroni")
        self._root = root
        self._password = secrets.token_hex(16)
        self._etcd_ports = find_port(), find_port()
        self._etcd: subprocess.Popen[bytes] | None = None
        self.nodes = [
            Node(name, root, self._patroni, self._etcd_ports[0], self._password, synchronous=synchronous)
            for name in NAMES
        ]

    def start(self) -> None:
        """Start everything, and wait for a primary with two standbys."""
        client, peer = (f"http://127.0.0.1:{port}" for port in self._etcd_ports)
        words = ["--data-dir", str(self._root / "etcd"), "--name", "one", "--initial-cluster", f"one={peer}"]
        words += ["--listen-client-urls", client, "--advertise-client-urls", client]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--log-level", "error"]
        with (self._root / "etcd.log").open("ab") as log:
            self._etcd = subprocess.Popen(
                [self._etcd_program, *words], stdout=log, stderr=log, start_new_session=True
            )
        open_links([link for node in self.nodes for link in node.links])
        self.nodes[0].start()
        wait_until(self.nodes[0].is_primary, "the first node is the primary")
        for node in self.nodes[1:]:
            node.start()
        self.until_whole()

    def find_primary(self) -> Node | None:
        """The node that Patroni calls the primary."""
        return next((node for node in self.nodes if node.is_alive and node.is_primary()), None)

    def url(self, user: str, password: str, database: str = DATABASE, *, backwards: bool = False) -> str:
        """A URL with all hosts, as the documents have it, or in the other order."""
        nodes = reversed(self.nodes) if backwards else self.nodes
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        options = "target_session_attrs=read-write&connect_timeout=2"
        return f"postgresql://{user}:{password}@{hosts}/{database}?{options}"

    @property
    def admin_url(self) -> str:
        """The superuser's URL."""
        return self.url("postgres", self._password, "postgres")

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        """Ask the primary as the superuser."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            return connection.execute(question.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Change something at the primary as the superuser."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def switch_over(self) -> None:
        """A planned change of the primary, as the documents have it."""
        done = subprocess.run(
            [
                str(self._patroni.with_name("patronictl")),
                "-c",
                str(self.nodes[0].file),
                "switchover",
                "--force",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def until_whole(self) -> None:
        """Wait until the primary has two standbys: of synchronous ones either may answer for a commit."""
        wait_until(self._is_whole, "two standbys are connected")

    def _is_whole(self) -> bool:
        state = "quorum" if self._synchronous else "async"
        question = (
            f"select count(*) from pg_stat_replication where state = 'streaming' and sync_state = '{state}'"
        )
        try:
            return self.ask(question) == [(2,)]
        except psycopg.Error:
            return False

    def stop(self) -> None:
        """End everything that this cluster started."""
        for node in self.nodes:
            node.kill()
        if self._etcd is not None:
            self._etcd.terminate()
            self._etcd.wait()
