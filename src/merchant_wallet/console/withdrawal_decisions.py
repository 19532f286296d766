"""Saying yes or no to orders, one or many: asked once more with all of them in sight, then told one by one.

Rules: the book judges each order by itself, so some may go and others not; each one's outcome is told. Above
the second limit the first yes is only the first. A merchant's user may cancel its own orders, nothing else,
and not after a rollback or when they are frozen. A frozen order is cancelled only if the form confirms just
that.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.book import reads
from merchant_wallet.book.commands import Approve, Cancel, Command, Refund
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import NOT_YET, SAME_PERSON, TOO_LATE
from merchant_wallet.book.rules.withdrawals import FROZEN, ROLLED_BACK
from merchant_wallet.book.writer import CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.console import flash
from merchant_wallet.console.book_commands import ask_book
from merchant_wallet.console.request import (
    POST,
    Connection,
    Page,
    Seat,
    act,
    read_id,
)
from merchant_wallet.console.screening import screen
from merchant_wallet.console.withdrawals import QUEUE, tell_reasons, url_of
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import orders
from merchant_wallet.reporting.orders import OrderLine
from merchant_wallet.reporting.paging import read_number
from merchant_wallet.web.languages import N_
from merchant_wallet.web.refusals import tell_refusal
from merchant_wallet.withdrawals import payouts

APPROVE: Final = "approve"
CANCEL: Final = "cancel"
REFUND: Final = "refund"
ONE: Final = f"{QUEUE}/{{order_id:int}}"
MAX_AT_ONCE: Final = 100

APPROVED: Final = N_("Approved: it is paid next.")
APPROVED_WAITS: Final = N_("Approved, and not paid yet: {reason}.")
FIRST_OF_TWO: Final = N_("First of two approvals given. Another person must approve it too.")
DONE: Final = {
    CANCEL: N_("Cancelled: the amount is back in the merchant's balance."),
    REFUND: N_("Refunded: the amount is back in the merchant's balance."),
}
TOLD: Final[Mapping[str, str]] = {
    SAME_PERSON.msg: N_("You have approved it already. Another person must approve it too."),
    NOT_YET.msg: N_(
        "Your word does not count yet: an operator who is new, was reset, was let in again or got more "
        "rights waits before it does."
    ),
    FROZEN.msg: N_("Nothing was done: the order is frozen, and the platform must look at the chain first."),
    ROLLED_BACK.msg: N_(
        "Nothing was done: payouts are stopped, and the platform must look at the order first."
    ),
    TOO_LATE.msg: N_("Its time for approval has passed; it expires by itself."),
}
MOVED_ON: Final = N_("Nothing was done: the order has moved on meanwhile.")
REFUSED: Final = N_("The book refused: {reason}")
AWAY: Final = N_("Nothing was done: the book did not answer. Try again.")
UNKNOWN: Final = N_("The book did not answer in time. Look at the order before you try again.")
BROKEN: Final = N_("Nothing was done: something broke on our side, and was logged.")
_ILLEGAL: Final = "orderId: an order in status"


class Decided(msgspec.Struct, frozen=True):
    """What became of one order: the English text and what fills it; tones are those of `flash`."""

    order: OrderLine
    tone: str
    text: str
    values: Mapping[str, str] = {}


async def approve(request: Request, seat: Seat, conn: Connection) -> Response:
    """Say yes to the orders of the form."""
    return await _decide(seat, conn, APPROVE)


async def cancel(request: Request, seat: Seat, conn: Connection) -> Response:
    """Give up the orders of the form."""
    return await _decide(seat, conn, CANCEL)


async def refund(request: Request, seat: Seat, conn: Connection) -> Response:
    """Give a failed order's amount back."""
    order = await find_order(seat, conn, read_id(request, "order_id"))
    return _tell(seat, await _decide_one(seat, conn, order, REFUND))


async def thaw(request: Request, seat: Seat, conn: Connection) -> Response:
    """Let a frozen order's payout go on."""
    order = await find_order(seat, conn, read_id(request, "order_id"))
    async with conn.transaction():
        if not await payouts.thaw(conn, order.merchant_id, order.order_id):
            told = N_("It was not frozen; nothing was changed.")
            return seat.go(url_of(order.order_id), told, tone=flash.WARN)
        await act(
            seat,
            conn,
            "withdrawal.thaw",
            _subject(order),
            order.merchant_id,
            before={"frozen": True},
            after={"frozen": False},
        )
    return seat.go(url_of(order.order_id), N_("Thawed: the workers go on with it."))


