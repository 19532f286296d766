"""What the metrics show of books: read in each cell, then added up.

Rules: a cell that is away adds nothing, and a metric says that it is away. Ages are of the oldest in any
cell; supplies are those of the cell that has the fewest.

Statements are in `cell_figures.sql`. They raise `psycopg.Error`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import UNITS_PER_COIN
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.nonce_partitions import list_nonce_days
from merchant_wallet.callbacks.callback_states import UNDELIVERED, show_name

QUERIES: Final = Queries(Path(__file__).with_name("cell_figures.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
ORDER_STATES: Final = ("approval", "queued", "processing", "failed")
MAX_COUNTED: Final = 100_000
"""The most that is counted of one kind in one cell."""

Sample = tuple[str, tuple[str, ...], float]
"""A metric's name, its labels' values in the table's order, and its value."""
Names = tuple[str, ...]


class Waiting(NamedTuple):
    """How many things wait, and since when the oldest does."""

    number: int = 0
    since_ms: int | None = None


class CellFigures(NamedTuple):
    """The figures of one cell, or of several."""

    balances: Mapping[Names, int]
    orders: Mapping[Names, Waiting]
    callbacks: Mapping[Names, Waiting]
    deposits: Mapping[Names, Waiting]
    book_ids_left: int | None
    nonce_days: int
    last_nonce_day: int


class ApartFigures(NamedTuple):
    """The figures of an apart cell, and when its copies of rates were last compared with home's."""

    figures: CellFigures
    copied_ms: int


async def read_figures(cell: AsyncConnection) -> CellFigures:
    """The figures of one cell."""
    balances = await _rows(cell, "sum_fixed_accounts", last_fixed=len(FIXED))
    days = await list_nonce_days(cell)
    [(fewest,)] = await _rows(cell, "read_book_ids_left")
    return CellFigures(
        {(kind, currency): int(units) for kind, currency, units in balances},
        await _count(cell, "count_orders"),
        await _count(cell, "count_callbacks"),
        await _count(cell, "count_deposits"),
        fewest,
        len(days),
        max(days, default=-1),
    )


async def read_apart(cell: AsyncConnection) -> ApartFigures:
    """The figures of an apart cell."""
    copied = await _rows(cell, "read_copied_ms")
    return ApartFigures(await read_figures(cell), copied[0][0] if copied else 0)


async def _count(cell: AsyncConnection, query: str) -> dict[Names, Waiting]:
    rows = await _rows(cell, query, most=MAX_COUNTED)
    return {tuple(names): Waiting(count, since_ms) for *names, count, since_ms in rows}


async def _rows(cell: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await cell.execute(_TEXTS[name], values)).fetchall()


def add_up(cells: Sequence[CellFigures]) -> CellFigures:
    """The figures of several cells together. Pure."""
    balances: Counter[Names] = Counter()
    for cell in cells:
        balances.update(cell.balances)
    return CellFigures(
        balances,
        _merge([cell.orders for cell in cells]),
        _merge([cell.callbacks for cell in cells]),
        _merge([cell.deposits for cell in cells]),
        min((cell.book_ids_left for cell in cells if cell.book_ids_left is not None), default=None),
        min(cell.nonce_days for cell in cells),
        min(cell.last_nonce_day for cell in cells),
    )


def _merge(cells: Sequence[Mapping[Names, Waiting]]) -> dict[Names, Waiting]:
    merged: dict[Names, Waiting] = {}
    for waiting in cells:
        for names, (count, since_ms) in waiting.items():
            before = merged.get(names, Waiting())
            times = [at_ms for at_ms in (before.since_ms, since_ms) if at_ms is not None]
            merged[names] = Waiting(before.number + count, min(times, default=None))
    return merged


def show_figures(figures: CellFigures, now_ms: int) -> list[Sample]:
    """The samples of all cells together. Pure."""
    balances = dict(figures.balances)
    for currency in CURRENCIES:
        # Every posting has two sides, so all accounts of a currency add up to zero.
        balances["subuser", currency] = -sum(of[1] == currency and units for of, units in balances.items())
    samples: list[Sample] = [
        ("wallet_money_coins", names, make_coins(units)) for names, units in balances.items()
    ]
    for state in ORDER_STATES:
        waiting = figures.orders.get((state,), Waiting())
        samples += age("wallet_orders", "wallet_order_oldest_seconds", (state,), *waiting, now_ms)
    for known in UNDELIVERED:
        waiting = figures.callbacks.get((known,), Waiting())
        names = (show_name(known),)
        samples += age("wallet_callbacks", "wallet_callback_oldest_seconds", names, *waiting, now_ms)
    for of_chain, waiting in figures.deposits.items():
        samples += age("wallet_deposits", "wallet_deposit_oldest_seconds", of_chain, *waiting, now_ms)
    ahead = -1 if figures.last_nonce_day < 0 else figures.last_nonce_day - now_ms // DAY_MS
    samples.append(("wallet_nonce_partitions", (), figures.nonce_days))
    samples.append(("wallet_nonce_days_ahead", (), ahead))
    if figures.book_ids_left is not None:
        samples.append(("wallet_book_ids_left", (), figures.book_ids_left))
    return samples


def show_cells(cells: Mapping[str, ApartFigures | None], now_ms: int) -> list[Sample]:
    """The samples that each apart cell has. Pure."""
    samples: list[Sample] = []
    for name, found in cells.items():
        samples.append(("wallet_cell_up", (name,), found is not None))
        if found is not None:
            age_s = (now_ms - found.copied_ms) / 1000
            samples.append(("wallet_cell_rates_age_seconds", (name,), age_s))
    return samples


def age(
    name: str, age_name: str, names: Names, count: int, since_ms: int | None, now_ms: int
) -> list[Sample]:
    """A number of things, and the age of the oldest. Pure."""
    age_s = 0.0 if since_ms is None else (now_ms - since_ms) / 1000
    return [(name, names, count), (age_name, names, age_s)]


def make_coins(units: int) -> float:
    """An amount in coins."""
    return units / UNITS_PER_COIN
