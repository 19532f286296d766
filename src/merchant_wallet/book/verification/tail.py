"""Checks the end of a journal: the entries after a head that was verified before.

The hashes of the new entries must continue the chain, and end in the hash that the book's row says. Balances
are part of what is hashed. All other rows are left to `verify`.
"""

from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.book.journal import FIRST_HASH, compute_entry_hash
from merchant_wallet.book.state import Entry
from merchant_wallet.book.verification.pages import PAGE_ROWS, QUERIES, Page, fill_entries
from merchant_wallet.book.verification.violations import raise_violation


class Head(NamedTuple):
    """The end of a journal: the number of its entries, the last one's id, and its hash."""

    entry_count: int
    entry_id: int
    head_hash: bytes


NO_ENTRIES: Final = Head(0, 0, FIRST_HASH)


async def check_tail(
    cell: AsyncConnection[Any], merchant_id: int, verified: Head, entry_count: int, head_hash: bytes
) -> Head:
    """Follow the chain from a verified head to the one that the book's row says. Raises ViolationFound.

    `cell` is in the snapshot in which the row was read.
    """
    cursor = cell.cursor(binary=True)
    is_last = False
    while not is_last:
        bounds = {"merchant_id": merchant_id, "after": verified.entry_id, "page": PAGE_ROWS}
        entry_rows = await (await cursor.execute(QUERIES["page_entries"].text, bounds)).fetchall()
        is_last = len(entry_rows) < PAGE_ROWS
        if entry_rows:
            bounds["upto"] = entry_rows[-1][0]
            posting_rows = await (await cursor.execute(QUERIES["page_postings"].text, bounds)).fetchall()
            page = Page()
            fill_entries(page, entry_rows, posting_rows)
            for entry in page.entries:
                verified = _follow(merchant_id, verified, entry)
    if (verified.entry_count, verified.head_hash) != (entry_count, head_hash):
        text = (
            f"the book has {entry_count} entries up to {head_hash.hex()}, the journal {verified.entry_count}"
        )
        raise_violation("book", text, entry_id=verified.entry_id)
    return verified


def _follow(merchant_id: int, verified: Head, entry: Entry) -> Head:
    computed = compute_entry_hash(merchant_id, verified.head_hash, entry)
    if entry.hash != computed:
        text = f"the hash is {entry.hash.hex()}, the content gives {computed.hex()}"
        raise_violation("hash", text, entry_id=entry.entry_id)
    return Head(verified.entry_count + 1, entry.entry_id, computed)
