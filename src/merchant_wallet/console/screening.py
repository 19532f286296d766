"""Screening: what waits for a person, what was asked and answered, and what people decide.

Rules:
- Only the platform's people see it. A merchant reads that the platform is looking into it.
- One person proposes to release, another accepts. In the sandbox one is enough. One person refuses, and one
  may have the sources asked again.
- Screenings are in home, so no cell is asked.
"""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import ChangeRefused, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.proposal_forms import REASON, Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.screening import decisions, store
from merchant_wallet.screening.screening_states import Event, State
from merchant_wallet.screening.store import Screening
from merchant_wallet.screening.verdicts import Source, Verdict
from merchant_wallet.web.languages import N_

SCREENING: Final = "/console/screening"
ONE: Final = f"{SCREENING}/{{screening_no:int}}"
PAGE_ROWS: Final = 50

STATES: Final = {
    State.OPEN: (N_("No answer yet"), "info"),
    State.PASSED: (N_("Passed"), "good"),
    State.HELD: (N_("Held"), "bad"),
    State.REFUSED: (N_("Refused"), "bad"),
    State.RELEASED: (N_("Released"), "good"),
}
"""The states in words, with their colours."""
SOURCES: Final = {
    Source.LIST: N_("List"),
    Source.HOOK: N_("Provider"),
    Source.AWAY: N_("Provider gave no answer"),
    Source.AMOUNT: N_("Rule: amount of a window"),
    Source.COUNT: N_("Rule: payouts of a window"),
    Source.FIRST: N_("Rule: first payout to an address"),
}
RULES: Final = {
    Source.AMOUNT: N_("{amount} USDT within {hours} h, more than {limit}"),
    Source.COUNT: N_("{count} payouts within {hours} h, more than {limit}"),
    Source.FIRST: N_("never paid before, and more than {limit} USDT"),
}
VERDICTS: Final = {
    Verdict.PASS: (N_("pass"), "good"),
    Verdict.HOLD: (N_("hold"), "warn"),
    Verdict.REFUSE: (N_("refuse"), "bad"),
}
RELEASED: Final = N_("Released. It goes on within a second.")
REFUSED_ORDER: Final = N_("Refused. The order fails, and the merchant gets the amount back.")
REFUSED_DEPOSIT: Final = N_("Refused. The deposit stays held and is not credited.")
ASKED_AGAIN: Final = N_("The sources are asked again at the next attempt.")


class ScreeningView(msgspec.Struct, frozen=True):
    """A screening with its address as text, and what a person may do about it."""

    line: Screening
    address: str
    merchant_name: str
    may_release: bool
    may_refuse: bool
    may_ask: bool

    @property
    def url(self) -> str:
        """The page of the order or deposit."""
        line = self.line
        if line.is_order:
            return f"/console/withdrawals/{line.order_id}"
        return f"/console/deposits/{line.chain}/{line.tx_hash}/{line.log_index}"


async def show_screenings(request: ConsoleRequest, conn: Connection) -> Response:
    """What waits, and what was decided, newest first."""
    state = read_state(SCREENING, request.http.query_params, filters=("state",))
    shown = state.get("state") if state.get("state") in (*State, "all") else ""
    if shown in ("", State.OPEN, State.HELD):
        wanted = State.HELD if not shown else State(shown)
        after_no = (parse_digits(state.after) if state.after else 0) or 0
        found = await store.list_waiting(conn, state=wanted, after_no=after_no, limit=PAGE_ROWS + 1)
    else:
        before_no = (parse_digits(state.after) if state.after else None) or MAX_BIGINT
        some = None if shown == "all" else State(shown)
        found = await store.list_all(conn, state=some, before_no=before_no, limit=PAGE_ROWS + 1)
    rows, last = split_page(found, PAGE_ROWS)
    settings = request.context.settings
    held, held_since_ms = await store.count_held(conn)
    return request.page(
        "console/screenings.html",
        active="screening",
        state=state,
        shown=shown,
        rows=await view(request, conn, rows),
        next=last and str(last.screening_no),
        held=held,
        held_since_ms=held_since_ms,
        most=store.COUNTED,
        host=urlsplit(settings.screening_url or "").netloc,
        fails_open=settings.screening_fail_open,
        list_name="" if settings.screening_list is None else settings.screening_list.name,
        last=await store.read_last_question(conn),
        **_words(),
    )


async def show_screening(request: ConsoleRequest, conn: Connection) -> Response:
    """One screening."""
    return await _show(request, conn, await _find(request, conn))


