"""A board in shared memory on which each web process of a machine writes one document, and all may read all.

Rules: a document is bytes. A reader sees each document whole. The board has one lock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from merchant_wallet.base.shared_memory import Section

_LENGTH: Final = 8


class SharedBoard:
    """`seats` places of `room` bytes."""

    def __init__(self, section: Section, seats: int, room: int) -> None:
        self._section = section
        self._seats = seats
        self._room = room

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else reads or writes meanwhile. `read`, `read_all` and `write` are called inside."""
        with self._section.lock():
            yield

    def write(self, seat: int, document: bytes) -> bool:
        """Replace a seat's document. False if it is too long; then the old one stays."""
        begin = seat * self._room
        if len(document) > self._room - _LENGTH:
            return False
        memory = self._section.memory
        memory[begin : begin + _LENGTH] = len(document).to_bytes(_LENGTH, "little")
        memory[begin + _LENGTH : begin + _LENGTH + len(document)] = document
        return True

    def read(self, seat: int) -> bytes:
        """A seat's document; empty if it has none."""
        begin, memory = seat * self._room, self._section.memory
        length = int.from_bytes(memory[begin : begin + _LENGTH], "little")
        return bytes(memory[begin + _LENGTH : begin + _LENGTH + length])

    def read_all(self) -> dict[int, bytes]:
        """The documents by seat."""
        found = ((seat, self.read(seat)) for seat in range(self._seats))
        return {seat: document for seat, document in found if document}
