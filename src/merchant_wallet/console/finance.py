"""Finance: reports of a period, solvency, fees, the exchange desk, gas; and the same as files.

Rules: a merchant's person sees its own book alone. Periods are UTC days. A figure that is not complete yet
says so. PDFs are built in a thread.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import COINS
from merchant_wallet.console import flash
from merchant_wallet.console.filter_values import find_scope
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.custody.rescues.store import RescueShown, list_moved
from merchant_wallet.merchants import store
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.cells import BooksMoving
from merchant_wallet.reporting.finance import desk, months, movements, network_fees, solvency
from merchant_wallet.reporting.finance.accounting_rows import list_movements
from merchant_wallet.reporting.finance.months import FormerFigures
from merchant_wallet.reporting.finance.movements import Fee
from merchant_wallet.reporting.finance.periods import (
    Period,
    cut_future,
    format_day,
    last_days,
    month_of,
    next_month,
    parse_period,
    previous_month,
)
from merchant_wallet.reporting.finance.reports import Report, find_problem, read_report
from merchant_wallet.web.accounting_files import CONTENT_TYPE
from merchant_wallet.web.finance_documents import MAX_MOVEMENTS, dress, make_report, make_statement
from merchant_wallet.web.finance_tables import render_report, render_solvency
from merchant_wallet.web.kinds import name_account_kind, name_kind
from merchant_wallet.web.languages import N_
from merchant_wallet.web.pdf.document import Document, DocumentTooLong
from merchant_wallet.web.pdf.download import PdfDownload
from merchant_wallet.web.responses import RenderedLate

FINANCE: Final = "/console/finance"
SOLVENCY: Final = f"{FINANCE}/solvency"
MOST_MERCHANTS: Final = 100
SOLVENCY_DAYS: Final = 31
ALL_BOOKS: Final = N_("All books")
NOT_COMPLETE: Final = N_("Not complete yet: {count} entries are not added up.")
NO_MERCHANT: Final = N_("Choose a merchant first: a statement is about one book.")
BAD_PERIOD: Final = N_("That is no period. Here is this month.")
BAD_DAYS: Final = N_("That is no period that has begun. Here are the last days.")
NO_SUCH_MERCHANT: Final = N_("There is no such merchant. Here are all books.")
PURPOSES: Final = {
    "payout": N_("Payouts"),
    "sweep": N_("Sweeps"),
    "top_up": N_("Sending gas to deposit addresses"),
    "cancel": N_("Cancelled nonces"),
    "cold": N_("To cold wallets"),
    "refill": N_("Back from cold wallets"),
}


class Asked:
    """The period and the book of a request."""

    def __init__(self, period: Period, merchant_id: int | None, name: str) -> None:
        self.period = period
        self.merchant_id = merchant_id
        self.name = name

    @property
    def query(self) -> str:
        """The same as the query of a URL."""
        return self.query_of(self.period)

    def query_of(self, period: Period) -> str:
        """Another period of the same book."""
        merchant = "" if self.merchant_id is None else f"&merchant={self.merchant_id}"
        return f"period={period.name}{merchant}"

    @property
    def file_name(self) -> str:
        """What a file of it is called, without its extension."""
        whose = "all" if self.merchant_id is None else str(self.merchant_id)
        return f"{whose}-{self.period.name.replace('..', '-')}"


class NotAsked(ValueError):
    """The period is none, or there is no such merchant. The text says so, and has a translation."""


async def read_asked(request: ConsoleRequest, conn: Connection) -> Asked:
    """What a request asks for. Raises NotAsked."""
    query = request.http.query_params
    try:
        named = query.get("period", "").strip()
        period = parse_period(named) if named else month_of(request.at_ms)
    except ValueError:
        raise NotAsked(BAD_PERIOD) from None
    try:
        merchant_id = await find_scope(request, conn, query.get("merchant", "").strip())
        name = request.translate(ALL_BOOKS)
        if merchant_id is not None:
            name = (await store.find(conn, str(merchant_id))).name
    except (store.MerchantUnknown, store.MerchantAmbiguous):
        raise NotAsked(NO_SUCH_MERCHANT) from None
    return Asked(period, merchant_id, name)


async def show_finance(request: ConsoleRequest, conn: Connection) -> Response:
    """A period's report, with what earned and what it cost."""
    try:
        asked = await read_asked(request, conn)
    except NotAsked as problem:
        return request.redirect(FINANCE, str(problem), tone=flash.WARN)
    report = await read_report(request.cells, asked.period, asked.merchant_id)
    fees = await movements.list_fees(request.cells, asked.period, asked.merchant_id)
    values: dict[str, Any] = {
        "asked": asked,
        "report": report,
        "problem": find_problem(report.accounts) if not request.cells.away else None,
        "fee_days": list_fee_days(fees),
        "fee_kinds": sum_fee_kinds(fees),
        "desk": await desk.read_desk(conn, report, request.at_ms),
        "closed": await months.read_month(conn, asked.period.name) if asked.period.is_month else None,
        "account_name": lambda kind: name_account_kind(kind, request.translate),
        "kind_name": lambda kind: name_kind(kind, request.translate),
        "day_name": format_day,
        "earlier": asked.query_of(previous_month(asked.period)) if asked.period.is_month else "",
        "later": _find_later(asked, request.at_ms),
    }
    values |= await _read_platform(request, conn, asked)
    return request.page("console/finance.html", active="finance", **values)


