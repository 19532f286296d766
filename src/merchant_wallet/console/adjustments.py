"""Adjustments: one person proposes an entry, another accepts or refuses it.

Rules: nobody accepts his own proposal. An accepted one is sent to the book once, whatever happens on the way.
If the book's answer was lost, asking again finds it out.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals import decisions, proposals
from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.approvals.proposals import Proposal
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.chart import MERCHANT
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.console import flash
from merchant_wallet.console.filter_values import find_scope
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.proposal_forms import REFUSALS, describe_refusal, find_reason_error
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.merchants import store
from merchant_wallet.merchants.store import MerchantRef, MerchantUnknown
from merchant_wallet.operators.roles import Right, list_roles
from merchant_wallet.reporting import books, merchants
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.sub_users import controls
from merchant_wallet.sub_users.controls import SubUserUnknown
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_amount

ADJUSTMENTS: Final = "/console/adjustments"
ONE: Final = f"{ADJUSTMENTS}/{{proposal_no:int}}"
PAGE_ROWS: Final = 50
FIELDS: Final = ("merchant", "direction", "currency", "amount", "sub-user", "reason")
CREDIT: Final = "credit"
DEBIT: Final = "debit"
NO_MERCHANT: Final = N_("No merchant has this id, key or name.")
NO_DIRECTION: Final = N_("Choose whether the account gets or gives the amount.")
NO_AMOUNT: Final = N_("An amount above 0 with at most 6 decimals after a point, such as 1,000.50.")
NO_REASON: Final = N_("Say why, in 1 to 500 characters: the book keeps the reason forever.")
NO_SUB_USER: Final = N_("This merchant has no such sub-user.")
NO_CURRENCY: Final = N_("There is no such account: the merchant or the wallet holds another currency.")
OWN: Final = N_("It is your own proposal: another person must accept it.")
DECIDED: Final = N_("It was decided meanwhile.")
EXPIRED: Final = N_("It has expired. Propose it again.")
UNKNOWN: Final = N_(
    "The book did not answer in time. Look again in a minute: it is carried out once at most."
)


class Effect(msgspec.Struct, frozen=True):
    """What the account of an adjustment holds now, and after it. None: the amount is not known."""

    currency: str
    now_units: int
    after_units: int | None


async def show_adjustments(request: ConsoleRequest, conn: Connection) -> Response:
    """Proposals that wait, unfinished ones, and decided ones."""
    state = read_state(ADJUSTMENTS, request.http.query_params, filters=("merchant",))
    scope = await find_scope(request, conn, state.get("merchant"))
    before_no = parse_digits(state.after) if state.after else None
    found = await proposals.list_decided(
        conn, now_ms=request.at_ms, merchant_id=scope, before_no=before_no, limit=PAGE_ROWS + 1
    )
    decided, last = split_page(found, PAGE_ROWS)
    waiting = await proposals.list_open(
        conn, now_ms=request.at_ms, merchant_id=scope, limit=decisions.MAX_PAGE
    )
    unfinished = await proposals.list_unfinished(conn, now_ms=request.at_ms, limit=decisions.MAX_PAGE)
    return request.page(
        "console/adjustments.html",
        active="adjustments",
        state=state,
        waiting=waiting,
        most=decisions.MAX_PAGE,
        unfinished=unfinished,
        decided=decided,
        next=last and str(last.proposal_no),
        names=await merchants.read_names(
            conn, [one.merchant_id for one in (*waiting, *unfinished, *decided)]
        ),
        is_own=partial(decisions.is_own, actor=request.actor),
    )


async def show_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The form to propose an adjustment."""
    return _show_form(request, FormState({"merchant": request.http.query_params.get("merchant", "")}))


async def show_effect(request: ConsoleRequest, conn: Connection) -> Response:
    """What the typed adjustment would do to its account, requested while the user types."""
    query, effect = request.http.query_params, None
    currency, merchant = query.get("currency", ""), query.get("merchant", "").strip()
    if currency in CURRENCIES and merchant:
        try:
            found = await store.find(conn, merchant)
        except MerchantUnknown:
            found = None
        if found is not None:
            name, signed_units = query.get("sub-user", "").strip(), _read_signed(query)
            effect = await _read_effect(request, found.merchant_id, name or None, currency, signed_units)
    return request.part("console/adjustment_effect.html", effect=effect)


