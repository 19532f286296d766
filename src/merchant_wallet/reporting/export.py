"""A statement as a file of any length, in pieces, for a download.

Rules: nothing is held but one page of the book's statement and the piece that is being filled, however many
rows there are; no transaction stays open meanwhile. It ends at the last entry there was when it began.
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
"""How a file begins and how each row is written, by the file's ending."""


async def stream_statement(
    conn: Connection,
    merchant_id: int,
    *,
    form: str = "csv",
    account: str | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> AsyncIterator[bytes]:
    """The postings of an account, or of the whole book, oldest first, as `csv` or `jsonl`, in pieces.

    Raises, with the first piece, ValueError for a form or an account that there is not and LookupError for an
    account that is not in this book.
    """
    if form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}")
    head, render = FORMS[form]
    piece, size = [head], len(head)
    async for row in reads.statement(conn, merchant_id, account, from_ms, to_ms):
        text = render(row)
        piece.append(text)
        size += len(text)
        if size >= PIECE_CHARACTERS:
            yield "".join(piece).encode()
            piece, size = [], 0
    yield "".join(piece).encode()
