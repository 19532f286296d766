"""Stores the WAL of a running server, as it is written.

Rules:
- Every two seconds what was flushed since is stored as a part of its segment. When a segment is full, it is
  stored whole, and its parts are removed.
- The slot moves only after the store has confirmed. So a store that is away costs disk, up to
  `max_slot_wal_keep_size`, and nothing is skipped in silence.
- A store that has more WAL of this timeline than the server belongs to another server, or to a newer copy of
  this one, or somebody else has made the name. Then nothing is written, and the object is named.
- The session's name says up to which moment everything is stored (`tell`).
"""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog

from merchant_wallet.postgres.backups import catalogue, names
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, WalPart
from merchant_wallet.postgres.backups.queries import QUERIES, SESSION, SLOT
from merchant_wallet.postgres.backups.stores import Store

log = structlog.get_logger(__name__)

COMPRESSION: Final = 1
FIRST_TIMELINE: Final = 1
_NAME_MADE_UP: Final = (
    "If there is no other, somebody who can write to the store has made {}: remove it from the store."
)


class WrongStore(BackupError):
    """The store has WAL that this server has not. Only a person can say which of them is right."""


class Shipper:
    """Stores the WAL of one server. `connection` is the role of back-ups', and commits by itself."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        cluster: Path,
        store: Store,
        key: BackupKey,
        now_ms: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._wal = cluster / "pg_wal"
        self._store = store
        self._key = key
        self._now_ms = now_ms
        self._system = ""
        self._timeline = 0
        self._stored = 0
        self._parts: list[str] = []
        """Names of the stored parts of the segment that is being written."""

    def open(self) -> None:
        """Find out where to begin. Raises WrongStore, StoreAway, psycopg.Error."""
        flushed = self._read_flushed()
        fork = self._store_history()
        found = catalogue.read_catalogue(self._store, self._system)
        newest = found.find_last(self._timeline)
        if newest is not None and newest.part.end > flushed:
            raise WrongStore(
                f"The store has WAL up to {names.format_position(newest.part.end)} of timeline "
                f"{self._timeline}, and this server ends at {names.format_position(flushed)}: another server "
                "writes there, or this folder is an older copy. Stop the other, or give this one a "
                f"WALLET_BACKUP_URL of its own. {_NAME_MADE_UP.format(newest.object.name)}"
            )
        kept = self._open_slot()
        begin = kept - kept % SEGMENT_BYTES
        if fork is not None and newest is None:
            begin = min(begin, self._find_segment(fork))
        self._stored = begin
        self._parts = [
            stored.object.name
            for stored in found.wal
            if stored.part.timeline == self._timeline
            and stored.part.start >= begin
            and not stored.part.is_whole
        ]
        self._note_gap(found, begin)

    def ship(self) -> int:
        """Store what was flushed since the last time. Returns how many bytes. Raises StoreAway, OSError."""
        begun_ms = self._now_ms()
        flushed, before = self._read_flushed(), self._stored
        while self._stored < flushed:
            segment_end = self._stored - self._stored % SEGMENT_BYTES + SEGMENT_BYTES
            if segment_end <= flushed:
                self._store_whole(segment_end - SEGMENT_BYTES)
            else:
                self._store_part(WalPart(self._timeline, self._stored, flushed))
        if self._stored > before:
            self._connection.execute(
                QUERIES["advance_slot"].text, {"slot": SLOT, "position": names.format_position(self._stored)}
            )
        self._connection.execute(QUERIES["tell"].text, {"told": f"{SESSION} {begun_ms}"})
        return self._stored - before

    def _store_whole(self, begin: int) -> None:
        part = WalPart(self._timeline, begin, begin + SEGMENT_BYTES)
        self._put(part)
        self._store.delete(self._parts)
        self._parts = []

    def _store_part(self, part: WalPart) -> None:
        self._parts.append(self._put(part))

    def _put(self, part: WalPart) -> str:
        name = f"{self._system}/{catalogue.WAL}/{part.name}"
        content = self._read(part)
        self._store.put(name, self._key.seal(name, gzip.compress(content, COMPRESSION, mtime=0)))
        self._stored = part.end
        return name

    def _read(self, part: WalPart) -> bytes:
        # The files belong to PostgreSQL's user. No link of that user's leads to another file.
        descriptor = os.open(self._wal / part.segment, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(part.start % SEGMENT_BYTES)
            content = file.read(part.end - part.start)
        if len(content) != part.end - part.start:
            raise BackupError(f"{part.segment} is shorter than its WAL: is this the server's own folder?")
        return content

    def _read_flushed(self) -> int:
        row = self._connection.execute(QUERIES["read_flushed"].text).fetchone()
        assert row is not None
        self._timeline, self._system = int(row[1][:8], 16), row[2]
        return int(row[0])

    def _open_slot(self) -> int:
        """From where on the server keeps WAL. The slot is made if there is none that is good."""
        row = self._connection.execute(QUERIES["read_slot"].text, {"slot": SLOT}).fetchone()
        if row is None or row[0] is None or row[1] == "lost":
            forget_slot(self._connection)
            self._connection.execute(QUERIES["create_slot"].text, {"slot": SLOT})
            row = self._connection.execute(QUERIES["read_slot"].text, {"slot": SLOT}).fetchone()
        assert row is not None
        return int(row[0])

    def _note_gap(self, found: catalogue.Catalogue, begin: int) -> None:
        """Say that a new base back-up is needed, if none reaches the WAL that is stored from now on."""
        reached = any(
            (end := found.find_end(base)).timeline == self._timeline and end.position >= begin
            for base in found.bases
        )
        if not reached and found.bases:
            log.error("WAL is missing between the back-ups and now: run `merchant-wallet backup create`")
        elif not reached:
            log.warning("there is no base back-up yet: run `merchant-wallet backup create`")

    def _find_segment(self, fork: names.Fork) -> int:
        """The begin of a timeline's first segment, if the server still has it. Else no segment's."""
        begin = fork.position - fork.position % SEGMENT_BYTES
        path = self._wal / WalPart(fork.timeline, begin, begin + SEGMENT_BYTES).segment
        return begin if path.exists() else self._read_flushed()

    def _store_history(self) -> names.Fork | None:
        """Store where this timeline began, which a restore needs to follow it. None for the first one."""
        if self._timeline == FIRST_TIMELINE:
            return None
        text = (self._wal / names.name_history(self._timeline)).read_bytes()
        fork = names.read_history(text.decode(), self._timeline)
        name = f"{self._system}/{catalogue.HISTORY}/{fork.name}"
        others = [
            found.name
            for found in self._store.list_objects(f"{self._system}/{catalogue.HISTORY}")
            if found.name.split("/")[-1].startswith(f"{self._timeline}.") and found.name != name
        ]
        if others:
            raise WrongStore(
                f"Another server has stored timeline {self._timeline} there: two copies were restored from "
                "the same back-up. Stop the other, or give this one a WALLET_BACKUP_URL of its own. "
                f"{_NAME_MADE_UP.format(others[0])}"
            )
        self._store.put(name, self._key.seal(name, text))
        return fork


def forget_slot(connection: psycopg.Connection[Any]) -> None:
    """Remove the slot, so that WAL is no longer kept for a store."""
    connection.execute(QUERIES["drop_slot"].text, {"slot": SLOT})
