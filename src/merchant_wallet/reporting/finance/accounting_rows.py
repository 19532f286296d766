"""Rows of files for accountants: entries, postings, withdrawals, deposits, callbacks, audit log.

Rules:
- Every row is a value; `web/accounting_files` writes it. Amounts are units, times are milliseconds.
- A movement has the change of each account in a column of its own. So each column adds up to closing less
  opening of the period's report, and each row to 0 in each currency.
- Rows come oldest first, page by page. One page is in memory.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import CHAIN_OF_KIND, FIXED_BY_ID, LAST_FIXED_ID, SUBUSER
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.reporting.finance.journal import PAST_ALL_IDS, read_entry_pages
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("accounting.sql"))
PAGE_ROWS: Final = 1000
ENTRIES_A_PAGE: Final = 500
"""Few, since a page is decoded in one piece, and merchants' requests wait that long."""
OUTSIDE: Final = "outside"
"""The chains' accounts in one column: what came in from outside is below zero."""
NAMES_KEPT: Final = 10_000
"""So many sub-users' names are remembered while a file is written. A name never changes."""
_COLUMNS: Final = {
    number: OUTSIDE if fixed.kind in CHAIN_OF_KIND else fixed.kind for number, fixed in FIXED_BY_ID.items()
}
_NO_ORDER: Final[Mapping[str, Any]] = {}
CALLBACK_STATES: Final = ("delivered", "due", "paused", "dead_letter")
CALLBACK_TYPES: Final = ("withdrawal", "deposit")


class Movement(msgspec.Struct, frozen=True, gc=False):
    """One entry. `names` has the extUserId of each sub-user in the postings, and of others."""

    entry_id: int
    at_ms: int
    kind: str
    mc_order_id: str | None
    order_id: int | None
    ext_user_id: str | None
    chain: str | None
    tx_hash: str | None
    rate_e8: int
    reason: str | None
    postings: tuple[Posting, ...]
    names: Mapping[int, str]

    def sum_changes(self) -> dict[tuple[str, str], int]:
        """The units of each account kind and currency that changed, with `OUTSIDE` for the chains."""
        changes: dict[tuple[str, str], int] = {}
        for one in self.postings:
            units, currency = one.amount_units, one.currency
            source = (_COLUMNS.get(one.source_id, SUBUSER), currency)
            target = (_COLUMNS.get(one.target_id, SUBUSER), currency)
            changes[source] = changes.get(source, 0) - units
            changes[target] = changes.get(target, 0) + units
        return changes


async def read_movements(
    cell: Connection, archive: ArchiveFolder, merchant_id: int, since_ms: int, until_ms: int
) -> AsyncIterator[list[Movement]]:
    """Every entry of a period that moved something, page by page."""
    names: dict[int, str] = {}
    pages = read_entry_pages(cell, archive, merchant_id, since_ms, until_ms, ENTRIES_A_PAGE)
    async for entries in _cut_pages(pages):
        facts = {entry.entry_id: _read_facts(entry) for entry in entries}
        # A new one, since movements keep the old one.
        names = names if len(names) < NAMES_KEPT else {}
        await _learn_names(cell, merchant_id, entries, names)
        orders = await _find_orders(cell, merchant_id, facts)
        yield [_make_movement(entry, facts[entry.entry_id], names, orders) for entry in entries]


async def _cut_pages(pages: AsyncIterator[list[Entry]]) -> AsyncIterator[list[Entry]]:
    """The entries that moved something. A block of the archive is more than a page."""
    async for page in pages:
        for start in range(0, len(page), ENTRIES_A_PAGE):
            entries = [entry for entry in page[start : start + ENTRIES_A_PAGE] if entry.postings]
            if entries:
                yield entries


async def list_movements(
    cell: Connection, archive: ArchiveFolder, merchant_id: int, since_ms: int, until_ms: int, most: int
) -> list[Movement] | None:
    """Every entry of a period that moved something; None if there are more than `most`."""
    found: list[Movement] = []
    async for page in read_movements(cell, archive, merchant_id, since_ms, until_ms):
        found += page
        if len(found) > most:
            return None
    return found


def _read_facts(entry: Entry) -> dict[str, Any]:
    """The facts of an entry, if they are JSON. Those of a registration are not, and move nothing."""
    try:
        found = msgspec.json.decode(entry.facts) if entry.facts else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


async def _learn_names(
    cell: Connection, merchant_id: int, entries: Sequence[Entry], names: dict[int, str]
) -> None:
    """Add the names of the sub-users of some entries to `names`."""
    ids = {one for entry in entries for each in entry.postings for one in (each.source_id, each.target_id)}
    wallets = sorted([one for one in ids if one > LAST_FIXED_ID and one not in names])
    values = {"merchant_id": merchant_id, "user_ids": wallets}
    rows = await fetch(cell, QUERIES["find_sub_users"].text, values) if wallets else []
    names.update({row["user_id"]: row["ext_user_id"] for row in rows})


