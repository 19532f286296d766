"""Single reads of books: accounts, entries, withdrawal orders and the platform's fees.

Rules:
- Nothing here writes or locks.
- A list is read in pages by key.
- Amounts are units.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base import ids
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import FEES_ID_OF, name_account, parse_account
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import Entry, Posting, Step

QUERIES: Final = Queries(Path(__file__).with_name("books.sql"))
PAGE_ROWS: Final = 1000


class AccountView(msgspec.Struct, frozen=True):
    """One account and its balance."""

    account_id: int
    name: str
    kind: str
    currency: str
    balance_units: int


class BookView(msgspec.Struct, frozen=True):
    """A book's head and a page of its accounts. `next_after` asks for the next page; None on the last one."""

    merchant_id: int
    entry_count: int
    last_entry_id: int | None
    head_hash: bytes
    last_ms: int
    accounts: list[AccountView]
    next_after: int | None


class WithdrawalView(msgspec.Struct, frozen=True):
    """An order and its merchant, with its steps if they were asked for."""

    merchant_id: int
    order: Withdrawal
    steps: tuple[Step, ...] = ()

    @property
    def approved_by(self) -> str | None:
        """The person who allowed the payment, or `limit`."""
        return self.order.approved_by


class FeesView(msgspec.Struct, frozen=True):
    """The platform's fees from one merchant in one currency: still in the book, and withdrawn from it."""

    merchant_id: int
    merchant_name: str
    currency: str
    held_units: int
    withdrawn_units: int

    @property
    def earned_units(self) -> int:
        """All fees that were ever earned."""
        return self.held_units + self.withdrawn_units


async def _fetch(conn: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    cursor = conn.cursor(binary=True)
    return await (await cursor.execute(QUERIES[name].text, values)).fetchall()


async def find_book(conn: AsyncConnection, composed_id: int) -> int | None:
    """The merchant whose book has this id's range; None without one."""
    rows = await _fetch(conn, "find_book", range_no=ids.range_of(composed_id))
    return int(rows[0][0]) if rows else None


async def show_book(
    conn: AsyncConnection, merchant_id: int, *, after_id: int = 0, limit: int = PAGE_ROWS
) -> BookView | None:
    """A book's head and up to `limit` accounts above `after_id`. None without such a book."""
    heads = await _fetch(conn, "show_book", merchant_id=merchant_id)
    if not heads:
        return None
    count, range_no, counter, head_hash, last_ms = heads[0]
    rows = await _fetch(conn, "page_accounts", merchant_id=merchant_id, after=after_id, page=limit + 1)
    accounts = [_show_account(row) for row in rows[:limit]]
    next_after = accounts[-1].account_id if len(rows) > limit else None
    last_id = ids.compose(range_no, counter) if counter else None
    return BookView(merchant_id, count, last_id, head_hash, last_ms, accounts, next_after)


async def read_withdrawn(conn: AsyncConnection, merchant_id: int, day: int) -> int:
    """What a merchant has withdrawn on a day (since 1970), as its daily limit counts it."""
    rows = await _fetch(conn, "read_withdrawn", merchant_id=merchant_id, day=day)
    return int(rows[0][0]) if rows else 0


def _show_account(row: tuple[Any, ...]) -> AccountView:
    account_id, kind, currency, balance = row
    return AccountView(account_id, name_account(account_id, currency), kind, currency, balance)


async def find_account(conn: AsyncConnection, merchant_id: int, name: str) -> AccountView:
    """The account of that name. Raises ValueError for an invalid name, LookupError if the book lacks it."""
    account_id, currency = parse_account(name)
    rows = await _fetch(conn, "read_account", merchant_id=merchant_id, account_id=account_id)
    if not rows or currency not in (None, rows[0][2]):
        raise LookupError(f"merchant {merchant_id} has no account {name}")
    return _show_account(rows[0])


async def read_entry(
    conn: AsyncConnection, merchant_id: int, entry_id: int, archive: ArchiveFolder | None = None
) -> Entry | None:
    """One entry with its postings; None if the book has no such entry. Raises ArchiveUnreadable."""
    where = {"merchant_id": merchant_id, "entry_id": entry_id}
    found = await _fetch(conn, "read_entry", **where)
    if not found:
        return await (await open_journal(conn, archive, merchant_id)).find(entry_id)
    postings = tuple([Posting(*row) for row in await _fetch(conn, "read_postings", **where)])
    _, kind, mc_order_id, at_ms, rate_e8, facts, entry_hash = found[0]
    return Entry(entry_id, kind, mc_order_id, at_ms, rate_e8, facts, postings, entry_hash)


async def list_withdrawals(
    conn: AsyncConnection,
    merchant_id: int,
    *,
    status: int | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> list[WithdrawalView]:
    """A merchant's orders, newest first, all or those in one status.

    The last one's `order_id` is the next page's `before_id`.
    """
    before = MAX_BIGINT if before_id is None else before_id
    rows = await _fetch(
        conn, "page_withdrawals", merchant_id=merchant_id, status=status, before_id=before, page=limit
    )
    return [_show_withdrawal(row) for row in rows]


async def list_open_withdrawals(
    conn: AsyncConnection, status: int, *, after: Withdrawal | None = None, limit: int = 100
) -> list[WithdrawalView]:
    """The orders of all merchants in status 0, 1 or 3, oldest first. `after` is the last of a page.

    Raises ValueError for a final status.
    """
    if status not in (0, 1, 3):
        raise ValueError(f"orders in status {status} don't move any more: list them by merchant")
    created_ms, order_id = (-1, -1) if after is None else (after.created_ms, after.order_id)
    rows = await _fetch(
        conn, "page_open_withdrawals", status=status, created_ms=created_ms, order_id=order_id, page=limit
    )
    return [_show_withdrawal(row) for row in rows]


def _show_withdrawal(row: tuple[Any, ...], steps: tuple[Step, ...] = ()) -> WithdrawalView:
    merchant_id, *order = row
    return WithdrawalView(merchant_id, Withdrawal(*order), steps)


async def show_withdrawal(conn: AsyncConnection, merchant_id: int, order_id: int) -> WithdrawalView | None:
    """One order with its steps; None if the merchant has no such order."""
    where = {"merchant_id": merchant_id, "order_id": order_id}
    rows = await _fetch(conn, "read_withdrawal", **where)
    if not rows:
        return None
    steps = tuple([Step(*row) for row in await _fetch(conn, "read_steps", **where)])
    return _show_withdrawal(rows[0], steps)


async def list_fees(conn: AsyncConnection) -> list[FeesView]:
    """The platform's fees of every book, by merchant and currency."""
    rows = await _fetch(conn, "list_fees", fees_ids=list(FEES_ID_OF.values()))
    return [FeesView(*row) for row in rows]
