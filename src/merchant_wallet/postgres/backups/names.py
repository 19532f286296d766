"""Names of objects in a store and of the session that stores, and positions in the WAL. Pure.

    <system>/base/<start>/data.age                                      the cluster's files
    <system>/base/<start>/complete.<timeline>.<from>.<to>.<ended>.age   what was made, written last
    <system>/history/<timeline>.<parent>.<position>.age                 where a timeline began
    <system>/wal/<segment>.<until>.age                                  a whole segment
    <system>/wal/<segment>.<from>-<to>.<until>.age                      a part of the last segment

`<system>` is the cluster's system identifier. Positions are bytes of the WAL, hexadecimal with 16 digits; in
a part's name they count from the segment's begin, with 8 digits. So names sort as time does. `<ended>` and
`<until>` are moments in milliseconds: what was committed before `<until>` is in this object or in those
before it. Where it is not known, there is no `<until>`.

Whoever can write to a store chooses names. A name that these rules would not have made is not parsed.
"""

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

SEGMENT_BYTES: Final = 16 * 2**20
"""The size of a WAL segment. `initdb` makes no other here."""
SEGMENTS_PER_ID: Final = 2**32 // SEGMENT_BYTES
SUFFIX: Final = ".age"
SESSION: Final = "wallet-backup stored"
"""How the name of the session begins that stores WAL."""
MOMENT: Final = "%Y%m%dT%H%M%SZ"
MAX_TIMELINE: Final = 2**32 - 1
MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_SEGMENT = re.compile(r"[0-9A-F]{24}")
_SYSTEM = re.compile(r"[0-9]{1,20}")
_WAL = re.compile(r"([0-9A-F]{24})(?:\.([0-9a-f]{8})-([0-9a-f]{8}))?(?:\.([0-9]{1,15}))?\.age")
_COMPLETE = re.compile(r"complete\.([0-9]{1,10})\.([0-9a-f]{16})\.([0-9a-f]{16})\.([0-9]{1,15})\.age")
_HISTORY = re.compile(r"([0-9]{1,10})\.([0-9]{1,10})\.([0-9a-f]{16})\.age")
_SESSION = re.compile(SESSION + r" ([0-9]{1,13}) ([0-9]{1,13}) ([0-9]{1,13})")


