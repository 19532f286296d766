"""A statement as a file, of any length, sent while it is read.

Rules: nothing is held but the piece that is on its way. A download has a connection of its own, so that a
slow one keeps no page waiting, and only so many run at once.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from merchant_wallet import db
from merchant_wallet.book import reads
from merchant_wallet.console.books import ONE, load_book
from merchant_wallet.console.frame import Connection, Page, Seat
from merchant_wallet.console.reading import read_day, read_end
from merchant_wallet.operators.roles import Right
from merchant_wallet.oversight import export

MOST_AT_ONCE: Final = 4
RETRY_AFTER_S: Final = 30
TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


@dataclass(slots=True)
class _Turns:
    taken: int = 0


_turns = _Turns()


async def send_statement(request: Request, seat: Seat, conn: Connection) -> Response:
    """The postings of an account, or of the whole book, oldest first, as a file."""
    merchant, _ = await load_book(request, conn)
    form = request.query_params.get("form", "csv")
    account = request.query_params.get("account") or None
    if form not in export.FORMS:
        raise HTTPException(404)
    if account is not None:
        try:
            await reads.find_account(conn, merchant.merchant_id, account)
        except (ValueError, LookupError):
            raise HTTPException(404) from None
    if _turns.taken >= MOST_AT_ONCE:
        raise HTTPException(503, headers={"retry-after": str(RETRY_AFTER_S)})
    from_ms = read_day(request.query_params.get("from", ""))
    to_ms = read_end(request.query_params.get("to", ""))
    url = seat.ground.database_url
    pieces = _read(url, merchant.merchant_id, form, account, from_ms, to_ms)
    name = f"book-{merchant.merchant_id}-{(account or 'all').replace(':', '-')}.{form}"
    headers = {
        **seat.ground.answers.headers(),
        "content-type": TYPES[form],
        "content-disposition": f'attachment; filename="{name}"',
    }
    return StreamingResponse(pieces, headers=headers)


async def _read(
    url: str, merchant_id: int, form: str, account: str | None, from_ms: int | None, to_ms: int | None
) -> AsyncIterator[bytes]:
    _turns.taken += 1
    try:
        async with await db.connect(url) as conn:
            pieces = export.stream_statement(
                conn, merchant_id, form=form, account=account, from_ms=from_ms, to_ms=to_ms
            )
            async for piece in pieces:
                yield piece
    finally:
        _turns.taken -= 1


ROUTES: Final = (Page(f"{ONE}/export", send_statement, Right.EXPORT),)
