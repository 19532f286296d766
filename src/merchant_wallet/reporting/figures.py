"""Figures of the overview: what is held, volumes by day, what waits, which endpoints fail.

Rules: amounts are units, days are UTC days since the epoch. Balances are exact. Volumes and the number of
sub-users are as old as the figures; `Overview` has their age. Counts stop at a bound.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import EXCHANGE as DESK
from merchant_wallet.book.chart import FEES, HOLD, MERCHANT
from merchant_wallet.reporting import callbacks, orders
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.merchants import LAST_FIXED
from merchant_wallet.reporting.orders import MAX_COUNTED, PLATFORM
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("figures.sql"))
LAST_DAY: Final = 2**31 - 1
MAX_FAILING: Final = 10


class Held(msgspec.Struct, frozen=True):
    """What the books hold in one currency.

    `desk_units` is the platform's position from exchanges, which may be negative. `fees_units` was earned and
    not taken out yet.
    """

    currency: str
    merchant_units: int
    sub_user_units: int
    hold_units: int
    fees_units: int
    desk_units: int

    @property
    def owed_units(self) -> int:
        """What the platform owes its customers: balances, wallets and holds."""
        return self.merchant_units + self.sub_user_units + self.hold_units


class DayFigure(msgspec.Struct, frozen=True):
    """One day's entries of one kind and currency. `amount_units` does not include fees."""

    day: int
    kind: str
    currency: str
    entries: int
    amount_units: int
    fee_units: int


class PeriodFigure(msgspec.Struct, frozen=True):
    """The same for several days together."""

    kind: str
    currency: str
    entries: int
    amount_units: int
    fee_units: int


class DepositsWaiting(msgspec.Struct, frozen=True):
    """Deposits in one state that are not credited, counted up to `MAX_COUNTED`."""

    status: str
    deposits: int
    amount_units: int
    oldest_ms: int | None


class FailingEndpoint(msgspec.Struct, frozen=True):
    """A merchant whose endpoint does not accept callbacks."""

    merchant_id: int
    name: str
    callbacks: int
    oldest_ms: int


class Overview(msgspec.Struct, frozen=True):
    """What waits and what fails in all books, and how old the figures are. `statuses` are of all orders.

    `figures_behind` counts the entries that are in no figure yet. `figures_ms` is the moment up to which they
    were added, in the cell that is most behind; None if no entry is missing anywhere.
    """

    statuses: tuple[orders.StatusCount, ...]
    unapproved: int
    unapproved_units: int
    unapproved_oldest_ms: int | None
    frozen: int
    frozen_oldest_ms: int | None
    deposits: tuple[DepositsWaiting, ...]
    callbacks: tuple[callbacks.StateCount, ...]
    failing: tuple[FailingEndpoint, ...]
    books: int
    sub_users: int
    figures_behind: int
    figures_ms: int | None


async def read_held(cells: Reach, merchant_id: int | None = None) -> list[Held]:
    """What one book, or all books together, hold in each currency.

    A book adds up to zero. So the sum of the sub-users' accounts follows from the fixed accounts.
    """
    values = {"merchant_id": merchant_id, "last_fixed": LAST_FIXED}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_accounts"].text, values), merchant_id)
    units: Counter[tuple[str, str]] = Counter()
    for row in chain.from_iterable(found):
        units[row["kind"], row["currency"]] += int(row["units"])
    return [
        Held(
            currency,
            units[MERCHANT, currency],
            -sum(amount for (_, its_currency), amount in units.items() if its_currency == currency),
            units[HOLD, currency],
            units[FEES, currency],
            units[DESK, currency],
        )
        for currency in CURRENCIES
    ]


async def read_volume(
    cells: Reach, since_day: int, merchant_id: int | None = None, *, until_day: int = LAST_DAY
) -> list[DayFigure]:
    """The volume of each day from `since_day` to `until_day`, by kind and currency."""
    values = {"merchant_id": merchant_id or PLATFORM, "since_day": since_day, "until_day": until_day}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["list_days"].text, values), merchant_id)
    return [DayFigure(*key, *sums) for key, sums in _add_up(found, "day", "kind", "currency")]


async def sum_volume(
    cells: Reach, since_day: int, merchant_id: int | None = None, *, until_day: int = LAST_DAY
) -> list[PeriodFigure]:
    """The same for all days together."""
    values = {"merchant_id": merchant_id or PLATFORM, "since_day": since_day, "until_day": until_day}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_days"].text, values), merchant_id)
    return [PeriodFigure(*key, *sums) for key, sums in _add_up(found, "kind", "currency")]


