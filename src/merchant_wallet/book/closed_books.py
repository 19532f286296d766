"""Books that are closed: those that are being moved to another cell, and the old copies of moved ones.

Rules:
- A closed book is in nobody's way. Every statement over the books of a cell leaves closed ones out.
- Whoever writes one book's rows, apart from its groups, checks that the book is open in a statement that
  writes, or after one in the same transaction. Such a statement locks its table before it takes its snapshot.
  So whoever closes a book waits for the transactions that have such locks, and later ones see it closed.
- A statement that found no row may have met a closed book. `refuse_closed` tells that from a missing row.

Statements are in `closed_books.sql`.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("closed_books.sql"))


async def refuse_closed(cell: AsyncConnection[Any], merchant_id: int) -> None:
    """Raise CellClosed if the book is closed here. Raises psycopg.Error."""
    cursor = await cell.execute(QUERIES["find_closed"].text, {"merchant_id": merchant_id})
    if await cursor.fetchone() is not None:
        raise CellClosed(f"the book of merchant {merchant_id} is being moved, or has moved")
