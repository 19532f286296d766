"""Checks that a withdrawal order, its steps and its callbacks match the journal. Pure.

Rules:
- The order's row is compared with its entry field by field.
- Its steps must be legal and end at the row's status.
- One entry releases the hold. Its kind must fit the status.
- The journal counts as right, since its hash was checked before.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.moments import format_moment
from merchant_wallet.base.money import compute_fee_units
from merchant_wallet.book.chart import CHAIN_ID_OF, FEES_ID_OF, HOLD_ID, MERCHANT_USDT_ID
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import find_approval_violation
from merchant_wallet.book.rules.withdrawals import (
    CALLED_BACK,
    CANCELLED,
    EXPIRED,
    FINAL,
    LEGAL_STEPS,
    PAID,
    PENDING,
    REFUNDED,
    encode_order_facts,
)
from merchant_wallet.book.state import CallbackDue, Entry, Step
from merchant_wallet.book.verification.entry_schemas import Move, expect_moves
from merchant_wallet.book.verification.violations import raise_violation

RELEASED_AS: Final = {"settle": PAID, "cancel": CANCELLED, "expire": EXPIRED, "refund": REFUNDED}
"""The status that each kind of releasing entry leads to."""


class ReleaseFacts(msgspec.Struct, frozen=True):
    """The facts of an entry that releases a hold."""

    orderId: int
    txHash: str | None = None


def check_withdrawal(
    entry: Entry, order: Withdrawal | None, steps: Sequence[Step], callbacks: Sequence[CallbackDue]
) -> Withdrawal:
    """Compare a `withdraw` entry with its order's row, and the row with its steps and callbacks.

    Returns the order. Raises ViolationFound, rules `order`, `step`, `approval` and `callback`.
    """
    if order is None:
        raise_violation(
            "order", "the order's row is missing", entry_id=entry.entry_id, order_id=entry.entry_id
        )
    _compare(entry, "mcOrderId", order.mc_order_id, entry.mc_order_id)
    _compare(entry, "amount", order.amount_units, entry.postings[0].amount_units)
    _compare(entry, "rate", order.rate_e8, entry.rate_e8)
    _compare(entry, "creation", order.created_ms, entry.at_ms)
    if entry.facts != encode_order_facts(order):
        _raise_facts_violation(entry, order)
    if order.fee_units < compute_fee_units(order.amount_units, order.rate_e8):
        raise_violation(
            "order", f"a fee of {order.fee_units} is less than the rate's", order_id=order.order_id
        )
    check_steps(order, steps)
    check_approvals(order)
    check_callbacks(order, steps, callbacks)
    return order


def _compare(entry: Entry, name: str, row: object, journal: object) -> None:
    if row != journal:
        text = f"{name}: the order says {row!r}, the journal {journal!r}"
        raise_violation("order", text, entry_id=entry.entry_id, order_id=entry.entry_id)


def _raise_facts_violation(entry: Entry, order: Withdrawal) -> None:
    """Raise a violation for the first fact that differs. Called only when the texts differ."""
    try:
        journal = msgspec.json.decode(entry.facts, type=dict[str, int | str])
    except msgspec.DecodeError as error:
        raise_violation("facts", f"withdraw: {entry.facts!r} can't be read: {error}", entry_id=entry.entry_id)
    row = msgspec.json.decode(encode_order_facts(order), type=dict[str, int | str])
    for name in sorted(row | journal):
        _compare(entry, name, row.get(name), journal.get(name))
    _compare(entry, "facts", encode_order_facts(order), entry.facts)


def check_steps(order: Withdrawal, steps: Sequence[Step]) -> None:
    """Raise ViolationFound (rule `step`) unless the steps are legal and end at the order's status."""
    status: int | None = None
    at_ms = order.created_ms
    for number, step in enumerate(steps):
        if step.step_no != number or step.from_status != status:
            raise_violation(
                "step", f"step {step.step_no} doesn't follow step {number - 1}", order_id=order.order_id
            )
        legal = step.to_status == PENDING if status is None else (status, step.to_status) in LEGAL_STEPS
        if not legal:
            raise_violation(
                "step", f"no order goes from {status} to {step.to_status}", order_id=order.order_id
            )
        if step.at_ms < at_ms:
            raise_violation("step", f"step {number} is older than the one before it", order_id=order.order_id)
        status, at_ms = step.to_status, step.at_ms
    if status != order.status or order.step_no != len(steps) - 1:
        text = f"the order is in status {order.status}, its steps end at {status}"
        raise_violation("step", text, order_id=order.order_id)
    if order.finished_ms != (at_ms if status in FINAL else None):
        raise_violation(
            "step",
            f"finished at {_format(order.finished_ms)}, last step at {format_moment(at_ms)}",
            order_id=order.order_id,
        )
    if order.approved_ms is None and order.status not in (PENDING, CANCELLED, EXPIRED):
        raise_violation("step", "taken up without approval", order_id=order.order_id)


