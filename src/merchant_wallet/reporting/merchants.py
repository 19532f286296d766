"""Lists of merchants with their balances.

Rules:
- Amounts are units.
- Home has the list. The cells of the merchants on a page are asked for their books.
- A book's accounts add up to 0 in each currency. So the balance of all sub-users together is minus the sum of
  the fixed accounts. It is exact, and no sub-user is read.
- The number of sub-users is as old as the rollup's figures.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.reporting import paging
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import MIN_NUMBER, Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("merchants.sql"))
STATUSES: Final = ("active", "suspended")
SORTS: Final = ("id", "name")
LAST_FIXED: Final = LAST_FIXED_ID
_BY_ID: Final = Order("merchants by id", ("merchant_id",), (MIN_NUMBER,))
_BY_NAME: Final = Order("merchants by name", ("name", "merchant_id"), ("", MIN_NUMBER))

_NO_BOOK: Final[Row] = {
    "entry_count": None,
    "last_ms": None,
    "sub_users": 0,
    "usdt_units": 0,
    "kfb_units": 0,
    "hold_units": 0,
    "sub_user_usdt_units": 0,
    "sub_user_kfb_units": 0,
}


class MerchantLine(msgspec.Struct, frozen=True):
    """One merchant in a list. `last_ms` is the time of its book's last entry; None if it has no book.

    `is_away`: its cell did not answer, so what its book has is unknown.
    """

    merchant_id: int
    name: str
    app_key: str
    status: str
    currency_mode: str
    created_ms: int
    entry_count: int | None
    last_ms: int | None
    sub_users: int
    usdt_units: int
    kfb_units: int
    hold_units: int
    sub_user_usdt_units: int
    sub_user_kfb_units: int
    is_away: bool = False


class MerchantFound(msgspec.Struct, frozen=True):
    """A merchant that a search found."""

    merchant_id: int
    name: str
    app_key: str
    status: str
    currency_mode: str
    created_ms: int


async def list_merchants(
    home: Connection,
    cells: Reach,
    *,
    statuses: Sequence[str] = (),
    sort: str = "id",
    after: str | None = None,
    limit: int = 50,
) -> Page[MerchantLine]:
    """A page of merchants by id or name. Raises ValueError if filter, sort, limit or key is invalid."""
    paging.check_words("sort", [sort], SORTS)
    values: dict[str, Any] = {"statuses": paging.check_words("status", statuses, STATUSES)}
    read = paging.make_reader(home, QUERIES[f"page_by_{sort}"], values)
    order = _BY_NAME if sort == "name" else _BY_ID
    page: Page[Row] = await paging.read_page(order, read, lambda row: row, after, limit)
    return Page(tuple(await _show(cells, page.rows)), page.next, page.previous)


async def show_merchants(home: Connection, cells: Reach, merchant_ids: Sequence[int]) -> list[MerchantLine]:
    """Some merchants as in the list, in this order. Unknown ones are left out."""
    rows = await fetch(home, QUERIES["read_some"].text, {"merchant_ids": list(merchant_ids)})
    places = {merchant_id: place for place, merchant_id in enumerate(merchant_ids)}
    return await _show(cells, sorted(rows, key=lambda row: places[row["merchant_id"]]))


async def show_merchant(home: Connection, cell: Connection, merchant_id: int) -> MerchantLine | None:
    """One merchant as in the list; None if there is none. Raises what its cell raises."""
    rows = await fetch(home, QUERIES["read_some"].text, {"merchant_ids": [merchant_id]})
    if not rows:
        return None
    books = await _read_books([merchant_id], cell)
    return _show_one(rows[0], books[0] if books else _NO_BOOK)


async def read_names(conn: Connection, merchant_ids: Iterable[int | None]) -> dict[int, str]:
    """The name of each merchant by its id. An unknown id is its own name. None is left out."""
    wanted = {number for number in merchant_ids if number is not None}
    rows = await fetch(conn, QUERIES["read_names"].text, {"merchant_ids": list(wanted)})
    return {number: str(number) for number in wanted} | {row["merchant_id"]: row["name"] for row in rows}


async def find_merchants(
    conn: Connection, word: str, only_id: int | None = None, *, limit: int = 20
) -> list[MerchantFound]:
    """The merchants with this id, app key or part of a name, the best match first.

    With `only_id` at most that one, however many others match.
    """
    paging.check_limit(limit)
    word = word.replace("\0", "").strip()
    if not word:
        return []
    values = {"word": word, "merchant_id": parse_digits(word), "only_id": only_id, "limit": limit}
    rows = await fetch(conn, QUERIES["find_merchants"].text, values)
    return [MerchantFound(**{name: row[name] for name in MerchantFound.__struct_fields__}) for row in rows]


async def _show(cells: Reach, rows: Sequence[Row]) -> list[MerchantLine]:
    """The merchants with their books. Each cell is asked for all of its merchants together."""
    in_cells: dict[int, list[int]] = {}
    for row in rows:
        in_cells.setdefault(row["cell_id"], []).append(row["merchant_id"])
    asks = {ids[0]: partial(_read_books, ids) for ids in in_cells.values()}
    answers = await cells.try_each(asks)
    found = {book["merchant_id"]: book for books in answers.values() for book in books}
    there = {
        merchant_id
        for first, ids in zip(asks, in_cells.values(), strict=True)
        if first in answers
        for merchant_id in ids
    }
    return [
        _show_one(row, found.get(row["merchant_id"], _NO_BOOK), is_away=row["merchant_id"] not in there)
        for row in rows
    ]


async def _read_books(merchant_ids: Sequence[int], cell: Connection) -> list[Row]:
    values = {"merchant_ids": list(merchant_ids), "last_fixed": LAST_FIXED}
    return await fetch(cell, QUERIES["read_books"].text, values)


def _show_one(row: Row, book: Row, *, is_away: bool = False) -> MerchantLine:
    merchant = {name: value for name, value in row.items() if name != "cell_id"}
    return MerchantLine(**{**merchant, **book}, is_away=is_away)
