"""Adjustments: one person proposes an entry by hand, another carries it out or says no.

Rules: nobody accepts his own proposal. What is accepted is asked of the book once, whatever happens on the
way; where nobody knows what the book did, asking again finds out.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.approvals import decisions, proposals
from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.approvals.proposals import Proposal
from merchant_wallet.base.money import CURRENCIES, format_units, parse_units
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import CommandFailed, Unavailable
from merchant_wallet.console import flash
from merchant_wallet.console.filter_values import find_scope
from merchant_wallet.console.form_state import EMPTY, Filled, refill
from merchant_wallet.console.proposal_forms import REFUSALS, find_reason_error, tell_refusal
from merchant_wallet.console.request import (
    POST,
    Connection,
    Page,
    Seat,
    act,
    read_id,
)
from merchant_wallet.console.tables import read_state
from merchant_wallet.merchants import store
from merchant_wallet.merchants.store import MerchantRef, MerchantUnknown
from merchant_wallet.operators.roles import Right, list_roles
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.paging import read_number
from merchant_wallet.sub_users import controls
from merchant_wallet.sub_users.controls import SubUserUnknown
from merchant_wallet.web.languages import N_

ADJUSTMENTS: Final = "/console/adjustments"
ONE: Final = f"{ADJUSTMENTS}/{{proposal_no:int}}"
PAGE_ROWS: Final = 50
FIELDS: Final = ("merchant", "direction", "currency", "amount", "sub-user", "reason")
CREDIT: Final = "credit"
DEBIT: Final = "debit"
NO_MERCHANT: Final = N_("No merchant has this id, key or name.")
NO_AMOUNT: Final = N_("An amount above 0 with at most 6 decimals.")
NO_REASON: Final = N_("Say why, in 1 to 500 characters: the reason stands in the book for good.")
NO_SUB_USER: Final = N_("This merchant has no such sub-user.")
NO_CURRENCY: Final = N_("There is no such account: the merchant or the wallet holds another currency.")
OWN: Final = N_("It is your own proposal: another person must accept it.")
DECIDED: Final = N_("It was decided meanwhile.")
EXPIRED: Final = N_("It has expired: propose it again.")
UNKNOWN: Final = N_(
    "The book did not answer in time. Look again in a minute: it is carried out once at most."
)


async def show_adjustments(request: Request, seat: Seat, conn: Connection) -> Response:
    """What waits for a decision, what is unfinished, and what was decided."""
    state = read_state(ADJUSTMENTS, request.query_params, filters=("merchant",))
    scope = await find_scope(seat, conn, state.get("merchant"))
    before_no = read_number(state.after) if state.after else None
    decided = await proposals.list_decided(
        conn, now_ms=seat.at_ms, merchant_id=scope, before_no=before_no, limit=PAGE_ROWS + 1
    )
    waiting = await proposals.list_open(conn, now_ms=seat.at_ms, limit=decisions.MAX_PAGE)
    unfinished = await proposals.list_unfinished(conn, now_ms=seat.at_ms)
    return seat.page(
        "console/adjustments.html",
        active="adjustments",
        state=state,
        waiting=[one for one in waiting if scope in (None, one.merchant_id)],
        unfinished=unfinished,
        decided=decided[:PAGE_ROWS],
        next=str(decided[PAGE_ROWS - 1].proposal_no) if len(decided) > PAGE_ROWS else None,
        names=await merchants.read_names(
            conn, [one.merchant_id for one in (*waiting, *unfinished, *decided)]
        ),
        is_own=partial(decisions.is_own, actor=seat.actor),
    )


async def show_form(request: Request, seat: Seat, conn: Connection) -> Response:
    """The form to propose one."""
    return _show_form(seat, Filled({"merchant": request.query_params.get("merchant", "")}))


async def propose(request: Request, seat: Seat, conn: Connection) -> Response:
    """Propose one."""
    merchant, errors = await _judge(seat, conn)
    if merchant is None or errors:
        return _show_form(seat, refill(seat.form, FIELDS, errors))
    form, ext_user_id = seat.form, seat.form.text("sub-user") or None
    units = parse_units(form.text("amount"))
    signed_units = -units if form.text("direction") == DEBIT else units
    try:
        async with conn.transaction():
            made = await proposals.propose(
                conn,
                merchant.merchant_id,
                form.text("currency"),
                signed_units,
                form.text("reason"),
                proposed_by=seat.actor,
                at_ms=seat.at_ms,
                ext_user_id=ext_user_id,
                counts_ms=seat.person.counts_ms,
                lasts_ms=seat.ground.settings.proposal_deadline_s * 1000,
            )
            await _record(seat, conn, "propose", made, after=_describe(made))
    except ProposalRefused as refused:
        return _show_form(seat, refill(form, FIELDS, problem=tell_refusal(seat, refused)))
    return seat.go(url_of(made), N_("Proposed. Another person must accept it."))


async def show_proposal(request: Request, seat: Seat, conn: Connection) -> Response:
    """One proposal and what became of it."""
    return await _show(seat, conn, await _find(request, conn))


async def accept(request: Request, seat: Seat, conn: Connection) -> Response:
    """Accept one and carry it out."""
    found = await _find(request, conn)
    if decisions.is_own(found, seat.actor):
        return seat.go(url_of(found), OWN, tone=flash.WARN)
    await _record(seat, conn, "accept.asked", found, after=_describe(found))
    try:
        done = await proposals.accept(
            conn,
            _ask(seat),
            found.proposal_no,
            seat.actor,
            seat.at_ms,
            seat.person.counts_ms,
            roles=list_roles(Right.PROPOSE_ADJUSTMENT),
        )
    except ProposalRefused as refused:
        await _record(seat, conn, "accept.refused", found, after={"reason": str(refused)})
        return seat.go(url_of(found), _explain(found, refused, seat), tone=flash.WARN)
    except (Unavailable, CommandFailed):
        return seat.go(url_of(found), UNKNOWN, tone=flash.BAD)
    return await _tell(seat, conn, done, "accept")


async def carry_out(request: Request, seat: Seat, conn: Connection) -> Response:
    """Find out what the book did for an accepted one, and have it done if it was not."""
    found = await _find(request, conn)
    try:
        done = await proposals.carry_out(conn, _ask(seat), found.proposal_no)
    except ProposalRefused:
        return seat.go(url_of(found), DECIDED, tone=flash.WARN)
    except (Unavailable, CommandFailed):
        return seat.go(url_of(found), UNKNOWN, tone=flash.BAD)
    return await _tell(seat, conn, done, "carry_out")


async def refuse(request: Request, seat: Seat, conn: Connection) -> Response:
    """Say no to one, with a reason."""
    found, reason = await _find(request, conn), seat.form.text("reason")
    if errors := _find_reason_error(seat):
        return await _show(seat, conn, found, refill(seat.form, ("reason",), errors))
    try:
        async with conn.transaction():
            done = await proposals.refuse(conn, found.proposal_no, seat.actor, seat.at_ms, reason)
            await _record(seat, conn, "refuse", done, after={"reason": reason})
    except ProposalRefused:
        return seat.go(url_of(found), DECIDED, tone=flash.WARN)
    return seat.go(url_of(found), N_("Refused: nothing moves."))


async def withdraw(request: Request, seat: Seat, conn: Connection) -> Response:
    """Take one's own back."""
    found = await _find(request, conn)
    try:
        async with conn.transaction():
            done = await proposals.withdraw(conn, found.proposal_no, seat.actor, seat.at_ms)
            await _record(seat, conn, "withdraw", done)
    except ProposalRefused:
        return seat.go(url_of(found), DECIDED, tone=flash.WARN)
    return seat.go(url_of(found), N_("Withdrawn: nothing moves."))


