"""Memory that the web processes of one machine share: sections of one anonymous file, and locks on its bytes.

Rules:
- The kernel frees a lock when its process ends, however it ends. So a killed process never blocks the others.
- Locks belong to processes, not to threads: one thread of a process uses them (fcntl(2)).
- A lock is held for a few microseconds, and nothing waits meanwhile.
"""

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager


class Section:
    """A part of the shared file, from a page's border on. A lock excludes others with its number here."""

    def __init__(self, fd: int, begin: int, size: int) -> None:
        self.memory = memoryview(mmap.mmap(fd, size, offset=begin))
        self._fd = fd
        self._begin = begin

    def take(self, number: int = 0) -> None:
        """Wait until no other process has this lock. Give it back in any case."""
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, self._begin + number)

    def give_back(self, number: int = 0) -> None:
        """Let the next process have the lock."""
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, self._begin + number)

    @contextmanager
    def lock(self, number: int = 0) -> Iterator[None]:
        """Hold the lock."""
        self.take(number)
        try:
            yield
        finally:
            self.give_back(number)


def create(size: int) -> int:
    """An anonymous file of zeros. Pages that nobody writes to take no memory."""
    fd = os.memfd_create("merchant-wallet")
    os.ftruncate(fd, size)
    return fd
