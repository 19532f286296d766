"""What a store contains: base back-ups, up to when they can be restored, and what is no longer needed.

Rules:
- Nothing here opens an object: everything is read from names, moments too.
- `Catalogue.find_end` alone says up to which moment a base back-up can be restored, and why not further.
- Whoever can write to the store chooses names. One that no back-up has is left out and named (`strange`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from merchant_wallet.base.counted import count_of
from merchant_wallet.base.moments import format_moment
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
    def folder(self) -> str:
        """Its objects' names begin with this."""
        return f"{self.system}/{BASE}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoredWal:
    """A part of the WAL in the store."""

    part: WalPart
    object: StoredObject


@dataclass(frozen=True, slots=True)
class Hole:
    """WAL is missing from `position` on, and `objects` are stored behind that, which no restore reaches.

    `until_ms`: the latest moment in their names. 0: they say none.
    """

    timeline: int
    position: int
    objects: int
    until_ms: int

    def __str__(self) -> str:
        """What is missing, and what lies behind it."""
        segment = names.name_segment(self.timeline, self.position // names.SEGMENT_BYTES)
        latest = f", up to {format_moment(self.until_ms)}" if self.until_ms else ""
        return (
            f"WAL is missing from {names.format_position(self.position)} of timeline {self.timeline} on "
            f"(segment {segment}), and {count_of(self.objects, 'later object')}{latest} can't be restored"
        )


@dataclass(frozen=True, slots=True)
class WalEnd:
    """Where the WAL after a base back-up ends: everything committed before `until_ms` can be restored.

    `fork` is where its timeline began. None: the base back-up is of that timeline. `hole`: what is missing
    there, if more is stored behind it.
    """

    timeline: int
    position: int
    until_ms: int
    fork: Fork | None
    hole: Hole | None

    @property
    def missing_ms(self) -> int:
        """How long a time lies behind the hole, as the names say. 0 without one."""
        return 0 if self.hole is None else max(0, self.hole.until_ms - self.until_ms)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All of one cluster. Base back-ups are sorted, the oldest first. `strange`: names of no back-up."""

    system: str
    bases: Sequence[BaseBackup]
    wal: Sequence[StoredWal]
    forks: Sequence[Fork]
    unfinished: Sequence[StoredObject]
    strange: Sequence[str]

    def find_end(self, base: BaseBackup) -> WalEnd:
        """How far WAL without a gap reaches from a base back-up, over its newest timeline."""
        return self._follow(base)[0]

    def sort_bases(self) -> list[BaseBackup]:
        """The base back-ups in the order in which a restore prefers them, the best last.

        One that reaches a newer timeline is better than a later one of a timeline that a restore has left.
        """
        return sorted(self.bases, key=lambda base: (self.find_end(base).timeline, base.name))

    def _follow(self, base: BaseBackup) -> tuple[WalEnd, dict[int, int]]:
        """The end, and up to where each timeline is followed on the way to it."""
        timeline, position = base.completed.timeline, base.completed.end
        begun, until_ms = position, base.completed.ended_ms
        followed: dict[int, int] = {}
        newest: Fork | None = None
        while True:
            for stored in self._ordered(timeline):
                if stored.part.start <= position < stored.part.end:
                    position, until_ms = stored.part.end, max(until_ms, stored.part.until_ms)
            later = [
                fork for fork in self.forks if fork.parent == timeline and begun <= fork.position <= position
            ]
            if not later:
                followed[timeline] = position
                hole = self._find_hole(timeline, position)
                return WalEnd(timeline, position, until_ms, newest, hole), followed
            newest = max(later)
            followed[timeline] = newest.position
            timeline, position, begun = newest.timeline, newest.position, newest.position

    def _find_hole(self, timeline: int, position: int) -> Hole | None:
        begun = {fork.timeline: fork for fork in self.forks}
        unreached = {timeline}
        for later in sorted({stored.part.timeline for stored in self.wal} | begun.keys()):
            fork = begun.get(later)
            # Without its history nothing says where a timeline began.
            is_behind = fork is None or (
                fork.parent in unreached and (fork.parent != timeline or fork.position > position)
            )
            if later > timeline and is_behind:
                unreached.add(later)
        behind = [
            stored.part
            for stored in self.wal
            if stored.part.timeline in unreached and stored.part.end > position
        ]
        if not behind:
            return None
        return Hole(timeline, position, len(behind), max(part.until_ms for part in behind))

    def find_last(self, timeline: int) -> StoredWal | None:
        """The newest WAL of a timeline."""
        return max(
            (stored for stored in self.wal if stored.part.timeline == timeline),
            key=lambda stored: stored.part.end,
            default=None,
        )

    def list_needed(self, base: BaseBackup) -> list[StoredWal]:
        """The WAL that a restore from a base back-up may ask for, in order.

        No part within a longer one, and nothing of timelines that are not followed: they may be older than
        signatures.
        """
        first = base.completed.start // names.SEGMENT_BYTES
        _, followed = self._follow(base)
        reached: dict[str, int] = {}
        needed = []
        for each in sorted(self.wal, key=lambda stored: (*stored.part[:2], -stored.part.end)):
            part = each.part
            is_reached = part.start <= followed.get(part.timeline, -1)
            if not is_reached or part.start // names.SEGMENT_BYTES < first:
                continue
            if part.end > reached.get(part.segment, 0):
                reached[part.segment] = part.end
                needed.append(each)
        return needed

    def list_superseded(self, kept: Sequence[BaseBackup]) -> list[str]:
        """Names of what is older than these base back-ups and not needed to restore them."""
        if not kept:
            return []
        oldest = min(kept, key=lambda base: base.name)
        first = oldest.completed.start // names.SEGMENT_BYTES
        folders = {base.folder for base in self.bases if base.name < oldest.name}
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


def list_systems(store: Store) -> tuple[list[str], list[str]]:
    """The system identifiers of the clusters in a store, and names that belong to none. Raises StoreAway."""
    systems, strange = set(), []
    for found in store.list_objects():
        system, slash, _ = found.name.partition("/")
        if slash and names.is_system(system):
            systems.add(system)
        else:
            strange.append(found.name)
    return sorted(systems), strange


def read_catalogue(store: Store, system: str) -> Catalogue:
    """Read the names of everything of one cluster. Raises StoreAway."""
    wal, forks, strange = [], [], []
    data: dict[str, StoredObject] = {}
    completed: dict[str, Completed] = {}
    for found in store.list_objects(system):
        match found.name.split("/"):
            case [_, kind, name] if kind == WAL and (part := names.parse_wal(name)):
                wal.append(StoredWal(part, found))
            case [_, kind, name] if kind == HISTORY and (fork := names.parse_fork(name)):
                forks.append(fork)
            case [_, kind, moment, name] if kind == BASE and name == DATA and names.is_moment(moment):
                data[moment] = found
            case [_, kind, moment, name] if (
                kind == BASE
                and names.is_moment(moment)
                and moment not in completed
                and (ended := names.parse_completed(name))
            ):
                completed[moment] = ended
            case _:
                strange.append(found.name)
    bases = [
        BaseBackup(system, moment, completed[moment], data.pop(moment).size)
        for moment in sorted(completed.keys() & data.keys())
    ]
    wal.sort(key=lambda stored: stored.part)
    return Catalogue(system, bases, wal, sorted(forks), list(data.values()), strange)