def _find_later(asked: Asked, at_ms: int) -> str:
    """The query of the month after, if it has begun."""
    if not asked.period.is_month or asked.period.until_ms > at_ms:
        return ""
    return asked.query_of(next_month(asked.period))


async def _read_platform(request: ConsoleRequest, conn: Connection, asked: Asked) -> dict[str, Any]:
    """What only the platform's staff sees, for all books together."""
    ranked: Sequence[movements.MerchantFees] = ()
    held: Sequence[solvency.Solvency] = ()
    is_moving, spent = False, None
    rescued: Sequence[RescueShown] = ()
    if asked.merchant_id is None:
        try:
            held = await solvency.read_solvency(conn, request.cells, request.context.chains)
            ranked = await movements.rank_fees(request.cells, asked.period)
        except BooksMoving:
            is_moving = True
        spent = await network_fees.read_coins_spent(conn, asked.period)
        rescued = await list_moved(conn, asked.period.since_ms, asked.period.until_ms)
    return {
        "is_moving": is_moving,
        "solvency": held,
        "ranked": ranked[:MOST_MERCHANTS],
        "ranked_more": max(0, len(ranked) - MOST_MERCHANTS),
        "spent": spent,
        "rescued": rescued,
        "address": format_address,
        "coins": COINS,
        "purposes": PURPOSES,
    }


def list_fee_days(fees: Sequence[Fee]) -> list[tuple[int, str, int, int]]:
    """The fees by day and currency: day, currency, how many, and the sum. Pure."""
    sums: dict[tuple[int, str], list[int]] = {}
    for fee in fees:
        of_day = sums.setdefault((fee.day, fee.currency), [0, 0])
        of_day[0] += fee.postings
        of_day[1] += fee.units
    return [
        (day, currency, *_pair(sums[day, currency]))
        for day, currency in sorted(sums, key=lambda key: (-key[0], key[1] != "USDT"))
    ]


def sum_fee_kinds(fees: Sequence[Fee]) -> list[tuple[str, str, int, int]]:
    """The fees by kind and currency: kind, currency, how many, and the sum. Pure."""
    sums: dict[tuple[str, str], list[int]] = {}
    for fee in fees:
        of_kind = sums.setdefault((fee.kind, fee.currency), [0, 0])
        of_kind[0] += fee.postings
        of_kind[1] += fee.units
    return [(kind, currency, *_pair(sums[kind, currency])) for kind, currency in sorted(sums)]


def _pair(counted: Sequence[int]) -> tuple[int, int]:
    return counted[0], counted[1]


async def show_solvency(request: ConsoleRequest, conn: Connection) -> Response:
    """Owed and held at the end of each day, of the last ones or of a period."""
    try:
        period = _read_days(request)
    except ValueError:
        return request.redirect(SOLVENCY, BAD_DAYS, tone=flash.WARN)
    chains = request.context.chains
    days = await solvency.list_solvency(conn, request.cells, period, chains)
    try:
        now = await solvency.read_solvency(conn, request.cells, chains)
    except BooksMoving:
        now = None
    return request.page(
        "console/finance_solvency.html",
        active="finance",
        period=period,
        is_now=period.until_ms > request.at_ms,
        days=[one for one in reversed(days) if one.currency == "USDT"],
        kfb={one.day: one for one in days if one.currency == "KFB"},
        solvency=now or (),
        is_moving=now is None,
        middle_e8=await desk.read_middle(conn, request.at_ms + 1),
        day_name=format_day,
    )


