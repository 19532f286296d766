"""How the platform's programs and supplies are, for the page Safety. Each is read from what they write down.

Rules: a program that was silent for `LIVE_MS` counts as gone. Times are the database's.
"""

from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.audit import records as audit
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_RANGE
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("platform_status.sql"))
WORKER: Final = "worker"
"""The side that carries out what pages ask for."""
LIVE_MS: Final = 60_000
MAX_INSTANCES: Final = 50
MAX_ACCOUNTS: Final = 1_000
BASE_BACKUP: Final = "backup.created"
"""The audit log's action of a base back-up."""


class Instance(msgspec.Struct, frozen=True):
    """A program that runs, or did. `silent_ms` is how long ago it was seen."""

    side: str
    version: str
    host: str
    pid: int
    started_ms: int
    seen_ms: int
    silent_ms: int

    @property
    def is_alive(self) -> bool:
        """Whether it was seen a moment ago."""
        return self.silent_ms <= LIVE_MS


class Backups(msgspec.Struct, frozen=True):
    """Back-ups of this PostgreSQL. `wal_ms`: up to when WAL is stored; 0 while nobody stores it.

    `base_ms`: the last base back-up. `archived_ms`: when another tool, such as pgBackRest, last took WAL.
    """

    wal_ms: int | None
    base_ms: int | None
    archived_ms: int | None
    archive_failed_ms: int | None

    @property
    def is_any(self) -> bool:
        """Whether anything is known to back this database up."""
        return any((self.wal_ms, self.base_ms, self.archived_ms))


class Supplies(msgspec.Struct, frozen=True):
    """What is left of what new merchants need. `accounts` is counted up to `MAX_ACCOUNTS`."""

    accounts: int
    ranges: int


async def list_instances(home: Connection) -> list[Instance]:
    """The programs that were seen in the last day, those that run first within each side."""
    rows = await fetch(home, QUERIES["list_instances"].text, {"limit": MAX_INSTANCES})
    return [Instance(**row) for row in rows]


async def read_supplies(home: Connection) -> Supplies:
    """What is left for new merchants."""
    (row,) = await fetch(home, QUERIES["count_supplies"].text, {"most": MAX_ACCOUNTS})
    return Supplies(row["accounts"], MAX_RANGE - (row["highest_range"] or 0))


async def read_backups(home: Connection, wal_ms: int | None) -> Backups:
    """The last back-ups that are known. `wal_ms` is what the process that stores WAL says."""
    (archiver,) = await fetch(home, QUERIES["read_archiver"].text, {})
    return Backups(
        wal_ms,
        await _read_last(home, BASE_BACKUP),
        archiver["archived_ms"],
        archiver["failed_ms"],
    )


async def _read_last(home: Connection, action: str) -> int | None:
    entries = await audit.list_entries(home, action=action, limit=1)
    return entries[0].at_ms if entries else None
