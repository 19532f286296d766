"""The month's end: prepared months, which two people close or restate, invoices, and files for accountants.

Rules: the worker prepares and signs; these pages show, and take what two people decide. An invoice and a file
of a merchant are for its own person, too.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import ChangeRefused, Facts
from merchant_wallet.approvals.decisions import MAX_REASON
from merchant_wallet.audit.records import Author
from merchant_wallet.base.workers import Connect
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.audit_words import AuditWords
from merchant_wallet.console.book_export import Download
from merchant_wallet.console.filter_values import NOBODY, find_scope
from merchant_wallet.console.finance import FINANCE, send_pdf
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.console.tables import read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.finance import closing, invoices, months
from merchant_wallet.reporting.finance.accounting_rows import page_merchants
from merchant_wallet.reporting.finance.months import MonthReport
from merchant_wallet.reporting.finance.reports import list_changes
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.web import accounting_files
from merchant_wallet.web.accounting_files import (
    AUDIT,
    FILES,
    Reader,
    Scope,
    ZoneUnknown,
    find_zone,
    read_days,
)
from merchant_wallet.web.finance_documents import make_invoice
from merchant_wallet.web.kinds import name_account_kind, name_kind
from merchant_wallet.web.languages import N_

MONTHS: Final = f"{FINANCE}/months"
INVOICES: Final = f"{FINANCE}/invoices"
FILES_URL: Final = f"{FINANCE}/files"
PAGE_ROWS: Final = 50
STATES: Final = {
    "prepared": (N_("Waits for two people"), "warn"),
    "wrong": (N_("Does not add up"), "bad"),
    "accepted": (N_("Accepted: a worker signs it within a minute"), "info"),
    "closed": (N_("Closed and signed"), "good"),
    "restating": (N_("Is restated: a worker prepares its next version within a minute"), "info"),
    "superseded": (N_("Superseded"), "idle"),
}
"""The states of a month in words, with their colours."""
ACCEPTED: Final = N_("The month is closed. A worker signs it within a minute.")
RESTATED: Final = N_("The month is restated. A worker prepares its next version within a minute.")
BAD_FILE: Final = N_(
    "Choose a file, two days, the first not after the last, and a time zone such as Asia/Shanghai."
)


async def show_months(request: ConsoleRequest, conn: Connection) -> Response:
    """Prepared and closed months, newest first."""
    found = await months.list_months(conn)
    return request.page("console/finance_months.html", active="finance", months=found, states=STATES)


async def _read_month(request: ConsoleRequest, conn: Connection) -> MonthReport:
    report = await months.read_month(conn, str(request.http.path_params["month"]))
    if report is None:
        raise HTTPException(404)
    return report


async def show_month(request: ConsoleRequest, conn: Connection) -> Response:
    """One month: its figures, what was signed, and the form to close or restate it; or a former version."""
    report = await _read_month(request, conn)
    wanted = request.http.query_params.get("version", str(report.version))
    for one in (report, *await months.list_superseded(conn, report.month)):
        if str(one.version) == wanted:
            return await _show(request, conn, one)
    raise HTTPException(404)


async def _show(
    request: ConsoleRequest, conn: Connection, report: MonthReport, form_state: FormState = EMPTY_FORM
) -> Response:
    versions = await months.list_superseded(conn, report.month)
    superseded = [one for one in versions if one.version < report.version]
    return request.page(
        "console/finance_month.html",
        active="finance",
        status=200 if form_state.ok else 422,
        month=report,
        state=STATES[report.state],
        superseded=superseded,
        changes=list_changes(superseded[0].accounts, report.accounts) if superseded else [],
        issued=await invoices.list_invoices(conn, month=report.month, limit=PAGE_ROWS),
        proposed=await proposal_forms.list_about(request, conn, closing.format_subject(report.month)),
        form_state=form_state,
        max_reason=MAX_REASON,
        account_name=lambda kind: name_account_kind(kind, request.translate),
        kind_name=lambda kind: name_kind(kind, request.translate),
    )


async def close_month(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose to close a month. In a sandbox for one person, close it."""
    report = await _read_month(request, conn)

    async def read() -> tuple[Facts, Facts]:
        return closing.describe_open(report), closing.describe_closed(report)

    async def close(author: Author) -> None:
        await closing.accept_month(conn, author, report.month)

    return await _decide(request, conn, report, closing.CLOSE, read, close, ACCEPTED)


