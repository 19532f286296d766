"""Which copy of a book is kept if copies went different ways, and nothing proves which one is right.

Rules:
- Customers lose what only the other copies have, until somebody enters it. So two people choose.
- It is made while there is evidence of a rollback. It waits in home for the acceptance, which uses it or
  drops it (see `book_placement`). Alone it changes nothing.

Statements are in `kept_copies.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.audit.rollback.evidence import has_open_evidence
from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("kept_copies.sql"))
KEEP: Final = "merchant.keep_copy"
NOT_ROLLED_BACK: Final = "There is no evidence of a rollback of this database. Nothing was changed."
NO_CELL: Final = "There is no such cell."
NO_MERCHANT: Final = "There is no such merchant."
_CELL: Final = "cell"


def format_subject(merchant_id: int) -> str:
    """The merchant in proposals and in the audit log."""
    return f"merchant {merchant_id}"


def describe(cell: str | None) -> Facts:
    """A choice, or none, as facts. Pure."""
    return {_CELL: cell}


async def list_kept(home: Connection) -> Mapping[int, str]:
    """The cells that were chosen, by merchant."""
    return dict(await (await home.execute(QUERIES["list_kept"].text)).fetchall())


async def lock_kept(home: Connection, merchant_id: int, cell: str) -> str | None:
    """The cell that was chosen for a merchant before this one. Nobody else chooses meanwhile.

    Raises ChangeRefused if there is no such merchant or cell, or no evidence of a rollback.
    """
    if not await has_open_evidence(home):
        raise ChangeRefused(NOT_ROLLED_BACK)
    for name, values, cause in (
        ("lock_merchant", {"merchant_id": merchant_id}, NO_MERCHANT),
        ("find_cell", {"cell": cell}, NO_CELL),
    ):
        if await (await home.execute(QUERIES[name].text, values)).fetchone() is None:
            raise ChangeRefused(cause)
    return (await list_kept(home)).get(merchant_id)


async def keep(home: Connection, author: Author, merchant_id: int, cell: str) -> bool:
    """Choose a cell's copy. False if that was chosen already. Raises ChangeRefused."""
    async with home.transaction():
        before = await lock_kept(home, merchant_id, cell)
        if before == cell:
            return False
        values = {"merchant_id": merchant_id, "cell": cell}
        await home.execute(QUERIES["write_kept"].text, values)
        subject = format_subject(merchant_id)
        await author.record(home, KEEP, subject, merchant_id, before=describe(before), after=describe(cell))
    return True


async def drop_all(home: Connection) -> None:
    """Drop the choices: an acceptance has placed all books."""
    await home.execute(QUERIES["drop_kept"].text)


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to keep a copy."""
    return {KEEP: Kind(KEEP, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return describe(await lock_kept(conn, _find_merchant(change), str(change.after[_CELL])))


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    await keep(conn, author, _find_merchant(change), str(change.after[_CELL]))
    return Applied()


def _find_merchant(change: ProposedChange) -> int:
    assert change.merchant_id is not None, "a copy of a book is a merchant's"
    return change.merchant_id
