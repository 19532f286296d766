"""A book's entries, newest first, and one entry with everything that its hash covers.

Rules: amounts are units, times are milliseconds. A list shows the first posting of each entry; the detail
shows all. A period is found by binary search over the ids, because the times of a journal never go back.
"""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import name_account, parse_account
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.reporting import books, paging, statements
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("entries.sql"))
COMMON_KINDS: Final = ("user_to_merchant", "merchant_to_user", "exchange")
"""Kinds that a book is full of. All others have their own index."""
RARE_KINDS: Final = (
    "register",
    "withdraw",
    "settle",
    "refund",
    "cancel",
    "expire",
    "adjust",
    "fee_withdraw",
    "deposit",
)
ARCHIVED: Final = "archived"
"""What `find_kind` says of an archived entry."""
KINDS: Final = COMMON_KINDS + RARE_KINDS
_NEWEST: Final = Order("entries", ("entry_id",), (MAX_BIGINT,))


class EntryLine(msgspec.Struct, frozen=True):
    """One entry in a list, with its first posting. A registration has no posting."""

    merchant_id: int
    entry_id: int
    kind: str
    mc_order_id: str | None
    at_ms: int
    rate_e8: int
    source: str | None
    target: str | None
    currency: str | None
    amount_units: int | None


class EntryFilter(msgspec.Struct, frozen=True):
    """The filter of a list of entries. `account` is a name of the chart or `subuser:USERID`."""

    kinds: tuple[str, ...] = ()
    account: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None


class EntryShown(msgspec.Struct, frozen=True):
    """An entry with its postings and the hash of the entry before."""

    merchant_id: int
    entry: Entry
    previous_hash: bytes
    is_archived: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """The entry's facts by name. Those of a registration, and what can't be read, are one text."""
        if not self.entry.facts:
            return {}
        try:
            return msgspec.json.decode(self.entry.facts, type=dict[str, Any])
        except msgspec.DecodeError:
            return {"facts": self.entry.facts}

    @property
    def order_id(self) -> int | None:
        """The withdrawal order that the entry belongs to."""
        if self.entry.kind == "withdraw":
            return self.entry.entry_id
        found = self.facts.get("orderId")
        return found if isinstance(found, int) else None


async def list_entries(
    conn: Connection,
    merchant_id: int,
    wanted: EntryFilter,
    *,
    after: str | None = None,
    limit: int = 50,
) -> Page[EntryLine]:
    """A page of a book's entries.

    Raises ValueError for an unknown filter, limit or key.
    """
    kinds = paging.check_words("kind", wanted.kinds, KINDS)
    name, account_id = "page_of_book", None
    if wanted.account is not None:
        name, account_id = "page_of_account", parse_account(wanted.account)[0]
    elif wanted.kinds and not set(wanted.kinds) & set(COMMON_KINDS):
        name = "page_rare"
    from_id, until_id = await _find_period(conn, merchant_id, wanted)
    values: dict[str, Any] = {
        "merchant_id": merchant_id,
        "account_id": account_id,
        "kinds": kinds,
        "from_id": from_id,
        "until_id": until_id,
    }
    is_filtered = bool(wanted.kinds) and name != "page_rare"
    read = paging.make_reader(conn, QUERIES[name], values, is_filtered=is_filtered)
    return await paging.read_page(_NEWEST, read, _show, after, limit)


async def _find_period(conn: Connection, merchant_id: int, wanted: EntryFilter) -> tuple[int, int]:
    """The first id of a period, and the first id after it."""
    from_id, until_id = 0, MAX_BIGINT
    if (wanted.from_ms, wanted.to_ms) == (None, None):
        return from_id, until_id
    last = await fetch(conn, QUERIES["last_entry"].text, {"merchant_id": merchant_id})
    end_id = last[0]["entry_id"] + 1 if last else 0
    if wanted.from_ms is not None:
        from_id = await statements.find_moment(conn, merchant_id, wanted.from_ms, end_id)
    if wanted.to_ms is not None:
        until_id = await statements.find_moment(conn, merchant_id, wanted.to_ms, end_id)
    return from_id, until_id


async def find_entries(
    cells: Reach, mc_order_id: str, merchant_id: int | None = None, *, limit: int = 50
) -> list[EntryLine]:
    """The entries with this order id of the merchant."""
    paging.check_limit(limit)
    values = {"mc_order_id": mc_order_id.replace("\0", ""), "merchant_id": merchant_id, "limit": limit}
    query = QUERIES["find_by_mc_order_id"].text
    found = await cells.ask(lambda cell: fetch(cell, query, values), merchant_id)
    rows = sorted(chain.from_iterable(found), key=itemgetter("merchant_id", "entry_id"))
    return [_show(row) for row in rows[:limit]]


async def show_entry(
    conn: Connection, merchant_id: int, entry_id: int, archive: ArchiveFolder | None = None
) -> EntryShown | None:
    """One entry with all details, or None. Raises ArchiveUnreadable."""
    entry = await books.read_entry(conn, merchant_id, entry_id, archive)
    if entry is None:
        return None
    values = {"merchant_id": merchant_id, "entry_id": entry_id}
    before = await fetch(conn, QUERIES["read_previous_hash"].text, values)
    journal = await open_journal(conn, archive, merchant_id)
    previous = before[0]["hash"] if before else await journal.find_hash_before(entry_id)
    return EntryShown(merchant_id, entry, previous or FIRST_HASH, entry_id <= journal.border)


async def find_kind(conn: Connection, merchant_id: int, entry_id: int) -> str | None:
    """The kind of an entry, or of an archived one ARCHIVED; None without such an entry. No file is read."""
    values = {"merchant_id": merchant_id, "entry_id": entry_id}
    found = await fetch(conn, QUERIES["find_entry"].text, values)
    return found[0]["kind"] if found else None


async def list_postings(
    conn: Connection, merchant_id: int, entry_ids: Sequence[int]
) -> dict[int, list[Posting]]:
    """The postings of some entries, in order, by entry. Entries without postings are left out."""
    values = {"merchant_id": merchant_id, "entry_ids": list(entry_ids)}
    found: dict[int, list[Posting]] = {}
    for row in await fetch(conn, QUERIES["list_postings"].text, values):
        found.setdefault(row.pop("entry_id"), []).append(Posting(**row))
    return found


def _show(row: Row) -> EntryLine:
    line = {name: value for name, value in row.items() if name not in ("is_edge", "source_id", "target_id")}
    source, target = (_format_account(row[side], row["currency"]) for side in ("source_id", "target_id"))
    return EntryLine(**line, source=source, target=target)


def _format_account(account_id: int | None, currency: str | None) -> str | None:
    return None if account_id is None or currency is None else name_account(account_id, currency)
