"""The own PostgreSQL of `up`: the server, its supervision, and the process that stores its WAL.

`up --database-only` runs it without the rest.
"""

import os
import shlex
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict

from merchant_wallet import postgres
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.connection_limits import count_own_connections
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability import logs
from merchant_wallet.postgres.server import Progress
from merchant_wallet.processes.wal_shipping import WalShipping, open_destination

POLL_S: Final = 0.2
READY_PREFIX: Final = "ready: "

Say = Callable[[str], None]


class OwnPostgres:
    """A running server with a URL for each side."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        """Start or take over. Raises ConfigError, postgres.PostgresError (AlreadyRunning among them)."""
        if settings.backup_url is not None:
            # Before the server: a person must correct this.
            open_destination(settings)
        connections = {"max_connections": str(count_own_connections(settings.processes))}
        self._server = postgres.start(settings.data, progress, overrides=connections)
        self._supervisor = postgres.PostgresSupervisor(self._server)
        self._read_fd, self._write_fd = os.pipe()
        self.url, self.web_url, self.worker_url = (
            self._server.url,
            self._server.web_url,
            self._server.worker_url,
        )
        self._shipping = WalShipping(settings, self._server, self._read_fd)
        self._is_shipping = False

    def start_shipping(self) -> None:
        """Store WAL from now on, signed with the master key, which was checked. Raises ConfigError.

        A second call does nothing.
        """
        if not self._is_shipping:
            self._is_shipping = True
            self._shipping.start()

    def open_to(self, group: int) -> None:
        """Let the members of a group connect."""
        self._server.open_to(group)

    def check(self) -> None:
        """Start again what ended by itself. Never waits."""
        self._supervisor.check()
        self._shipping.check()

    def stop(self) -> None:
        """Store the last WAL, then stop the server."""
        self._shipping.stop()
        os.close(self._write_fd)
        os.close(self._read_fd)
        self._server.stop()


def require_own(settings: Settings) -> None:
    """Refuse a store for a database that `up` does not run. Raises ConfigError."""
    if settings.database_url is not None and settings.backup_url is not None:
        raise ConfigError(
            "WALLET_BACKUP_URL is for the PostgreSQL that `up` runs by itself, and WALLET_DATABASE_URL names "
            "another one. Back that one up with its own tools, such as pgBackRest."
        )


def run_database(settings: Settings, say: Say, progress: Say) -> int:
    """Run only the data folder's own PostgreSQL until SIGTERM or SIGINT. Returns the exit status.

    There is no interface and nothing is paid. `say` gets how to reach it. Raises ConfigError and
    postgres.PostgresError.
    """
    if settings.database_url is not None:
        raise ConfigError(
            "--database-only starts the data folder's own database, but WALLET_DATABASE_URL is set. "
            "Commands already use that database."
        )
    if not postgres.has_cluster(settings.data):
        raise ConfigError(f"There is no database in {settings.data} that could be started.")
    logs.set_up(settings.log_level, settings.log_format)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    server = postgres.start(settings.data, progress)
    try:
        for line in describe_database(settings.data.absolute(), server.url):
            say(line)
        supervisor = postgres.PostgresSupervisor(server)
        while not stopping.wait(POLL_S):
            supervisor.check()
    finally:
        server.stop()
    return 0


def describe_database(data: Path, url: str) -> list[str]:
    """How to connect to the database of a data folder, without the password."""
    parts, folder = conninfo_to_dict(url), shlex.quote(str(data))
    password = shlex.quote(str(data / "postgres.password"))
    variables = f"PGHOST={parts['host']} PGUSER={parts['user']} PGDATABASE={parts['dbname']}"
    return [
        f"doctor: merchant-wallet doctor --data {folder}",
        f"verify: merchant-wallet book verify --data {folder}",
        f'psql: {variables} PGPASSWORD="$(cat {password})" psql',
        f"{READY_PREFIX}the database alone; nobody can call and nothing is paid",
    ]
