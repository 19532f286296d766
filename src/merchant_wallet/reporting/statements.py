"""Statements: the postings of an account or of a whole book.

A statement is an iterator. It reads page by page and holds no transaction open. This is safe, since the
journal is only appended to. It ends at the last entry that existed when it began. Amounts are units.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import name_account
from merchant_wallet.reporting.books import find_account

QUERIES: Final = Queries(Path(__file__).with_name("statements.sql"))
PAGE_ROWS: Final = 1000


class StatementRow(msgspec.Struct, frozen=True, rename="camel"):
    """One side of a posting, as `account` sees it. `amount_units` is negative when the account paid.

    `balance_units` is the account's balance after the posting.
    """

    entry_id: int
    at_ms: int
    kind: str
    mc_order_id: str | None
    account: str
    counter_account: str
    currency: str
    amount_units: int
    balance_units: int


async def _fetch(conn: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    cursor = conn.cursor(binary=True)
    return await (await cursor.execute(QUERIES[name].text, values)).fetchall()


async def read_statement(
    conn: AsyncConnection,
    merchant_id: int,
    account_name: str | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> AsyncIterator[StatementRow]:
    """Every posting of an account, oldest first, from `from_ms` on and before `to_ms`.

    Without an account, the whole book: each posting comes twice, once for its source and once for its target.
    Raises like `find_account`, with the first row.
    """
    account_id = None
    if account_name is not None:
        account_id = (await find_account(conn, merchant_id, account_name)).account_id
    last = await _fetch(conn, "last_entry", merchant_id=merchant_id)
    end_id = last[0][0] + 1 if last else 0
    bounds: dict[str, object] = {
        "merchant_id": merchant_id,
        "account_id": account_id,
        "from_id": 0 if from_ms is None else await find_moment(conn, merchant_id, from_ms, end_id),
        "until_id": end_id if to_ms is None else await find_moment(conn, merchant_id, to_ms, end_id),
    }
    query = "page_postings" if account_id is None else "page_account_postings"
    entry_id, posting_no = -1, 0
    while True:
        rows = await _fetch(conn, query, **bounds, entry_id=entry_id, posting_no=posting_no, page=PAGE_ROWS)
        for row in rows:
            for shown in _show_posting(row, account_id):
                yield shown
        if len(rows) < PAGE_ROWS:
            return
        entry_id, posting_no = rows[-1][0], rows[-1][4]
        bounds["from_id"] = entry_id


async def find_moment(conn: AsyncConnection, merchant_id: int, at_ms: int, end_id: int) -> int:
    """The first id whose entry is not before a time; `end_id` if there is none. A binary search."""
    low, high = 0, end_id
    while low < high:
        middle = (low + high) // 2
        found = await _fetch(conn, "first_entry_from", merchant_id=merchant_id, from_id=middle)
        if found and found[0][1] < at_ms:
            low = found[0][0] + 1
        else:
            high = middle
    return low


def _show_posting(row: tuple[Any, ...], account_id: int | None) -> list[StatementRow]:
    """The sides of a posting that a statement shows: the account's own, or both."""
    (
        entry_id,
        at_ms,
        kind,
        mc_order_id,
        _,
        source_id,
        target_id,
        currency,
        amount,
        source_left,
        target_left,
    ) = row
    source, target = name_account(source_id, currency), name_account(target_id, currency)
    shown = []
    if account_id in (None, source_id):
        moved = (currency, -amount, source_left)
        shown.append(StatementRow(entry_id, at_ms, kind, mc_order_id, source, target, *moved))
    if account_id in (None, target_id):
        moved = (currency, amount, target_left)
        shown.append(StatementRow(entry_id, at_ms, kind, mc_order_id, target, source, *moved))
    return shown
