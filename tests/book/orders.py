"""Withdrawal orders of the rules' tests: create one, and move it to a status by legal steps."""

from collections.abc import Sequence

from tests.book.accounting import WITHDRAWAL, given, order_of, units, withdraw
from tests.book.ledger import START_MS, Ledger

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Cancel,
    Command,
    CreateWithdrawal,
    Expire,
    Fail,
    Refund,
    Settle,
    TakeUp,
)
from merchant_wallet.book.outcomes import OrderRefusal
from merchant_wallet.book.rules.withdrawals import (
    CANCELLED,
    EXPIRED,
    FAILED,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
)

NEXT_MS = START_MS + DAY_MS
"""The next midnight."""
PAST_MS = START_MS + WITHDRAWAL.deadline_after_ms + 1
"""After the approval deadline of an order that was created at the start."""
NOBODY = 999
"""The id of no order."""
WAYS: dict[int, list[int]] = {
    PENDING: [],
    PROCESSING: [PROCESSING],
    PAID: [PROCESSING, PAID],
    FAILED: [PROCESSING, FAILED],
    CANCELLED: [CANCELLED],
    EXPIRED: [EXPIRED],
    REFUNDED: [PROCESSING, FAILED, REFUNDED],
}
"""The steps to each status."""


def opened(ledger: Ledger, command: CreateWithdrawal | None = None, now_ms: int = START_MS) -> int:
    """Create an order and return its id."""
    return order_of(ledger.ask(command or withdraw(), now_ms)).order_id


def walk(ledger: Ledger, order_id: int, statuses: Sequence[int], now_ms: int = START_MS) -> None:
    """Move an order through statuses, each by a legal step."""
    for status in statuses:
        assert order_of(ledger.ask(step(order_id, status), now_ms)).status == status


def step(order_id: int, status: int) -> Command:
    """The command that moves an order to a status."""
    return {
        PROCESSING: TakeUp(order_id),
        PAID: Settle(order_id, "0xfeed"),
        FAILED: Fail(order_id, "reverted"),
        CANCELLED: Cancel(order_id, "ann"),
        EXPIRED: Expire(order_id),
        REFUNDED: Refund(order_id),
    }[status]


def reached(status: int, *, is_approved: bool = True) -> tuple[Ledger, int]:
    """A book with one order of 100 in this status, long after every deadline."""
    ledger = given("merchant:USDT 100")
    limit = units("1000") if is_approved and status != EXPIRED else 0
    order_id = opened(ledger, withdraw(approval_limit_units=limit))
    walk(ledger, order_id, WAYS[status], PAST_MS)
    return ledger, order_id


def illegal(status: int, done: str) -> Refusal:
    """The refusal of a status change that is not allowed."""
    msg = f"orderId: an order in status {status} can't be {done}"
    return Refusal(42202, msg, name=OrderRefusal.STATUS)