async def release(request: ConsoleRequest, conn: Connection) -> Response:
    """Release it, or propose that if two people are needed."""
    found = await _find(request, conn)
    if errors := proposal_forms.find_reason_error(request):
        return await _show(request, conn, found, FormState({"release": ""}, {"release": errors[REASON]}))
    subject = decisions.format_subject(found.screening_no)
    try:
        before, after = decisions.describe_release(found)
        if request.context.settings.needs_two_people:
            async with conn.transaction():
                return proposal_forms.redirect_to(
                    request,
                    await proposal_forms.propose(
                        request, conn, decisions.RELEASE, subject, before, after, found.merchant_id
                    ),
                )
        await decisions.release(conn, _author(request), found)
    except Unproposed as unproposed:
        typed = FormState({"release": request.form.raw(REASON)}, {"release": unproposed.problem})
        return await _show(request, conn, found, typed)
    except ChangeRefused:
        return request.redirect(url_of(found), proposal_forms.OVER, tone=flash.WARN)
    return request.redirect(url_of(found), RELEASED)


async def refuse(request: ConsoleRequest, conn: Connection) -> Response:
    """Refuse it, with a reason."""
    found = await _find(request, conn)
    if errors := proposal_forms.find_reason_error(request):
        return await _show(request, conn, found, refill(request.form, (REASON,), errors))
    try:
        await decisions.refuse(conn, _author(request), found)
    except ChangeRefused:
        return request.redirect(url_of(found), proposal_forms.OVER, tone=flash.WARN)
    return request.redirect(url_of(found), REFUSED_ORDER if found.is_order else REFUSED_DEPOSIT)


async def ask_again(request: ConsoleRequest, conn: Connection) -> Response:
    """Have the sources asked again."""
    found = await _find(request, conn)
    try:
        await decisions.ask_again(conn, request.author, found)
    except ChangeRefused:
        return request.redirect(url_of(found), proposal_forms.OVER, tone=flash.WARN)
    return request.redirect(url_of(found), ASKED_AGAIN)


def url_of(found: Screening) -> str:
    """The URL of a screening's page."""
    return f"{SCREENING}/{found.screening_no}"


async def view_one(request: ConsoleRequest, conn: Connection, found: Screening | None) -> dict[str, Any]:
    """The values for the part on an order's or a deposit's page. Merchants see nothing of it."""
    if found is None or request.merchant_id is not None:
        return {"screening": None}
    return {"screening": (await view(request, conn, [found]))[0], **_words()}


async def view(request: ConsoleRequest, conn: Connection, found: Sequence[Screening]) -> list[ScreeningView]:
    """Screenings as pages show them."""
    names = await merchants.read_names(conn, [one.merchant_id for one in found])
    may = request.may(Right.DECIDE_SCREENING)
    return [
        ScreeningView(
            one,
            format_address(one.chain, one.address),
            names.get(one.merchant_id, str(one.merchant_id)),
            may and one.allows(Event.RELEASED),
            may and one.allows(Event.REJECTED),
            may and one.allows(Event.ASKED_AGAIN),
        )
        for one in found
    ]


def _words() -> dict[str, Any]:
    return {"screening_states": STATES, "sources": SOURCES, "rules": RULES, "verdicts": VERDICTS}


def _author(request: ConsoleRequest) -> Author:
    return request.author.with_facts(proposal_forms.read_reason(request))


async def _show(
    request: ConsoleRequest, conn: Connection, found: Screening, form_state: FormState = EMPTY_FORM
) -> Response:
    proposed: list[ProposedChange] = await proposal_forms.list_about(
        request, conn, decisions.format_subject(found.screening_no)
    )
    return request.page(
        "console/screening.html",
        active="screening",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        shown=(await view(request, conn, [found]))[0],
        questions=await store.list_questions(conn, found.screening_no),
        proposed=proposed,
        **_words(),
    )


async def _find(request: ConsoleRequest, conn: Connection) -> Screening:
    found = await store.find_one(conn, read_id(request, "screening_no"))
    if found is None:
        raise HTTPException(404)
    return found


ROUTES: Final = (
    Page(SCREENING, show_screenings, Right.READ),
    Page(ONE, show_screening, Right.READ),
    Page(f"{ONE}/release", release, Right.DECIDE_SCREENING, POST),
    Page(f"{ONE}/refuse", refuse, Right.DECIDE_SCREENING, POST),
    Page(f"{ONE}/ask", ask_again, Right.DECIDE_SCREENING, POST),
)
