"""Lists of merchants with their balances.

Rules:
- Amounts are units.
- A book's accounts add up to 0 in each currency. So the balance of all sub-users together is minus the sum of
  the fixed accounts. It is exact, and no sub-user is read.
- The number of sub-users is as old as the rollup's figures.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.reporting import paging
from merchant_wallet.reporting.paging import MIN_NUMBER, Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("merchants.sql"))
STATUSES: Final = ("active", "suspended")
SORTS: Final = ("id", "name")
LAST_FIXED: Final = LAST_FIXED_ID
_BY_ID: Final = Order("merchants by id", ("merchant_id",), (MIN_NUMBER,))
_BY_NAME: Final = Order("merchants by name", ("name", "merchant_id"), ("", MIN_NUMBER))


class MerchantLine(msgspec.Struct, frozen=True):
    """One merchant in a list. `last_ms` is the time of its book's last entry; None if it has no book."""

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


class MerchantFound(msgspec.Struct, frozen=True):
    """A merchant that a search found."""

    merchant_id: int
    name: str
    app_key: str
    status: str
    currency_mode: str
    created_ms: int


async def list_merchants(
    conn: Connection,
    *,
    statuses: Sequence[str] = (),
    sort: str = "id",
    after: str | None = None,
    limit: int = 50,
) -> Page[MerchantLine]:
    """A page of merchants by id or name. Raises ValueError if filter, sort, limit or key is invalid."""
    paging.check_words("sort", [sort], SORTS)
    values: dict[str, Any] = {
        "statuses": paging.check_words("status", statuses, STATUSES),
        "last_fixed": LAST_FIXED,
    }
    read = paging.make_reader(conn, QUERIES[f"page_by_{sort}"], values)
    return await paging.read_page(_BY_NAME if sort == "name" else _BY_ID, read, _show, after, limit)


async def show_merchant(conn: Connection, merchant_id: int) -> MerchantLine | None:
    """One merchant as in the list; None if there is none."""
    values = {"statuses": list(STATUSES), "last_fixed": LAST_FIXED, "page": 1, "key_0": merchant_id - 1}
    rows = await fetch(conn, QUERIES["page_by_id"].text, values)
    return _show(rows[0]) if rows and rows[0]["merchant_id"] == merchant_id else None


async def read_names(conn: Connection, merchant_ids: Iterable[int | None]) -> dict[int, str]:
    """The name of each merchant by its id. An unknown id is its own name. None is left out."""
    wanted = {number for number in merchant_ids if number is not None}
    rows = await fetch(conn, QUERIES["read_names"].text, {"merchant_ids": list(wanted)})
    return {number: str(number) for number in wanted} | {row["merchant_id"]: row["name"] for row in rows}


async def find_merchants(conn: Connection, word: str, *, limit: int = 20) -> list[MerchantFound]:
    """The merchants with this id, app key or part of a name, the best match first."""
    paging.check_limit(limit)
    word = word.replace("\0", "").strip()
    if not word:
        return []
    values = {"word": word, "merchant_id": paging.read_number(word), "limit": limit}
    rows = await fetch(conn, QUERIES["find_merchants"].text, values)
    return [MerchantFound(**{name: row[name] for name in MerchantFound.__struct_fields__}) for row in rows]


def _show(row: Row) -> MerchantLine:
    return MerchantLine(**row)
