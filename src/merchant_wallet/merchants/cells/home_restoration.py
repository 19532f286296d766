"""What an acceptance brings home up to, if home was rolled back without its cells.

Home gives out what must be unique over all cells: ids of merchants, ranges of ids, addresses, versions of
settings. It says where books are. What cells have of these is given to home again, before it gives out more.

Rules:
- Evidence of the rollback is committed before, and goes when all of this is done. Cells get it first, so no
  book that is opened here takes a step with an order.
- Merchants that home does not know come back first, then what books use, then the places of books, which are
  verified against it. Where cells are was restored before (see `places`).
- Each step only raises a number, adds what is missing, or moves on, so it may be repeated after a kill.
- Nobody gets the ranges of ids of the missing ones. If their cell is named later, they come back with them.
- Ids after home's newest merchant, up to the newest one that a cell or a checkpoint has, were given out. As
  many accounts as merchants are still missing leave the pool. The sequence does not say it: PostgreSQL
  logs it ahead.
- Home may have lost who made a merchant's secret, and what people approved. So nobody's approvals count for a
  time for the merchants that have unapproved orders in an apart cell, and each person's sum of this day is at
  least what the orders of all cells say. Orders that are made later need a secret that home knows.

Statements are in `home_restoration.sql`. All raise `psycopg.Error`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.audit import records as audit
from merchant_wallet.audit.rollback import evidence as rollback_evidence
from merchant_wallet.base.cells import Apart, Databases
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants import staff_secrets, xpub_pool
from merchant_wallet.merchants.cells import book_placement, lost_merchants
from merchant_wallet.merchants.cells.book_placement import LostBook, PlacedBook
from merchant_wallet.merchants.cells.carrying import carry_waiting
from merchant_wallet.merchants.cells.copies import CheckpointFolder
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.keys import Keyring

QUERIES: Final = Queries(Path(__file__).with_name("home_restoration.sql"))
DROP_LOST: Final = "xpub_pool.drop_lost"

Connection = AsyncConnection[Any]
Rows = list[tuple[Any, ...]]


class Means(NamedTuple):
    """Who accepts, and what is needed: keys, checkpoints, and the ids of merchants that have checkpoints.

    `ranges` are the ranges of ids that the last checkpoints show.
    """

    by: Auditor
    keyring: Keyring
    is_sandbox: bool
    checkpoints: CheckpointFolder | None = None
    checkpointed: Sequence[int] = ()
    secret_wait_ms: int = 0
    ranges: Sequence[int] = ()


class Restored(NamedTuple):
    """What home got back: merchants, books that were placed, and the number of addresses.

    `lost`: books that were nowhere.
    """

    merchants: list[int]
    books: list[PlacedBook]
    lost: list[LostBook]
    addresses: int


class CellSeen(NamedTuple):
    """What a cell has of what home gives out: home's number, its books, and their addresses."""

    cell_id: int
    home_no: int
    books: Rows
    addresses: Rows


async def restore(databases: Databases, means: Means) -> Restored:
    """Give home what its cells have.

    Raises MerchantDiffers, AccountMissing, PoolEmpty, NoWholeCopy, CopiesDiffer.
    """
    home, apart = databases
    await lost_merchants.require_same(databases)
    for cell in apart.values():
        await mirror(home, cell)
    seen = await read_cells(apart)
    ids = [*means.checkpointed, *(row[0] for cell in seen for row in cell.books)]
    merchants = await _restore_merchants(databases, means, seen, ids)
    # A sequence knows no transaction.
    await home.execute(QUERIES["raise_merchant_id"].text, {"merchant_ids": ids})
    async with home.transaction():
        await _hold_approvals(databases, now_ms(), means.secret_wait_ms)
        addresses = await _restore_numbers(home, seen)
    books, lost = await book_placement.place_books(databases, means.by, means.checkpoints)
    async with home.transaction():
        await _raise_versions(home, seen)
    for cell_id, cell in apart.items():
        # Now, and not when a worker comes to it: a new book is opened so, too.
        await carry_waiting(home, cell, cell_id)
    return Restored(merchants, books, lost, addresses)


