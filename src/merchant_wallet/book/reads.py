"""Read books: accounts, statements, entries, withdrawal orders and the platform's fees.

Rules:
- Nothing here writes or locks.
- A list is read in pages by key.
- A statement is an iterator. It reads page by page and holds no transaction open. This is safe, since the
  journal is only appended to. It ends at the last entry that existed when it began.
- Amounts are units. The rendering functions print decimals.
"""

import csv
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import format_units
from merchant_wallet.book.chart import FEES_ID_OF, FIXED_BY_NAME, LAST_FIXED_ID, SUBUSER, name_account
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import Entry, Posting, Step

QUERIES: Final = Queries(Path(__file__).with_name("reads.sql"))
PAGE_ROWS: Final = 1000
MAX_ID: Final = 2**63 - 1


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


def _show_account(row: tuple[Any, ...]) -> AccountView:
    account_id, kind, currency, balance = row
    return AccountView(account_id, name_account(account_id, currency), kind, currency, balance)


def parse_account(text: str) -> tuple[int, str | None]:
    """The account id and the currency of a name: `merchant:KFB`, `subuser:USERID` or `subuser:USERID:KFB`.

    Raises ValueError with a sentence for the person who typed it.
    """
    fixed = FIXED_BY_NAME.get(text)
    if fixed is not None:
        return fixed.account_id, fixed.currency
    kind, _, rest = text.partition(":")
    digits, _, currency = rest.partition(":")
    # A sub-user's id is greater than every fixed account's number. Fixed accounts have their own names.
    known = kind == SUBUSER and digits.isascii() and digits.isdecimal() and len(digits) <= 16
    if not known or int(digits) <= LAST_FIXED_ID or (currency or CURRENCIES[0]) not in CURRENCIES:
        names = ", ".join(FIXED_BY_NAME)
        raise ValueError(f"{text!r} is no account: use {SUBUSER}:USERID or one of {names}")
    return int(digits), currency or None


async def find_account(conn: AsyncConnection, merchant_id: int, name: str) -> AccountView:
    """The account of that name. Raises ValueError for an invalid name, LookupError if the book lacks it."""
    account_id, currency = parse_account(name)
    rows = await _fetch(conn, "read_account", merchant_id=merchant_id, account_id=account_id)
    if not rows or currency not in (None, rows[0][2]):
        raise LookupError(f"merchant {merchant_id} has no account {name}")
    return _show_account(rows[0])


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


COLUMNS: Final = (
    "entryId",
    "atMs",
    "kind",
    "mcOrderId",
    "account",
    "counterAccount",
    "currency",
    "amount",
    "balance",
)
"""The columns of a rendered statement, in CSV and in JSON lines."""
_FORMULA_START: Final = re.compile(r"(^|;)(\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


def _cells(row: StatementRow) -> tuple[int | str | None, ...]:
    amount, balance = format_units(row.amount_units), format_units(row.balance_units)
    names = (row.account, row.counter_account, row.currency)
    return (row.entry_id, row.at_ms, row.kind, row.mc_order_id, *names, amount, balance)


def render_csv_header() -> str:
    """The first line of a statement in CSV, line end included (RFC 4180)."""
    return _render_csv(COLUMNS)


def render_csv(row: StatementRow) -> str:
    """One line of a statement in CSV, line end included (RFC 4180).

    Merchants choose order ids. If a spreadsheet would read one as a formula, it is escaped. JSON lines have
    it unchanged.
    """
    if row.mc_order_id is not None:
        row = msgspec.structs.replace(row, mc_order_id=_disarm(row.mc_order_id))
    return _render_csv(_cells(row))


def _disarm(text: str) -> str:
    """Put an apostrophe before each formula, at the start of the text or after a semicolon.

    Where the decimal sign is a comma, spreadsheets split cells at semicolons, even inside quotes that do not
    begin the line. East Asian spreadsheets treat full-width signs like the plain ones.
    """
    return _FORMULA_START.sub(r"\1'\2", text)


def _render_csv(cells: tuple[int | str | None, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def render_jsonl(row: StatementRow) -> str:
    """One line of a statement as a JSON object, line feed included; amounts are decimal strings."""
    return msgspec.json.encode(dict(zip(COLUMNS, _cells(row), strict=True))).decode() + "\n"


async def read_entry(conn: AsyncConnection, merchant_id: int, entry_id: int) -> Entry | None:
    """One entry with its postings; None if the book has no such entry."""
    where = {"merchant_id": merchant_id, "entry_id": entry_id}
    found = await _fetch(conn, "read_entry", **where)
    if not found:
        return None
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
    before = MAX_ID if before_id is None else before_id
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
