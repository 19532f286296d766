"""Books: the list of books, one book's accounts and entries, an account's statement, one entry with its
hash.

Rules: entries are sorted newest first and filtered by the URL. A merchant's user sees its own book, without
the names of the platform's staff.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.book.archive.files import ArchiveUnreadable
from merchant_wallet.book.archive.months import find_archived_ms
from merchant_wallet.book.chart import CHAIN_OF_KIND, FIXED, FIXED_BY_ID, SUBUSER, is_listed, name_account
from merchant_wallet.book.state import Posting
from merchant_wallet.console.filter_values import open_page, read_day, read_end
from merchant_wallet.console.journal_lines import list_posting_lines
from merchant_wallet.console.request import Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books, entries, figures, merchants, sub_users
from merchant_wallet.reporting.books import AccountView, BookView
from merchant_wallet.reporting.entries import EntryFilter, EntryLine
from merchant_wallet.reporting.merchants import MerchantLine
from merchant_wallet.reporting.paging import Page as Rows
from merchant_wallet.web.kinds import KINDS
from merchant_wallet.web.languages import N_

log = structlog.get_logger(__name__)

BOOKS: Final = "/console/books"
ONE: Final = f"{BOOKS}/{{merchant_id:int}}"
PAGE_ROWS: Final = 50
FOUND_ROWS: Final = 20
FILTERS: Final = ("kind", "from", "to", "id")
ACTORS: Final = ("actor", "proposedBy", "facts")
"""Facts of an entry that name the platform's staff, and those that could not be read."""

MEANINGS: Final = {
    "merchant": N_("what the merchant may spend"),
    "hold": N_("held for withdrawals under way"),
    "fees": N_("earned by the platform, not yet taken out"),
    "exchange": N_("the platform's position from exchanges"),
    "adjustment": N_("the other side of entries by hand"),
    SUBUSER: N_("a sub-user's wallet"),
}


CHAIN_MEANING: Final = N_("what came in over {chain}, as a negative sum")


class Line(msgspec.Struct, frozen=True):
    """One side of a posting in an account's statement. Negative if the account paid."""

    entry_id: int
    at_ms: int
    kind: str
    mc_order_id: str | None
    counter_id: int
    counter: str
    currency: str
    signed_units: int
    balance_units: int


async def show_books(request: ConsoleRequest, conn: Connection) -> Response:
    """The list of books. A merchant's user is redirected to its own."""
    if request.merchant_id is not None:
        return request.context.responses.redirect(url_of(request.merchant_id))
    state = read_state(BOOKS, request.http.query_params, filters=("q",))
    if word := state.get("q"):
        found = await merchants.find_merchants(conn, word, limit=FOUND_ROWS)
        lines = await merchants.show_merchants(conn, request.cells, [one.merchant_id for one in found])
        page = Rows(tuple(lines), None, None)
    else:
        reading = merchants.list_merchants(conn, request.cells, after=state.after, limit=PAGE_ROWS)
        page = await open_page(reading)
    return request.page("console/books.html", active="books", state=state, page=page)


def _list_accounts(request: ConsoleRequest, book: BookView) -> list[AccountView]:
    """The book's own accounts, without its sub-users'."""
    chains = request.context.settings.shown_chains
    own = [one for one in book.accounts if one.account_id in FIXED_BY_ID]
    return [one for one in own if is_listed(one.kind, one.balance_units, chains)]


def describe_account(request: ConsoleRequest, kind: str) -> str:
    """What an account of a kind is for."""
    if kind in CHAIN_OF_KIND:
        return request.translate(CHAIN_MEANING, chain=CHAIN_OF_KIND[kind])
    return request.translate(MEANINGS[kind])


async def show_book(request: ConsoleRequest, conn: Connection) -> Response:
    """One book: its accounts, the sum of its sub-users' balances, its entries."""
    merchant, book = await load_book(request, conn)
    state = read_state(url_of(merchant.merchant_id), request.http.query_params, filters=FILTERS)
    held = {one.currency: one for one in await figures.read_held(request.cells, merchant.merchant_id)}
    return request.page(
        "console/book.html",
        active="books",
        merchant=merchant,
        book=book,
        accounts=_list_accounts(request, book),
        held=held,
        meanings={kind: describe_account(request, kind) for kind in (*MEANINGS, *CHAIN_OF_KIND)},
        state=state,
        page=await _list_entries(request, merchant.merchant_id, state, None),
        archived_ms=await _find_archived(request, merchant.merchant_id, state),
        kinds=KINDS,
        choices=_list_kinds(request),
    )


async def show_account(request: ConsoleRequest, conn: Connection) -> Response:
    """One account's statement."""
    merchant, _ = await load_book(request, conn)
    cell = await request.cells.of(merchant.merchant_id)
    account = await _find_account(request, cell, merchant.merchant_id)
    url = f"{url_of(merchant.merchant_id)}/accounts/{account.account_id}"
    state = read_state(url, request.http.query_params, filters=FILTERS)
    page = await _list_entries(request, merchant.merchant_id, state, account)
    postings = await entries.list_postings(cell, merchant.merchant_id, [line.entry_id for line in page.rows])
    return request.page(
        "console/book_account.html",
        active="books",
        merchant=merchant,
        account=account,
        meaning=describe_account(request, account.kind),
        user=await _find_user(cell, merchant.merchant_id, account),
        state=state,
        page=page,
        archived_ms=await _find_archived(request, merchant.merchant_id, state),
        lines=list_statement_lines(account.account_id, page.rows, postings),
        kinds=KINDS,
        choices=_list_kinds(request),
    )


