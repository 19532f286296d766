"""`advance`, `fail` and `freeze`: withdrawal orders go on, or stand still, when a test says so.

Rules:
- The book, the payer and the chain do what they always do. An action approves, cancels, or tells the chain
  how and when a transfer ends. Then it waits until the order has the status.
- An order that can't come to the status is refused, and nothing is changed.
- The payer freezes an order as it freezes any. `advance` and `fail` first thaw what a test has frozen.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.operations.withdrawals import QUERY
from merchant_wallet.api.wire import DataItem, Fields, optional, require_long
from merchant_wallet.base.codes import FIELD_INVALID, LIMIT_EXCEEDED, Refused, refuse
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.commands import Approve, Cancel, CreateWithdrawal, ReadWithdrawal
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
from merchant_wallet.sandbox.actions.screening import decide
from merchant_wallet.sandbox.actions.waiting import looks
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action
from merchant_wallet.sandbox.payouts import FREEZE_CAUSE, name_freeze, name_freeze_of_new
from merchant_wallet.screening import store as screenings
from merchant_wallet.screening.screening_states import State
from merchant_wallet.withdrawals import acts

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
    await _thaw(call, order)
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
    async for _ in looks(call.context):
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


async def _decide_screening(call: Call, order: Withdrawal, *, is_released: bool) -> None:
    found = await screenings.find_order(call.home, call.merchant_id, order.order_id)
    if found is not None and found.state is State.HELD:
        await decide(call, found, is_released=is_released)


def _read_freeze(fields: Fields, context: OperationContext) -> int:
    return _read_order_id(fields)


async def _freeze(call: Call, order_id: int) -> list[DataItem]:
    order = await _read_order(call, order_id)
    mark = name_freeze(order_id)
    if order.status in (PENDING, PROCESSING) and not await _find_frozen(call, order):
        async with call.home.transaction():
            await store.set_mark(call.home, call.merchant_id, mark)
            await call.record("sandbox.freeze", _name(order))
        if order.status == PENDING:
            await _approve(call, order)
    return _answer(call, await _wait_until_frozen(call, order_id, mark))


async def create_frozen(call: Call, command: CreateWithdrawal) -> None:
    """Create an order that the payer freezes before it pays it. Once resumed it is paid like any other.

    The mark comes before the order: a payer may take it up at once.
    """
    mark = name_freeze_of_new(command.mc_order_id)
    async with call.home.transaction():
        await store.set_mark(call.home, call.merchant_id, mark)
        await call.record("sandbox.freeze", f"merchant {call.merchant_id}")
    try:
        order = await call.change_book(command, "sandbox.order", f"merchant {call.merchant_id}")
    except Refused:
        await store.take_mark(call.home, call.merchant_id, mark)
        raise
    assert isinstance(order, Withdrawal)
    if order.status == PENDING:
        await _approve(call, order)
    await _wait_until_frozen(call, order.order_id, mark)


async def _wait_until_frozen(call: Call, order_id: int, mark: str) -> Withdrawal:
    """Wait until the payer has frozen an order. Refused 42202 if the order has ended, 50300 after a while."""
    async for _ in looks(call.context):
        order = await _read_order(call, order_id)
        if await _find_frozen(call, order):
            break
        if order.status not in (PENDING, PROCESSING):
            await store.take_mark(call.home, call.merchant_id, mark)
            refuse(LIMIT_EXCEEDED, f"orderId: an order in status {order.status} can't be frozen")
    return order


async def _find_frozen(call: Call, order: Withdrawal) -> str | None:
    """Why an order is frozen; None: it is not."""
    values = {"merchant_id": call.merchant_id, "order_id": order.order_id}
    found = await store.run(call.home, "find_frozen", **values)
    return found[0][0] if found else None


async def _thaw(call: Call, order: Withdrawal) -> None:
    """Thaw what a test has frozen, as an operator would. What was frozen for a reason stays frozen."""
    await store.take_mark(call.home, call.merchant_id, name_freeze(order.order_id))
    if await _find_frozen(call, order) == FREEZE_CAUSE:
        await acts.thaw_order(call.home, call.author, call.merchant_id, order.order_id)
        await frozen_orders.thaw(call.cell, call.merchant_id, order.order_id)


async def _hold_refund(call: Call, order: Withdrawal, *, is_held: bool) -> None:
    values = {"merchant_id": call.merchant_id, "order_id": order.order_id, "is_held": is_held}
    async with call.home.transaction():
        await store.run(call.home, "hold_refund", **values)
        await call.record("sandbox.hold_refund", _name(order), after={"isHeld": is_held})


async def _wait(call: Call, order: Withdrawal, statuses: frozenset[int]) -> Withdrawal:
    """Wait until an order has one of these statuses. Refused 50300 if that takes too long."""
    async for _ in looks(call.context):
        order = await _read_order(call, order.order_id)
        if order.status in statuses:
            break
    return order


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
FREEZE: Final = Action(
    "freeze",
    _read_freeze,
    _freeze,
    (_ORDER,),
    "the payer freezes the order: it stays in its status, without a callback, until an operator resumes it in"
    " the console, or until `advance` or `fail`. Answers as `queryOrder`, when it is frozen",
)
