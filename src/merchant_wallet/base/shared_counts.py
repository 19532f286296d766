"""How many connections each source has in all web processes of a machine, in shared memory.

Rules:
- Each process has a column of its own. Only it changes its column. Whoever supervises the processes clears
  the column of one that has ended, since a killed one can't.
- If there is no room for a source, its connections are not counted together. Then each process counts alone.
"""

from typing import Final

from merchant_wallet.base.shared_limits import SETS, WAYS, make_places
from merchant_wallet.base.shared_memory import Section

COLUMNS: Final = 66
_ROWS: Final = SETS * WAYS
_WORD: Final = 8
_COUNT: Final = 4
SIZE: Final = _ROWS * _WORD + COLUMNS * _ROWS * _COUNT


class SharedCounts:
    """See the module. `column` is this process's."""

    def __init__(self, section: Section, column: int, secret: bytes) -> None:
        self._section = section
        self._keys = section.memory[: _ROWS * _WORD].cast("Q")
        self._counts = section.memory[_ROWS * _WORD : SIZE].cast("I")
        self._column = column
        self._place = make_places(secret)

    def add(self, source: str, change: int) -> int | None:
        """Add to this process's count of a source. Returns the count of all processes, None without room."""
        number, fingerprint = self._place(source)
        with self._section.lock(number):
            row = self._find(number, fingerprint)
            if row is None:
                return None
            self._keys[row] = fingerprint
            at = self._column * _ROWS + row
            self._counts[at] = max(0, self._counts[at] + change)
            return self._sum(row)

    def _find(self, number: int, fingerprint: int) -> int | None:
        rows = range(number * WAYS, (number + 1) * WAYS)
        for row in rows:
            if self._keys[row] == fingerprint:
                return row
        return next((row for row in rows if not self._keys[row] or not self._sum(row)), None)

    def _sum(self, row: int) -> int:
        return sum(self._counts[row::_ROWS])

    def clear(self, column: int) -> None:
        """Forget the connections of a process that has ended."""
        begin = column * _ROWS
        self._counts[begin : begin + _ROWS] = memoryview(bytes(_ROWS * _COUNT)).cast("I")
