"""Decisions about orders, one or many: a confirmation page shows all of them, then the outcome of each.

Rules:
- Each page has a URL, and a decision redirects to its outcome. So "back" never sends a decision again.
- The book judges each order by itself, so some may succeed and others fail.
- Above the second limit two approvals are needed.
- A merchant's user may only cancel its own orders, and not if they are frozen or after a rollback.
- A frozen order is cancelled only if the form confirms exactly that.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.audit.book_commands import ask_book
from merchant_wallet.audit.records import hold_nothing
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.commands import Approve, Cancel, Command, Refund
from merchant_wallet.book.errors import CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import OrderRefusal, Withdrawal
from merchant_wallet.console import flash
from merchant_wallet.console.order_notes import add_notes
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.withdrawal_results import HALF, Decided, redirect_to_results
from merchant_wallet.console.withdrawals import (
    QUEUE,
    find_order,
    list_not_approvable,
    list_reasons,
    url_of,
)
from merchant_wallet.operators import order_approvals
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.orders import OrderLine
from merchant_wallet.web.languages import N_
from merchant_wallet.web.refusals import translate_refusal
from merchant_wallet.withdrawals import acts

APPROVE: Final = "approve"
CANCEL: Final = "cancel"
REFUND: Final = "refund"
CONFIRM: Final = f"{QUEUE}/confirm"
CONFIRMED_BY: Final = {APPROVE: Right.APPROVE_WITHDRAWAL, CANCEL: Right.CANCEL_WITHDRAWAL}
ONE: Final = f"{QUEUE}/{{order_id:int}}"
MAX_ORDERS: Final = 100
CHOOSE: Final = N_("Choose at least one order first.")
NONE_APPROVABLE: Final = N_("You can approve none of them now. The reason is beside each order.")

APPROVED: Final = N_("Approved: it is paid next.")
APPROVED_WAITS: Final = N_("Approved, and not paid yet: {reason}.")
FIRST_OF_TWO: Final = N_("First of two approvals given. Another person must approve it too.")
DONE: Final = {
    CANCEL: N_("Cancelled: the amount is back in the merchant's balance."),
    REFUND: N_("Refunded: the amount is back in the merchant's balance."),
}
BY_OTHERS: Final = N_("Somebody else has approved it meanwhile.")
REFUSAL_TEXTS: Final[Mapping[str, str]] = {
    OrderRefusal.SAME_PERSON: N_("You have approved it already. Another person must approve it too."),
    OrderRefusal.NOT_YET: N_(
        "Your approvals do not count yet. A new, reset, enabled or promoted operator must wait first, and so"
        " must who made a key or a secret of this merchant."
    ),
    OrderRefusal.DAY_LIMIT: N_(
        "Nothing was done: you would approve more than one person may on a day. Another person must approve"
        " it."
    ),
    OrderRefusal.FROZEN: N_(
        "Nothing was done: the order is frozen, and the platform must look at the chain first."
    ),
    OrderRefusal.ROLLED_BACK: N_(
        "Nothing was done: payouts are stopped, and the platform must look at the order first."
    ),
    OrderRefusal.TOO_LATE: N_("Its time for approval has passed. It expires automatically."),
    OrderRefusal.STATUS: N_("Nothing was done: the order has moved on meanwhile."),
}
REFUSED: Final = N_("The book refused: {reason}")
AWAY: Final = N_("Nothing was done: the book did not answer. Try again.")
UNKNOWN: Final = N_("The book did not answer in time. Look at the order before you try again.")
BROKEN: Final = N_("Nothing was done: an error occurred on our side and was logged.")


async def approve(request: ConsoleRequest, conn: Connection) -> Response:
    """Approve the orders of the form."""
    return await _decide(request, conn, APPROVE)


async def cancel(request: ConsoleRequest, conn: Connection) -> Response:
    """Cancel the orders of the form."""
    return await _decide(request, conn, CANCEL)


async def refund(request: ConsoleRequest, conn: Connection) -> Response:
    """Refund a failed order."""
    order = await find_order(request, conn, read_id(request, "order_id"))
    return _redirect_to_order(request, await _decide_one(request, conn, order, REFUND))


async def thaw(request: ConsoleRequest, conn: Connection) -> Response:
    """Resume a frozen order's payout."""
    order = await find_order(request, conn, read_id(request, "order_id"))
    if not await acts.thaw_order(conn, request.author, order.merchant_id, order.order_id):
        told = N_("It was not frozen; nothing was changed.")
        return request.redirect(url_of(order.order_id), told, tone=flash.WARN)
    cell = await request.cells.of(order.merchant_id)
    await frozen_orders.thaw(cell, order.merchant_id, order.order_id)
    return request.redirect(url_of(order.order_id), N_("Resumed. The workers continue the payout."))


async def _decide(request: ConsoleRequest, conn: Connection, what: str) -> Response:
    chosen = await _find_chosen(request, conn, request.form.all("order"))
    if not chosen:
        return request.redirect(QUEUE, CHOOSE, tone=flash.WARN)
    if request.form.text("confirmed") != "1":
        return _ask_again(request, what)
    decided = [await _decide_one(request, conn, order, what) for order in chosen]
    if request.form.text("back") == "order":
        return _redirect_to_order(request, decided[0])
    return redirect_to_results(request, decided, what)