async def _find_orders(
    cell: Connection, merchant_id: int, facts: Mapping[int, Mapping[str, Any]]
) -> dict[int, Row]:
    ids = sorted({told["orderId"] for told in facts.values() if isinstance(told.get("orderId"), int)})
    values = {"merchant_id": merchant_id, "order_ids": ids}
    rows = await fetch(cell, QUERIES["find_orders"].text, values) if ids else []
    return {row["order_id"]: row for row in rows}


def _make_movement(
    entry: Entry, facts: Mapping[str, Any], names: Mapping[int, str], orders: Mapping[int, Row]
) -> Movement:
    user = None
    for one in entry.postings:
        user = names.get(one.source_id) or names.get(one.target_id)
        if user:
            break
    # A withdrawal's entry has the order's own id.
    order_id = entry.entry_id if entry.kind == "withdraw" else facts.get("orderId")
    order = orders.get(order_id or 0, _NO_ORDER)
    return Movement(
        entry.entry_id,
        entry.at_ms,
        entry.kind,
        entry.mc_order_id or order.get("mc_order_id"),
        order_id,
        user,
        facts.get("chain") or facts.get("chainType") or order.get("chain"),
        facts.get("txHash") or order.get("tx_hash"),
        entry.rate_e8,
        facts.get("reason"),
        entry.postings,
        names,
    )


async def read_orders(cell: Connection, merchant_id: int, since_ms: int, until_ms: int) -> AsyncIterator[Row]:
    """The withdrawals that were created in a period."""
    where = {"merchant_id": merchant_id}
    after = await _find_moment(cell, "first_order_from", where, since_ms) - 1
    while True:
        rows = await fetch(cell, QUERIES["page_orders"].text, {**where, "after": after, "page": PAGE_ROWS})
        for row in rows:
            if row["created_ms"] >= until_ms:
                return
            yield row
        if len(rows) < PAGE_ROWS:
            return
        after = rows[-1]["order_id"]


async def read_deposits(
    cell: Connection, merchant_id: int, since_ms: int, until_ms: int
) -> AsyncIterator[Row]:
    """The deposits that were seen in a period."""
    key: dict[str, Any] = {"seen_ms": since_ms - 1, "chain": "\uffff", "tx_hash": "", "log_index": 0}
    while True:
        values = {"merchant_id": merchant_id, "until_ms": until_ms, "page": PAGE_ROWS, **key}
        rows = await fetch(cell, QUERIES["page_deposits"].text, values)
        for row in rows:
            yield row
        if len(rows) < PAGE_ROWS:
            return
        key = {column: rows[-1][column] for column in key}


async def read_callbacks(
    cell: Connection, merchant_id: int, since_ms: int, until_ms: int
) -> AsyncIterator[Row]:
    """The callbacks of a period, by state, then by kind, then oldest first."""
    for state in CALLBACK_STATES:
        for event_type in CALLBACK_TYPES:
            key = {"created_ms": since_ms, "order_id": -1, "status": -1}
            while True:
                values = {"merchant_id": merchant_id, "state": state, "event_type": event_type}
                values |= {"until_ms": until_ms, "page": PAGE_ROWS, **key}
                rows = await fetch(cell, QUERIES["page_callbacks"].text, values)
                for row in rows:
                    yield row
                if len(rows) < PAGE_ROWS:
                    break
                key = {column: rows[-1][column] for column in key}


async def page_merchants(home: Connection, after: int, merchant_id: int | None) -> list[tuple[int, str]]:
    """The next merchants with their names, or the one that is given."""
    values = {"after": after, "merchant_id": merchant_id, "page": PAGE_ROWS}
    rows = await fetch(home, QUERIES["page_merchants"].text, values)
    return [(row["merchant_id"], row["name"]) for row in rows]


async def read_audit(
    home: Connection,
    since_ms: int,
    until_ms: int,
    *,
    merchant_id: int | None = None,
    actions: Sequence[str] | None = None,
) -> AsyncIterator[Row]:
    """The audit log of a period; with a merchant what is about it, with actions those alone."""
    after = await _find_moment(home, "first_audit_from", {}, since_ms) - 1
    query = "page_audit" if merchant_id is None else "page_audit_of_merchant"
    where = {"merchant_id": merchant_id, "actions": None if actions is None else list(actions)}
    while True:
        rows = await fetch(home, QUERIES[query].text, {**where, "after": after, "page": PAGE_ROWS})
        for row in rows:
            if row["at_ms"] >= until_ms:
                return
            yield row
        if len(rows) < PAGE_ROWS:
            return
        after = rows[-1]["audit_no"]


async def _find_moment(conn: Connection, query: str, where: Mapping[str, Any], at_ms: int) -> int:
    """The first id whose row is not before a time. A binary search, since times do not go back."""
    low, high = 0, PAST_ALL_IDS
    while low < high:
        middle = (low + high) // 2
        rows = await fetch(conn, QUERIES[query].text, {**where, "from_id": middle})
        found = list(rows[0].values()) if rows else None
        if found and found[1] < at_ms:
            low = found[0] + 1
        else:
            high = middle
    return low
