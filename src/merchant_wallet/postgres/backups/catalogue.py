"""What a store contains: base back-ups, WAL without gaps, and what is no longer needed.

Nothing here opens an object: everything is read from names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from merchant_wallet.postgres.backups import names
from merchant_wallet.postgres.backups.names import Completed, Fork, WalPart
from merchant_wallet.postgres.backups.stores import Store, StoredObject

BASE: Final = "base"
WAL: Final = "wal"
HISTORY: Final = "history"
DATA: Final = "data.age"


@dataclass(frozen=True, slots=True)
class BaseBackup:
    """A complete base back-up."""

    system: str
    name: str
    completed: Completed
    size: int

    @property
    def begun_ms(self) -> int:
        """When it was begun."""
        return names.parse_moment(self.name)

    @property
    def folder(self) -> str:
        """Its objects' names begin with this."""
        return f"{self.system}/{BASE}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoredWal:
    """A part of the WAL in the store."""

    part: WalPart
    object: StoredObject


@dataclass(frozen=True, slots=True)
class WalEnd:
    """Where the WAL after a base back-up ends, and when its last part was stored."""

    timeline: int
    position: int
    stored_ms: int


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything of one cluster. Base back-ups are sorted, the oldest first."""

    system: str
    bases: Sequence[BaseBackup]
    wal: Sequence[StoredWal]
    forks: Sequence[Fork]
    unfinished: Sequence[StoredObject]

    def find_end(self, base: BaseBackup) -> WalEnd:
        """How far WAL without a gap reaches from a base back-up, over its newest timeline."""
        timeline, position = base.completed.timeline, base.completed.end
        begun, stored_ms = position, base.completed.ended_ms
        while True:
            for stored in self._ordered(timeline):
                if stored.part.start <= position < stored.part.end:
                    position, stored_ms = stored.part.end, stored.object.stored_ms
            later = [
                fork for fork in self.forks if fork.parent == timeline and begun <= fork.position <= position
            ]
            if not later:
                return WalEnd(timeline, position, stored_ms)
            newest = max(later)
            timeline, position, begun = newest.timeline, newest.position, newest.position

    def find_last_position(self, timeline: int) -> int | None:
        """The end of the newest WAL of a timeline."""
        return max((stored.part.end for stored in self.wal if stored.part.timeline == timeline), default=None)

    def list_needed(self, base: BaseBackup) -> list[StoredWal]:
        """The WAL that a restore from a base back-up may ask for, in order; of a whole segment no parts."""
        first = base.completed.start // names.SEGMENT_BYTES
        found = [each for each in self.wal if each.part.start // names.SEGMENT_BYTES >= first]
        whole = {each.part.segment for each in found if each.part.is_whole}
        return [each for each in found if each.part.is_whole or each.part.segment not in whole]

    def list_superseded(self, keep: int) -> list[str]:
        """Names of what is not needed to restore the newest `keep` base back-ups."""
        kept = self.bases[-keep:]
        if not kept:
            return []
        oldest = kept[0]
        first = oldest.completed.start // names.SEGMENT_BYTES
        folders = {base.folder for base in self.bases[:-keep]}
        old_wal = [
            each.object.name for each in self.wal if (each.part.end - 1) // names.SEGMENT_BYTES < first
        ]
        broken = [each.name for each in self.unfinished if each.name.split("/")[2] < oldest.name]
        return [*_list_objects(folders, self.bases), *broken, *old_wal]

    def _ordered(self, timeline: int) -> list[StoredWal]:
        mine = [stored for stored in self.wal if stored.part.timeline == timeline]
        return sorted(mine, key=lambda stored: (stored.part.start, stored.part.end))


def _list_objects(folders: set[str], bases: Iterable[BaseBackup]) -> list[str]:
    # The mark of completeness goes first: half a removed back-up is never taken for a whole one.
    return [
        f"{base.folder}/{name}"
        for base in bases
        if base.folder in folders
        for name in (base.completed.name, DATA)
    ]


def list_systems(store: Store) -> list[str]:
    """The system identifiers of the clusters in a store."""
    return sorted({found.name.split("/")[0] for found in store.list_objects() if "/" in found.name})


def read_catalogue(store: Store, system: str) -> Catalogue:
    """Read the names of everything of one cluster. Raises StoreAway."""
    objects = store.list_objects(system)
    bases, wal, forks = [], [], []
    data = {found.name: found for found in objects if found.name.endswith(f"/{DATA}")}
    for found in objects:
        _, kind, *rest = found.name.split("/")
        if kind == BASE and (completed := names.parse_completed(rest[-1])) is not None:
            base = BaseBackup(system, rest[0], completed, 0)
            stored = data.pop(f"{base.folder}/{DATA}", None)
            if stored is not None:
                bases.append(BaseBackup(system, rest[0], completed, stored.size))
        elif kind == WAL and (part := names.parse_wal(rest[-1])) is not None:
            wal.append(StoredWal(part, found))
        elif kind == HISTORY and (fork := names.parse_fork(rest[-1])) is not None:
            forks.append(fork)
    bases.sort(key=lambda base: base.name)
    wal.sort(key=lambda stored: stored.part)
    return Catalogue(system, bases, wal, sorted(forks), list(data.values()))