async def send_solvency(request: ConsoleRequest, conn: Connection) -> Response:
    """The same days as CSV."""
    try:
        period = _read_days(request)
    except ValueError:
        raise HTTPException(404) from None
    days = await solvency.list_solvency(conn, request.cells, period, request.context.chains)
    _check_complete(request)
    name = f"solvency-{period.name.replace('..', '-')}.csv"
    headers = _file_headers(request, name, CONTENT_TYPE)
    return RenderedLate(partial(render_solvency, days, request.translate), headers=headers)


def _read_days(request: ConsoleRequest) -> Period:
    """The period of the URL, or the last days. Days that have not begun are left out. Raises ValueError."""
    named = request.http.query_params.get("period", "").strip()
    if not named:
        return last_days(request.at_ms, SOLVENCY_DAYS)
    return cut_future(parse_period(named), request.at_ms)


async def send_report(request: ConsoleRequest, conn: Connection) -> Response:
    """The report as a PDF."""
    asked, report = await _read_file(request, conn)
    former = await _read_former(conn, asked)
    issuer = request.context.settings.invoice_issuer
    notes = _list_notes(request, report)
    document = make_report(report, asked.name, request.client.language, issuer, request.at_ms, notes, former)
    return send_pdf(request, document, _name_report(asked, former))


async def _read_former(conn: Connection, asked: Asked) -> FormerFigures | None:
    if not asked.period.is_month:
        return None
    return await months.read_former(conn, asked.period.name, asked.merchant_id)


def _name_report(asked: Asked, former: FormerFigures | None) -> str:
    version = "" if former is None else f"-v{former.version + 1}"
    return f"report-{asked.file_name}{version}"


def _list_notes(request: ConsoleRequest, report: Report) -> list[str]:
    if report.lag is None or report.lag.is_complete:
        return []
    return [request.translate(NOT_COMPLETE, count=report.lag.missing)]


async def send_report_csv(request: ConsoleRequest, conn: Connection) -> Response:
    """The report as CSV: every account, opening balance, kinds of movements, closing balance."""
    asked, report = await _read_file(request, conn)
    former = await _read_former(conn, asked)
    headers = _file_headers(request, f"{_name_report(asked, former)}.csv", CONTENT_TYPE)
    return RenderedLate(partial(render_report, report, request.translate, former), headers=headers)


async def send_statement(request: ConsoleRequest, conn: Connection) -> Response:
    """A merchant's statement as a PDF."""
    asked, report = await _read_file(request, conn)
    if asked.merchant_id is None:
        return request.redirect(f"{FINANCE}?{asked.query}", NO_MERCHANT, tone=flash.WARN)
    cell = await request.cells.of(asked.merchant_id)
    span = (asked.period.since_ms, asked.period.until_ms)
    listed = await list_movements(cell, request.archive, asked.merchant_id, *span, MAX_MOVEMENTS)
    issuer = request.context.settings.invoice_issuer
    document = make_statement(report, asked.name, listed, request.client.language, issuer, request.at_ms)
    return send_pdf(request, document, f"statement-{asked.file_name}")


async def _read_file(request: ConsoleRequest, conn: Connection) -> tuple[Asked, Report]:
    try:
        asked = await read_asked(request, conn)
    except NotAsked:
        raise HTTPException(404) from None
    report = await read_report(request.cells, asked.period, asked.merchant_id)
    _check_complete(request)
    return asked, report


def _check_complete(request: ConsoleRequest) -> None:
    """A file would not say which cells are missing. Raises HTTPException."""
    if request.cells.away:
        raise HTTPException(503, headers={"retry-after": "2"})


def send_pdf(request: ConsoleRequest, document: Document, name: str) -> Response:
    """A document as a download."""
    document = dress(document, request.context.settings)
    try:
        return PdfDownload(request.operator.operator_id, document, name, request.context.responses.headers())
    except DocumentTooLong as refused:
        raise HTTPException(413, str(refused)) from None


def _file_headers(request: ConsoleRequest, name: str, content_type: str) -> dict[str, str]:
    return {
        **request.context.responses.headers(),
        "content-type": content_type,
        "content-disposition": f'attachment; filename="{name}"',
    }


ROUTES: Final = (
    Page(FINANCE, show_finance, Right.READ, own_book=True),
    Page(SOLVENCY, show_solvency, Right.READ),
    Page(f"{SOLVENCY}.csv", send_solvency, Right.EXPORT),
    Page(f"{FINANCE}/report.pdf", send_report, Right.EXPORT, own_book=True),
    Page(f"{FINANCE}/report.csv", send_report_csv, Right.EXPORT, own_book=True),
    Page(f"{FINANCE}/statement.pdf", send_statement, Right.EXPORT, own_book=True),
)
