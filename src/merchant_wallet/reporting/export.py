"""Statements as files: rows in CSV and JSON lines, and a file of any length, sent in pieces.

Rules: only one page of the statement and one piece are in memory. No transaction stays open between pages.
The file ends at the entry that was the last when it began. After some rows others have their turn.
"""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from merchant_wallet.base.money import format_units
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.reporting.paging import Connection
from merchant_wallet.reporting.statements import StatementRow, read_statement

PIECE_CHARACTERS: Final = 64 * 1024
ROWS_A_TURN: Final = 25
"""Merchants' requests, which the same process answers, wait for so many rows at most."""
COLUMNS: Final = (
    "entryId",
    "atMs",
    "kind",
    "mcOrderId",
    "account",
    "counterAccount",
    "currency",
    "amount",
    "balance",
)
"""The columns of a rendered statement, in CSV and in JSON lines."""
_FORMULA_START: Final = re.compile(r"(^|;)([\s\"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


def _cells(row: StatementRow) -> tuple[int | str | None, ...]:
    amount, balance = format_units(row.amount_units), format_units(row.balance_units)
    names = (row.account, row.counter_account, row.currency)
    return (row.entry_id, row.at_ms, row.kind, row.mc_order_id, *names, amount, balance)


def render_csv_header() -> str:
    """The first line of a statement in CSV, line end included (RFC 4180)."""
    return _render_csv(COLUMNS)


def render_csv(row: StatementRow) -> str:
    """One line of a statement in CSV, line end included (RFC 4180).

    Merchants choose order ids. If a spreadsheet would read one as a formula, it is escaped. JSON lines have
    it unchanged.
    """
    if row.mc_order_id is not None:
        row = msgspec.structs.replace(row, mc_order_id=disarm(row.mc_order_id))
    return _render_csv(_cells(row))


def disarm(text: str) -> str:
    """Put an apostrophe before each formula, at the start of the text or after a semicolon.

    Where the decimal sign is a comma, spreadsheets split cells at semicolons, even inside quotes that do not
    begin the line. Then a quotation mark of the text may begin a cell, and is dropped. East Asian
    spreadsheets treat full-width signs like the plain ones.
    """
    return _FORMULA_START.sub(r"\1'\2", text)


def _render_csv(cells: tuple[int | str | None, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def render_jsonl(row: StatementRow) -> str:
    """One line of a statement as a JSON object, line feed included; amounts are decimal strings."""
    return msgspec.json.encode(dict(zip(COLUMNS, _cells(row), strict=True))).decode() + "\n"


FORMS: Final[dict[str, tuple[str, Callable[[StatementRow], str]]]] = {
    "csv": (render_csv_header(), render_csv),
    "jsonl": ("", render_jsonl),
}
"""How a file begins and how a row is written, by the file's extension."""


async def stream_statement(
    conn: Connection,
    merchant_id: int,
    *,
    form: str = "csv",
    account: str | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
    archive: ArchiveFolder | None = None,
) -> AsyncIterator[bytes]:
    """The postings of an account or of the whole book, oldest first, as `csv` or `jsonl`, in pieces.

    With the first piece, raises ValueError for an unknown form or account name, and LookupError for an
    account that this book does not have.
    """
    if form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}")
    head, render = FORMS[form]
    piece, size = [head], len(head)
    async for row in read_statement(conn, merchant_id, account, from_ms, to_ms, archive):
        text = render(row)
        piece.append(text)
        size += len(text)
        if not len(piece) % ROWS_A_TURN:
            await asyncio.sleep(0)
        if size >= PIECE_CHARACTERS:
            yield "".join(piece).encode()
            piece, size = [], 0
    yield "".join(piece).encode()
