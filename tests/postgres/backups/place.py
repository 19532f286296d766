"""A server with a data folder, a store and a key, as tests of back-ups use it."""

import os
from pathlib import Path

from merchant_wallet import postgres
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.backups.base import create_base
from merchant_wallet.postgres.backups.catalogue import Catalogue, list_systems, read_catalogue
from merchant_wallet.postgres.backups.encryption import BackupKey, make_identity, parse_keys
from merchant_wallet.postgres.backups.names import Stored, parse_session
from merchant_wallet.postgres.backups.recovery import choose_base, restore
from merchant_wallet.postgres.backups.shipping import Shipper
from merchant_wallet.postgres.backups.stores import FolderStore


def make_key() -> BackupKey:
    """A new key that seals, opens and signs."""
    return parse_keys(make_identity()[0], "test").with_signing_key(os.urandom(32))


class Place:
    """A server with a data folder, a store and a key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        (root / "store").mkdir()
        self.store = FolderStore(root / "store")
        self.key = make_key()
        self.server = self.start(self.data)

    def start(self, data: Path) -> postgres.RunningPostgres:
        """Start the server of a folder."""
        self.server = postgres.start(data, lambda _: None, overrides={"fsync": "off"})
        self.data = data
        return self.server

    def execute(self, statement: str) -> None:
        """Change the database as the tables' owner."""
        with connect_sync(self.server.url) as connection:
            connection.execute(statement.encode())

    def read(self) -> list[int]:
        """The rows of the only table."""
        with connect_sync(self.server.url) as connection:
            return [row[0] for row in connection.execute("select n from kept order by n")]

    def ship(self, store: FolderStore | None = None) -> int:
        """A new process stores what it finds. Returns how many bytes."""
        with connect_sync(self.server.backup_url) as connection:
            shipper = Shipper(connection, self.data / "postgres", store or self.store, self.key, now_ms)
            shipper.open()
            return shipper.ship()

    def ship_and_tell(self) -> Stored:
        """A new process stores what it finds. Returns what its session says then."""
        with connect_sync(self.server.backup_url) as connection:
            shipper = Shipper(connection, self.data / "postgres", self.store, self.key, now_ms)
            shipper.open()
            shipper.ship()
            [(told,)] = connection.execute("show application_name").fetchall()
        stored = parse_session(told)
        assert stored is not None
        return stored

    def back_up(self) -> str:
        """Make a base back-up; returns its name."""
        return create_base(self.server.backup_url, self.store, self.key, lambda done, total: None).name

    @property
    def catalogue(self) -> Catalogue:
        """What the store has."""
        [[system], _] = list_systems(self.store)
        return read_catalogue(self.store, system)

    def restore(self, name: str, key: BackupKey | None = None) -> Path:
        """Restore everything into a new folder."""
        target, found = self.root / name, self.catalogue
        base = choose_base(found, None, None)
        restore(target, self.store, key or self.key, found, base, None, lambda _: None)
        return target