async def read_cells(apart: Apart) -> list[CellSeen]:
    """What all apart cells have of what home gives out."""
    return [
        CellSeen(
            cell_id,
            (await _fetch(cell, "read_seen"))[0][0],
            await _fetch(cell, "list_books"),
            await _fetch(cell, "list_addresses"),
        )
        for cell_id, cell in apart.items()
    ]


async def _restore_merchants(
    databases: Databases, means: Means, seen: Sequence[CellSeen], ids: Sequence[int]
) -> list[int]:
    """Bring merchants back, and keep what those had that are lost: together, so they are counted once.

    Raises AccountMissing, PoolEmpty.
    """
    home = databases.home
    async with home.transaction():
        dropped = await audit.list_entries(home, action=DROP_LOST, limit=1)
        known = [(entry.after or {})["lastMerchantId"] for entry in dropped]
        [(newest,)] = await _fetch(home, "read_newest_merchant")
        values = {"newest": max([newest, *known]), "merchant_ids": ids}
        merchants = await lost_merchants.bring_back(
            databases, means.keyring, means.by, sandbox=means.is_sandbox
        )
        [(missing, last_id)] = await (await home.execute(QUERIES["count_lost"].text, values)).fetchall()
        # The sandbox's accounts have the merchants' ids.
        if missing and not means.is_sandbox:
            account_nos = await xpub_pool.drop_lowest(home, missing)
            facts = {"accounts": account_nos, "lastMerchantId": last_id}
            await means.by.author(now_ms()).record(home, DROP_LOST, "xpub pool", after=facts)
        ranges = [range_no for cell in seen for row in cell.books for range_no in row[1:3]]
        given = {"range_nos": [*means.ranges, *ranges], "created": missing + len(merchants)}
        await home.execute(QUERIES["keep_ranges"].text, given)
        return merchants


async def _restore_numbers(home: Connection, seen: list[CellSeen]) -> int:
    """Give home what its cells' books use. Returns the number of addresses that it did not know."""
    added = 0
    for cell in seen:
        await home.execute(QUERIES["raise_mark"].text, {"cell_id": cell.cell_id, "home_no": cell.home_no})
        merchant_ids, id_ranges, next_ranges, _ = _columns(cell.books, 4)
        books = {"merchant_ids": merchant_ids, "id_ranges": id_ranges, "next_ranges": next_ranges}
        await home.execute(QUERIES["add_ranges"].text, books)
        owners, addresses = _columns(cell.addresses, 2)
        issued = {"merchant_ids": owners, "addresses": addresses}
        added += (await home.execute(QUERIES["add_addresses"].text, issued)).rowcount
        await home.execute(QUERIES["raise_indexes"].text, {"merchant_ids": owners})
    return added


async def _hold_approvals(databases: Databases, at_ms: int, wait_ms: int) -> None:
    """If home was rolled back, hold approvals of orders that a lost secret may have signed, and count
    those of this day again.
    """
    home, apart = databases
    if not any(found.subject == "home" for found in await rollback_evidence.list_evidence(home)):
        return
    merchant_ids = [row[0] for cell in apart.values() for row in await _fetch(cell, "list_unapproved")]
    if wait_ms:
        await staff_secrets.note_lost(home, merchant_ids, at_ms=at_ms, wait_ms=wait_ms)
    day = at_ms // DAY_MS
    sums: Counter[str] = Counter()
    for place in (home, *apart.values()):
        sums.update(dict(await _fetch(place, "sum_approvals", {"from_ms": day * DAY_MS})))
    values = {"day": day, "people": list(sums), "units": list(sums.values())}
    await home.execute(QUERIES["raise_approved_sums"].text, values)


async def _raise_versions(home: Connection, seen: list[CellSeen]) -> None:
    for cell in seen:
        merchant_ids, _, _, versions = _columns(cell.books, 4)
        settings = {"merchant_ids": merchant_ids, "versions": versions, "cell_id": cell.cell_id}
        await home.execute(QUERIES["raise_versions"].text, settings)


def _columns(rows: Rows, count: int) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(count)]


async def _fetch(connection: Connection, name: str, values: Mapping[str, object] | None = None) -> Rows:
    return await (await connection.execute(QUERIES[name].text, values)).fetchall()