async def sum_payouts(
    cells: Reach, since_day: int, merchant_ids: Collection[int]
) -> dict[int, tuple[int, int]]:
    """The number and the units of each merchant's payouts since a day, fees included."""
    values = {"merchant_ids": list(merchant_ids), "since_day": since_day, "currency": USDT}
    only = next(iter(merchant_ids)) if len(merchant_ids) == 1 else None
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_payouts"].text, values), only)
    sums = dict.fromkeys(merchant_ids, (0, 0))
    for row in chain.from_iterable(found):
        orders_before, units_before = sums[row["merchant_id"]]
        sums[row["merchant_id"]] = orders_before + row["orders"], units_before + int(row["units"])
    return sums


def _add_up(found: Sequence[Sequence[Row]], *columns: str) -> list[tuple[Any, Any]]:
    """The entries, amounts and fees of all cells, by the values of these columns, in their order."""
    sums: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for row in chain.from_iterable(found):
        key = tuple([row[column] for column in columns])
        entries, amount, fee = sums.get(key, (0, 0, 0))
        sums[key] = (entries + row["entries"], amount + int(row["amount_units"]), fee + int(row["fee_units"]))
    return sorted(sums.items())


async def read_overview(home: Connection, cells: Reach) -> Overview:
    """What waits and what fails, over all books."""
    (frozen,) = await fetch(home, QUERIES["count_frozen"].text, {})
    found = await cells.ask(_read_waiting)
    lags = [one.lag for one in found]
    unapproved = [one.unapproved for one in found]
    return Overview(
        statuses=tuple(await orders.count_by_status(cells)),
        unapproved=sum(row["orders"] for row in unapproved),
        unapproved_units=sum(int(row["amount_units"]) for row in unapproved),
        unapproved_oldest_ms=orders.find_oldest(row["oldest_ms"] for row in unapproved),
        frozen=frozen["orders"],
        frozen_oldest_ms=frozen["oldest_ms"],
        deposits=_add_deposits([row for one in found for row in one.deposits]),
        callbacks=tuple(await callbacks.count_by_state(cells)),
        failing=_rank_failing([FailingEndpoint(**row) for one in found for row in one.failing]),
        books=sum(lag["books"] for lag in lags),
        sub_users=sum(lag["sub_users"] for lag in lags),
        figures_behind=sum(lag["missing"] for lag in lags),
        figures_ms=_find_behind_ms(lags),
    )


async def read_figures_ms(cells: Reach, merchant_id: int | None) -> int | None:
    """Up to which moment the figures of one book, or of all, are complete. None: nothing is missing."""
    values = {"merchant_id": merchant_id}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["read_lag"].text, values), merchant_id)
    return _find_behind_ms([*chain.from_iterable(found)])


def _find_behind_ms(lags: Sequence[Row]) -> int | None:
    """When the cell that is most behind last added entries; 0 if it never did."""
    return min((lag["moved_ms"] or 0 for lag in lags if lag["missing"]), default=None)


class _Waiting(NamedTuple):
    """What waits in one cell."""

    unapproved: Row
    lag: Row
    deposits: Sequence[Row]
    failing: Sequence[Row]


async def _read_waiting(cell: Connection) -> _Waiting:
    most = {"most": MAX_COUNTED}
    (unapproved,) = await fetch(cell, QUERIES["count_unapproved"].text, most)
    (lag,) = await fetch(cell, QUERIES["read_lag"].text, {"merchant_id": None})
    deposits = await fetch(cell, QUERIES["count_deposits"].text, most)
    failing = await fetch(cell, QUERIES["list_failing"].text, {**most, "limit": MAX_FAILING})
    return _Waiting(unapproved, lag, deposits, failing)


def _add_deposits(rows: Sequence[Row]) -> tuple[DepositsWaiting, ...]:
    """The deposits of all cells by status."""
    return tuple(
        [
            DepositsWaiting(
                status,
                sum(row["deposits"] for row in of_status),
                sum(int(row["amount_units"]) for row in of_status),
                orders.find_oldest(row["oldest_ms"] for row in of_status),
            )
            for status in dict.fromkeys(row["status"] for row in rows)
            if (of_status := [row for row in rows if row["status"] == status])
        ]
    )


def _rank_failing(found: Sequence[FailingEndpoint]) -> tuple[FailingEndpoint, ...]:
    """The endpoints with the most failing callbacks. A merchant is in one cell only."""
    return tuple(sorted(found, key=lambda one: (-one.callbacks, one.merchant_id))[:MAX_FAILING])
