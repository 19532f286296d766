"""The banner of notices for an open page, which asks again whether anything has changed."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.notices import read_banner
from merchant_wallet.console.request import Connection, Page, Seat
from merchant_wallet.operators.roles import Right

PATH: Final = "/console/band"


async def show_banner(request: Request, seat: Seat, conn: Connection) -> Response:
    """The banner of the page that the query names; nothing while it is as that page shows it."""
    active = request.query_params.get("of", "")
    banner = (await read_banner(conn, seat.merchant_id)).for_page(active)
    if request.query_params.get("seen") == banner.version:
        return Response(status_code=204, headers=seat.ground.answers.headers())
    return seat.part("console/banner.html", banner=banner, active=active)


ROUTES: Final = (Page(PATH, show_banner, Right.READ, own=True, is_use=False),)
