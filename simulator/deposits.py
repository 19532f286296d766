"""The model of deposits: what was ordered from the sandbox's chain, what was told, what may come. Pure.

Rules:
- A deposit has no id of the merchant's, so one whose answer was lost is never ordered again. Its amount is
  unique: the callback that tells of it is recognised by that.
- Each deposit is credited once, and its callback comes at least once.
- A deposit that waits for its confirmation or its release is expected from when that is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from simulator.book import Book, Doubt, Key
from simulator.failure import Contradiction
from simulator.orders import DEPOSIT, Order

UNANSWERED: Final = "unanswered-"


class Told(NamedTuple):
    """What a callback says of a deposit."""

    tx_hash: str
    account: str
    units: int
    arrival: int


@dataclass(frozen=True)
class Held:
    """A deposit that is not credited before it was confirmed or released."""

    account: str
    units: int
    tx_hash: str
    actions: tuple[str, ...]
    """What brings it on."""


HOLDS: Final[Mapping[str, tuple[dict[str, object], tuple[str, ...]]]] = {
    "none": ({}, ()),
    "manual": ({"finality": "manual"}, ("confirm",)),
    "reorganised": ({"finality": "manual"}, ("reorganise", "confirm")),
    "held": ({"screening": "hold"}, ("release",)),
    "refused": ({"screening": "refuse"}, ("release",)),
}
"""How a deposit may be held up: the fields that ask for it, and the actions that end it."""
HOLD_WEIGHTS: Final = (4, 1, 1, 1, 1)


class Deposits:
    """The deposits to a merchant's own address and to those of its sub-users."""

    def __init__(self, book: Book) -> None:
        self.credited: set[str] = set()
        """Transactions whose callback has come."""
        self.early: list[Told] = []
        """Callbacks that came before the answer that names their transaction."""
        self._book = book
        self._untold: dict[Key, Order] = {}

    @property
    def untold(self) -> list[str]:
        """Transactions whose callback must still come. Whether unanswered ones were made is not known."""
        return [name for _, name in self._untold if not name.startswith(UNANSWERED)]

    def expect(self, account: str, units: int, tx_hash: str | None) -> int:
        """A deposit may be credited from now on, with its transaction if that was answered.

        Returns how many were told now. Raises Contradiction.
        """
        order = Order(DEPOSIT, tx_hash or f"{UNANSWERED}{units}", units, account=account)
        if order.key not in self._untold:
            self._untold[order.key] = order
            self._book.expect(Doubt(order.key, order))
        return self._match()

    def hear(self, told: Told) -> int:
        """A callback came. Returns how many were told now. Raises Contradiction."""
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
            order = self._find(told)
            if order is None:
                self.early.append(told)
                continue
            if (told.account, told.units) != (order.account, order.amount):
                raise Contradiction(f"{order} was credited otherwise: {told}")
            self._book.see_arrival(order.key, told.arrival)
            del self._untold[order.key]
            self.credited.add(told.tx_hash)
        return len(self.credited) - before

    def _find(self, told: Told) -> Order | None:
        keys = ((DEPOSIT, told.tx_hash), (DEPOSIT, f"{UNANSWERED}{told.units}"))
        return next((order for key in keys if (order := self._untold.get(key)) is not None), None)