async def restate_month(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose to restate a closed month. In a sandbox for one person, restate it."""
    report = await _read_month(request, conn)

    async def restate(author: Author) -> None:
        if errors := proposal_forms.find_reason_error(request):
            raise Unproposed(errors, errors[proposal_forms.REASON])
        await closing.restate_month(conn, author, report.month, request.form.text(proposal_forms.REASON))

    read = partial(closing.read_restatement, conn, report.month)
    return await _decide(request, conn, report, closing.RESTATE, read, restate, RESTATED)


async def _decide(
    request: ConsoleRequest,
    conn: Connection,
    report: MonthReport,
    kind: str,
    read: Callable[[], Awaitable[tuple[Facts, Facts]]],
    act: Callable[[Author], Awaitable[None]],
    done: str,
) -> Response:
    subject = closing.format_subject(report.month)
    try:
        if request.context.settings.needs_two_people:
            made = await proposal_forms.propose(request, conn, kind, subject, *await read())
            return proposal_forms.redirect_to(request, made)
        await act(request.author.with_facts(proposal_forms.read_reason(request)))
    except Unproposed as unproposed:
        reason = request.form.raw(proposal_forms.REASON)
        return await _show(
            request, conn, report, FormState({"reason": reason}, {"reason": unproposed.problem})
        )
    except ChangeRefused as refused:
        return request.redirect(f"{MONTHS}/{report.month}", str(refused), tone=flash.WARN)
    return request.redirect(f"{MONTHS}/{report.month}", done)


async def show_invoices(request: ConsoleRequest, conn: Connection) -> Response:
    """Invoices of fees, newest first; of a merchant's person: its own."""
    query = request.http.query_params
    state = read_state(INVOICES, query, filters=("merchant",))
    scope = await find_scope(request, conn, query.get("merchant", "").strip())
    before = invoices.parse_number(state.after or "") or invoices.LAST
    found = await invoices.list_invoices(conn, scope, before=before, limit=PAGE_ROWS + 1)
    rows, last = split_page(found, PAGE_ROWS)
    return request.page(
        "console/finance_invoices.html",
        active="finance",
        state=state,
        invoices=rows,
        next=last and last.name,
    )


async def send_invoice(request: ConsoleRequest, conn: Connection) -> Response:
    """One invoice as a PDF."""
    found = await invoices.find_invoice(conn, str(request.http.path_params["invoice"]))
    if found is None or request.merchant_id not in (None, found.merchant_id):
        raise HTTPException(404)
    document = make_invoice(found, request.client.language, found.issued_ms)
    return send_pdf(request, document, f"invoice-{found.name}")


async def show_files(request: ConsoleRequest, conn: Connection) -> Response:
    """The form for files for accountants."""
    return _show_files(request)


def _show_files(request: ConsoleRequest, problem: str = "") -> Response:
    today = f"{datetime.fromtimestamp(request.at_ms / 1000, UTC):%Y-%m-%d}"
    query = request.http.query_params
    names = [name for name in FILES if name != AUDIT or _may_read_audit(request)]
    return request.page(
        "console/finance_files.html",
        active="finance",
        status=422 if problem else 200,
        problem=problem,
        files=[(name, request.translate(FILES[name].title)) for name in names],
        chosen={
            "file": query.get("file", ""),
            "merchant": query.get("merchant", ""),
            "from": query.get("from", f"{today[:8]}01"),
            "to": query.get("to", today),
            "zone": query.get("zone", "UTC"),
        },
    )


async def send_file(request: ConsoleRequest, conn: Connection) -> Response:
    """A file for accountants, sent in pieces. What the form asks for can't be: the form again."""
    query = request.http.query_params
    name = query.get("file", "")
    if not query:
        return request.redirect(FILES_URL)
    if name not in FILES:
        return _show_files(request, request.translate(BAD_FILE))
    if name == AUDIT and not _may_read_audit(request):
        request.require(Right.READ_AUDIT)
    try:
        zone = find_zone(query.get("zone") or "UTC")
        reader = _make_reader(request, zone)
        since_ms, until_ms = read_days(zone, query.get("from", ""), query.get("to", ""))
    except (ZoneUnknown, ValueError, OverflowError):
        return _show_files(request, request.translate(BAD_FILE))
    if since_ms >= until_ms:
        return _show_files(request, request.translate(BAD_FILE))
    merchant_id = await find_scope(request, conn, query.get("merchant", "").strip())
    if merchant_id == NOBODY:
        raise HTTPException(404)
    sources = _list_sources(request, conn, name, merchant_id)
    chosen = [one async for one in sources]
    pieces = _write(request, name, chosen, (since_ms, until_ms), reader)
    whose = "all" if merchant_id is None else str(merchant_id)
    file_name = f"{name}-{whose}-{query.get('from')}-{query.get('to')}.csv"
    headers = {
        **request.context.responses.headers(),
        "content-type": accounting_files.CONTENT_TYPE,
        "content-disposition": f'attachment; filename="{file_name}"',
    }
    return Download(request.operator, pieces, headers)


def _may_read_audit(request: ConsoleRequest) -> bool:
    """A merchant's person has the part about its own merchant (`web/own_audit`)."""
    return request.merchant_id is not None or request.may(Right.READ_AUDIT)


def _make_reader(request: ConsoleRequest, zone: ZoneInfo) -> Reader:
    return Reader(request.translate, zone, request.merchant_id is None, AuditWords(request.translate))


Source = tuple[int, str, Connect]


async def _list_sources(
    request: ConsoleRequest, conn: Connection, name: str, merchant_id: int | None
) -> AsyncIterator[Source]:
    """The books that a file is made of, each with its name and how to connect to its cell."""
    if name == AUDIT and merchant_id is None:
        yield 0, "", request.cells.connect_home
        return
    after = 0
    while True:
        page = await page_merchants(conn, after, merchant_id)
        for one_id, one_name in page:
            is_home = name == AUDIT
            connect = request.cells.connect_home if is_home else await request.cells.find_connect(one_id)
            yield one_id, one_name, connect
        if merchant_id is not None or not page:
            return
        after = page[-1][0]


async def _write(
    request: ConsoleRequest, name: str, sources: list[Source], span: tuple[int, int], reader: Reader
) -> AsyncGenerator[bytes, None]:
    yield accounting_files.render_head(name, reader).encode()
    for merchant_id, merchant, connect in sources:
        scope = Scope(merchant_id, merchant, *span)
        async with await connect() as connection:
            pieces = accounting_files.stream_rows(connection, request.archive, name, scope, reader)
            async for piece in pieces:
                if piece:
                    yield piece


ROUTES: Final = (
    Page(MONTHS, show_months, Right.READ),
    Page(f"{MONTHS}/{{month}}", show_month, Right.READ),
    Page(f"{MONTHS}/{{month}}/close", close_month, Right.CLOSE_MONTH, POST),
    Page(f"{MONTHS}/{{month}}/restate", restate_month, Right.CLOSE_MONTH, POST),
    Page(INVOICES, show_invoices, Right.READ, own_book=True),
    Page(f"{INVOICES}/{{invoice}}", send_invoice, Right.EXPORT, own_book=True),
    Page(FILES_URL, show_files, Right.EXPORT, own_book=True),
    Page(f"{FILES_URL}/send", send_file, Right.EXPORT, own_book=True),
)
