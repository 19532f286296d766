"""How many people must approve a withdrawal: nobody up to a limit, one up to a second, then two. Pure.

Rules:
- `cli:ann` and `operator:Ann` are the same person on two channels, so they are never two people.
- The first of two approvals only sets `first_approved_by`. The second one allows the payment. Both must come
  before the deadline.
- An approval is refused while the person's approvals do not count yet.
"""

from typing import Final, Protocol

import msgspec

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.moments import format_moment
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.commands import Approve
from merchant_wallet.book.outcomes import ORDER_UNKNOWN, OrderRefusal, Outcome, Withdrawal
from merchant_wallet.book.rules.withdrawals import BY_LIMIT, PENDING, refuse_illegal
from merchant_wallet.book.state import Draft

TOO_LATE: Final = Refusal(
    42202, "orderId: the approval deadline of this order has passed", name=OrderRefusal.TOO_LATE
)
SAME_PERSON: Final = Refusal(
    42202,
    "orderId: you have approved this order already; above the second limit another person must, too",
    name=OrderRefusal.SAME_PERSON,
)
NOT_YET: Final = Refusal(
    42202,
    "actor: your approvals do not count yet; a new, reset, enabled or promoted operator must wait first, and "
    "who made a key or a secret of the merchant",
    name=OrderRefusal.NOT_YET,
)
NO_PERSON: Final = Refusal(40001, "actor: an approval needs the name of the person who gives it")


class Approvable(Protocol):
    """The fields of an order for counting its approvals. The book's orders and list rows have them."""

    @property
    def amount_units(self) -> int:
        """The order's amount."""

    @property
    def second_limit_units(self) -> int | None:
        """Above this amount two people must approve."""

    @property
    def first_approved_by(self) -> str | None:
        """The person who gave the first of two approvals."""

    @property
    def approved_by(self) -> str | None:
        """The person who gave the last approval, or BY_LIMIT."""


def count_needed_approvals(order: Approvable) -> int:
    """How many people must approve an order: 0 if a limit allows it alone, 1, or 2."""
    if needs_two(order):
        return 2
    return 0 if order.approved_by == BY_LIMIT else 1


def count_given_approvals(order: Approvable) -> int:
    """How many people have approved an order so far."""
    last = order.approved_by is not None and order.approved_by != BY_LIMIT
    return (order.first_approved_by is not None) + last


def needs_two(order: Approvable) -> bool:
    """Whether the order is above the second limit that held at its creation."""
    return order.second_limit_units is not None and order.amount_units > order.second_limit_units


def find_approval_violation(order: Withdrawal) -> str | None:
    """How an order's approvals contradict its limits, as a sentence. None if they do not."""
    first, last = order.first_approved_by, order.approved_by
    for name, at_ms, eligible_ms in (
        (first, order.first_approved_ms, order.first_eligible_ms),
        (last, order.approved_ms, order.approved_eligible_ms),
    ):
        if eligible_ms is not None and (at_ms is None or at_ms < eligible_ms):
            return (
                f"approved by {name} {_at(at_ms)}, whose approvals count from {format_moment(eligible_ms)} on"
            )
    if (last is None) != (order.approved_ms is None):
        return f"approved by {last or 'nobody'} {_at(order.approved_ms)}"
    if not needs_two(order):
        return None if first is None else "two people's approval of an order that needs one"
    if last is None:
        return None
    if first is None or last == BY_LIMIT:
        return "approved without two people, although it is above the second limit"
    if person_of(first) == person_of(last):
        return f"approved twice by one person, {first} and {last}"
    return None


def _at(at_ms: int | None) -> str:
    return "at no moment" if at_ms is None else f"at {format_moment(at_ms)}"


def approve(draft: Draft, command: Approve) -> Outcome:
    """Count one person's approval of an order. The last one needed allows the payment.

    Refuses, in this order: 40001, 40401, 42202. The latter if the order is no longer pending or past its
    deadline, if the person's approvals do not count yet, or if the same person approved before. An order that
    is approved already is returned as it is.
    """
    if not person_of(command.actor).strip() or command.actor == BY_LIMIT:
        return NO_PERSON
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is None:
        return ORDER_UNKNOWN
    if withdrawal.status != PENDING:
        return refuse_illegal(withdrawal, "approved")
    if withdrawal.approved_ms is not None:
        return withdrawal
    if draft.now_ms > withdrawal.deadline_ms:
        return TOO_LATE.with_figures(
            f"it was {format_moment(withdrawal.deadline_ms)}, it is {format_moment(draft.now_ms)}"
        )
    if draft.now_ms < command.eligible_ms:
        return NOT_YET.with_figures(
            f"yours count from {format_moment(command.eligible_ms)} on, it is {format_moment(draft.now_ms)}"
        )
    eligible_ms = command.eligible_ms or None
    first = withdrawal.first_approved_by
    if needs_two(withdrawal) and first is None:
        return _write(
            draft,
            msgspec.structs.replace(
                withdrawal,
                first_approved_by=command.actor,
                first_approved_ms=draft.now_ms,
                first_eligible_ms=eligible_ms,
            ),
        )
    if first is not None and person_of(first) == person_of(command.actor):
        return SAME_PERSON
    return _write(
        draft,
        msgspec.structs.replace(
            withdrawal, approved_ms=draft.now_ms, approved_by=command.actor, approved_eligible_ms=eligible_ms
        ),
    )


def _write(draft: Draft, order: Withdrawal) -> Withdrawal:
    draft.put_withdrawal(order)
    draft.changes.moved.add(order.order_id)
    return order
