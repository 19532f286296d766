"""The banner of notices and the count of the inbox, which an open page requests again and again."""

from typing import Final

from starlette.responses import Response

from merchant_wallet.console.inbox_cache import count_waiting
from merchant_wallet.console.notices import read_banner
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.operators.roles import Right

PATH: Final = "/console/band"


async def show_banner(request: ConsoleRequest, conn: Connection) -> Response:
    """The banner of the page that the query names, and the count; empty if both are as the page shows."""
    active = request.http.query_params.get("of", "")
    # The count first: it takes cells of its own, and who holds one must not wait for another.
    waiting = await count_waiting(request, conn)
    banner = (await read_banner(conn, request.cells, request.merchant_id)).for_page(active)
    if request.http.query_params.get("seen") == f"{banner.version}-{waiting.text}":
        return Response(status_code=204, headers=request.context.responses.headers())
    return request.part(
        "console/banner.html", banner=banner, active=active, inbox_count=waiting, brings_count=True
    )


ROUTES: Final = (Page(PATH, show_banner, Right.READ, own_book=True, extends_session=False),)