def url_of(proposal: Proposal) -> str:
    """A proposal's page."""
    return f"{ADJUSTMENTS}/{proposal.proposal_no}"


def _find_reason_error(seat: Seat) -> dict[str, str]:
    return find_reason_error(seat, NO_REASON)


async def _judge(seat: Seat, conn: Connection) -> tuple[MerchantRef | None, dict[str, str]]:
    """The merchant that was named, and what is wrong with the form."""
    form, errors = seat.form, _find_reason_error(seat)
    if form.text("direction") not in (CREDIT, DEBIT) or form.text("currency") not in CURRENCIES:
        raise HTTPException(400)
    try:
        if parse_units(form.text("amount")) <= 0:
            errors["amount"] = seat.say(NO_AMOUNT)
    except ValueError:
        errors["amount"] = seat.say(NO_AMOUNT)
    try:
        merchant = await store.find(conn, form.text("merchant"))
    except MerchantUnknown:
        return None, {**errors, "merchant": seat.say(NO_MERCHANT)}
    if error := await _judge_account(seat, conn, merchant):
        errors["sub-user" if form.text("sub-user") else "currency"] = error
    return merchant, errors


async def _judge_account(seat: Seat, conn: Connection, merchant: MerchantRef) -> str:
    """What is wrong with the account that was named; empty when nothing is."""
    name, currency = seat.form.text("sub-user"), seat.form.text("currency")
    if not name:
        return (
            "" if currency == CURRENCIES[0] or merchant.currency_mode == currency else seat.say(NO_CURRENCY)
        )
    try:
        line = await controls.read_by_ext_user_id(conn, merchant.merchant_id, name)
    except SubUserUnknown:
        return seat.say(NO_SUB_USER)
    return "" if line.currency == currency else seat.say(NO_CURRENCY)


