"""What verification checks of a book's archive, besides the entries, which are replayed with all others."""

from collections.abc import Sequence
from typing import Any

import psycopg

from merchant_wallet.book.archive.archived_journal import ArchivedJournal
from merchant_wallet.book.archive.files import is_signed
from merchant_wallet.book.archive.months import QUERIES
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.state import NAMED_KINDS, Entry
from merchant_wallet.book.verification.violations import raise_violation


async def check_manifests(journal: ArchivedJournal, keys: CheckpointKeys | None) -> None:
    """The manifests are signed, and those that the database knows. Raises as `read_page` does."""
    for month in journal.months:
        manifest = await journal.read_manifest(month)
        if keys is not None and not is_signed(keys, manifest):
            raise_violation("archive", f"the manifest of {month.month} is not signed with the checkpoint key")


async def check_names(cursor: psycopg.AsyncCursor[Any], merchant_id: int, entries: Sequence[Entry]) -> int:
    """The order ids and references of archived entries are kept as they were. Returns how many there are."""
    named = [one for one in entries if one.mc_order_id is not None]
    if not named:
        return 0
    keys = {"names": [one.mc_order_id for one in named], "kinds": [one.kind for one in named]}
    rows = await (
        await cursor.execute(QUERIES["read_names"].text, {"merchant_id": merchant_id, **keys})
    ).fetchall()
    kept = {row[0]: row for row in rows}
    for entry in named:
        if kept.get(entry.entry_id) != make_name_row(entry):
            raise_violation(
                "archive",
                f"the name {entry.mc_order_id!r} is not kept as its entry has it",
                entry_id=entry.entry_id,
            )
    return len(named)


async def check_number_of_names(cursor: psycopg.AsyncCursor[Any], merchant_id: int, expected: int) -> None:
    """No name is kept that no archived entry has."""
    row = await (await cursor.execute(QUERIES["count_names"].text, {"merchant_id": merchant_id})).fetchone()
    assert row is not None
    if row[0] != expected:
        raise_violation("archive", f"{row[0]} names of archived entries are kept, the files have {expected}")


def make_name_row(entry: Entry) -> tuple[Any, ...]:
    """What the database keeps of an archived entry with a name. Pure."""
    first, second = (*entry.postings, None, None)[:2]
    is_named = entry.kind in NAMED_KINDS
    return (
        entry.entry_id,
        entry.at_ms,
        None if first is None else first.source_id,
        None if first is None else first.target_id,
        None if first is None else first.amount_units,
        entry.rate_e8,
        None if second is None else second.amount_units,
        first.source_balance if is_named and first is not None else None,
        first.target_balance if is_named and first is not None else None,
        entry.kind,
        entry.mc_order_id,
        None if first is None else first.currency,
        None if second is None else second.currency,
        entry.facts if is_named else "",
    )
