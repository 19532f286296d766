"""One search box for any id, address or hash: redirects to the only result, or lists several.

Rules: while a cell is away there may be more results, so nothing is redirected. A merchant's user finds
nothing of other merchants, and does not learn whether anything exists.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.console import books, callbacks, merchants, sub_users, withdrawals
from merchant_wallet.console.deposits import DEPOSITS
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import entries, search
from merchant_wallet.reporting.search import Hit
from merchant_wallet.web.kinds import KINDS
from merchant_wallet.web.languages import N_

SEARCH: Final = "/console/search"
NAMES: Final[Mapping[str, str]] = {
    search.MERCHANT: N_("Merchant"),
    search.SUB_USER: N_("Sub-user"),
    search.ORDER: N_("Withdrawal"),
    search.ENTRY: N_("Entry"),
    search.DEPOSIT: N_("Deposit"),
    search.CALLBACK: N_("Callback"),
    search.SWEEP: N_("Sweep"),
}
ICONS: Final[Mapping[str, str]] = {
    search.MERCHANT: "bank",
    search.SUB_USER: "user",
    search.ORDER: "arrow-out",
    search.ENTRY: "list",
    search.DEPOSIT: "arrow-in",
    search.CALLBACK: "bell",
    search.SWEEP: "refresh",
}

LABELS: Final = {**KINDS, entries.ARCHIVED: N_("Archived")}
"""What an entry that was found is called."""


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
    hits = await search.search(conn, request.cells, word, request.merchant_id)
    found = [_make_result(request, hit) for hit in drop_duplicates(hits)]
    if len(found) == 1 and found[0].url and not request.cells.away:
        return request.context.responses.redirect(found[0].url)
    return request.page("console/search.html", search=word[: search.MAX_CHARACTERS], found=found)


def drop_duplicates(hits: Sequence[Hit]) -> list[Hit]:
    """The results without entries that opened an order which is a result too: they have the order's id.
    Pure.
    """
    orders = {(hit.merchant_id, hit.key) for hit in hits if hit.kind == search.ORDER}
    return [hit for hit in hits if hit.kind != search.ENTRY or (hit.merchant_id, hit.key) not in orders]


def url_of(hit: Hit) -> str:
    """The URL of a result; empty if it has no page. Pure."""
    urls = {
        search.MERCHANT: merchants.url_of(hit.merchant_id),
        search.SUB_USER: sub_users.url_of(hit.merchant_id, hit.key),
        search.ORDER: withdrawals.url_of(hit.key),
        search.ENTRY: books.entry_url_of(hit.merchant_id, hit.key),
        search.DEPOSIT: f"{DEPOSITS}/{hit.key}",
        search.CALLBACK: callbacks.url_of(hit.key),
    }
    return urls.get(hit.kind, "")


def _make_result(request: ConsoleRequest, hit: Hit) -> SearchResult:
    # An entry's label is its kind in words. Other labels are names that somebody chose.
    label = request.translate(LABELS.get(hit.label, hit.label)) if hit.kind == search.ENTRY else hit.label
    return SearchResult(NAMES[hit.kind], ICONS[hit.kind], label, hit.key, url_of(hit), hit.merchant_id)


ROUTES: Final = (Page(SEARCH, show_search, Right.READ, own_book=True),)
