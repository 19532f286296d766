"""A statement as a download of any length.

Rules: only the piece that is being sent is in memory. A download has its own connection, so a slow client
blocks no page. The number of downloads at once is limited, in all and per user, and for merchants' people
together: reading slowly, they must not keep the platform's people from their files. When a client leaves or
stops reading, its place and its connection are freed.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from merchant_wallet.base.workers import Connect
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.console.books import ONE, load_book
from merchant_wallet.console.filter_values import read_day, read_end
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.operators.roles import Operator, Right
from merchant_wallet.reporting import books, export

MAX_CONCURRENT: Final = 4
MAX_OF_ONE: Final = 2
MAX_OF_MERCHANTS: Final = 2
RETRY_AFTER_S: Final = 30
TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


_turns: Final[Counter[int]] = Counter()
"""How many downloads run, by operator."""
_of_merchants: Final[Counter[int]] = Counter()
"""Those of merchants' people among them."""


class Download(StreamingResponse):
    """A file sent in pieces. Its connection is freed when the client stops reading."""

    def __init__(self, who: Operator, pieces: AsyncGenerator[bytes, None], headers: dict[str, str]) -> None:
        super().__init__(pieces, headers=headers)
        self._who = who.operator_id
        self._is_of_merchant = who.merchant_id is not None
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the file or the client ends. Raises HTTPException 503 if too many downloads run."""
        is_full = _turns.total() >= MAX_CONCURRENT or _turns[self._who] >= MAX_OF_ONE
        if is_full or (self._is_of_merchant and _of_merchants.total() >= MAX_OF_MERCHANTS):
            raise HTTPException(503, headers={"retry-after": str(RETRY_AFTER_S)})
        _turns[self._who] += 1
        _of_merchants[self._who] += self._is_of_merchant
        try:
            async with aclosing(self._pieces):
                await super().__call__(scope, receive, send)
        finally:
            _turns[self._who] -= 1
            _of_merchants[self._who] -= self._is_of_merchant


async def send_statement(request: ConsoleRequest, conn: Connection) -> Response:
    """The postings of an account or of the whole book, oldest first, as a file."""
    merchant, _ = await load_book(request, conn)
    cell = await request.cells.of(merchant.merchant_id)
    form = request.http.query_params.get("form", "csv")
    account = request.http.query_params.get("account") or None
    if form not in export.FORMS:
        raise HTTPException(404)
    if account is not None:
        try:
            await books.find_account(cell, merchant.merchant_id, account)
        except (ValueError, LookupError):
            raise HTTPException(404) from None
    from_ms = read_day(request.http.query_params.get("from", ""))
    to_ms = read_end(request.http.query_params.get("to", ""))
    connect = await request.cells.find_connect(merchant.merchant_id)
    archive = request.archive
    pieces = _read(connect, merchant.merchant_id, form, account, from_ms, to_ms, archive)
    name = f"book-{merchant.merchant_id}-{(account or 'all').replace(':', '-')}.{form}"
    headers = {
        **request.context.responses.headers(),
        "content-type": TYPES[form],
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Download(request.operator, pieces, headers)


async def _read(
    connect: Connect,
    merchant_id: int,
    form: str,
    account: str | None,
    from_ms: int | None,
    to_ms: int | None,
    archive: ArchiveFolder,
) -> AsyncGenerator[bytes, None]:
    async with await connect() as conn:
        pieces = export.stream_statement(
            conn, merchant_id, form=form, account=account, from_ms=from_ms, to_ms=to_ms, archive=archive
        )
        async for piece in pieces:
            yield piece


ROUTES: Final = (Page(f"{ONE}/export", send_statement, Right.EXPORT),)
