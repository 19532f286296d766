"""What a merchant's cell gets from home: a new book, and the version of the merchant's settings.

Rules:
- Each function runs in the caller's transaction of the cell, and does nothing if it was done before.
- In the default cell that transaction is home's too.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book import chart
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.merchants.addresses import write_addresses

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("books.sql"))


class NewBook(NamedTuple):
    """What home says of a book that is to be opened. `own_addresses` are the merchant's, by key name."""

    merchant_id: int
    range_no: int
    settings_version: int
    opened_ms: int
    own_addresses: dict[str, bytes]


async def read_closed_ms(home: Connection) -> int:
    """The end of the newest month whose figures were made. No entry of a new book is before it."""
    row = await (await home.execute(QUERIES["read_closed_ms"].text)).fetchone()
    assert row is not None, "an aggregate always has a row"
    return int(row[0])


async def open_book(cell: Connection, book: NewBook) -> None:
    """Open an empty book with its fixed accounts and the merchant's own addresses, unless it is there."""
    head = {
        "merchant_id": book.merchant_id,
        "range_no": book.range_no,
        "head_hash": FIRST_HASH,
        "last_ms": book.opened_ms,
        "settings_version": book.settings_version,
    }
    await cell.execute(QUERIES["insert_book"].text, head)
    accounts = {
        "merchant_id": book.merchant_id,
        "account_ids": [account.account_id for account in chart.FIXED],
        "kinds": [account.kind for account in chart.FIXED],
        "currencies": [account.currency for account in chart.FIXED],
    }
    await cell.execute(QUERIES["insert_accounts"].text, accounts)
    await write_addresses(cell, book.merchant_id, book.own_addresses)


async def change_book(cell: Connection, merchant_id: int, settings_version: int) -> int | None:
    """Lock a book and tell it the version of its merchant's settings. Returns the book's entry count.

    None if the book knows this version already or does not exist. Raises CellClosed if it is closed.
    """
    values = {"merchant_id": merchant_id, "settings_version": settings_version, "version": uuid4()}
    row = await (await cell.execute(QUERIES["change_book"].text, values)).fetchone()
    if row is None:
        await refuse_closed(cell, merchant_id)
        return None
    return int(row[0])
