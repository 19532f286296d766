"""`advance` and `fail`: withdrawal orders go on when a test says so.

Rules:
- The book, the payer and the chain do what they always do. An action approves, cancels, or tells the chain
  how and when a transfer ends. Then it waits until the order has the status.
- An order that can't come to the status is refused, and nothing is changed.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.operations.withdrawals import QUERY
from merchant_wallet.api.wire import DataItem, Fields, optional, require_long
from merchant_wallet.approvals.changes import ChangeRefused
from merchant_wallet.base.codes import FIELD_INVALID, LIMIT_EXCEEDED, UNAVAILABLE, refuse
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.commands import Approve, Cancel, ReadWithdrawal
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import needs_two
from merchant_wallet.book.rules.withdrawals import (
    CANCELLED,
    EXPIRED,
    FAILED,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
)
from merchant_wallet.chains.sandbox import recipients
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action
from merchant_wallet.screening import decisions
from merchant_wallet.screening import store as screenings
from merchant_wallet.screening.screening_states import Event, State

WAIT_S: Final = 10.0
LOOK_S: Final = 0.05

NEXT: Final[Mapping[int, int]] = {PENDING: PROCESSING, PROCESSING: PAID, FAILED: REFUNDED}
REACHABLE: Final[Mapping[int, frozenset[int]]] = {
    PENDING: frozenset({PROCESSING, PAID, FAILED, CANCELLED, REFUNDED}),
    PROCESSING: frozenset({PAID, FAILED, REFUNDED}),
    FAILED: frozenset({REFUNDED}),
}
"""Where an order in a status can be taken. It expires by itself, at a recipient for that."""
_PASSED: Final[Mapping[int, frozenset[int]]] = {
    PROCESSING: frozenset({PROCESSING, PAID, FAILED, REFUNDED}),
    FAILED: frozenset({FAILED, REFUNDED}),
}
"""An order with a later status has passed this one."""


class Advance(NamedTuple):
    """The order, and the status that it shall come to; None for the next one."""

    order_id: int
    status: int | None


def _read_order_id(fields: Fields) -> int:
    order_id = require_long(fields, "orderId")
    return order_id if order_id <= MAX_ID else 0


def _read_advance(fields: Fields, context: OperationContext) -> Advance:
    order_id, text = _read_order_id(fields), optional(fields, "txnStatus", 1)
    if text is None:
        return Advance(order_id, None)
    if text not in ("1", "2", "3", "4", "6"):
        refuse(FIELD_INVALID, f"txnStatus must be 1, 2, 3, 4 or 6. For {EXPIRED} use its recipient")
    return Advance(order_id, int(text))


def _read_fail(fields: Fields, context: OperationContext) -> Advance:
    return Advance(_read_order_id(fields), REFUNDED)


async def _advance(call: Call, asked: Advance) -> list[DataItem]:
    order = await _read_order(call, asked.order_id)
    status = NEXT.get(order.status) if asked.status is None else asked.status
    if status is None or status not in REACHABLE.get(order.status, ()):
        wanted = "further" if status is None else f"to {status}"
        refuse(LIMIT_EXCEEDED, f"orderId: an order in status {order.status} can't be taken {wanted}")
    if status == CANCELLED:
        await call.change_book(Cancel(order.order_id, call.actor), "sandbox.cancel", _name(order))
    else:
        order = await _take_through(call, order, status)
    return _answer(call, await _wait(call, order, _PASSED.get(status, frozenset({status}))))


async def _take_through(call: Call, order: Withdrawal, status: int) -> Withdrawal:
    if order.status == PENDING:
        await _approve(call, order)
    if status == PROCESSING:
        return order
    if order.status != FAILED:
        await _end_transfer(call, order, status)
    if status in (FAILED, REFUNDED):
        await _hold_refund(call, order, is_held=status == FAILED)
    return order


async def _approve(call: Call, order: Withdrawal) -> None:
    """Approve an order as the sandbox; above the second limit as two people."""
    if order.approved_ms is not None:
        return
    actors = [call.actor]
    if needs_two(order) and order.first_approved_by is None:
        actors.append(f"sandbox:second {call.merchant.app_key}")
    for actor in actors:
        await call.change_book(Approve(order.order_id, actor), "sandbox.approve", _name(order))


async def _end_transfer(call: Call, order: Withdrawal, status: int) -> None:
    """Let the order's transfer end now. Refused 42202 if it ended in another way, 50300 if there is none."""
    await _hold_refund(call, order, is_held=status == FAILED)
    verdict = recipients.PAID if status == PAID else recipients.FAILED
    values = {"merchant_id": call.merchant_id, "order_id": order.order_id, "verdict": verdict}
    for _ in range(round(WAIT_S / LOOK_S)):
        async with call.home.transaction():
            ended = await store.run(call.home, "end_transfer", **values, now_ms=call.context.clock())
            if ended:
                told = {"verdict": verdict, "txHash": ended[0][0]}
                await call.record("sandbox.end_transfer", _name(order), after=told)
                return
        await _decide_screening(call, order, is_released=status == PAID)
        present = await _read_order(call, order.order_id)
        if present.status not in (PENDING, PROCESSING):
            if present.status != PAID or status == PAID:
                return
            refuse(LIMIT_EXCEEDED, f"orderId: the transfer is final, the order is in {present.status}")
        await _rest(call)
    _refuse_late()