async def confirm(request: ConsoleRequest, conn: Connection) -> Response:
    """The chosen orders, to be confirmed. The URL has them, so "back" and another language keep them."""
    what = request.http.query_params.get("what", "")
    if what not in CONFIRMED_BY:
        return request.redirect(QUEUE, CHOOSE, tone=flash.WARN)
    request.require(CONFIRMED_BY[what], request.merchant_id)
    chosen = await _find_chosen(request, conn, request.http.query_params.getlist("order"))
    if not chosen:
        return request.redirect(QUEUE, CHOOSE, tone=flash.WARN)
    refused = await list_not_approvable(request, conn, chosen) if what == APPROVE else {}
    left_out = [one for one in chosen if one.order_id in refused]
    chosen = [one for one in chosen if one.order_id not in refused]
    if not chosen:
        return request.redirect(QUEUE, NONE_APPROVABLE, tone=flash.WARN)
    return request.page(
        "console/withdrawals_confirm.html",
        active="withdrawals",
        what=what,
        left_out=left_out,
        not_approvable=refused,
        rows=await add_notes(request, conn, chosen),
        reasons=await list_reasons(request, conn, chosen, if_approved=True),
        total_units=sum(order.amount_units for order in chosen),
        arrival_units=sum(order.arrival_units for order in chosen),
    )


def _ask_again(request: ConsoleRequest, what: str) -> Response:
    orders = [("order", text) for text in dict.fromkeys(request.form.all("order"))]
    return request.context.responses.redirect(f"{CONFIRM}?{urlencode([('what', what), *orders])}")


async def _find_chosen(request: ConsoleRequest, conn: Connection, chosen: Sequence[str]) -> list[OrderLine]:
    """The chosen orders, each once. Raises HTTPException 400, 404."""
    numbers = [parse_digits(text) for text in dict.fromkeys(chosen)]
    if len(numbers) > MAX_ORDERS or None in numbers:
        raise HTTPException(400)
    return [await find_order(request, conn, number) for number in numbers if number is not None]


async def _decide_one(request: ConsoleRequest, conn: Connection, order: OrderLine, what: str) -> Decided:
    eligible_ms = 0
    if what == APPROVE:
        eligible_ms = await order_approvals.read_eligible_ms(conn, request.actor, order.merchant_id)
    command = _command(request, order, what, eligible_ms)
    submit = partial(request.context.submit, request_id=request.request_id)
    limit_units = request.context.settings.approval_day_limit
    count = order_approvals.make_count(request.actor, order, at_ms=request.at_ms, limit_units=limit_units)
    check = count if what == APPROVE else hold_nothing
    try:
        outcome = await ask_book(request.author, conn, submit, order.merchant_id, command, check=check)
    except Refused as refused:
        return _explain(request, order, refused.refusal)
    except CommitUnknown:
        return Decided(order, flash.BAD, UNKNOWN)
    except Unavailable:
        return Decided(order, flash.BAD, AWAY)
    except CommandFailed:
        return Decided(order, flash.BAD, BROKEN)
    assert isinstance(outcome, Withdrawal)
    if what != APPROVE:
        return Decided(order, flash.GOOD, DONE[what])
    if outcome.approved_ms is None:
        return Decided(order, HALF, FIRST_OF_TWO)
    if outcome.approved_by is None or person_of(outcome.approved_by) != person_of(request.actor):
        return Decided(order, flash.WARN, BY_OTHERS)
    return await _describe_approved(request, conn, order)


async def _describe_approved(request: ConsoleRequest, conn: Connection, order: OrderLine) -> Decided:
    """What an approval means now: the order is paid, or it waits for something."""
    reason = (await list_reasons(request, conn, [order], if_approved=True)).get(order.order_id)
    if reason is None:
        return Decided(order, flash.GOOD, APPROVED)
    told = request.translate(reason.text, **reason.values)
    return Decided(order, flash.GOOD, APPROVED_WAITS, {"reason": told})


def _command(request: ConsoleRequest, order: OrderLine, what: str, eligible_ms: int) -> Command:
    if what == REFUND:
        return Refund(order.order_id)
    if what == APPROVE:
        return Approve(order.order_id, request.actor, eligible_ms)
    is_merchant = request.merchant_id is not None
    confirmed = not is_merchant and request.form.text("even_frozen") == "1"
    return Cancel(order.order_id, request.actor, by_merchant=is_merchant, even_frozen=confirmed)


def _explain(request: ConsoleRequest, order: OrderLine, refusal: Refusal) -> Decided:
    if refusal.name is not None and refusal.name in REFUSAL_TEXTS:
        return Decided(order, flash.WARN, REFUSAL_TEXTS[refusal.name])
    return Decided(
        order, flash.BAD, REFUSED, {"reason": translate_refusal(request.client.language, refusal.msg)}
    )


def _redirect_to_order(request: ConsoleRequest, decided: Decided) -> Response:
    tone = flash.GOOD if decided.tone == HALF else decided.tone
    return request.redirect(url_of(decided.order.order_id), decided.text, tone=tone, **decided.values)


ROUTES: Final = (
    Page(CONFIRM, confirm, Right.READ, own_book=True),
    Page(f"{QUEUE}/approve", approve, Right.APPROVE_WITHDRAWAL, POST),
    Page(f"{QUEUE}/cancel", cancel, Right.CANCEL_WITHDRAWAL, POST, own_book=True),
    Page(f"{ONE}/refund", refund, Right.REFUND_WITHDRAWAL, POST),
    Page(f"{ONE}/thaw", thaw, Right.THAW, POST),
)