async def propose(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose an adjustment."""
    merchant, errors = await _judge(request, conn)
    if merchant is None or errors:
        return _show_form(request, refill(request.form, FIELDS, errors))
    form, ext_user_id = request.form, request.form.text("sub-user") or None
    signed_units = _sign(form.text("direction"), parse_units(form.text("amount")))
    try:
        async with conn.transaction():
            made = await proposals.propose(
                conn,
                merchant.merchant_id,
                form.text("currency"),
                signed_units,
                form.text("reason"),
                proposed_by=request.actor,
                at_ms=request.at_ms,
                ext_user_id=ext_user_id,
                eligible_ms=request.person.eligible_ms,
                lasts_ms=request.context.settings.proposal_deadline_s * 1000,
            )
            await _record(request, conn, "propose", made, after=_describe(made))
    except ProposalRefused as refused:
        return _show_form(request, refill(form, FIELDS, problem=describe_refusal(request, refused)))
    return request.redirect(url_of(made), N_("Proposed. Another person must accept it."))


async def show_proposal(request: ConsoleRequest, conn: Connection) -> Response:
    """One proposal and its outcome."""
    return await _show(request, conn, await _find(request, conn))


async def accept(request: ConsoleRequest, conn: Connection) -> Response:
    """Accept a proposal and carry it out."""
    found = await _find(request, conn)
    if decisions.is_own(found, request.actor):
        return request.redirect(url_of(found), OWN, tone=flash.WARN)
    await _record(request, conn, "accept.asked", found, after=_describe(found))
    try:
        done = await proposals.accept(
            conn,
            _ask(request),
            found.proposal_no,
            request.actor,
            request.at_ms,
            request.person.eligible_ms,
            roles=list_roles(Right.PROPOSE_ADJUSTMENT),
            hold=request.author.hold,
        )
    except ProposalRefused as refused:
        told = {"reason": str(refused)}
        await _record(request, conn, "accept.refused", found, after=told, is_outcome=True)
        return request.redirect(url_of(found), _explain(found, refused, request), tone=flash.WARN)
    except (Unavailable, CommandFailed):
        return request.redirect(url_of(found), UNKNOWN, tone=flash.BAD)
    return await _redirect_with_outcome(request, conn, done, "accept")


async def carry_out(request: ConsoleRequest, conn: Connection) -> Response:
    """Find out what the book did for an accepted proposal, and carry it out if the book did nothing."""
    found = await _find(request, conn)
    try:
        done = await proposals.carry_out(
            conn, _ask(request), found.proposal_no, roles=list_roles(Right.PROPOSE_ADJUSTMENT)
        )
    except ProposalRefused:
        return request.redirect(url_of(found), DECIDED, tone=flash.WARN)
    except (Unavailable, CommandFailed):
        return request.redirect(url_of(found), UNKNOWN, tone=flash.BAD)
    return await _redirect_with_outcome(request, conn, done, "carry_out")


async def refuse(request: ConsoleRequest, conn: Connection) -> Response:
    """Refuse a proposal, with a reason."""
    found, reason = await _find(request, conn), request.form.text("reason")
    if errors := _find_reason_error(request):
        return await _show(request, conn, found, refill(request.form, ("reason",), errors))
    try:
        async with conn.transaction():
            done = await proposals.refuse(conn, found.proposal_no, request.actor, request.at_ms, reason)
            await _record(request, conn, "refuse", done, after={"reason": reason})
    except ProposalRefused:
        return request.redirect(url_of(found), DECIDED, tone=flash.WARN)
    return request.redirect(url_of(found), N_("Refused: nothing moves."))


async def withdraw(request: ConsoleRequest, conn: Connection) -> Response:
    """Withdraw the user's own proposal."""
    found = await _find(request, conn)
    try:
        async with conn.transaction():
            done = await proposals.withdraw(conn, found.proposal_no, request.actor, request.at_ms)
            await _record(request, conn, "withdraw", done)
    except ProposalRefused:
        return request.redirect(url_of(found), DECIDED, tone=flash.WARN)
    return request.redirect(url_of(found), N_("Withdrawn: nothing moves."))


def url_of(proposal: Proposal) -> str:
    """A proposal's page."""
    return f"{ADJUSTMENTS}/{proposal.proposal_no}"


def _find_reason_error(request: ConsoleRequest) -> dict[str, str]:
    return find_reason_error(request, NO_REASON)


async def _judge(request: ConsoleRequest, conn: Connection) -> tuple[MerchantRef | None, dict[str, str]]:
    """The merchant, and the errors of the form."""
    form, errors = request.form, _find_reason_error(request)
    if form.text("currency") not in CURRENCIES:
        raise HTTPException(400)
    if form.text("direction") not in (CREDIT, DEBIT):
        errors["direction"] = request.translate(NO_DIRECTION)
    try:
        if not read_amount(form.text("amount"), NO_AMOUNT):
            errors["amount"] = request.translate(NO_AMOUNT)
    except TypedWrong as wrong:
        errors["amount"] = request.translate(wrong.text, **wrong.values)
    try:
        merchant = await store.find(conn, form.text("merchant"))
    except MerchantUnknown:
        return None, {**errors, "merchant": request.translate(NO_MERCHANT)}
    if error := await _judge_account(request, merchant):
        errors["sub-user" if form.text("sub-user") else "currency"] = error
    return merchant, errors


def _sign(direction: str, units: int) -> int:
    return -units if direction == DEBIT else units


def _read_signed(typed: Mapping[str, str]) -> int | None:
    """The typed amount, signed. None if amount or direction lack."""
    direction = typed.get("direction", "")
    try:
        return _sign(direction, parse_units(typed.get("amount", ""))) if direction else None
    except ValueError:
        return None


async def _read_effect(
    request: ConsoleRequest, merchant_id: int, name: str | None, currency: str, signed_units: int | None
) -> Effect | None:
    """The balance now and after. None without such an account, or while its cell is away."""

    async def read(cell: Connection) -> tuple[str, int] | None:
        try:
            if name is not None:
                line = await controls.read_by_ext_user_id(cell, merchant_id, name)
                return line.currency, line.balance_units
            account = await books.find_account(cell, merchant_id, f"{MERCHANT}:{currency}")
        except LookupError:
            return None
        return account.currency, account.balance_units

    found = await request.cells.try_one(read, merchant_id)
    if found is None or found[0] != currency:
        return None
    now_units = found[1]
    return Effect(currency, now_units, None if signed_units is None else now_units + signed_units)


async def _judge_account(request: ConsoleRequest, merchant: MerchantRef) -> str:
    """The error of the account field; empty if there is none."""
    name, currency = request.form.text("sub-user"), request.form.text("currency")
    if not name:
        return (
            ""
            if currency == CURRENCIES[0] or merchant.currency_mode == currency
            else request.translate(NO_CURRENCY)
        )
    try:
        cell = await request.cells.of(merchant.merchant_id)
        line = await controls.read_by_ext_user_id(cell, merchant.merchant_id, name)
    except SubUserUnknown:
        return request.translate(NO_SUB_USER)
    return "" if line.currency == currency else request.translate(NO_CURRENCY)


def _show_form(request: ConsoleRequest, form_state: FormState) -> Response:
    return request.page(
        "console/adjustment_new.html",
        active="adjustments",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        currencies=CURRENCIES,
        most=decisions.MAX_REASON,
    )


async def _show(
    request: ConsoleRequest, conn: Connection, proposal: Proposal, form_state: FormState = EMPTY_FORM
) -> Response:
    effect = None
    if proposal.state == decisions.OPEN and not decisions.is_expired(proposal, request.at_ms):
        effect = await _read_effect(
            request, proposal.merchant_id, proposal.ext_user_id, proposal.currency, proposal.signed_units
        )
    return request.page(
        "console/adjustment.html",
        active="adjustments",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        proposal=proposal,
        effect=effect,
        merchant_name=(await merchants.read_names(conn, [proposal.merchant_id]))[proposal.merchant_id],
        is_own=decisions.is_own(proposal, request.actor),
    )


def _explain(found: Proposal, refused: ProposalRefused, request: ConsoleRequest) -> str:
    """Why an acceptance was refused, as a text to translate."""
    if decisions.is_expired(found, request.at_ms):
        return EXPIRED
    return REFUSALS.get(refused.refusal, DECIDED)


def _ask(request: ConsoleRequest) -> proposals.Ask:
    async def ask(merchant_id: int, command: Command) -> Outcome:
        submission = Submission(command, request_id=request.request_id)
        return await request.context.writer.submit(merchant_id, submission)

    return ask


async def _redirect_with_outcome(
    request: ConsoleRequest, conn: Connection, done: Proposal, what: str
) -> Response:
    await proposals.record_outcome(conn, request.author.afterwards, done, what)
    if done.entry_id is not None:
        return request.redirect(url_of(done), N_("Carried out: the entry is in the book."))
    return request.redirect(url_of(done), N_("The book refused it: nothing moved."), tone=flash.BAD)


async def _record(
    request: ConsoleRequest,
    conn: Connection,
    what: str,
    proposal: Proposal,
    *,
    after: Mapping[str, str | int | None] | None = None,
    is_outcome: bool = False,
) -> None:
    author = request.author.afterwards if is_outcome else request.author
    subject = proposals.format_subject(proposal)
    await author.record(conn, f"adjustment.{what}", subject, proposal.merchant_id, after=after)


def _describe(proposal: Proposal) -> dict[str, str | int | None]:
    return {
        "amount": format_units(proposal.signed_units),
        "currency": proposal.currency,
        "extUserId": proposal.ext_user_id,
        "reason": proposal.reason,
    }


async def _find(request: ConsoleRequest, conn: Connection) -> Proposal:
    found = await proposals.show(conn, read_id(request, "proposal_no"))
    if found is None:
        raise HTTPException(404)
    return found


ROUTES: Final = (
    Page(ADJUSTMENTS, show_adjustments, Right.READ),
    Page(f"{ADJUSTMENTS}/new", show_form, Right.PROPOSE_ADJUSTMENT),
    Page(f"{ADJUSTMENTS}/new/effect", show_effect, Right.PROPOSE_ADJUSTMENT),
    Page(f"{ADJUSTMENTS}/new", propose, Right.PROPOSE_ADJUSTMENT, POST),
    Page(ONE, show_proposal, Right.READ),
    Page(f"{ONE}/accept", accept, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/carry-out", carry_out, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/refuse", refuse, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/withdraw", withdraw, Right.PROPOSE_ADJUSTMENT, POST),
)
