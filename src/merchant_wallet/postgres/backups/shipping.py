"""Stores the WAL of a running server, as it is written.

Rules:
- Every two seconds what was flushed since is stored as a part of its segment. When a segment is full, it is
  stored whole, and its parts are removed.
- The slot moves only after the store has confirmed. So a store that is away costs disk, up to
  `max_slot_wal_keep_size`, and nothing is skipped in silence.
- A store that has more WAL of this timeline than the server belongs to another server, or to a newer copy of
  this one, or somebody else has made the name. Then nothing is written, and the object is named.
- At the begin and every five minutes the store is listed: is all that was stored still there, with a base
  back-up that reaches it? What the server still has is stored again. What is missing is logged.
- The session's name says up to which moment everything is stored, and can be restored (`tell`).
"""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog

from merchant_wallet.base.moments import format_moment
from merchant_wallet.postgres.backups import catalogue, names
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, Stored, WalPart
from merchant_wallet.postgres.backups.queries import QUERIES, SLOT
from merchant_wallet.postgres.backups.stores import Store

log = structlog.get_logger(__name__)

COMPRESSION: Final = 1
CHECK_MS: Final = 300_000
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
        self._until_ms = 0
        """What was committed before this moment is not behind `_stored`. 0: that is not known."""
        self._parts: list[WalPart] = []
        """What is stored of segments that will be stored whole."""
        self._checked_ms = 0
        self._base_ms = 0
        self._restorable_ms: int | None = None
        """Up to when the store can be restored, if that is not all of it. 0: nothing can."""

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
            first = self._find_begin(fork.timeline, fork.position)
            begin = begin if first is None else min(begin, first)
        self._begin(found, begin)

    def _begin(self, found: catalogue.Catalogue, begin: int) -> None:
        """Store from the begin of a segment on."""
        self._stored = begin
        mine = [stored.part for stored in found.wal if stored.part.timeline == self._timeline]
        self._parts = [part for part in mine if part.start >= begin]
        early = [part.until_ms for part in mine if part.end <= begin + SEGMENT_BYTES]
        self._until_ms = min(max(early, default=0), self._now_ms())

    def ship(self) -> int:
        """Store what was flushed since the last time. Returns how many bytes. Raises StoreAway, OSError."""
        begun_ms = self._now_ms()
        flushed, before = self._read_flushed(), self._stored
        self._store_until(flushed, begun_ms)
        if self._stored > before:
            self._connection.execute(
                QUERIES["advance_slot"].text, {"slot": SLOT, "position": names.format_position(self._stored)}
            )
        if abs(begun_ms - self._checked_ms) >= CHECK_MS and self._go_back(begun_ms):
            self._store_until(flushed, begun_ms)
            self._check(begun_ms)
        restorable_ms = begun_ms if self._restorable_ms is None else self._restorable_ms
        told = Stored(begun_ms, restorable_ms, self._base_ms)
        self._connection.execute(QUERIES["tell"].text, {"told": told.session})
        return self._stored - before

    def _store_until(self, flushed: int, begun_ms: int) -> None:
        while self._stored < flushed:
            segment_end = self._stored - self._stored % SEGMENT_BYTES + SEGMENT_BYTES
            # Only what ends where the server does has all that was committed until now.
            until_ms = self._until_ms if segment_end < flushed else begun_ms
            if segment_end <= flushed:
                self._store_whole(WalPart(self._timeline, segment_end - SEGMENT_BYTES, segment_end, until_ms))
            else:
                part = WalPart(self._timeline, self._stored, flushed, until_ms)
                self._put(part)
                self._parts.append(part)
        self._until_ms = begun_ms

    def _go_back(self, at_ms: int) -> bool:
        """Check the store. True if it lacks what the server still has: then that is to be stored again."""
        found, end = self._check(at_ms)
        if end is None or end.timeline != self._timeline:
            return False
        begin = self._find_begin(self._timeline, end.position)
        if begin is None:
            return False
        self._begin(found, begin)
        return True

    def _check(self, at_ms: int) -> tuple[catalogue.Catalogue, catalogue.WalEnd | None]:
        """Compare what the store has with what was stored. Returns where it ends, if that is earlier."""
        found = catalogue.read_catalogue(self._store, self._system)
        # What is dated in the future was made by others, or with a wrong clock.
        bases = [base for base in found.sort_bases() if base.completed.ended_ms <= at_ms]
        self._checked_ms, self._base_ms, self._restorable_ms = at_ms, 0, 0
        if not bases:
            log.warning("there is no base back-up yet: run `merchant-wallet backup create`")
            return found, None
        base = bases[-1]
        self._base_ms = base.completed.ended_ms
        end = found.find_end(base)
        if end.timeline == self._timeline and end.position >= self._stored:
            self._restorable_ms = None
            return found, None
        self._restorable_ms = min(end.until_ms, at_ms) if end.timeline == self._timeline else 0
        log.error(
            "WAL is missing between the back-ups and now: run `merchant-wallet backup create`",
            missing=str(end.hole or f"from {names.format_position(end.position)} on"),
            restorable=format_moment(self._restorable_ms),
        )
        return found, end

    def _store_whole(self, part: WalPart) -> None:
        name = self._put(part)
        replaced = [each for each in self._parts if each.segment == part.segment]
        self._parts = [each for each in self._parts if each.segment != part.segment]
        self._store.delete(each for each in map(self._name, replaced) if each != name)

    def _put(self, part: WalPart) -> str:
        name = self._name(part)
        content = self._read(part)
        self._store.put(name, self._key.seal(name, gzip.compress(content, COMPRESSION, mtime=0)))
        self._stored = part.end
        return name

    def _name(self, part: WalPart) -> str:
        return f"{self._system}/{catalogue.WAL}/{part.name}"

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

    def _find_begin(self, timeline: int, position: int) -> int | None:
        """The begin of the segment that has this position, if the server still has the segment."""
        begin = position - position % SEGMENT_BYTES
        name = names.name_segment(timeline, begin // SEGMENT_BYTES)
        return begin if (self._wal / name).exists() else None

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
