"""Figures of the overview: what is held, volumes by day, what waits, which endpoints fail.

Rules: amounts are units, days are UTC days since the epoch. Balances are exact. Volumes and the number of
sub-users are as old as the figures; `Overview` has their age. Counts stop at a bound.
"""

from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import EXCHANGE as DESK
from merchant_wallet.book.chart import FEES, HOLD, MERCHANT
from merchant_wallet.reporting import callbacks, orders
from merchant_wallet.reporting.merchants import LAST_FIXED
from merchant_wallet.reporting.orders import MAX_COUNTED, PLATFORM
from merchant_wallet.reporting.paging import Connection, fetch

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
    """What waits and what fails in all books, and how old the figures are.

    `figures_behind` counts the entries that are in no figure yet. `figures_ms` is when entries were last
    added.
    """

    orders: tuple[orders.StatusCount, ...]
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


async def read_held(conn: Connection, merchant_id: int | None = None) -> list[Held]:
    """What one book, or all books together, hold in each currency.

    A book adds up to zero. So the sum of the sub-users' accounts follows from the fixed accounts.
    """
    values = {"merchant_id": merchant_id, "last_fixed": LAST_FIXED}
    rows = await fetch(conn, QUERIES["sum_accounts"].text, values)
    units = {(row["kind"], row["currency"]): int(row["units"]) for row in rows}
    return [
        Held(
            currency,
            units.get((MERCHANT, currency), 0),
            -sum(amount for (_, its_currency), amount in units.items() if its_currency == currency),
            units.get((HOLD, currency), 0),
            units.get((FEES, currency), 0),
            units.get((DESK, currency), 0),
        )
        for currency in CURRENCIES
    ]


async def read_volume(
    conn: Connection, since_day: int, merchant_id: int | None = None, *, until_day: int = LAST_DAY
) -> list[DayFigure]:
    """The volume of each day from `since_day` to `until_day`, by kind and currency."""
    values = {"merchant_id": merchant_id or PLATFORM, "since_day": since_day, "until_day": until_day}
    rows = await fetch(conn, QUERIES["list_days"].text, values)
    return [
        DayFigure(
            row["day"],
            row["kind"],
            row["currency"],
            row["entries"],
            int(row["amount_units"]),
            int(row["fee_units"]),
        )
        for row in rows
    ]


async def sum_volume(
    conn: Connection, since_day: int, merchant_id: int | None = None, *, until_day: int = LAST_DAY
) -> list[PeriodFigure]:
    """The same for all days together."""
    values = {"merchant_id": merchant_id or PLATFORM, "since_day": since_day, "until_day": until_day}
    rows = await fetch(conn, QUERIES["sum_days"].text, values)
    return [
        PeriodFigure(
            row["kind"], row["currency"], row["entries"], int(row["amount_units"]), int(row["fee_units"])
        )
        for row in rows
    ]


async def read_overview(conn: Connection) -> Overview:
    """What waits and what fails, over all books."""
    most = {"most": MAX_COUNTED}
    (unapproved,) = await fetch(conn, QUERIES["count_unapproved"].text, most)
    (frozen,) = await fetch(conn, QUERIES["count_frozen"].text, {})
    (lag,) = await fetch(conn, QUERIES["read_lag"].text, {"merchant_id": None})
    deposits = await fetch(conn, QUERIES["count_deposits"].text, most)
    failing = await fetch(conn, QUERIES["list_failing"].text, {**most, "limit": MAX_FAILING})
    return Overview(
        orders=tuple([one for one in await orders.count_by_status(conn) if one.status in (0, 1, 3)]),
        unapproved=unapproved["orders"],
        unapproved_units=int(unapproved["amount_units"]),
        unapproved_oldest_ms=unapproved["oldest_ms"],
        frozen=frozen["orders"],
        frozen_oldest_ms=frozen["oldest_ms"],
        deposits=tuple(
            [
                DepositsWaiting(row["status"], row["deposits"], int(row["amount_units"]), row["oldest_ms"])
                for row in deposits
            ]
        ),
        callbacks=tuple(await callbacks.count_by_state(conn)),
        failing=tuple([FailingEndpoint(**row) for row in failing]),
        books=lag["books"],
        sub_users=lag["sub_users"],
        figures_behind=lag["missing"],
        figures_ms=lag["moved_ms"],
    )
