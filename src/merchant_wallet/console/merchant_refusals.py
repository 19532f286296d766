"""A merchant's last refused requests, for integrators: what came, and what was wrong.

Rules: nothing here is a secret. A request with a refused signature links to the debugger. Requests with a
right signature and all others are two lists: strangers who know the appKey fill only the second.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.api.refused_requests.listing import RefusedRequest, list_refused
from merchant_wallet.base.signing import HMAC, Method
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.merchants import ONE, load
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.paging import split_page

PAGE_ROWS: Final = 25
SHOWN: Final = {"signed": True, "unsigned": False}
"""The two lists by their names in the URL. Without one both are shown."""


class RefusalView(msgspec.Struct, frozen=True):
    """A refused request, and its string to sign; None if the request is not stored completely."""

    request: RefusedRequest
    signed_text: str | None

    @property
    def operation(self) -> str:
        """The last part of the path."""
        return self.request.path.rpartition("/")[2]


async def show_refusals(request: ConsoleRequest, conn: Connection) -> Response:
    """A page, newest first."""
    merchant = await load(request, conn)
    before_no = parse_digits(request.http.query_params.get("before", ""))
    shows = request.http.query_params.get("show", "")
    rows = await list_refused(
        conn,
        merchant.merchant_id,
        before_no=before_no,
        limit=PAGE_ROWS + 1,
        is_signed=SHOWN.get(shows),
    )
    shown, last = split_page(rows, PAGE_ROWS)
    return request.page(
        "console/merchant_refusals.html",
        active="merchants",
        merchant=merchant,
        tab="refusals",
        rows=[RefusalView(row, _signed_text(row, merchant.sign_method)) for row in shown],
        shows=shows if shows in SHOWN else "",
        next=last and last.refused_no,
        is_first=before_no is None,
    )


def _signed_text(row: RefusedRequest, method: Method) -> str | None:
    text = row.signed_text(method)
    # With MD5 the secret is at the end of the hashed text. It is never shown.
    return text if text is None or method == HMAC else f"{text}&key=\u2026"


ROUTES: Final = (Page(f"{ONE}/refusals", show_refusals, Right.READ),)