def check_approvals(order: Withdrawal) -> None:
    """Raise ViolationFound (rule `approval`) unless the order has the approvals that its limits ask for."""
    text = find_approval_violation(order)
    if text is not None:
        raise_violation("approval", text, order_id=order.order_id)


def check_callbacks(order: Withdrawal, steps: Sequence[Step], callbacks: Sequence[CallbackDue]) -> None:
    """Raise ViolationFound (rule `callback`) unless each status has its callback and no other exists."""
    passed = {step.to_status: step.at_ms for step in steps if step.to_status in CALLED_BACK}
    told = {callback.status: callback.created_ms for callback in callbacks}
    if passed != told:
        text = f"callbacks tell of {sorted(told)}, the order passed {sorted(passed)}"
        if sorted(told) == sorted(passed):
            text = "a callback is of another moment than its status"
        raise_violation("callback", text, order_id=order.order_id)


def read_release_facts(entry: Entry) -> ReleaseFacts:
    """The order that an entry releases. Raises ViolationFound (rule `facts`)."""
    try:
        return msgspec.json.decode(entry.facts, type=ReleaseFacts)
    except msgspec.DecodeError as error:
        raise_violation(
            "facts", f"{entry.kind}: {entry.facts!r} can't be read: {error}", entry_id=entry.entry_id
        )


def check_release(entry: Entry, order: Withdrawal, facts: ReleaseFacts) -> None:
    """Compare a releasing entry with its order.

    Raises ViolationFound: `shape` for wrong amounts, `release` for a wrong kind, time or transfer.
    """
    expect_moves(entry, _release_moves(entry.kind, order))
    entry_id, order_id = entry.entry_id, order.order_id
    if order.status != RELEASED_AS[entry.kind]:
        raise_violation(
            "release",
            f"{entry.kind} releases an order in status {order.status}",
            entry_id=entry_id,
            order_id=order_id,
        )
    if order.finished_ms != entry.at_ms:
        raise_violation(
            "release",
            f"released at {format_moment(entry.at_ms)}, finished at {_format(order.finished_ms)}",
            entry_id=entry_id,
            order_id=order_id,
        )
    if entry.kind == "settle" and order.tx_hash != facts.txHash:
        raise_violation(
            "release",
            f"paid by {facts.txHash}, the order says {order.tx_hash}",
            entry_id=entry_id,
            order_id=order_id,
        )


def _release_moves(kind: str, order: Withdrawal) -> tuple[Move, ...]:
    if kind != "settle":
        return ((HOLD_ID, MERCHANT_USDT_ID, USDT, order.amount_units),)
    paid = (HOLD_ID, CHAIN_ID_OF[order.chain], USDT, order.arrival_units)
    fee = (HOLD_ID, FEES_ID_OF[USDT], USDT, order.fee_units)
    return (paid, fee) if order.fee_units else (paid,)


def check_still_open(order: Withdrawal) -> None:
    """Raise ViolationFound (rule `release`) if an order with an open hold has a final status."""
    if order.status in FINAL:
        text = f"an order in status {order.status} has no entry that releases its hold"
        raise_violation("release", text, entry_id=order.order_id, order_id=order.order_id)


def _format(at_ms: int | None) -> str:
    return "no moment" if at_ms is None else format_moment(at_ms)
