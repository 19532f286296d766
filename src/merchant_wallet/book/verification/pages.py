"""Pages of a book's rows, in the order of their entries' ids, for verification and for the archive.

A page covers an interval of ids. Its entries come from the tables, or from the archive where the tables have
none any more. All other rows come from the tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.archive.archived_journal import ArchivedJournal
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import CallbackDue, Entry, Posting, Step
from merchant_wallet.book.verification.deposits import DepositRow
from merchant_wallet.book.verification.violations import raise_violation

QUERIES: Final = Queries(Path(__file__).with_name("verify.sql"))
PAGE_ROWS: Final = 5000


class SubUserRow(msgspec.Struct, frozen=True, gc=False):
    """The fields that a sub-user's row shares with the entry of its registration."""

    user_id: int
    ext_user_id: str
    address_index: int
    evm_address: bytes
    tron_address: bytes


@dataclass(slots=True)
class Page:
    """The rows of all tables in one interval of a book's ids. A row is removed when its entry is checked."""

    entries: list[Entry] = field(default_factory=list)
    archived: list[Entry] = field(default_factory=list)
    stray_postings: set[int] = field(default_factory=set)
    misnumbered: set[int] = field(default_factory=set)
    orders: dict[int, Withdrawal] = field(default_factory=dict)
    steps: dict[int, list[Step]] = field(default_factory=dict)
    callbacks: dict[int, list[CallbackDue]] = field(default_factory=dict)
    sub_users: dict[int, SubUserRow] = field(default_factory=dict)
    credits: dict[int, DepositRow] = field(default_factory=dict)


async def read_page(
    cursor: psycopg.AsyncCursor[Any], merchant_id: int, after: int, journal: ArchivedJournal
) -> tuple[Page, int]:
    """Read the rows after an id, and return the last id that they cover. The last page covers all ids.

    Raises ArchiveUnreadable, and ViolationFound for rows of archived entries.
    """
    bounds = {"merchant_id": merchant_id, "after": after, "page": PAGE_ROWS}

    async def rows(name: str) -> list[tuple[Any, ...]]:
        return await (await cursor.execute(QUERIES[name].text, bounds)).fetchall()

    archived = await journal.read_after(after)
    entry_rows = await rows("page_entries")
    if archived:
        upto = archived[-1].entry_id
        if entry_rows and entry_rows[0][0] <= upto:
            raise_violation("archive", "its row is in the journal and in a file", entry_id=entry_rows[0][0])
        entry_rows = []
    else:
        upto = entry_rows[-1][0] if len(entry_rows) == PAGE_ROWS else MAX_BIGINT
    bounds["upto"] = upto
    page = Page(archived=archived)
    fill_entries(page, entry_rows, await rows("page_postings"))
    page.entries = [*archived, *page.entries]
    page.orders = {row[0]: Withdrawal(*row) for row in await rows("page_orders")}
    for row in await rows("page_steps"):
        page.steps.setdefault(row[0], []).append(Step(*row))
    for row in await rows("page_callbacks"):
        page.callbacks.setdefault(row[0], []).append(CallbackDue(*row))
    page.sub_users = {row[0]: SubUserRow(*row) for row in await rows("page_sub_users")}
    page.credits = {row[0]: DepositRow(*row) for row in await rows("page_credits")}
    return page, upto


def fill_entries(
    page: Page, entry_rows: Sequence[tuple[Any, ...]], posting_rows: Sequence[tuple[Any, ...]]
) -> None:
    """Put entries with their postings into a page."""
    postings: dict[int, list[Posting]] = {}
    for entry_id, number, source, target, currency, units, source_balance, target_balance in posting_rows:
        mine = postings.setdefault(entry_id, [])
        mine.append(Posting(source, target, currency, units, source_balance, target_balance))
        if number != len(mine):
            page.misnumbered.add(entry_id)
    for entry_id, kind, mc_order_id, at_ms, rate_e8, facts, entry_hash in entry_rows:
        mine = postings.pop(entry_id, [])
        entry = Entry(entry_id, kind, mc_order_id, at_ms, rate_e8, facts, tuple(mine), entry_hash)
        page.entries.append(entry)
    page.stray_postings = set(postings)


async def read_journal_page(
    cell: AsyncConnection[Any], merchant_id: int, after: int, page_rows: int = PAGE_ROWS
) -> list[Entry]:
    """The next entries of the tables with their postings. Raises ViolationFound for stray postings."""
    cursor = cell.cursor(binary=True)
    bounds = {"merchant_id": merchant_id, "after": after, "page": page_rows}
    entry_rows = await (await cursor.execute(QUERIES["page_entries"].text, bounds)).fetchall()
    if not entry_rows:
        return []
    bounds["upto"] = entry_rows[-1][0]
    page = Page()
    fill_entries(
        page, entry_rows, await (await cursor.execute(QUERIES["page_postings"].text, bounds)).fetchall()
    )
    for entry_id in page.misnumbered:
        raise_misnumbered(entry_id)
    check_orphans(page)
    return page.entries


def raise_misnumbered(entry_id: int) -> NoReturn:
    """Raise ViolationFound for an entry whose postings are not numbered from 1."""
    raise_violation("posting", "the postings are not numbered from 1 without gaps", entry_id=entry_id)


def check_orphans(page: Page) -> None:
    """Raise ViolationFound (rule `orphan`) for the first row that belongs to no entry of the page."""
    for name, rows in (
        ("posting", page.stray_postings),
        ("withdrawal", page.orders),
        ("withdrawal_step", page.steps),
        ("callback", page.callbacks),
        ("sub_user", page.sub_users),
        ("deposit_credit", page.credits),
    ):
        if rows:
            stray = min(rows)
            raise_violation("orphan", f"a row of {name} has no entry {stray}", entry_id=stray)
