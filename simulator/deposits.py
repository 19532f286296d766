"""The model of deposits: what was ordered from the sandbox's chain, what was told, what may come. Pure.

Rules:
- A deposit has no id of the merchant's, so one whose answer was lost is never ordered again. Its amount is
  unique: the callback that tells of it is recognised by that.
- Each deposit is credited once, and its callback comes at least once.
"""

from typing import Final, NamedTuple

from simulator.book import Book, Doubt, Key
from simulator.failure import Contradiction
from simulator.orders import Effect, write

UNANSWERED: Final = "unanswered-"


class Told(NamedTuple):
    """What a callback says of a deposit."""

    tx_hash: str
    units: int
    arrival: int


class Deposits:
    """A merchant's deposits to its own address."""

    def __init__(self, book: Book) -> None:
        self.credited: set[str] = set()
        """Transactions whose callback has come."""
        self.early: list[Told] = []
        """Callbacks that came before the answer that names their transaction."""
        self._book = book
        self._untold: dict[Key, int] = {}

    @property
    def untold(self) -> list[str]:
        """Transactions whose callback must still come. Whether unanswered ones were made is not known."""
        return [name for _, name in self._untold if not name.startswith(UNANSWERED)]

    def expect(self, units: int, tx_hash: str | None) -> int:
        """A deposit was ordered, with its transaction if that was answered. Returns how many were told now.

        Raises Contradiction.
        """
        key = ("deposit", tx_hash or f"{UNANSWERED}{units}")
        self._untold[key] = units
        self._book.expect(Doubt(key, effect=Effect((("USDT", units),), units)))
        return self._match()

    def hear(self, told: Told) -> int:
        """A callback came. Returns how many were told now. Raises Contradiction."""
        if told.arrival != told.units:
            raise Contradiction(f"a deposit of {write(told.units)} was credited with {write(told.arrival)}")
        self.early.append(told)
        return self._match()

    def end_unanswered(self) -> None:
        """Unanswered deposits that were not told were never made. Raises Contradiction."""
        for key in [key for key in self._untold if key[1].startswith(UNANSWERED)]:
            self._book.end_doubt(key)
            del self._untold[key]

    def _match(self) -> int:
        before = len(self.credited)
        early, self.early = self.early, []
        for told in early:
            if told.tx_hash in self.credited:
                continue
            keys = (("deposit", told.tx_hash), ("deposit", f"{UNANSWERED}{told.units}"))
            key = next((key for key in keys if self._untold.get(key) == told.units), None)
            if key is None:
                self.early.append(told)
                continue
            del self._untold[key]
            self.credited.add(told.tx_hash)
            self._book.see(key, True)
        return len(self.credited) - before
