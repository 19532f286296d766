"""One search box for whatever a page shows: ids, addresses, hashes, names, amounts, also parts of them.

Rules:
- What a text names exactly comes first. If that is one thing, its page opens. Then comes what the text is the
  beginning, a shortened form, a part or the amount of.
- While a cell is away there may be more results, so nothing is redirected.
- A merchant's user finds nothing of other merchants, and does not learn whether anything exists.
- Suggestions while somebody types are a part of the page. Without a script the box is a plain form.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from merchant_wallet.approvals.acts import kinds
from merchant_wallet.console import books, callbacks, merchants, sub_users, withdrawals
from merchant_wallet.console.deposits import DEPOSITS, STATUSES
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.custody.rescues.sightings import can_look_for
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import entries, search
from merchant_wallet.reporting.merchants import read_names
from merchant_wallet.reporting.search import Detail, Hit
from merchant_wallet.reporting.search_parts import find_parts
from merchant_wallet.web.act_rights import ACT_RIGHTS
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
    search.ADDRESS: N_("Payout address"),
}
ICONS: Final[Mapping[str, str]] = {
    search.MERCHANT: "bank",
    search.SUB_USER: "user",
    search.ORDER: "arrow-out",
    search.ENTRY: "list",
    search.DEPOSIT: "arrow-in",
    search.CALLBACK: "bell",
    search.SWEEP: "refresh",
    search.ADDRESS: "send",
}

MAX_SUGGESTED: Final = 8
_ORDERS_TO: Final = N_("All withdrawals to it")
LABELS: Final = {**KINDS, entries.ARCHIVED: N_("Archived")}
"""What an entry that was found is called."""


class SearchResult(msgspec.Struct, frozen=True):
    """A result in the list, with its URL; empty if it has no page. `merchant` is the merchant's name.

    `detail` has amount, status and time, if it has them.
    """

    kind: str
    icon: str
    label: str
    note: str
    url: str
    merchant_id: int
    merchant: str
    detail: Detail | None


async def show_search(request: ConsoleRequest, conn: Connection) -> Response:
    """The results for a text."""
    word = request.http.query_params.get("q", "").strip()
    hits = search.drop_duplicates(await search.search(conn, request.cells, word, request.merchant_id))
    if len(hits) == 1 and url_of(hits[0]) and not request.cells.away:
        return request.context.responses.redirect(url_of(hits[0]))
    parts = await find_parts(conn, request.cells, word, request.merchant_id, limit=search.MAX_OF_A_KIND)
    return request.page(
        "console/search.html",
        search=word[: search.MAX_CHARACTERS],
        found=await _make_results(request, conn, search.drop_duplicates([*hits, *parts])),
        can_look=_may_look(request, word),
        deposit_statuses=STATUSES,
    )


async def suggest(request: ConsoleRequest, conn: Connection) -> Response:
    """A few results while somebody types."""
    word = request.http.query_params.get("q", "").strip()
    hits = search.drop_duplicates(await find_parts(conn, request.cells, word, request.merchant_id))
    shown = [hit for hit in hits if url_of(hit)][:MAX_SUGGESTED]
    return request.part(
        "console/search_suggestions.html",
        word=word[: search.MAX_CHARACTERS],
        found=await _make_results(request, conn, shown),
        url=f"{SEARCH}?{urlencode({'q': word})}",
    )


def _may_look(request: ConsoleRequest, word: str) -> bool:
    """Whether a worker may be asked what a word is on the chains: a hash or an address."""
    return request.may(ACT_RIGHTS[kinds.LOOK]) and can_look_for(word)


async def _make_results(request: ConsoleRequest, conn: Connection, hits: Sequence[Hit]) -> list[SearchResult]:
    names = await read_names(conn, [hit.merchant_id for hit in hits])
    details = await search.read_details(request.cells, hits, request.merchant_id)
    return [
        _make_result(request, hit, names[hit.merchant_id], details.get((hit.kind, hit.merchant_id, hit.key)))
        for hit in hits
    ]


def url_of(hit: Hit) -> str:
    """The URL of a result; empty if it has no page. Pure."""
    urls = {
        search.MERCHANT: merchants.url_of(hit.merchant_id),
        search.SUB_USER: sub_users.url_of(hit.merchant_id, hit.key),
        search.ORDER: withdrawals.url_of(hit.key),
        search.ENTRY: books.entry_url_of(hit.merchant_id, hit.key),
        search.DEPOSIT: f"{DEPOSITS}/{hit.key}",
        search.CALLBACK: callbacks.url_of(hit.key),
        search.ADDRESS: f"{withdrawals.ALL}?{urlencode({'address': hit.label})}",
    }
    return urls.get(hit.kind, "")


def _make_result(request: ConsoleRequest, hit: Hit, merchant: str, detail: Detail | None) -> SearchResult:
    # An entry's label is its kind in words. Other labels are names that somebody chose.
    label = request.translate(LABELS.get(hit.label, hit.label)) if hit.kind == search.ENTRY else hit.label
    note = request.translate(_ORDERS_TO) if hit.kind == search.ADDRESS else hit.key
    return SearchResult(
        NAMES[hit.kind], ICONS[hit.kind], label, note, url_of(hit), hit.merchant_id, merchant, detail
    )


ROUTES: Final = (
    Page(SEARCH, show_search, Right.READ, own_book=True),
    Page(f"{SEARCH}/suggestions", suggest, Right.READ, own_book=True),
)
