"""Statements of a wallet by month, as PDF.

Rules:
- A statement begins with a balance and ends with one; its movements lead from the first to the second.
- A month is one of UTC, which the document says. The present month ends now.
- A month that is partly in the archive has no statement here: the merchant has it.
- The list begins with the month of the first movement.
"""

from datetime import UTC, datetime
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.archive.months import find_archived_ms
from merchant_wallet.reporting.statements import find_moment
from merchant_wallet.sub_users import activity
from merchant_wallet.sub_users.activity import MAX_PAGE, ActivityLine
from merchant_wallet.wallet_site import documents
from merchant_wallet.wallet_site.documents import Month, Statement
from merchant_wallet.wallet_site.request import Connection, WalletRequest
from merchant_wallet.web.pdf.document import MAX_ROWS, DocumentTooLong
from merchant_wallet.web.pdf.download import PdfDownload

MONTHS_SHOWN: Final = 12


async def show_statements(request: WalletRequest, conn: Connection) -> Response:
    """The months that have a statement."""
    return await _show(request, conn)


async def download_statement(request: WalletRequest, conn: Connection) -> Response:
    """The statement of one month as PDF."""
    wished = str(request.http.path_params["month"])
    month = next((one for one in list_months(request.at_ms) if one.name == wished), None)
    archived_ms = await find_archived_ms(conn, request.merchant_id)
    if month is None or (archived_ms is not None and month.start_ms <= archived_ms):
        raise HTTPException(404)
    try:
        statement = await read_statement(request, conn, month)
        sandbox = request.context.settings.sandbox
        dress = await documents.find_dress(request.home, request.brand, sandbox=sandbox)
        document = documents.write_statement(
            statement, request.wallet, request.translate, request.client.language, request.at_ms, dress
        )
        whose, name = (request.merchant_id, request.user_id), f"statement-{month.name}"
        return PdfDownload(whose, document, name, request.context.responses.headers())
    except DocumentTooLong as error:
        return await _show(request, conn, request.translate(str(error)))


async def _show(request: WalletRequest, conn: Connection, problem: str = "") -> Response:
    archived_ms = await find_archived_ms(conn, request.merchant_id)
    first_ms = await activity.find_first_ms(conn, request.merchant_id, request.user_id)
    present, *earlier = list_months(request.at_ms)
    had = [one for one in earlier if first_ms is not None and one.end_ms > first_ms]
    months = [one for one in (present, *had) if archived_ms is None or one.start_ms > archived_ms]
    status = 422 if problem else 200
    return request.page(
        "wallet/statements.html",
        active="profile",
        status=status,
        months=months,
        archived_ms=archived_ms,
        problem=problem,
    )


def list_months(at_ms: int) -> list[Month]:
    """The present month and those before it, newest first. Pure."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    year, number, end_ms = at.year, at.month, at_ms + 1
    months = []
    for _ in range(MONTHS_SHOWN):
        start_ms = int(datetime(year, number, 1, tzinfo=UTC).timestamp() * 1000)
        months.append(Month(f"{year}-{number:02}", start_ms, end_ms))
        year, number, end_ms = (year, number - 1, start_ms) if number > 1 else (year - 1, 12, start_ms)
    return months


async def read_statement(request: WalletRequest, conn: Connection, month: Month) -> Statement:
    """The movements of a month and its balances. Raises DocumentTooLong."""
    merchant_id, user_id = request.merchant_id, request.user_id
    end_id = await find_moment(conn, merchant_id, month.end_ms, MAX_ID)
    found: list[ActivityLine] = []
    before_id = end_id
    while True:
        page = await activity.list_activity(conn, merchant_id, user_id, before_id=before_id, limit=MAX_PAGE)
        inside = [line for line in page if line.at_ms >= month.start_ms]
        found += inside
        if len(found) > MAX_ROWS:
            raise DocumentTooLong
        if len(inside) < MAX_PAGE:
            break
        before_id = page[-1].entry_id
    earlier = page[len(inside) :] if len(inside) < len(page) else []
    if not earlier and found:
        opening = found[-1].balance_units - found[-1].signed_units
    else:
        opening = earlier[0].balance_units if earlier else 0
    found.reverse()
    return Statement(month, opening, found[-1].balance_units if found else opening, found)