async def _decide_screening(call: Call, order: Withdrawal, *, is_released: bool) -> None:
    """Release or refuse what screening holds, as people would. A worker carries it on."""
    async with call.home.transaction():
        found = await screenings.find_order(call.home, call.merchant_id, order.order_id)
        if found is None or found.state is not State.HELD:
            return
        event = Event.RELEASED if is_released else Event.REJECTED
        try:
            decided = await decisions.decide(call.home, found, event, call.actor, call.context.clock())
        except ChangeRefused:
            # Somebody has decided meanwhile.
            return
        told = {"state": decided.state.value}
        await call.record("sandbox.screening", decisions.format_subject(found.screening_no), after=told)


async def _hold_refund(call: Call, order: Withdrawal, *, is_held: bool) -> None:
    values = {"merchant_id": call.merchant_id, "order_id": order.order_id, "is_held": is_held}
    async with call.home.transaction():
        await store.run(call.home, "hold_refund", **values)
        await call.record("sandbox.hold_refund", _name(order), after={"isHeld": is_held})


async def _wait(call: Call, order: Withdrawal, statuses: frozenset[int]) -> Withdrawal:
    """Wait until an order has one of these statuses. Refused 50300 if that takes too long."""
    for _ in range(round(WAIT_S / LOOK_S)):
        order = await _read_order(call, order.order_id)
        if order.status in statuses:
            return order
        await _rest(call)
    _refuse_late()


async def _rest(call: Call) -> None:
    """Wait before the next look. Refused 50300 when the process stops."""
    if call.context.is_ending():
        refuse(UNAVAILABLE, "this process stops; ask again", retry_after_s=1)
    await asyncio.sleep(LOOK_S)


def _refuse_late() -> NoReturn:
    msg = f"the workers have not done it within {WAIT_S:g} s; if they run, ask again"
    refuse(UNAVAILABLE, msg, retry_after_s=1)


async def _read_order(call: Call, order_id: int) -> Withdrawal:
    """The order as it is now. Refused 40401."""
    # The action names the order by our id alone.
    found = await call.ask(ReadWithdrawal(order_id, await _find_name(call, order_id)))
    assert isinstance(found, Withdrawal)
    return found


async def _find_name(call: Call, order_id: int) -> str:
    rows = await store.run(call.cell, "find_order_name", merchant_id=call.merchant_id, order_id=order_id)
    return rows[0][0] if rows else ""


def _name(order: Withdrawal) -> str:
    return f"order {order.order_id}"


def _answer(call: Call, order: Withdrawal) -> list[DataItem]:
    return QUERY.answer(call.merchant, order, call.context.operations)


_ORDER: Final = ("orderId", "the order, as `createMerchantWithdrawOrder` answered it")
ADVANCE: Final = Action(
    "advance",
    _read_advance,
    _advance,
    (
        _ORDER,
        ("txnStatus", "optional: 1, 2, 3, 4 or 6; otherwise the next one (0 to 1, 1 to 2, 3 to 6)"),
    ),
    "the order comes to this status: it is approved, its transfer is final now, or its refund is made. In 3"
    " it stays until the next `advance`. Answers as `queryOrder`, when it is done",
)
FAIL: Final = Action(
    "fail",
    _read_fail,
    _advance,
    (_ORDER,),
    "the order's transfer fails for good: 3, and then 6. Answers as `queryOrder`, when the money is back",
)
