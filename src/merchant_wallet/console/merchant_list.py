"""The list of merchants: search, filters, sorting, balances."""

from typing import Final

from starlette.responses import Response

from merchant_wallet.console.filter_values import open_page
from merchant_wallet.console.merchants import MERCHANTS
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.merchants import MerchantLine
from merchant_wallet.reporting.paging import Page as Rows

PAGE_ROWS: Final = 50
FOUND_ROWS: Final = 20


async def show_merchants(request: ConsoleRequest, conn: Connection) -> Response:
    """A page of merchants, or those that match a word."""
    state = read_state(
        MERCHANTS, request.http.query_params, sorts=("id", "name"), default_sort="id", filters=("q", "status")
    )
    return request.page(
        "console/merchants.html",
        active="merchants",
        state=state,
        page=await _find(request, conn, state) if state.get("q") else await _list(request, conn, state),
    )


async def _list(request: ConsoleRequest, conn: Connection, state: TableState) -> Rows[MerchantLine]:
    statuses = [state.get("status")] if state.get("status") in merchants.STATUSES else []
    return await open_page(
        merchants.list_merchants(
            conn, request.cells, statuses=statuses, sort=state.column, after=state.after, limit=PAGE_ROWS
        )
    )


async def _find(request: ConsoleRequest, conn: Connection, state: TableState) -> Rows[MerchantLine]:
    found = await merchants.find_merchants(conn, state.get("q"), limit=FOUND_ROWS)
    lines = await merchants.show_merchants(conn, request.cells, [one.merchant_id for one in found])
    status = state.get("status")
    rows = tuple(line for line in lines if status in ("", line.status))
    return Rows(rows, None, None)


ROUTES: Final = (Page(MERCHANTS, show_merchants, Right.READ),)
