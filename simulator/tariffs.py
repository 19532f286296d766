"""Which of a merchant's tariffs may count for an order. Pure.

Rules:
- While a change is under way, the old and the new tariff count.
- In home a change holds as soon as it is acknowledged, for every web process.
- A change is brought to the apart cell before it is acknowledged. If the cell does not answer then, the
  command says so, and a worker brings it later.
- A book in an apart cell uses no copy of the rates that was compared with home more than a minute ago.
- Copies and fees never become older. What an apart cell has once used a newer tariff for, it uses no older
  one for. A book that moves into the cell finds the newest rates there, and takes its fees along.
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
        """From which row on tariffs may count, wherever the book is."""
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
        """The change was acknowledged, and has perhaps reached the apart cell."""
        for row in self._rows[:-1]:
            row.replaced_s = min(row.replaced_s, at_s)
        if has_reached_cell or not self._may_be_apart:
            self._settle()

    def begin_move(self) -> None:
        """The book may be in home or in the apart cell from now on."""
        self._may_be_apart, self._is_apart = True, False

    def end_move(self, *, is_apart: bool) -> None:
        """The book has arrived. In home it has the newest tariff."""
        self._may_be_apart = self._is_apart = is_apart
        if not is_apart:
            self._settle()

    def _settle(self) -> None:
        """The book has the newest tariff that was acknowledged."""
        self._settled = next(number for number, row in enumerate(self._rows) if row.replaced_s == inf)

    def list_possible(self, order: Order, at_s: float) -> list[Tariff]:
        """What may count for an order that is sent at this moment, the newest last."""
        oldest = max(self._settled, self._oldest.get(_find_subject(order), 0))
        possible: list[Tariff] = []
        for number, row in enumerate(self._rows):
            is_left = self._may_be_apart and number >= oldest and _may_lag(order, row.replaced_s, at_s)
            if (row.replaced_s == inf or is_left) and row.tariff not in possible:
                possible.append(row.tariff)
        return possible

    def see(self, order: Order, counted: Sequence[Tariff]) -> None:
        """An order was answered, and one of these has counted for it."""
        if self._is_apart:
            subject = _find_subject(order)
            oldest = min(number for number, row in enumerate(self._rows) if row.tariff in counted)
            self._oldest[subject] = max(oldest, self._oldest.get(subject, 0))


def _may_lag(order: Order, replaced_s: float, at_s: float) -> bool:
    return order.operation not in (EXCHANGE, DEPOSIT) or at_s <= replaced_s + COPY_AGE_S


def _find_subject(order: Order) -> Subject:
    """What a tariff counts for: a fee, or the rate of a direction."""
    return order.operation, order.send, order.receive
