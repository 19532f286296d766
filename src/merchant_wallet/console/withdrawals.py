"""Withdrawals: the approval queue, and all orders.

Rules: the queue is sorted oldest first, with what to know about each order before approving it. A merchant's
user sees only its own orders, and may cancel those that no worker has taken up.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.book.actors import person_of
from merchant_wallet.book.rules.withdrawals import PENDING
from merchant_wallet.console.filter_values import find_scope, open_page, read_day, read_end
from merchant_wallet.console.order_notes import add_notes
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.console.tables import AFTER, DESCENDING, TableState, read_state
from merchant_wallet.console.wait_reasons import Reason, find_reasons
from merchant_wallet.operators import order_approvals
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books, orders
from merchant_wallet.reporting.orders import OrderFilter, OrderLine
from merchant_wallet.reporting.paging import Page as Rows
from merchant_wallet.reporting.payout_blockers import list_blockers
from merchant_wallet.web.typed_values import TypedWrong, read_amount

QUEUE: Final = "/console/withdrawals"
ALL: Final = f"{QUEUE}/all"
QUEUE_ROWS: Final = 20
"""Every row of the queue needs queries of its own."""
PAGE_ROWS: Final = 50
FILTERS: Final = ("merchant", "chain", "from", "to", "least", "address", "id")


class NotApprovable(msgspec.Struct, frozen=True):
    """Why a user can't approve an order now: that person's approvals count from `from_ms` on. With None the
    user has given the first of two approvals.
    """

    from_ms: int | None = None


def url_of(order_id: int | str) -> str:
    """The URL of an order's page."""
    return f"{QUEUE}/{order_id}"


async def list_reasons(
    request: ConsoleRequest, conn: Connection, lines: Sequence[OrderLine], *, if_approved: bool = False
) -> dict[int, Reason]:
    """Why each order waits. `if_approved`: also those that would wait after an approval."""
    blockers = await list_blockers(conn, request.cells, request.merchant_id) if lines else ()
    return find_reasons(request.merchant_id, lines, blockers, request.at_ms, if_approved=if_approved)


async def find_order(request: ConsoleRequest, conn: Connection, order_id: int) -> OrderLine:
    """An order. Its id names its book. Raises HTTPException 404, also for another merchant's order."""
    merchant_id = await books.find_book(conn, order_id) if order_id else None
    if merchant_id is None or request.merchant_id not in (None, merchant_id):
        raise HTTPException(404)
    cell = await request.cells.of(merchant_id)
    order = await orders.find_order(conn, cell, merchant_id, order_id)
    if order is None:
        raise HTTPException(404)
    return order


async def list_not_approvable(
    request: ConsoleRequest, conn: Connection, lines: Sequence[OrderLine]
) -> dict[int, NotApprovable]:
    """The orders that wait for approval and that this user can't approve now, by id."""
    waiting = [one for one in lines if one.status == PENDING and one.approved_ms is None]
    if not waiting or not request.may(Right.APPROVE_WITHDRAWAL):
        return {}
    person, owners = person_of(request.actor), [one.merchant_id for one in waiting]
    eligible = await order_approvals.list_eligible_ms(conn, request.actor, owners)
    found = {}
    for one in waiting:
        if one.first_approved_by is not None and person_of(one.first_approved_by) == person:
            found[one.order_id] = NotApprovable()
        elif request.at_ms < eligible[one.merchant_id]:
            found[one.order_id] = NotApprovable(eligible[one.merchant_id])
    return found


async def show_queue(request: ConsoleRequest, conn: Connection) -> Response:
    """The orders that wait for approval. If the URL asks for others, redirect to all orders."""
    if any(name not in ("merchant", AFTER) for name in request.http.query_params):
        return request.context.responses.redirect(f"{ALL}?{request.http.url.query}")
    state = read_state(QUEUE, request.http.query_params, filters=("merchant",))
    scope = await find_scope(request, conn, state.get("merchant"))
    reading = orders.list_unapproved(conn, request.cells, scope, after=state.after, limit=QUEUE_ROWS)
    page = await open_page(reading)
    return request.page(
        "console/withdrawals.html",
        active="withdrawals",
        tab="queue",
        state=state,
        page=page,
        rows=await add_notes(request, conn, page.rows),
        reasons=await list_reasons(request, conn, page.rows, if_approved=True),
        not_approvable=await list_not_approvable(request, conn, page.rows),
    )


async def show_all(request: ConsoleRequest, conn: Connection) -> Response:
    """All orders, filtered and sorted by the URL."""
    state = read_state(
        ALL,
        request.http.query_params,
        sorts=orders.SORTS,
        default_sort="-created",
        filters=FILTERS,
        several=("status",),
    )
    # The lists are sorted in descending order only.
    state = replace(state, sort=f"{DESCENDING}{state.column}")
    scope = await find_scope(request, conn, state.get("merchant"))
    least_units, least_error = _read_least(request, state.get("least"))
    if state.get("id"):
        found = await orders.find_orders(conn, request.cells, state.get("id"), scope)
        page = Rows(tuple(found), None, None)
    else:
        wanted = _read_filter(state, scope, least_units, request.context.settings.shown_chains)
        reading = orders.list_orders(
            conn, request.cells, wanted, sort=state.column, after=state.after, limit=PAGE_ROWS
        )
        page = await open_page(reading)
    return request.page(
        "console/withdrawals_all.html",
        active="withdrawals",
        tab="all",
        state=state,
        least_error=least_error,
        page=page,
        reasons=await list_reasons(request, conn, page.rows),
        statuses=orders.STATUSES,
        chain_choices=[(code, code) for code in request.context.settings.shown_chains],
        sorted_by={name: replace(state, sort=f"{DESCENDING}{name}").first for name in orders.SORTS},
    )


def _read_least(request: ConsoleRequest, text: str) -> tuple[int, str]:
    """The units of the typed least amount, and what is wrong with it. 0: all orders."""
    try:
        return read_amount(text) if text else 0, ""
    except TypedWrong as error:
        return 0, request.translate(error.text, **error.values)


def _read_filter(
    state: TableState, scope: int | None, least_units: int, chains: Sequence[str]
) -> OrderFilter:
    chain = state.get("chain")
    known = {str(status): status for status in orders.STATUSES}
    return OrderFilter(
        merchant_id=scope,
        statuses=tuple(known[text] for text in state.several.get("status", ()) if text in known),
        chain=chain if chain in chains else None,
        from_ms=read_day(state.get("from")),
        to_ms=read_end(state.get("to")),
        min_units=least_units,
        address=state.get("address") or None,
    )


ROUTES: Final = (
    Page(QUEUE, show_queue, Right.READ, own_book=True),
    Page(ALL, show_all, Right.READ, own_book=True),
)
