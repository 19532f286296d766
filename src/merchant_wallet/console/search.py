"""One search box for any id, address or hash: redirects to the only result, or lists several.

Rules: a merchant's user finds nothing of other merchants, and does not learn whether anything exists.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.console import books, callbacks, merchants, sub_users, withdrawals
from merchant_wallet.console.deposits import DEPOSITS
from merchant_wallet.console.journal_lines import KINDS
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import search as oversight
from merchant_wallet.reporting.search import Hit
from merchant_wallet.web.languages import N_

SEARCH: Final = "/console/search"
NAMES: Final[Mapping[str, str]] = {
    oversight.MERCHANT: N_("Merchant"),
    oversight.SUB_USER: N_("Sub-user"),
    oversight.ORDER: N_("Withdrawal"),
    oversight.ENTRY: N_("Entry"),
    oversight.DEPOSIT: N_("Deposit"),
    oversight.CALLBACK: N_("Callback"),
    oversight.SWEEP: N_("Sweep"),
}
ICONS: Final[Mapping[str, str]] = {
    oversight.MERCHANT: "bank",
    oversight.SUB_USER: "user",
    oversight.ORDER: "arrow-out",
    oversight.ENTRY: "list",
    oversight.DEPOSIT: "arrow-in",
    oversight.CALLBACK: "bell",
    oversight.SWEEP: "refresh",
}


class SearchResult(msgspec.Struct, frozen=True):
    """A result in the list, with its URL; empty if it has no page."""

    kind: str
    icon: str
    label: str
    note: str
    url: str
    merchant_id: int


async def show_search(request: ConsoleRequest, conn: Connection) -> Response:
    """The results for a word."""
    word = request.http.query_params.get("q", "").strip()
    hits = await oversight.search(conn, word, request.merchant_id)
    found = [_make_result(request, hit) for hit in drop_duplicates(hits)]
    if len(found) == 1 and found[0].url:
        return request.context.responses.redirect(found[0].url)
    return request.page("console/search.html", search=word[: oversight.MAX_CHARACTERS], found=found)


def drop_duplicates(hits: Sequence[Hit]) -> list[Hit]:
    """The results without entries that opened an order which is a result too: they have the order's id.
    Pure.
    """
    orders = {(hit.merchant_id, hit.key) for hit in hits if hit.kind == oversight.ORDER}
    return [hit for hit in hits if hit.kind != oversight.ENTRY or (hit.merchant_id, hit.key) not in orders]


def url_of(hit: Hit) -> str:
    """The URL of a result; empty if it has no page. Pure."""
    urls = {
        oversight.MERCHANT: merchants.url_of(hit.merchant_id),
        oversight.SUB_USER: sub_users.url_of(hit.merchant_id, hit.key),
        oversight.ORDER: withdrawals.url_of(hit.key),
        oversight.ENTRY: books.entry_url_of(hit.merchant_id, hit.key),
        oversight.DEPOSIT: f"{DEPOSITS}/{hit.key}",
        oversight.CALLBACK: callbacks.url_of(hit.key),
    }
    return urls.get(hit.kind, "")


def _make_result(request: ConsoleRequest, hit: Hit) -> SearchResult:
    # An entry's label is its kind in words. Other labels are names that somebody chose.
    label = request.translate(KINDS.get(hit.label, hit.label)) if hit.kind == oversight.ENTRY else hit.label
    return SearchResult(NAMES[hit.kind], ICONS[hit.kind], label, hit.key, url_of(hit), hit.merchant_id)


ROUTES: Final = (Page(SEARCH, show_search, Right.READ, own_book=True),)