def _show_form(seat: Seat, filled: Filled) -> Response:
    return seat.page(
        "console/adjustment_new.html",
        active="adjustments",
        status=200 if filled.ok else 422,
        filled=filled,
        currencies=CURRENCIES,
        most=decisions.MAX_REASON,
    )


async def _show(seat: Seat, conn: Connection, proposal: Proposal, filled: Filled = EMPTY) -> Response:
    return seat.page(
        "console/adjustment.html",
        active="adjustments",
        status=200 if filled.ok else 422,
        filled=filled,
        proposal=proposal,
        merchant_name=(await merchants.read_names(conn, [proposal.merchant_id]))[proposal.merchant_id],
        is_own=decisions.is_own(proposal, seat.actor),
    )


def _explain(found: Proposal, refused: ProposalRefused, seat: Seat) -> str:
    """Why an acceptance was refused, as a text to translate."""
    if decisions.is_expired(found, seat.at_ms):
        return EXPIRED
    return REFUSALS.get(refused.sentence, DECIDED)


def _ask(seat: Seat) -> proposals.Ask:
    async def ask(merchant_id: int, command: Command) -> Outcome:
        submission = Submission(command, request_id=seat.request_id)
        return await seat.ground.writer.submit(merchant_id, submission)

    return ask


async def _tell(seat: Seat, conn: Connection, done: Proposal, what: str) -> Response:
    after = {"state": done.state, "entryId": done.entry_id, "outcome": done.outcome}
    await _record(seat, conn, what, done, after=after)
    if done.entry_id is not None:
        return seat.go(url_of(done), N_("Carried out: the entry is in the book."))
    return seat.go(url_of(done), N_("The book refused it: nothing moved."), tone=flash.BAD)


async def _record(
    seat: Seat,
    conn: Connection,
    what: str,
    proposal: Proposal,
    *,
    after: Mapping[str, str | int | None] | None = None,
) -> None:
    subject = f"proposal {proposal.proposal_no}"
    await act(seat, conn, f"adjustment.{what}", subject, proposal.merchant_id, after=after)


def _describe(proposal: Proposal) -> dict[str, str | int | None]:
    return {
        "amount": format_units(proposal.signed_units),
        "currency": proposal.currency,
        "extUserId": proposal.ext_user_id,
        "reason": proposal.reason,
    }


async def _find(request: Request, conn: Connection) -> Proposal:
    found = await proposals.show(conn, read_id(request, "proposal_no"))
    if found is None:
        raise HTTPException(404)
    return found


ROUTES: Final = (
    Page(ADJUSTMENTS, show_adjustments, Right.READ),
    Page(f"{ADJUSTMENTS}/new", show_form, Right.PROPOSE_ADJUSTMENT),
    Page(f"{ADJUSTMENTS}/new", propose, Right.PROPOSE_ADJUSTMENT, POST),
    Page(ONE, show_proposal, Right.READ),
    Page(f"{ONE}/accept", accept, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/carry-out", carry_out, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/refuse", refuse, Right.DECIDE_ADJUSTMENT, POST),
    Page(f"{ONE}/withdraw", withdraw, Right.PROPOSE_ADJUSTMENT, POST),
)
