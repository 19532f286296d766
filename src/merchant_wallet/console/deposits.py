"""Deposits: what arrived at our addresses, its confirmations, and what was credited.

Rules: a merchant's user sees deposits to its own merchant's addresses.
"""

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.console import screening
from merchant_wallet.console.filter_values import find_scope, open_page, read_day, read_end
from merchant_wallet.console.request import Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import callbacks, deposits
from merchant_wallet.reporting.callbacks import CallbackLine
from merchant_wallet.reporting.deposits import DepositFilter, DepositLine
from merchant_wallet.reporting.paging import Page as Rows
from merchant_wallet.reporting.sub_users import read_address
from merchant_wallet.screening import store
from merchant_wallet.web.kinds import DEPOSIT_STATES
from merchant_wallet.web.languages import N_

DEPOSITS: Final = "/console/deposits"
ONE: Final = f"{DEPOSITS}/{{chain}}/{{tx_hash}}/{{log_index:int}}"
PAGE_ROWS: Final = 50
FILTERS: Final = ("merchant", "status", "chain", "from", "to", "address", "tx")
TONES: Final = {
    "seen": "info",
    "pending": "info",
    "dust": "warn",
    "held": "bad",
    "dropped": "warn",
    "credited": "good",
    "undone": "bad",
}
STATUSES: Final = {state: (text, TONES[state]) for state, text in DEPOSIT_STATES.items()}
"""The states of a deposit in words, with their colours."""
MEANINGS: Final = {
    "seen": N_("Its block is not final yet, so it may still be undone."),
    "undone": N_("The chain was reorganised and its block is no longer there. Nothing was credited."),
    "pending": N_("Its block is final. The book credits it next, or waits for an exchange rate."),
    "dust": N_("It is final, but below the least deposit until more comes to the address."),
    "held": N_("It is final. It is credited only if a person decides so."),
    "dropped": N_("A person decided not to credit it."),
    "credited": N_("The book has credited it, once and for good."),
}


class DepositView(msgspec.Struct, frozen=True):
    """A deposit with its addresses as text."""

    line: DepositLine
    sender: str
    address: str


async def show_deposits(request: ConsoleRequest, conn: Connection) -> Response:
    """A page of deposits, filtered by the URL."""
    state = read_state(DEPOSITS, request.http.query_params, filters=FILTERS)
    page = await _list(request, conn, state)
    return request.page(
        "console/deposits.html",
        active="deposits",
        state=state,
        page=page,
        rows=_show(page.rows),
        statuses=STATUSES,
        status_choices=[(state, request.translate(text)) for state, text in DEPOSIT_STATES.items()],
        chain_choices=[(code, code) for code in request.context.settings.shown_chains],
    )


async def show_deposit(request: ConsoleRequest, conn: Connection) -> Response:
    """One deposit."""
    chain, tx_hash = str(request.http.path_params["chain"]), str(request.http.path_params["tx_hash"])
    place = read_id(request, "log_index")
    found = await deposits.find_deposits(conn, request.cells, tx_hash, request.merchant_id)
    line = next((one for one in found if (one.chain, one.log_index) == (chain, place)), None)
    if line is None:
        raise HTTPException(404)
    return request.page(
        "console/deposit.html",
        active="deposits",
        shown=_show((line,))[0],
        statuses=STATUSES,
        meaning=MEANINGS[line.status],
        callback=await _find_callback(request, line),
        **await screening.view_one(request, conn, await store.find_deposit(conn, chain, tx_hash, place)),
        cursor=next((one for one in await deposits.list_cursors(conn) if one.chain == chain), None),
    )


async def _find_callback(request: ConsoleRequest, line: DepositLine) -> CallbackLine | None:
    """The callback about a credited deposit."""
    if line.entry_id is None:
        return None
    cell = await request.cells.of(line.merchant_id)
    return await callbacks.find_callback(cell, f"evt_{line.entry_id}_deposit", line.merchant_id)


async def _list(request: ConsoleRequest, conn: Connection, state: TableState) -> Rows[DepositLine]:
    scope = await find_scope(request, conn, state.get("merchant"))
    if state.get("tx"):
        found = await deposits.find_deposits(conn, request.cells, state.get("tx"), scope)
        return Rows(tuple(found), None, None)
    address = read_address(state.get("address")) if state.get("address") else None
    if state.get("address") and address is None:
        # A text that is not an address has no deposits.
        return Rows((), None, None)
    status, chain = state.get("status"), state.get("chain")
    wanted = DepositFilter(
        merchant_id=scope,
        statuses=(status,) if status in deposits.STATUSES else (),
        chain=chain if chain in request.context.settings.shown_chains else None,
        from_ms=read_day(state.get("from")),
        to_ms=read_end(state.get("to")),
        address=address,
    )
    reading = deposits.list_deposits(conn, request.cells, wanted, after=state.after, limit=PAGE_ROWS)
    return await open_page(reading)


def _show(lines: tuple[DepositLine, ...]) -> list[DepositView]:
    return [
        DepositView(line, format_address(line.chain, line.sender), format_address(line.chain, line.address))
        for line in lines
    ]


ROUTES: Final = (
    Page(DEPOSITS, show_deposits, Right.READ, own_book=True),
    Page(ONE, show_deposit, Right.READ, own_book=True),
)
