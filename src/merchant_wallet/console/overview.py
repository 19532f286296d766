"""The first page: what is held, what moves, what waits.

Rules:
- Each figure has the moment that it is of: balances and counts when the page read them, volumes up to when
  entries were added up, a hot wallet when a worker asked the chain, a comparison when it was made.
- While the page is visible, it requests its middle part again.
- A merchant's user sees its own book's figures, and nothing of the platform's wallets.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import CURRENCIES, KFB, USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.console.holdings import Holding, read_holdings
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.custody import records as custody
from merchant_wallet.hot_wallet import store as hot_wallets
from merchant_wallet.hot_wallet.store import WalletShown
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import callbacks, figures, orders
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.figures import DayFigure
from merchant_wallet.reporting.payout_blockers import PayoutBlocker, Queued, count_queued, list_blockers
from merchant_wallet.web.languages import N_

OVERVIEW: Final = "/console"
RANGES: Final = (7, 30, 90)
DEFAULT_RANGE: Final = 30
FIGURES_LATE: Final = 10_000
"""If more entries than this are in no figure yet, the page says so. Fewer are added within seconds."""

LINES: Final = (
    (N_("Deposits"), "deposit"),
    (N_("Withdrawals paid"), "settle"),
    (N_("From sub-users"), "user_to_merchant"),
    (N_("To sub-users"), "merchant_to_user"),
)
"""The series of the chart of volumes: label, and the kind of entry whose amounts and fees are summed."""


class PayoutsView(msgspec.Struct, frozen=True):
    """What stops payouts: the stopped chains, and how many orders wait."""

    stopped: tuple[str, ...]
    held: int
    queued: int
    queued_units: int

    @property
    def waiting(self) -> int:
        """How many approved orders are not paid, for any cause."""
        return self.held + self.queued


class ChainView(msgspec.Struct, frozen=True):
    """One chain: its hot wallet with what it holds, and the last comparison of books and chain.

    `is_failed`: the comparison could not be made. `blockers`: what blocks its payouts.
    """

    chain: str
    wallet: WalletShown | None
    address: str
    holding: Holding
    compared_ms: int | None
    is_sound: bool | None
    is_failed: bool
    blockers: tuple[PayoutBlocker, ...]


async def show_overview(request: ConsoleRequest, conn: Connection) -> Response:
    """The whole page."""
    days, currency = _read_range(request)
    # Read first: what is added up meanwhile is in the charts already.
    behind_ms = await figures.read_figures_ms(request.cells, request.merchant_id)
    shown = await _read_charts(request, days, currency)
    shown["charts_ms"] = request.at_ms if behind_ms is None else behind_ms
    shown |= await _read_state(request, conn)
    shown |= {
        "is_part": False,
        "days": days,
        "ranges": RANGES,
        "currency": currency,
        "currencies": CURRENCIES,
    }
    return request.page("console/overview.html", active="overview", **shown)


async def show_state(request: ConsoleRequest, conn: Connection) -> Response:
    """The part that changes, for an open page; empty if it has not changed."""
    shown = await _read_state(request, conn)
    if request.http.query_params.get("seen") == shown["version"]:
        return Response(status_code=204, headers=request.context.responses.headers())
    return request.part("console/overview_state.html", is_part=True, **shown)


async def _read_state(request: ConsoleRequest, conn: Connection) -> dict[str, Any]:
    scope, cells = request.merchant_id, request.cells
    overview = await figures.read_overview(conn, cells) if scope is None else None
    counted = await callbacks.count_by_state(cells, scope) if overview is None else overview.callbacks
    shown: dict[str, Any] = {
        "held": await figures.read_held(cells, scope),
        "statuses": await orders.count_by_status(cells, scope) if overview is None else overview.statuses,
        "callbacks": {one.state: one for one in counted},
        "most": orders.MAX_COUNTED,
        "overview": overview,
        "behind": 0,
        "chains": [],
        "payouts": None,
    }
    if overview is not None:
        shown["behind"] = overview.figures_behind if overview.figures_behind >= FIGURES_LATE else 0
        blockers = await list_blockers(conn, cells, chains=request.context.settings.shown_chains)
        shown["chains"] = await _read_chains(request, conn, blockers)
        shown["payouts"] = await read_payouts(cells, blockers)
    shown |= request.missing_cells
    shown["version"] = hashlib.sha256(msgspec.json.encode(shown)).hexdigest()[:16]
    # The moment of the reading changes no figure, so it is no part of the version.
    shown["read_ms"] = request.at_ms
    return shown


async def read_payouts(cells: Reach, blockers: Sequence[PayoutBlocker]) -> PayoutsView:
    """The orders that wait because of these blockers."""
    stopped = tuple(sorted({one.chain for one in blockers if one.stops_chain}))
    queued: list[Queued] = await count_queued(cells, list(stopped)) if stopped else []
    return PayoutsView(
        stopped,
        sum(one.orders for one in blockers),
        sum(one.orders for one in queued),
        sum(one.amount_units for one in queued),
    )


async def _read_chains(
    request: ConsoleRequest, conn: Connection, blockers: Sequence[PayoutBlocker]
) -> list[ChainView]:
    wallets = {wallet.chain: wallet for wallet in await hot_wallets.list_wallets(conn)}
    holdings = await read_holdings(conn, request.context.chains, wallets)
    shown = []
    for chain in request.context.chains:
        results = await custody.list_results(conn, chain, 1)
        at_ms, document = results[0] if results else (None, None)
        wallet = wallets.get(chain)
        address = "" if wallet is None else format_address(chain, wallet.address)
        told = document or {}
        shown.append(
            ChainView(
                chain=chain,
                wallet=wallet,
                address=address,
                holding=holdings[chain],
                compared_ms=at_ms,
                is_sound=told.get("sound"),
                is_failed=told.get("cause") is not None,
                blockers=tuple([one for one in blockers if one.chain == chain]),
            )
        )
    return shown


async def _read_charts(request: ConsoleRequest, days: int, currency: str) -> dict[str, Any]:
    today = request.at_ms // DAY_MS
    since = today - days + 1
    rows = [
        row
        for row in await figures.read_volume(request.cells, since, request.merchant_id)
        if row.currency == currency
    ]
    span = range(since, today + 1)
    return {
        "volume": _chart(
            span, currency, [(request.translate(label), _sum(rows, kind)) for label, kind in LINES]
        ),
        "fees": _chart(span, currency, [(request.translate(_label_fees(request)), _sum_fees(rows))]),
        "fees_units": sum(row.fee_units for row in rows),
    }


def _label_fees(request: ConsoleRequest) -> str:
    """The platform's earnings are the merchant's costs."""
    return N_("Fees earned") if request.merchant_id is None else N_("Fees paid")


def _sum(rows: list[DayFigure], kind: str) -> dict[int, int]:
    return {row.day: row.amount_units + row.fee_units for row in rows if row.kind == kind}


def _sum_fees(rows: list[DayFigure]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for row in rows:
        sums[row.day] = sums.get(row.day, 0) + row.fee_units
    return sums


def _chart(span: range, currency: str, lines: list[tuple[str, dict[int, int]]]) -> dict[str, Any]:
    return {
        "at": [day * DAY_MS for day in span],
        "currency": currency,
        "series": [
            {"label": label, "values": [by_day.get(day, 0) for day in span]} for label, by_day in lines
        ],
    }


def _read_range(request: ConsoleRequest) -> tuple[int, str]:
    wanted = request.http.query_params.get("days", "")
    days = next((days for days in RANGES if str(days) == wanted), DEFAULT_RANGE)
    return days, KFB if request.http.query_params.get("currency") == KFB else USDT


ROUTES: Final = (
    Page(OVERVIEW, show_overview, Right.READ, own_book=True),
    Page(f"{OVERVIEW}/state", show_state, Right.READ, own_book=True, extends_session=False),
)