async def show_entry(request: ConsoleRequest, conn: Connection) -> Response:
    """One entry with its postings, its facts, its hash and the hash before."""
    merchant, _ = await load_book(request, conn)
    cell = await request.cells.of(merchant.merchant_id)
    try:
        shown = await entries.show_entry(
            cell, merchant.merchant_id, read_id(request, "entry_id"), request.archive
        )
    except ArchiveUnreadable as error:
        log.error("an archived entry can't be shown", merchant_id=merchant.merchant_id, reason=str(error))
        raise HTTPException(503) from None
    if shown is None:
        raise HTTPException(404)
    hidden = () if request.merchant_id is None else ACTORS
    return request.page(
        "console/book_entry.html",
        active="books",
        merchant=merchant,
        entry=shown.entry,
        kind=KINDS.get(shown.entry.kind, shown.entry.kind),
        postings=list_posting_lines(shown.entry),
        facts={name: value for name, value in shown.facts.items() if name not in hidden},
        hash=shown.entry.hash.hex(),
        previous=shown.previous_hash.hex(),
        is_archived=shown.is_archived,
        order_id=shown.order_id,
    )


async def load_book(request: ConsoleRequest, conn: Connection) -> tuple[MerchantLine, BookView]:
    """The merchant that the path names, and its book. Raises HTTPException 404."""
    merchant_id = read_id(request, "merchant_id")
    cell = await request.cells.of(merchant_id)
    merchant = await merchants.show_merchant(conn, cell, merchant_id)
    book = None if merchant is None else await books.show_book(cell, merchant_id, limit=len(FIXED))
    if merchant is None or book is None:
        raise HTTPException(404)
    return merchant, book


def url_of(merchant_id: int) -> str:
    """The URL of a book's page."""
    return f"{BOOKS}/{merchant_id}"


def entry_url_of(merchant_id: int, entry_id: int | str) -> str:
    """The URL of an entry's page."""
    return f"{url_of(merchant_id)}/entries/{entry_id}"


def list_statement_lines(
    account_id: int, rows: Sequence[EntryLine], postings: dict[int, list[Posting]]
) -> list[Line]:
    """What each entry did to an account, newest first. An entry with two postings has two lines. Pure."""
    lines = []
    for row in rows:
        for one in reversed(postings.get(row.entry_id, [])):
            if account_id in (one.source_id, one.target_id):
                lines.append(_make_line(account_id, row, one))
    return lines


def _make_line(account_id: int, row: EntryLine, one: Posting) -> Line:
    pays = one.source_id == account_id
    counter_id = one.target_id if pays else one.source_id
    return Line(
        row.entry_id,
        row.at_ms,
        row.kind,
        row.mc_order_id,
        counter_id,
        name_account(counter_id, one.currency),
        one.currency,
        -one.amount_units if pays else one.amount_units,
        one.source_balance if pays else one.target_balance,
    )


async def _list_entries(
    request: ConsoleRequest, merchant_id: int, state: TableState, account: AccountView | None
) -> Rows[EntryLine]:
    if state.get("id"):
        found = await entries.find_entries(request.cells, state.get("id"), merchant_id)
        return Rows(tuple(sorted(found, key=lambda line: -line.entry_id)), None, None)
    kind = state.get("kind")
    wanted = EntryFilter(
        kinds=(kind,) if kind in entries.KINDS else (),
        account=None if account is None else format_account(account.account_id),
        from_ms=read_day(state.get("from")),
        to_ms=read_end(state.get("to")),
    )
    cell = await request.cells.of(merchant_id)
    return await open_page(
        entries.list_entries(cell, merchant_id, wanted, after=state.after, limit=PAGE_ROWS)
    )


async def _find_archived(request: ConsoleRequest, merchant_id: int, state: TableState) -> int | None:
    """The time of the last archived entry, if the list would go on there; None otherwise."""
    cell = await request.cells.of(merchant_id)
    archived_ms = await find_archived_ms(cell, merchant_id)
    from_ms = read_day(state.get("from"))
    # A search by id finds archived entries, too.
    is_outside = bool(state.get("id")) or (from_ms is not None and (archived_ms or 0) < from_ms)
    return None if is_outside else archived_ms


def format_account(account_id: int) -> str:
    """The account's name as the book's reads expect it."""
    fixed = FIXED_BY_ID.get(account_id)
    return fixed.name if fixed else f"{SUBUSER}:{account_id}"


def _list_kinds(request: ConsoleRequest) -> list[tuple[str, str]]:
    """The kinds of the list's filter, in the user's language."""
    return [
        ("", request.translate(N_("Any"))),
        *((kind, request.translate(name)) for kind, name in KINDS.items()),
    ]


async def _find_account(request: ConsoleRequest, cell: Connection, merchant_id: int) -> AccountView:
    try:
        account = await books.find_account(cell, merchant_id, format_account(read_id(request, "account_id")))
    except (ValueError, LookupError):
        raise HTTPException(404) from None
    if not is_listed(account.kind, account.balance_units, request.context.settings.shown_chains):
        raise HTTPException(404)
    return account


async def _find_user(
    cell: Connection, merchant_id: int, account: AccountView
) -> sub_users.SubUserLine | None:
    if account.account_id in FIXED_BY_ID:
        return None
    return await sub_users.show_sub_user(cell, merchant_id, account.account_id)


ROUTES: Final = (
    Page(BOOKS, show_books, Right.READ, own_book=True),
    Page(ONE, show_book, Right.READ),
    Page(f"{ONE}/accounts/{{account_id:int}}", show_account, Right.READ),
    Page(f"{ONE}/entries/{{entry_id:int}}", show_entry, Right.READ),
)
