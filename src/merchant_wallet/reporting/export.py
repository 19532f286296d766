"""A statement as a file of any length, sent in pieces.

Rules: only one page of the statement and one piece are in memory. No transaction stays open between pages.
The file ends at the entry that was the last when it began.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from merchant_wallet.book import reads
from merchant_wallet.reporting.paging import Connection

PIECE_CHARACTERS: Final = 64 * 1024
FORMS: Final[dict[str, tuple[str, Callable[[reads.StatementRow], str]]]] = {
    "csv": (reads.render_csv_header(), reads.render_csv),
    "jsonl": ("", reads.render_jsonl),
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
) -> AsyncIterator[bytes]:
    """The postings of an account or of the whole book, oldest first, as `csv` or `jsonl`, in pieces.

    With the first piece, raises ValueError for an unknown form or account name, and LookupError for an
    account that this book does not have.
    """
    if form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}")
    head, render = FORMS[form]
    piece, size = [head], len(head)
    async for row in reads.read_statement(conn, merchant_id, account, from_ms, to_ms):
        text = render(row)
        piece.append(text)
        size += len(text)
        if size >= PIECE_CHARACTERS:
            yield "".join(piece).encode()
            piece, size = [], 0
    yield "".join(piece).encode()
