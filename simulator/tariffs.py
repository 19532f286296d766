"""Which of a merchant's tariffs may count for an order. Pure.

Rules:
- While a change is under way, the old and the new tariff count.
- In home a change holds as soon as it is acknowledged, for every web process.
- An apart cell has copies of home's rates. A book there uses no copy that was compared with home more than a
  minute ago. So a replaced rate may count for a minute more.
- A change of fees is brought to the cell before it is acknowledged. If the cell does not answer then, the
  command says so, and a worker brings it later. At a quiet point `doctor` has seen that none waits.
- Copies and fees never become older. What an apart cell has once used a newer tariff for, it uses no older
  one for. After a move into it the copies there count again. Fees move with the book.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from simulator.orders import DEPOSIT, EXCHANGE, Order, Tariff

COPY_AGE_S: Final = 60.0
"""A copy of the rates that was compared longer ago is not used."""
Subject = tuple[str, str, str]


@dataclass
class _Row:
    tariff: Tariff
    replaced_s: float = inf
    """When the change to the next one was acknowledged."""


class Tariffs:
    """All tariffs that a merchant has had, the newest last, and where its book may be."""

    def __init__(self, first: Tariff, *, is_apart: bool) -> None:
        self._rows = [_Row(first)]
        self._oldest: dict[Subject, int] = {}
        """From which row on tariffs may count in the apart cell, where an answer has shown it."""
        self._settled = 0
        """From which row on fees may count."""
        self._may_be_apart = is_apart
        self._is_apart = is_apart

    @property
    def newest(self) -> Tariff:
        """What was set last."""
        return self._rows[-1].tariff

    def begin_change(self, tariff: Tariff) -> None:
        """A person begins to change something."""
        self._rows.append(_Row(tariff))

    def end_change(self, at_s: float, *, has_reached_cell: bool) -> None:
        """The change was acknowledged. `has_reached_cell` is about fees."""
        for row in self._rows[:-1]:
            row.replaced_s = min(row.replaced_s, at_s)
        if has_reached_cell or not self._may_be_apart:
            self.settle_fees()

    def begin_move(self) -> None:
        """The book may be in home or in the apart cell from now on."""
        self._may_be_apart, self._is_apart = True, False

    def end_move(self, *, is_apart: bool) -> None:
        """The book has arrived. In home it has the newest fees, and takes them along."""
        self._may_be_apart = self._is_apart = is_apart
        if not is_apart:
            self.settle_fees()

    def settle_fees(self) -> None:
        """The book has the newest fees that were acknowledged."""
        self._settled = next(number for number, row in enumerate(self._rows) if row.replaced_s == inf)

    def list_possible(self, order: Order, at_s: float) -> list[Tariff]:
        """What may count for an order that is sent at this moment, the newest last."""
        oldest = self._oldest.get(_find_subject(order), 0)
        possible: list[Tariff] = []
        for number, row in enumerate(self._rows):
            is_left = self._may_be_apart and number >= oldest and self._may_lag(order, number, at_s)
            if (row.replaced_s == inf or is_left) and row.tariff not in possible:
                possible.append(row.tariff)
        return possible

    def see(self, order: Order, counted: Sequence[Tariff]) -> None:
        """An order was answered, and one of these has counted for it."""
        if self._is_apart:
            subject = _find_subject(order)
            oldest = min(number for number, row in enumerate(self._rows) if row.tariff in counted)
            self._oldest[subject] = max(oldest, self._oldest.get(subject, 0))

    def _may_lag(self, order: Order, number: int, at_s: float) -> bool:
        if order.operation in (EXCHANGE, DEPOSIT):
            return at_s <= self._rows[number].replaced_s + COPY_AGE_S
        return number >= self._settled


def _find_subject(order: Order) -> Subject:
    """What a tariff counts for: a fee, or the rate of a direction."""
    return order.operation, order.send, order.receive
