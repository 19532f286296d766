"""What the database knows of a book's archive: its months, and where the tables begin."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.user_input import EPOCH, parse_day

QUERIES: Final = Queries(Path(__file__).with_name("months.sql"))

Connection = AsyncConnection[Any]


class BookAway(Exception):
    """The book is not in this cell any more, or is being moved."""

    def __init__(self, merchant_id: int) -> None:
        super().__init__(f"the book of merchant {merchant_id} is not here, or is being moved")


class ArchivedMonth(msgspec.Struct, frozen=True):
    """A month of a book that is in a file. Entries up to `removed_id` are in the file alone."""

    merchant_id: int
    month: str
    first_id: int
    last_id: int
    entries: int
    postings: int
    first_ms: int
    last_ms: int
    previous_hash: bytes
    last_hash: bytes
    digest: bytes
    removed_id: int
    written_ms: int

    @property
    def is_begun(self) -> bool:
        """Whether rows of the month were removed from the tables."""
        return self.removed_id >= self.first_id

    @property
    def is_removed(self) -> bool:
        """Whether all rows of the month were removed."""
        return self.removed_id == self.last_id


async def list_months(cell: Connection, merchant_id: int) -> list[ArchivedMonth]:
    """The archived months of a book, oldest first."""
    async with cell.cursor(binary=True, row_factory=class_row(ArchivedMonth)) as cursor:
        await cursor.execute(QUERIES["list_months"].text, {"merchant_id": merchant_id})
        return await cursor.fetchall()


async def find_archived_ms(cell: Connection, merchant_id: int) -> int | None:
    """The time of the last entry that is in a file alone, so no list has it; None without an archive."""
    begun = [month for month in await list_months(cell, merchant_id) if month.is_begun]
    return begun[-1].last_ms if begun else None


def find_border(months: Sequence[ArchivedMonth]) -> int:
    """The last entry that is in a file alone, 0 if there is none. Pure."""
    return max([month.removed_id for month in months if month.is_begun], default=0)


def format_month(at_ms: int) -> str:
    """The UTC month of a moment, as 2025-11. Pure."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m")


def parse_month(text: str) -> int:
    """The first moment of a month, in milliseconds. Raises ValueError. Pure."""
    return (parse_day(f"{text}-01") - EPOCH).days * DAY_MS
