"""The child of `up` that stores the WAL of the own PostgreSQL: `python -m ...processes.wal_shipping PIPE`.

Rules:
- It takes no requests, and runs as the user of `up`, who may read `pg_wal` and write the store.
- Of the key file it keeps the recipients alone. It signs with a key of the master key.
- A store or a database that is away is tried again, after pauses that grow to half a minute.
- It ends when `up` ends, after it has stored what is left. The database ends after it.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Final

import psycopg
import structlog

from merchant_wallet import postgres
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import (
    MASTER_KEY_FILE,
    ConfigError,
    has_master_key,
    load_key_file,
    load_settings,
)
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.restarts import Backoff
from merchant_wallet.base.settings import Settings
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.observability import logs
from merchant_wallet.postgres.backups.encryption import SIGNING_KEY, BackupKey, read_key_file
from merchant_wallet.postgres.backups.errors import BackupError
from merchant_wallet.postgres.backups.shipping import Shipper, forget_slot
from merchant_wallet.postgres.backups.stores import LONG_PATIENCE_S, PATIENCE_S, Store, open_store
from merchant_wallet.processes.core_dumps import forbid_core_dumps

log = structlog.get_logger("backup")

INTERVAL_S: Final = 2.0
STOP_TIMEOUT_S: Final = 60.0
MODULE: Final = "merchant_wallet.processes.wal_shipping"
STORE_ONLY: Final = ("WALLET_BACKUP_", "AWS_")
"""Settings and credentials of the store begin with these. No side gets them."""


class WalShipping:
    """The process, seen from `up`: started, watched, stopped."""

    def __init__(self, settings: Settings, server: postgres.RunningPostgres, pipe: int) -> None:
        self._settings = settings
        self._server = server
        self._pipe = pipe
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff()
        self._started_s = 0.0
        self._due_s = 0.0

    def start(self) -> None:
        """Start the process. If no store is set, release the WAL that was kept for one.

        Raises ConfigError for settings that a person must correct, OSError.
        """
        if self._settings.backup_url is None:
            with connect_sync(self._server.backup_url) as connection:
                forget_slot(connection)
            return
        open_destination(self._settings)
        self._launch()

    def _launch(self) -> None:
        environment = {**os.environ, "WALLET_DATABASE_URL": self._server.backup_url}
        environment["WALLET_SANDBOX"] = "true" if self._settings.sandbox else "false"
        environment["WALLET_DATA"] = str(self._settings.data.absolute())
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(self._pipe)],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=(self._pipe,),
            start_new_session=True,
        )

    def check(self) -> None:
        """If the process has ended by itself, start it again after its pause."""
        if self._settings.backup_url is None:
            return
        if self._process is None:
            if time.monotonic() >= self._due_s:
                self._launch()
        elif (status := self._process.poll()) is not None:
            now_s = time.monotonic()
            self._due_s = now_s + self._backoff.next_pause_s(now_s - self._started_s)
            self._process = None
            log.error("WAL is not being stored: its process ended and is started again", status=status)

    def stop(self) -> None:
        """Let the process store what is left, and wait for its end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            log.error("the newest WAL was not stored before the end: the store does not answer")
            self._process.kill()
            self._process.wait()
        self._process = None


def open_destination(settings: Settings, patience_s: int = LONG_PATIENCE_S) -> tuple[Store, BackupKey]:
    """The store and the key file of the settings, without a signing key. Raises ConfigError."""
    if settings.backup_url is None or settings.backup_key_file is None:
        raise ConfigError(
            "Back-ups need WALLET_BACKUP_URL and WALLET_BACKUP_KEY_FILE. "
            "`merchant-wallet backup key FILE` makes a key file."
        )
    try:
        store = open_store(settings.backup_url, settings.outbound, patience_s)
        return store, read_key_file(settings.backup_key_file)
    except OSError as error:
        raise ConfigError(f"WALLET_BACKUP_KEY_FILE: {error.filename}: {error.strerror}.") from error
    except BackupError as error:
        raise ConfigError(str(error)) from error


def find_keyring(settings: Settings) -> Keyring:
    """The master key that signs back-ups. It is never made here. Raises ConfigError."""
    path = settings.data / MASTER_KEY_FILE
    if not has_master_key(settings):
        raise ConfigError(
            f"Back-ups are signed with a key of the master key, and {path} is not there: bring it back from "
            "where you keep it, or set WALLET_MASTER_KEY."
        )
    return Keyring(settings.master_key or load_key_file(path, "master key"))


def add_signing_key(settings: Settings, key: BackupKey) -> BackupKey:
    """The key, which also signs for this installation. Raises ConfigError."""
    return key.with_signing_key(find_keyring(settings).derive(SIGNING_KEY))


def find_authenticating_key(settings: Settings) -> BackupKey | None:
    """The key that shows who made a back-up. None if its identity or the master key can't be read here.

    Raises ConfigError.
    """
    if settings.backup_key_file is None:
        return None
    try:
        _, key = open_destination(settings)
        if not key.identities or not has_master_key(settings):
            return None
        return add_signing_key(settings, key)
    except (ConfigError, OSError) as error:
        if isinstance(error.__cause__ or error, PermissionError):
            # Another account than that of `up`.
            return None
        raise


def remove_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what leads to the store."""
    return {name: text for name, text in environment.items() if not name.startswith(STORE_ONLY)}


class Loop:
    """Stores WAL until it is asked to stop, or until `up` is gone."""

    def __init__(self, settings: Settings, parent_fd: int) -> None:
        self._store, key = open_destination(settings, PATIENCE_S)
        self._key = add_signing_key(settings, key.for_sealing())
        self._url = settings.database_url or ""
        self._cluster = settings.data / "postgres"
        self._parent_fd = parent_fd
        self._wake_read, self._wake_write = os.pipe()
        self._stopping = False
        self._backoff = Backoff()

    def ask_to_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Begin to stop. Used as a signal handler."""
        self._stopping = True
        os.write(self._wake_write, b"x")

    def run(self) -> None:
        """Store WAL, and try again after errors."""
        while not self._stopping:
            begun_s = time.monotonic()
            try:
                with connect_sync(self._url) as connection:
                    self._ship(connection)
            except (BackupError, psycopg.Error, OSError) as error:
                pause_s = max(1.0, self._backoff.next_pause_s(time.monotonic() - begun_s))
                log.error("WAL is not being stored", reason=" ".join(str(error).split()), pause_s=pause_s)
                self._wait(pause_s)

    def _ship(self, connection: "psycopg.Connection[object]") -> None:
        shipper = Shipper(connection, self._cluster, self._store, self._key, now_ms)
        shipper.open()
        log.info("WAL is being stored")
        while not self._stopping:
            shipper.ship()
            self._wait(INTERVAL_S)
        shipper.ship()

    def _wait(self, pause_s: float) -> None:
        heard, _, _ = select.select([self._parent_fd, self._wake_read], [], [], pause_s)
        if self._parent_fd in heard:
            self._stopping = True


def main(parent_fd: int) -> int:
    """Run until asked to stop."""
    forbid_core_dumps()
    settings = load_settings(os.environ)
    logs.set_up(settings.log_level, settings.log_format)
    loop = Loop(settings, parent_fd)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, loop.ask_to_stop)
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
