"""Reconciliation: the books compared with the chains, each difference with its reason.

Rules: this page only shows results; the workers make the comparisons. Amounts are the decimal texts of the
results.
"""

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.money import parse_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.request import Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.custody import comparison, records
from merchant_wallet.custody.records import ResultShown
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.web.languages import N_

RECONCILIATION: Final = "/console/reconciliation"
PAGE_ROWS: Final = 30
MEANINGS: Final = {
    comparison.DEPOSIT_PENDING: N_("Final deposits that are about to be credited, or wait for a rate"),
    comparison.DEPOSIT_DUST: N_("Final deposits below the least that is credited"),
    comparison.DEPOSIT_UNREAD: N_("Deposits in blocks that the watcher has not read yet"),
    comparison.DEPOSIT_MISSED: N_("Transfers to our deposit addresses that the watcher has read past"),
    comparison.DEPOSIT_HELD: N_("Final deposits that wait for a person"),
    comparison.PAYOUT_UNSETTLED: N_("Final payouts that their books have not settled yet"),
    comparison.PAYOUT_WRONG: N_("Final transfers that are not what their orders ask for"),
    comparison.PAYOUT_TO_OWN: N_("Payouts that went to a wallet of ours, and that nobody has recorded"),
    comparison.DESTROYED: N_("USDT of ours that the token's issuer destroyed (DestroyedBlackFunds)"),
    comparison.UNKNOWN_IN: N_("Transfers to a hot wallet that nobody has recorded"),
    comparison.UNKNOWN_OUT: N_("Transfers from an address of ours that nobody has recorded"),
    comparison.REMAINDER: N_("Parts of a unit that add up to whole units at an address"),
}
"""Every kind of difference in words."""
OF_DEPOSITS: Final = frozenset({comparison.DEPOSIT_PENDING, comparison.DEPOSIT_DUST, comparison.DEPOSIT_HELD})
"""The kinds whose movements are deposits with a page of their own."""


class ChainView(msgspec.Struct, frozen=True):
    """A chain with its last successful comparison and the failed ones after it."""

    chain: str
    last: ResultShown | None
    failed: ResultShown | None


async def show_reconciliation(request: ConsoleRequest, conn: Connection) -> Response:
    """The last comparison of each chain."""
    chains = [await _read_last(conn, chain) for chain in request.context.chains]
    interval_s = request.context.settings.reconcile_interval_s
    return request.page(
        "console/reconciliation.html",
        active="reconciliation",
        chains=chains,
        meanings=MEANINGS,
        interval_s=interval_s,
        units=parse_signed,
    )


async def show_chain(request: ConsoleRequest, conn: Connection) -> Response:
    """One chain's comparisons, newest first."""
    chain = _read_chain(request)
    state = read_state(f"{RECONCILIATION}/{chain}", request.http.query_params)
    before_no = parse_digits(state.after) if state.after else None
    found = await records.page_results(conn, chain, before_no=before_no, limit=PAGE_ROWS + 1)
    rows, last = split_page(found, PAGE_ROWS)
    return request.page(
        "console/reconciliation_chain.html",
        active="reconciliation",
        chain=chain,
        state=state,
        rows=rows,
        next=last and str(last.result_no),
        units=parse_signed,
    )


async def show_result(request: ConsoleRequest, conn: Connection) -> Response:
    """One comparison with every difference."""
    chain, number = _read_chain(request), read_id(request, "result_no")
    rows = await records.page_results(conn, chain, before_no=number + 1, limit=1)
    if not rows or rows[0].result_no != number:
        raise HTTPException(404)
    return request.page(
        "console/reconciliation_result.html",
        active="reconciliation",
        chain=chain,
        result=rows[0],
        meanings=MEANINGS,
        of_deposits=OF_DEPOSITS,
        units=parse_signed,
    )


def parse_signed(text: str) -> int:
    """The units of an amount in a result, which may be negative."""
    return -parse_units(text[1:]) if text.startswith("-") else parse_units(text)


async def _read_last(conn: Connection, chain: str) -> ChainView:
    rows = await records.page_results(conn, chain, limit=PAGE_ROWS)
    failed = rows[0] if rows and rows[0].cause is not None else None
    return ChainView(chain, next((row for row in rows if row.cause is None), None), failed)


def _read_chain(request: ConsoleRequest) -> str:
    chain = str(request.http.path_params["chain"])
    if chain not in request.context.chains:
        raise HTTPException(404)
    return chain


ROUTES: Final = (
    Page(RECONCILIATION, show_reconciliation, Right.READ),
    Page(f"{RECONCILIATION}/{{chain}}", show_chain, Right.READ),
    Page(f"{RECONCILIATION}/{{chain}}/{{result_no:int}}", show_result, Right.READ),
)
