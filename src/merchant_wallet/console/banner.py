"""The band of notices, for a page that is open: it asks again whether anything has changed."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.notices import read_band
from merchant_wallet.console.request import Connection, Page, Seat
from merchant_wallet.operators.roles import Right

BAND: Final = "/console/band"


async def show_band(request: Request, seat: Seat, conn: Connection) -> Response:
    """The band of the page that the query names; nothing while it is as that page shows it."""
    active = request.query_params.get("of", "")
    band = (await read_band(conn, seat.merchant_id)).on(active)
    if request.query_params.get("seen") == band.version:
        return Response(status_code=204, headers=seat.ground.answers.headers())
    return seat.part("console/band.html", band=band, active=active)


ROUTES: Final = (Page(BAND, show_band, Right.READ, own=True, is_use=False),)
