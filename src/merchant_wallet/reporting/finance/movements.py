"""Reads the movements of a period, of one book or of all books together.

Rules: amounts are units. What the rollup has not added yet is missing; `Lag` says how much, and since when.
The sums of all books (`PLATFORM`) stay in a cell when a book leaves it, so moves don't change them. What is
read book by book has each book once.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import FEES_ID_OF, FIXED_BY_ID, LAST_FIXED_ID, SUBUSER
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.orders import PLATFORM
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("movements.sql"))
BOOKS_A_PAGE: Final = 200
WALLETS_ID: Final = 0
"""Stands for all sub-users' wallets."""

Account = tuple[str, str]
"""The kind and the currency of an account."""
Balances = Counter[Account]


class Moved(msgspec.Struct, frozen=True):
    """What entries of one kind moved to and from the accounts of one kind and currency."""

    account: str
    currency: str
    kind: str
    in_units: int
    out_units: int
    postings: int


class Fee(msgspec.Struct, frozen=True):
    """The fees of one day, currency and kind."""

    day: int
    currency: str
    kind: str
    units: int
    postings: int


class MerchantFees(msgspec.Struct, frozen=True):
    """The fees of one merchant and currency in a period."""

    merchant_id: int
    name: str
    currency: str
    units: int
    postings: int


class Lag(msgspec.Struct, frozen=True):
    """How old the movements are: entries that are not in them, and when some were last added."""

    missing: int
    moved_ms: int | None

    @property
    def is_complete(self) -> bool:
        """Whether every entry is contained."""
        return not self.missing


def name_account(account_id: int) -> str:
    """The kind of a row's account."""
    return FIXED_BY_ID[account_id].kind if account_id else SUBUSER


async def read_moved(cells: Reach, period: Period, merchant_id: int | None = None) -> list[Moved]:
    """What moved in a period, by account and kind."""
    values = {
        "merchant_id": merchant_id or PLATFORM,
        "since_day": period.since_day,
        "until_day": period.until_day,
    }
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_movements"].text, values), merchant_id)
    return add_up(list(chain.from_iterable(found)))


def add_up(rows: Sequence[Row]) -> list[Moved]:
    """The sums of rows by account, currency and kind, in one order. Pure."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        key = (name_account(row["account_id"]), row["currency"], row["kind"])
        of_key = sums.setdefault(key, [0, 0, 0])
        for place, column in enumerate(("in_units", "out_units", "postings")):
            of_key[place] += int(row[column])
    return [Moved(*key, *sums[key]) for key in sorted(sums)]


async def read_balances_before(cells: Reach, day: int, merchant_id: int | None = None) -> Balances:
    """The balances at the beginning of a day, by account kind and currency."""
    values = {"merchant_id": merchant_id or PLATFORM, "since_day": day}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_before"].text, values), merchant_id)
    return sum_balances(list(chain.from_iterable(found)))


def sum_balances(rows: Sequence[Row]) -> Balances:
    """The units of rows by account kind and currency. Pure."""
    balances: Balances = Counter()
    for row in rows:
        balances[name_account(row["account_id"]), row["currency"]] += int(row["units"])
    return balances


async def list_day_ends(
    cells: Reach, period: Period, merchant_id: int | None = None
) -> list[tuple[int, Balances]]:
    """The balances at the end of each day of a period, oldest first."""
    scope = merchant_id or PLATFORM
    values = {"merchant_id": scope, "since_day": period.since_day, "until_day": period.until_day}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["list_day_ends"].text, values), merchant_id)
    balances = await read_balances_before(cells, period.since_day, merchant_id)
    by_day: dict[int, list[Row]] = {}
    for row in chain.from_iterable(found):
        by_day.setdefault(row["day"], []).append(row)
    ends = []
    for day in range(period.since_day, period.until_day):
        balances = Counter(balances)
        # `update` keeps negative balances, which `+` would drop.
        balances.update(sum_balances(by_day.get(day, [])))
        ends.append((day, balances))
    return ends


async def list_fees(cells: Reach, period: Period, merchant_id: int | None = None) -> list[Fee]:
    """The fees of a period by day, currency and kind, oldest first."""
    values = {
        "merchant_id": merchant_id or PLATFORM,
        "since_day": period.since_day,
        "until_day": period.until_day,
        "fees_ids": list(FEES_ID_OF.values()),
    }
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["list_fees"].text, values), merchant_id)
    sums: dict[tuple[int, str, str], list[int]] = {}
    for row in chain.from_iterable(found):
        of_key = sums.setdefault((row["day"], row["currency"], row["kind"]), [0, 0])
        of_key[0] += int(row["units"])
        of_key[1] += row["postings"]
    return [Fee(*key, *sums[key]) for key in sorted(sums)]


async def rank_fees(cells: Reach, period: Period) -> list[MerchantFees]:
    """The fees of a period by merchant and currency, the most first. Raises BooksMoving."""
    values = {
        "since_day": period.since_day,
        "until_day": period.until_day,
        "fees_ids": list(FEES_ID_OF.values()),
    }
    found = await cells.read_still(
        lambda: cells.ask(lambda cell: fetch(cell, QUERIES["rank_fees"].text, values))
    )
    rows = [MerchantFees(**{**row, "units": int(row["units"])}) for row in chain.from_iterable(found)]
    return sorted(rows, key=lambda row: (row.currency != "USDT", -row.units, row.merchant_id))


async def read_lag(cells: Reach, merchant_id: int | None = None) -> Lag:
    """How old the movements are."""
    values = {"merchant_id": merchant_id}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["read_lag"].text, values), merchant_id)
    rows = list(chain.from_iterable(found))
    return Lag(
        sum([row["missing"] for row in rows]),
        max([row["moved_ms"] for row in rows if row["moved_ms"] is not None], default=None),
    )


class Difference(msgspec.Struct, frozen=True):
    """An account whose balance is not what its movements add up to."""

    merchant_id: int
    account_id: int
    ledger_units: int
    movement_units: int


async def list_differences(cell: Connection, merchant_ids: Sequence[int]) -> list[Difference]:
    """The differences between the movements of some books and their accounts, in one snapshot."""
    values = {"merchant_ids": list(merchant_ids), "last_fixed": LAST_FIXED_ID}
    rows = await fetch(cell, QUERIES["list_differences"].text, values)
    return [
        Difference(
            row["merchant_id"], row["account_id"], int(row["ledger_units"]), int(row["movement_units"])
        )
        for row in rows
    ]
