"""One box for any id, address or hash: straight to what it names, or a list when it names several things.

Rules: a merchant's user finds nothing of another merchant, and is not told whether there is anything.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.frame import Connection, Page, Seat
from merchant_wallet.console.journal_lines import KINDS
from merchant_wallet.operators.roles import Right
from merchant_wallet.oversight import search as desk
from merchant_wallet.oversight.search import Hit
from merchant_wallet.pages.languages import N_

SEARCH: Final = "/console/search"
NAMES: Final[Mapping[str, str]] = {
    desk.MERCHANT: N_("Merchant"),
    desk.SUB_USER: N_("Sub-user"),
    desk.ORDER: N_("Withdrawal"),
    desk.ENTRY: N_("Entry"),
    desk.DEPOSIT: N_("Deposit"),
    desk.CALLBACK: N_("Callback"),
    desk.SWEEP: N_("Sweep"),
}
ICONS: Final[Mapping[str, str]] = {
    desk.MERCHANT: "bank",
    desk.SUB_USER: "user",
    desk.ORDER: "arrow-out",
    desk.ENTRY: "list",
    desk.DEPOSIT: "arrow-in",
    desk.CALLBACK: "bell",
    desk.SWEEP: "refresh",
}


class Found(msgspec.Struct, frozen=True):
    """A hit as it is listed: where it leads, empty for what has no page."""

    kind: str
    icon: str
    label: str
    note: str
    url: str
    merchant_id: int


async def show_search(request: Request, seat: Seat, conn: Connection) -> Response:
    """What a word names."""
    word = request.query_params.get("q", "").strip()
    hits = await desk.search(conn, word, seat.merchant_id)
    found = [_tell(seat, hit) for hit in drop_doubles(hits)]
    if len(found) == 1 and found[0].url:
        return seat.ground.answers.redirect(found[0].url)
    return seat.page("console/search.html", search=word[: desk.MAX_CHARACTERS], found=found)


def drop_doubles(hits: Sequence[Hit]) -> list[Hit]:
    """The hits without the entries that opened an order among them: they bear the order's own id. Pure."""
    orders = {(hit.merchant_id, hit.key) for hit in hits if hit.kind == desk.ORDER}
    return [hit for hit in hits if hit.kind != desk.ENTRY or (hit.merchant_id, hit.key) not in orders]


def url_of(hit: Hit) -> str:
    """The page of a hit; empty for what has none. Pure."""
    merchant = f"/console/merchants/{hit.merchant_id}"
    urls = {
        desk.MERCHANT: merchant,
        desk.SUB_USER: f"{merchant}/sub-users/{quote(hit.label, safe='')}",
        desk.ORDER: f"/console/withdrawals/{hit.key}",
        desk.ENTRY: f"/console/books/{hit.merchant_id}/entries/{hit.key}",
        desk.DEPOSIT: f"/console/deposits/{hit.key}",
        desk.CALLBACK: f"/console/callbacks/{hit.key}",
    }
    return urls.get(hit.kind, "")


def _tell(seat: Seat, hit: Hit) -> Found:
    # An entry's label is its kind, in words; all others are names that somebody gave.
    label = seat.say(KINDS.get(hit.label, hit.label)) if hit.kind == desk.ENTRY else hit.label
    return Found(NAMES[hit.kind], ICONS[hit.kind], label, hit.key, url_of(hit), hit.merchant_id)


ROUTES: Final = (Page(SEARCH, show_search, Right.READ, own=True),)