class WalPart(NamedTuple):
    """WAL from `start` to `end` of a timeline: a whole segment, or a part of one.

    What was committed before `until_ms` is not behind its end. 0: its name does not say.
    """

    timeline: int
    start: int
    end: int
    until_ms: int = 0

    @property
    def segment(self) -> str:
        """PostgreSQL's name of the segment."""
        return name_segment(self.timeline, self.start // SEGMENT_BYTES)

    @property
    def is_whole(self) -> bool:
        """Whether this is a whole segment."""
        return self.end - self.start == SEGMENT_BYTES

    @property
    def name(self) -> str:
        """The object's name below `wal/`."""
        suffix = f".{self.until_ms}{SUFFIX}" if self.until_ms else SUFFIX
        if self.is_whole:
            return f"{self.segment}{suffix}"
        begin = self.start - self.start % SEGMENT_BYTES
        return f"{self.segment}.{self.start - begin:08x}-{self.end - begin:08x}{suffix}"


class Completed(NamedTuple):
    """What the name of a `complete` object says of a base back-up."""

    timeline: int
    start: int
    end: int
    ended_ms: int

    @property
    def name(self) -> str:
        """The object's name below the base back-up's own."""
        return f"complete.{self.timeline}.{self.start:016x}.{self.end:016x}.{self.ended_ms}{SUFFIX}"


class Fork(NamedTuple):
    """A timeline, and where it left its parent."""

    timeline: int
    parent: int
    position: int

    @property
    def name(self) -> str:
        """The object's name below `history/`."""
        return f"{self.timeline}.{self.parent}.{self.position:016x}{SUFFIX}"

    @property
    def file(self) -> str:
        """PostgreSQL's name of the history file."""
        return name_history(self.timeline)


class Stored(NamedTuple):
    """What the name of the session says that stores WAL: moments in milliseconds, and 0 for never.

    `stored_ms`: everything committed before is stored. `restorable_ms`: everything before can be restored.
    `base_ms`: the newest base back-up of this server ended then.
    """

    stored_ms: int
    restorable_ms: int
    base_ms: int

    @property
    def session(self) -> str:
        """The session's name, of at most the 63 bytes that PostgreSQL keeps."""
        return f"{SESSION} {self.stored_ms} {self.restorable_ms} {self.base_ms}"


def parse_session(name: str) -> Stored | None:
    """What a session's name says. None before it has stored anything."""
    found = _SESSION.fullmatch(name)
    return Stored(*map(int, found.groups())) if found else None


def name_segment(timeline: int, number: int) -> str:
    """PostgreSQL's name of a segment."""
    return f"{timeline:08X}{number // SEGMENTS_PER_ID:08X}{number % SEGMENTS_PER_ID:08X}"


def name_history(timeline: int) -> str:
    """PostgreSQL's name of a timeline's history file."""
    return f"{timeline:08X}.history"


def is_segment(name: str) -> bool:
    """Whether PostgreSQL names a segment so."""
    return _SEGMENT.fullmatch(name) is not None


def is_system(name: str) -> bool:
    """Whether this is a system identifier."""
    return _SYSTEM.fullmatch(name) is not None


def is_moment(name: str) -> bool:
    """Whether this names a base back-up."""
    try:
        return format_moment(parse_moment(name)) == name
    except ValueError:
        return False


def parse_wal(name: str) -> WalPart | None:
    """What an object below `wal/` contains. None for a name of another kind."""
    found = _WAL.fullmatch(name)
    if found is None:
        return None
    segment, begin, end, until = found.groups()
    number = int(segment[8:16], 16) * SEGMENTS_PER_ID + int(segment[16:], 16)
    first = number * SEGMENT_BYTES
    start, ends = (0, SEGMENT_BYTES) if begin is None else (int(begin, 16), int(end, 16))
    part = WalPart(int(segment[:8], 16), first + start, first + ends, int(until or 0))
    is_possible = start < ends <= SEGMENT_BYTES and part.timeline and part.until_ms <= MAX_MS
    return part if is_possible and part.name == name else None


def parse_completed(name: str) -> Completed | None:
    """What a `complete` object's name says. None for a name of another kind."""
    found = _COMPLETE.fullmatch(name)
    if found is None:
        return None
    timeline, start, end, ended_ms = found.groups()
    completed = Completed(int(timeline), int(start, 16), int(end, 16), int(ended_ms))
    is_possible = 1 <= completed.timeline <= MAX_TIMELINE and completed.ended_ms <= MAX_MS
    return completed if is_possible and completed.start <= completed.end and completed.name == name else None


def parse_fork(name: str) -> Fork | None:
    """What the name of an object below `history/` says. None for a name of another kind."""
    found = _HISTORY.fullmatch(name)
    if found is None:
        return None
    fork = Fork(int(found[1]), int(found[2]), int(found[3], 16))
    # A timeline that begins on itself would be followed for ever.
    return fork if 1 <= fork.parent < fork.timeline <= MAX_TIMELINE and fork.name == name else None


def parse_position(text: str) -> int:
    """A position as PostgreSQL writes it (`0/3000028`), in bytes. Raises ValueError."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def format_position(position: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def read_history(text: str, timeline: int) -> Fork:
    """The last line of PostgreSQL's history file: where the timeline began. Raises ValueError."""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return Fork(timeline, int(lines[-1][0]), parse_position(lines[-1][1]))


def format_history(fork: Fork) -> str:
    """A history file that says no more than its object's name."""
    return f"{fork.parent}\t{format_position(fork.position)}\tnot followed\n"


def format_moment(at_ms: int) -> str:
    """A moment as a name."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime(MOMENT)


def parse_moment(text: str) -> int:
    """The moment of a name in milliseconds. Raises ValueError."""
    return int(datetime.strptime(text, MOMENT).replace(tzinfo=UTC).timestamp()) * 1000
