"""Money that arrived while a page was open: each incoming movement is said once, newest first.

Rules: `after` in the query is the latest entry that the page knows. The answer names the next one, so the
open page asks only for what is new, and a screen reader reads nothing twice. Without a script the page has a
link that asks in the same way.
"""

from typing import Final, NamedTuple

from starlette.responses import Response

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.sub_users import activity
from merchant_wallet.sub_users.activity import ActivityLine
from merchant_wallet.wallet_site.request import Connection, WalletRequest

AFTER: Final = "after"
MAX_SHOWN: Final = 20


class Arrivals(NamedTuple):
    """Incoming entries that are newer than `after_id`, and the latest entry that is known now."""

    lines: list[ActivityLine]
    after_id: int
    latest_entry_id: int


async def show_arrivals(request: WalletRequest, conn: Connection) -> Response:
    """What has arrived, for an open page."""
    return request.page("wallet/arrivals.html", arrivals=await read_arrivals(request, conn))


async def read_arrivals(request: WalletRequest, conn: Connection) -> Arrivals:
    """What has arrived since the entry that the query names. Without one: nothing, from now on."""
    latest = request.wallet.latest_entry_id
    after = _read_id(request.http.query_params.get(AFTER, ""))
    if after is None:
        return Arrivals([], latest, latest)
    lines = await activity.list_activity(
        conn, request.merchant_id, request.user_id, limit=MAX_SHOWN, direction="in"
    )
    newer = [line for line in lines if line.entry_id > after]
    return Arrivals(newer, after, max([latest, after, *(line.entry_id for line in newer)]))


def _read_id(text: str) -> int | None:
    number = parse_digits(text)
    return None if number is None else min(number, MAX_ID)
