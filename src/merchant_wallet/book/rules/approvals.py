"""Who says that a withdrawal may be paid: nobody up to one limit, one person up to a second, above it two.
Pure.

Rules: `cli:ann` and `operator:Ann` are one person's two doors and never two people. The first of two
approvals changes nothing but the order's `first_approved_by`: only the second lets the order be taken up, and
both must come before the deadline. A person whose word does not count yet approves nothing.
"""

from typing import Final, Protocol

import msgspec

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.commands import Approve
from merchant_wallet.book.outcomes import ORDER_UNKNOWN, Outcome, Withdrawal
from merchant_wallet.book.rules.withdrawals import BY_LIMIT, PENDING, illegal
from merchant_wallet.book.state import Draft

TOO_LATE: Final = Refusal(42202, "orderId: the approval deadline of this order has passed")
SAME_PERSON: Final = Refusal(
    42202, "orderId: you have approved this order already; above the second limit another person must, too"
)
NOT_YET: Final = Refusal(
    42202,
    "actor: your word does not count yet; an operator who is new, was reset, was let in again or got more "
    "rights waits before it does",
)
NO_PERSON: Final = Refusal(40001, "actor: an approval needs the name of the person who gives it")


class Approvable(Protocol):
    """What counting approvals needs of an order, as the book holds it or as a list shows it."""

    @property
    def amount_units(self) -> int:
        """The order's amount."""

    @property
    def second_limit_units(self) -> int | None:
        """Two people approve an order above this amount."""

    @property
    def first_approved_by(self) -> str | None:
        """Who gave the first of two approvals."""

    @property
    def approved_by(self) -> str | None:
        """Who gave the last approval, or BY_LIMIT."""


def approvals_needed(order: Approvable) -> int:
    """How many people must approve an order: 0 where a limit lets it go by itself, 1, or 2."""
    if needs_two(order):
        return 2
    return 0 if order.approved_by == BY_LIMIT else 1


def approvals_given(order: Approvable) -> int:
    """How many people have approved an order so far."""
    last = order.approved_by is not None and order.approved_by != BY_LIMIT
    return (order.first_approved_by is not None) + last


def needs_two(order: Approvable) -> bool:
    """Whether an order is above the second limit that held when it was created."""
    return order.second_limit_units is not None and order.amount_units > order.second_limit_units


def find_approval_violation(order: Withdrawal) -> str | None:
    """How an order's approvals contradict its limits, as a sentence; None when they don't."""
    first, last = order.first_approved_by, order.approved_by
    for name, at_ms, counts_ms in (
        (first, order.first_approved_ms, order.first_counts_ms),
        (last, order.approved_ms, order.approved_counts_ms),
    ):
        if counts_ms is not None and (at_ms is None or at_ms < counts_ms):
            return f"approved by {name} at {at_ms or 'no moment'}, whose word counted from {counts_ms} on"
    if (last is None) != (order.approved_ms is None):
        return f"approved by {last or 'nobody'} at {order.approved_ms or 'no moment'}"
    if not needs_two(order):
        return None if first is None else "two people's approval of an order that needs one"
    if last is None:
        return None
    if first is None or last == BY_LIMIT:
        return "approved without two people, although it is above the second limit"
    if person_of(first) == person_of(last):
        return f"approved twice by one person, {first} and {last}"
    return None


def approve(draft: Draft, command: Approve) -> Outcome:
    """Count one person's yes to an order; the last one needed lets it be paid.

    Refuses, in this order: 40001, 40401, 42202 for one no longer pending, past its deadline, by a person
    whose word does not count yet, or approved by the same person before. An order that is approved already
    is answered as it stands.
    """
    if not person_of(command.actor).strip() or command.actor == BY_LIMIT:
        return NO_PERSON
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is None:
        return ORDER_UNKNOWN
    if withdrawal.status != PENDING:
        return illegal(withdrawal, "approved")
    if withdrawal.approved_ms is not None:
        return withdrawal
    if draft.now_ms > withdrawal.deadline_ms:
        return TOO_LATE
    if draft.now_ms < command.counts_ms:
        return NOT_YET
    counts_ms = command.counts_ms or None
    first = withdrawal.first_approved_by
    if needs_two(withdrawal) and first is None:
        return _write(
            draft,
            msgspec.structs.replace(
                withdrawal,
                first_approved_by=command.actor,
                first_approved_ms=draft.now_ms,
                first_counts_ms=counts_ms,
            ),
        )
    if first is not None and person_of(first) == person_of(command.actor):
        return SAME_PERSON
    return _write(
        draft,
        msgspec.structs.replace(
            withdrawal, approved_ms=draft.now_ms, approved_by=command.actor, approved_counts_ms=counts_ms
        ),
    )


def _write(draft: Draft, order: Withdrawal) -> Withdrawal:
    draft.put_withdrawal(order)
    draft.changes.moved.add(order.order_id)
    return order
