"""The entries of a period with all their postings, page by page, from files and tables.

Rules: one page is in memory. No transaction stays open between pages. Raises ArchiveUnreadable.
"""

from collections.abc import AsyncIterator
from typing import Final

from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.state import Entry
from merchant_wallet.book.verification.pages import PAGE_ROWS, read_journal_page
from merchant_wallet.reporting.paging import Connection
from merchant_wallet.reporting.statements import find_moment

PAST_ALL_IDS: Final = 2**62


async def read_entry_pages(
    cell: Connection,
    archive: ArchiveFolder,
    merchant_id: int,
    since_ms: int,
    until_ms: int,
    page_rows: int = PAGE_ROWS,
) -> AsyncIterator[list[Entry]]:
    """The entries from a moment on and before another one, oldest first, in pages."""
    journal = await open_journal(cell, archive, merchant_id)
    after = 0
    while entries := await journal.read_after(after, since_ms):
        yield [entry for entry in entries if since_ms <= entry.at_ms < until_ms]
        if entries[-1].at_ms >= until_ms:
            return
        after = entries[-1].entry_id
    after = max(await find_moment(cell, merchant_id, since_ms, PAST_ALL_IDS) - 1, journal.border)
    while True:
        entries = await read_journal_page(cell, merchant_id, after, page_rows)
        now = await open_journal(cell, archive, merchant_id)
        if now.border > max(after, journal.border):
            # Rows were archived meanwhile, perhaps some of these: they are read again from their file.
            journal = now
            while archived := await journal.read_after(after, since_ms):
                yield [entry for entry in archived if since_ms <= entry.at_ms < until_ms]
                after = archived[-1].entry_id
            continue
        if not entries:
            return
        yield [entry for entry in entries if entry.at_ms < until_ms]
        if entries[-1].at_ms >= until_ms:
            return
        after = entries[-1].entry_id


async def read_entries(
    cell: Connection, archive: ArchiveFolder, merchant_id: int, since_ms: int, until_ms: int
) -> AsyncIterator[Entry]:
    """The same, one by one."""
    async for page in read_entry_pages(cell, archive, merchant_id, since_ms, until_ms):
        for entry in page:
            yield entry
