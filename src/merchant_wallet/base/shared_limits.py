"""Deadlines and counts by key in shared memory, for limits that hold over all web processes of a machine.

Rules:
- A key has an end, in nanoseconds of the monotonic clock (which all processes of a machine share), and a
  count. After its end it is forgotten.
- A key belongs to one of `SETS` sets of `WAYS` entries. If all entries of its set are taken, the one that
  ends first is forgotten. So memory is bounded, and nobody chooses who is forgotten: places are found by a
  keyed hash.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from merchant_wallet.base.shared_memory import Section

WAYS: Final = 8
SETS: Final = 16_384
_WORDS: Final = 3
"""An entry: fingerprint of the key, end, count."""
SIZE: Final = SETS * WAYS * _WORDS * 8
_REMEMBERED: Final = 16_384
"""How many keys' places each process remembers."""


def make_places(secret: bytes) -> Callable[[int | str], tuple[int, int]]:
    """The function that gives a key its set and its fingerprint."""

    @lru_cache(_REMEMBERED)
    def place(key: int | str) -> tuple[int, int]:
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16, key=secret).digest()
        # A fingerprint of 0 would be a free entry.
        return int.from_bytes(digest[:8], "big") % SETS, int.from_bytes(digest[8:], "big") | 1

    return place


class SharedLimits:
    """See the module. `secret` is the same in all processes of a group."""

    def __init__(self, section: Section, secret: bytes) -> None:
        self._section = section
        self._words = section.memory[:SIZE].cast("Q")

        self._place = make_places(secret)

    def extend(self, key: int | str, now_ns: int, by_ns: int, most_ns: int) -> int:
        """Move a key's end by `by_ns`, unless it would then be more than `most_ns` away. Returns how far away
        it would be.
        """
        number, fingerprint = self._place(key)
        words = self._words
        # Every request comes here, so there is no context manager.
        self._section.take(number)
        try:
            at = self._find(number, fingerprint)
            ends_ns = words[at + 1] if words[at] == fingerprint else now_ns
            ends_ns = max(now_ns, ends_ns) + by_ns
            if ends_ns - now_ns <= most_ns:
                words[at], words[at + 1] = fingerprint, ends_ns
        finally:
            self._section.give_back(number)
        return ends_ns - now_ns

    def count(self, key: int | str, now_ns: int, window_ns: int) -> None:
        """Add 1 to a key's count. The first count begins a window, at whose end it is forgotten."""
        number, fingerprint = self._place(key)
        with self._section.lock(number):
            at, words = self._find(number, fingerprint), self._words
            if words[at] == fingerprint and words[at + 1] > now_ns:
                words[at + 2] += 1
            else:
                words[at], words[at + 1], words[at + 2] = fingerprint, now_ns + window_ns, 1

    def read(self, key: int | str, now_ns: int) -> tuple[int, int]:
        """A key's end and count; zeros if it is forgotten."""
        number, fingerprint = self._place(key)
        with self._section.lock(number):
            at, words = self._find(number, fingerprint), self._words
            if words[at] != fingerprint or words[at + 1] <= now_ns:
                return 0, 0
            return words[at + 1], words[at + 2]

    def _find(self, number: int, fingerprint: int) -> int:
        """The entry of a key, or else the one to overwrite: the one that ends first. Free ones end at 0."""
        first = number * WAYS * _WORDS
        entries = self._words[first : first + WAYS * _WORDS].tolist()
        fingerprints = entries[::_WORDS]
        if fingerprint in fingerprints:
            return first + _WORDS * fingerprints.index(fingerprint)
        ends = entries[1::_WORDS]
        return first + _WORDS * ends.index(min(ends))
