"""What the web processes of one `serve` share, and this process's seat among them.

Rules:
- Each process has a seat of its own: its number on the board and its column of connections.
- Whoever supervises the processes gives a seat to nobody else before its process has ended and it is cleared.
- A change of anything here needs another `LAYOUT`: processes of two versions share memory only if it is the
  same.
"""

import os
from pathlib import Path
from typing import Final

from merchant_wallet.base import shared_counts, shared_limits
from merchant_wallet.base.shared_board import SharedBoard
from merchant_wallet.base.shared_counts import COLUMNS, SharedCounts
from merchant_wallet.base.shared_limits import SharedLimits
from merchant_wallet.base.shared_memory import Section, create

LAYOUT: Final = "1"
SEATS: Final = COLUMNS
"""Seats that may be taken at once: each process, and the one that replaces it. 0 and 1 are nobody's."""
ENDED: Final = 0
"""The seat on the board of metrics with the sums of the processes that have ended."""
FIRST_SEAT: Final = 2
MAX_PROCESSES: Final = (SEATS - FIRST_SEAT) // 2
METRICS_ROOM: Final = 1 << 20
VERIFICATIONS_ROOM: Final = 1 << 18
LIMITS: Final = ("merchants", "failures", "pages", "files", "tokens")
_SECRET_ROOM: Final = 4096
SECRET_BYTES: Final = 32


def _list_sections() -> dict[str, tuple[int, int]]:
    """Where each section begins, and its size."""
    sizes = {
        "secret": _SECRET_ROOM,
        **dict.fromkeys(LIMITS, shared_limits.SIZE),
        "sources": shared_counts.SIZE,
        "metrics": SEATS * METRICS_ROOM,
        "verifications": SEATS * VERIFICATIONS_ROOM,
    }
    begins, places = 0, {}
    for name, size in sizes.items():
        places[name] = (begins, size)
        begins += size
    return places


_PLACES: Final = _list_sections()


def create_shared_memory() -> int:
    """New shared memory as a descriptor, with a secret by which keys find their places."""
    fd = create(sum(size for _, size in _PLACES.values()))
    _open_section(fd, "secret").memory[:SECRET_BYTES] = os.urandom(SECRET_BYTES)
    return fd


def _open_section(fd: int, name: str) -> Section:
    return Section(fd, *_PLACES[name])


class Siblings:
    """The shared memory as one process sees it, from its seat."""

    def __init__(self, fd: int, seat: int, folder: Path | None = None) -> None:
        """`folder` is where each process has a socket for the others."""
        self.seat = seat
        self.folder = folder
        self._secret = bytes(_open_section(fd, "secret").memory[:SECRET_BYTES])
        self._limits = {name: SharedLimits(_open_section(fd, name), self._secret) for name in LIMITS}
        self.sources = SharedCounts(_open_section(fd, "sources"), seat, self._secret)
        self.metrics = SharedBoard(_open_section(fd, "metrics"), SEATS, METRICS_ROOM)
        self.verifications = SharedBoard(_open_section(fd, "verifications"), SEATS, VERIFICATIONS_ROOM)

    def limits(self, name: str) -> SharedLimits:
        """The keys of one kind of limit."""
        return self._limits[name]

    def clear(self, seat: int) -> None:
        """Forget what a process leaves that has ended, except its metrics."""
        self.sources.clear(seat)
        with self.verifications.lock():
            self.verifications.write(seat, b"")


def limits_of(siblings: Siblings | None, name: str) -> SharedLimits | None:
    """The shared limits of one kind, or None in a process without siblings."""
    return None if siblings is None else siblings.limits(name)
