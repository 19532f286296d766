"""Id ranges: home gives each book ranges of ids that no other book gets.

Rules:
- A book has a current range and at most one further range.
- A further range is two commits: home gives it to the merchant, then the book gets it. If a process ends
  in between, the next one finds the range in home and gives the book this one, so no range is skipped.
- The book takes a range only if it has no further one and the range is above its own. So a process that is
  late changes nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from merchant_wallet.base import ids
from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("id_ranges.sql"))


class RangesExhausted(Exception):
    """All id ranges have been given out."""


async def take_range(home: Connection, merchant_id: int) -> int:
    """Give a merchant a range, in the caller's transaction. Raises RangesExhausted."""
    await _run(home, "lock_ranges", {})
    return await _take_locked(home, merchant_id)


async def allocate_range(home: Connection, cell: Connection, merchant_id: int) -> bool:
    """Give a book its further id range. False if it has one already or does not exist.

    Any number of callers may do this at once. Raises RangesExhausted.
    """
    book = await _fetch(cell, "read_ranges", {"merchant_id": merchant_id})
    if book is None or book["next_range"] is not None:
        return False
    async with home.transaction():
        await _run(home, "lock_ranges", {})
        at = {"merchant_id": merchant_id, "id_range": book["id_range"]}
        unused = await _fetch(home, "find_unused_range", at)
        range_no = await _take_locked(home, merchant_id) if unused is None else unused["range_no"]
    values = {"merchant_id": merchant_id, "range_no": range_no, "version": uuid4()}
    return await _fetch(cell, "write_next_range", values) is not None


async def find_books_short_of_ids(cell: Connection, margin: int) -> list[int]:
    """The merchants whose book has at most `margin` ids left in its range and no further range."""
    async with cell.cursor(row_factory=dict_row) as cursor:
        counter = ids.MAX_COUNTER - margin
        await cursor.execute(QUERIES["list_books_short_of_ids"].text, {"counter": counter})
        return [row["merchant_id"] async for row in cursor]


async def _take_locked(home: Connection, merchant_id: int) -> int:
    row = await _fetch(home, "read_next_range", {})
    assert row is not None, "an aggregate always has a row"
    range_no = int(row["range_no"])
    if range_no > ids.MAX_RANGE:
        raise RangesExhausted(f"All {ids.MAX_RANGE} id ranges are given out.")
    await _run(home, "insert_range", {"range_no": range_no, "merchant_id": merchant_id})
    return range_no


async def _fetch(conn: Connection, name: str, values: Mapping[str, Any]) -> DictRow | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchone()


async def _run(conn: Connection, name: str, values: Mapping[str, Any]) -> None:
    await conn.execute(QUERIES[name].text, values)
