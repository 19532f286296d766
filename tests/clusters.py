"""Two real PostgreSQL clusters: a primary, and a standby that streams from it and can be promoted."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import psycopg
from tests.folders import make_folder
from tests.other_postgres import choose_programs
from tests.waits import wait_until

from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.data_folder import DataFolder
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.programs import Programs, open_log

SETTINGS = (
    "fsync=off",
    "listen_addresses=",
    "shared_buffers=32MB",
    "max_connections=150",
    # Cells are moved by logical replication.
    "wal_level=logical",
)


class Cluster:
    """One server in its own folder. Tests connect through its socket as the superuser."""

    def __init__(self, root: Path, name: str, programs: Path | None = None) -> None:
        self.folder = DataFolder(root / name)
        self.folder.root.mkdir()
        # `choose_programs` tries whether the server's user can read this file.
        self.folder.lock.touch(mode=0o644)
        chosen: Programs = choose_programs(self.folder)
        self.programs = replace(chosen, path=programs) if programs else chosen
        self.sockets = root / f"{name}.s"
        self.sockets.mkdir(mode=0o700)
        for path in (self.folder.root, self.sockets):
            self._give(path)
        self.process: subprocess.Popen[bytes] | None = None

    def _give(self, path: Path) -> None:
        if self.programs.account:
            os.chown(path, self.programs.account.uid, self.programs.account.gid)

    def initialize(self, *locale: str) -> None:
        """Create an empty cluster, with options of initdb for the order of texts."""
        choices = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", *locale]
        self.programs.run("initdb", [*choices, f"--pgdata={self.folder.cluster}"], self.folder)

    def copy(self, primary: "Cluster") -> None:
        """Make this a standby of another cluster."""
        source = ["-h", str(primary.sockets), "-U", "postgres", "-R", "--checkpoint=fast", "--no-sync"]
        self.programs.run("pg_basebackup", [*source, "-D", str(self.folder.cluster)], self.folder)

    def start(self) -> None:
        """Start, and wait until it answers."""
        place = ["-D", str(self.folder.cluster), "-k", str(self.sockets)]
        chosen = [part for setting in SETTINGS for part in ("-c", setting)]
        with open_log(self.folder) as output:
            self.process = self.programs.popen("postgres", [*place, *chosen], output, subprocess.DEVNULL)
        self.until("select true")

    def make_sides(self, database: str) -> None:
        """Apply every migration, and make the roles of both sides."""
        migrate(self.url(database), lambda _: None)
        for role in (WEB_ROLE, WORKER_ROLE):
            self.execute(f"create role {role} login")
        grant(self.url(database), {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE})

    def url(self, database: str = "postgres") -> str:
        """This cluster's URL."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.sockets), safe='')}"

    def execute(self, statement: str, database: str = "postgres") -> object:
        """Run a statement. Returns its first value, if any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def until(self, question: str) -> None:
        """Wait until a query returns true."""
        wait_until(lambda: self._says(question), lambda: f"{question}\n{self.folder.log_since(0)}")

    def _says(self, question: str) -> bool:
        try:
            return self.execute(question) is True
        except psycopg.OperationalError:
            return False

    def forbid_writes(self) -> None:
        """Refuse writes in every session, also in open ones, and keep the sessions open."""
        self.execute("alter system set default_transaction_read_only = on")
        self.execute("select pg_reload_conf()")

    def promote(self) -> None:
        """Make the standby the primary."""
        assert self.execute("select pg_promote(wait_seconds => 60)") is True

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Every process of the server stands still: connections stay open, and nothing answers."""
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        stopped = [pid, *map(int, children)]
        for one in stopped:
            os.kill(one, signal.SIGSTOP)
        try:
            yield
        finally:
            for one in stopped:
                os.kill(one, signal.SIGCONT)

    def kill(self) -> None:
        """Stop at once, as at a power failure."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


@contextmanager
def lone_cluster(programs: Path | None = None, *locale: str) -> Iterator[Cluster]:
    """An empty server on which tests are the superuser. `programs` are those of another version, `locale`
    are options of initdb.
    """
    root = make_folder("wallet-one-")
    cluster = Cluster(root, "a", programs)
    try:
        cluster.initialize(*locale)
        cluster.start()
        yield cluster
    finally:
        if cluster.process is not None:
            cluster.kill()
        shutil.rmtree(root)


@contextmanager
def primary_and_standby(database: str) -> Iterator[tuple[Cluster, Cluster, str]]:
    """A primary with an empty database, its standby, and the URL that names both."""
    root = make_folder("wallet-two-")
    primary, standby = Cluster(root, "a"), Cluster(root, "b")
    try:
        primary.initialize()
        primary.start()
        primary.execute(f"create database {database}")
        standby.copy(primary)
        standby.start()
        hosts = ",".join(quote(str(cluster.sockets), safe="") for cluster in (primary, standby))
        yield primary, standby, f"postgresql://postgres@/{database}?host={hosts}"
    finally:
        for cluster in (primary, standby):
            if cluster.process is not None:
                cluster.kill()
        shutil.rmtree(root)


def until_replayed(primary: Cluster, standby: Cluster) -> None:
    """Wait until the standby has replayed everything that the primary wrote."""
    position = primary.execute("select pg_current_wal_lsn()::text")
    standby.until(f"select pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")