async def find_order(seat: Seat, conn: Connection, order_id: int) -> OrderLine:
    """An order by an id that names its book. Raises HTTPException 404, also for another merchant's."""
    merchant_id = await reads.find_book(conn, order_id) if order_id else None
    if merchant_id is None or seat.merchant_id not in (None, merchant_id):
        raise HTTPException(404)
    order = await orders.find_order(conn, merchant_id, order_id)
    if order is None:
        raise HTTPException(404)
    return order


async def _decide(seat: Seat, conn: Connection, what: str) -> Response:
    chosen = await _read_chosen(seat, conn)
    if not chosen:
        return seat.go(QUEUE, N_("Choose at least one order first."), tone=flash.WARN)
    if seat.form.text("confirmed") != "1":
        return seat.page(
            "console/withdrawals_confirm.html",
            active="withdrawals",
            what=what,
            rows=await screen(seat, conn, chosen),
            reasons=await tell_reasons(seat, conn, chosen, if_approved=True),
            total_units=sum(order.amount_units for order in chosen),
        )
    decided = [await _decide_one(seat, conn, order, what) for order in chosen]
    if seat.form.text("back") == "order":
        return _tell(seat, decided[0])
    return _tell_all(seat, decided, what)


async def _read_chosen(seat: Seat, conn: Connection) -> list[OrderLine]:
    """The orders that the form names, each once. Raises HTTPException 400, 404."""
    numbers = [read_number(text) for text in dict.fromkeys(seat.form.all("order"))]
    if len(numbers) > MAX_AT_ONCE or None in numbers:
        raise HTTPException(400)
    return [await find_order(seat, conn, number) for number in numbers if number is not None]


async def _decide_one(seat: Seat, conn: Connection, order: OrderLine, what: str) -> Decided:
    command, subject = _command(seat, order, what), _subject(order)
    try:
        outcome = await ask_book(seat, conn, order.merchant_id, command, f"withdrawal.{what}", subject)
    except Refused as refused:
        return _explain(seat, order, refused.refusal)
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
        return Decided(order, flash.GOOD, FIRST_OF_TWO)
    return await _tell_approved(seat, conn, order)


async def _tell_approved(seat: Seat, conn: Connection, order: OrderLine) -> Decided:
    """What an approval means now: it is paid, or it waits for something."""
    reason = (await tell_reasons(seat, conn, [order], if_approved=True)).get(order.order_id)
    if reason is None:
        return Decided(order, flash.GOOD, APPROVED)
    told = seat.say(reason.text, **reason.values)
    return Decided(order, flash.GOOD, APPROVED_WAITS, {"reason": told})


def _command(seat: Seat, order: OrderLine, what: str) -> Command:
    if what == REFUND:
        return Refund(order.order_id)
    if what == APPROVE:
        return Approve(order.order_id, seat.actor, seat.person.counts_ms)
    is_merchant = seat.merchant_id is not None
    confirmed = not is_merchant and seat.form.text("even_frozen") == "1"
    return Cancel(order.order_id, seat.actor, by_merchant=is_merchant, even_frozen=confirmed)


def _explain(seat: Seat, order: OrderLine, refusal: Refusal) -> Decided:
    if refusal.msg in TOLD:
        return Decided(order, flash.WARN, TOLD[refusal.msg])
    if refusal.msg.startswith(_ILLEGAL):
        return Decided(order, flash.WARN, MOVED_ON)
    return Decided(order, flash.BAD, REFUSED, {"reason": tell_refusal(seat.visitor.language, refusal.msg)})


def _tell(seat: Seat, decided: Decided) -> Response:
    return seat.go(url_of(decided.order.order_id), decided.text, tone=decided.tone, **decided.values)


def _tell_all(seat: Seat, decided: Sequence[Decided], what: str) -> Response:
    return seat.page(
        "console/withdrawals_decided.html",
        active="withdrawals",
        what=what,
        rows=decided,
        good=sum(one.tone == flash.GOOD for one in decided),
    )


def _subject(order: OrderLine) -> str:
    return f"order {order.order_id}"


ROUTES: Final = (
    Page(f"{QUEUE}/approve", approve, Right.APPROVE_WITHDRAWAL, POST),
    Page(f"{QUEUE}/cancel", cancel, Right.CANCEL_WITHDRAWAL, POST, own=True),
    Page(f"{ONE}/refund", refund, Right.REFUND_WITHDRAWAL, POST),
    Page(f"{ONE}/thaw", thaw, Right.THAW, POST),
)
