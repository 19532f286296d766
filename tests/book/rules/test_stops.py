"""A frozen order, or any order after a rollback, as accounting: it keeps its hold until a person decides."""

from collections.abc import Callable
from typing import Final

from tests.book.accounting import expect, given, order_of, show_balances, units, withdraw
from tests.book.ledger import Ledger, submit
from tests.book.orders import NOBODY, PAST_MS, WAYS, illegal, opened, reached, walk
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.commands import Cancel, Command, Expire, Fail, Refund, Settle, TakeUp
from merchant_wallet.book.outcomes import ORDER_UNKNOWN
from merchant_wallet.book.rules.withdrawals import (
    CANCELLED,
    EXPIRED,
    FAILED,
    FROZEN,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
    ROLLED_BACK,
    canceller_of,
    format_cancel_cause,
)

RELEASED = "merchant:USDT 100"
STOPS: Final = ("none", "frozen", "rolled back", "both")
"""What stops an order: nothing, its own freeze, open evidence of a rollback, or both."""
REFUSALS: Final = (("frozen", FROZEN), ("rolled back", ROLLED_BACK), ("both", ROLLED_BACK))
"""The refusal of a step that a stop prevents."""
OPEN = None
"""The order is not stopped."""


def stopped(status: int, stop: str, *, is_approved: bool = True) -> tuple[Ledger, int]:
    """A book with one order of 100 in this status, past the approval deadline, and what stops it."""
    ledger, order_id = reached(status, is_approved=is_approved)
    put_stop(ledger, order_id, stop)
    return ledger, order_id


def put_stop(ledger: Ledger, order_id: int, stop: str) -> None:
    """Freeze the order or not, and open evidence of a rollback or not."""
    ledger.frozen_orders = {order_id} if stop in ("frozen", "both") else set()
    ledger.is_rolled_back = stop in ("rolled back", "both")


BY_MERCHANT = {"by_merchant": True}
CONFIRMED = {"even_frozen": True}
CANCELLERS: list[tuple[dict[str, bool], tuple[Refusal | None, ...]]] = [
    (BY_MERCHANT, (OPEN, FROZEN, ROLLED_BACK, ROLLED_BACK)),
    (BY_MERCHANT | CONFIRMED, (OPEN, FROZEN, ROLLED_BACK, ROLLED_BACK)),
    ({}, (OPEN, FROZEN, OPEN, FROZEN)),
    (CONFIRMED, (OPEN, OPEN, OPEN, OPEN)),
]
"""The canceller, and the answer to each of STOPS: a refusal, or the order is cancelled."""


@each_row(
    ("canceller", "stop", "answer"),
    [
        (canceller, stop, answer)
        for canceller, answers in CANCELLERS
        for stop, answer in zip(STOPS, answers, strict=True)
    ],
)
def test_who_may_cancel_a_stopped_order(
    canceller: dict[str, bool], stop: str, answer: Refusal | None
) -> None:
    ledger, order_id = stopped(PENDING, stop)
    command = Cancel(order_id, "operator:ann", **canceller)
    if answer is not OPEN:
        expect(ledger, command, answer, now_ms=PAST_MS)
        put_stop(ledger, order_id, "none")
    posted = "cancel: hold:USDT > merchant:USDT 100"
    expect(ledger, command, {"status": CANCELLED}, posted, RELEASED, PAST_MS)
    assert ledger.steps[-1].cause == "cancelled by operator:ann"


Stoppable = TakeUp | Expire | Refund
STEPS: list[tuple[type[Stoppable], int, int, str, str | None]] = [
    (TakeUp, PENDING, PROCESSING, "", None),
    (Expire, PENDING, EXPIRED, "expire: hold:USDT > merchant:USDT 100", RELEASED),
    (Refund, FAILED, REFUNDED, "refund: hold:USDT > merchant:USDT 100", RELEASED),
]
"""The steps that a stop prevents: command, status before and after, entry, balances after."""


@each_row(("stop", "refusal"), REFUSALS)
@each_row(("kind", "before", "after", "posted", "balances"), STEPS)
def test_a_stopped_order_is_not_paid_expired_or_refunded(
    kind: type[Stoppable],
    before: int,
    after: int,
    posted: str,
    balances: str | None,
    stop: str,
    refusal: Refusal,
) -> None:
    ledger, order_id = stopped(before, stop, is_approved=kind is not Expire)
    expect(ledger, kind(order_id), refusal, now_ms=PAST_MS)
    put_stop(ledger, order_id, "none")
    expect(ledger, kind(order_id), {"status": after}, posted, balances, PAST_MS)


@each_row(("kind", "before", "after"), [row[:3] for row in STEPS])
def test_a_frozen_order_does_not_stop_another_one_in_its_batch(
    kind: type[Stoppable], before: int, after: int
) -> None:
    ledger, limit = given("merchant:USDT 200"), 0 if kind is Expire else units("1000")
    frozen, other = (opened(ledger, withdraw(name, approval_limit_units=limit)) for name in ("w1", "w2"))
    for order_id in (frozen, other):
        walk(ledger, order_id, WAYS[before], PAST_MS)
    put_stop(ledger, frozen, "frozen")
    refused, order = ledger.run(submit(kind(frozen), kind(other)), PAST_MS)
    assert (refused, order_of(order).status) == (FROZEN, after)
    assert ledger.withdrawals[frozen].status == before


def cancel_by_merchant(order_id: int) -> Command:
    """A cancellation by the merchant's user."""
    return Cancel(order_id, "merchant:ann", by_merchant=True)


TARGETS: list[tuple[Callable[[int], Command], int, int]] = [
    (TakeUp, PENDING, PROCESSING),
    (cancel_by_merchant, PENDING, CANCELLED),
    (Expire, PENDING, EXPIRED),
    (Refund, FAILED, REFUNDED),
]
"""The commands that look for stops, with the status before and after."""


@each_row(
    ("make", "after", "status"),
    [(make, after, status) for make, before, after in TARGETS for status in WAYS if status != before],
)
def test_in_another_status_the_status_is_the_reason_of_the_refusal(
    make: Callable[[int], Command], after: int, status: int
) -> None:
    ledger, order_id = stopped(status, "both")
    expect(ledger, make(order_id), illegal(status, f"moved to status {after}"), now_ms=PAST_MS)


@each_row("make", [make for make, _, _ in TARGETS])
def test_an_unknown_order_is_unknown_after_a_rollback_too(make: Callable[[int], Command]) -> None:
    ledger = given("merchant:USDT 100")
    put_stop(ledger, NOBODY, "both")
    expect(ledger, make(NOBODY), ORDER_UNKNOWN)


def test_a_stopped_order_that_waits_for_its_approval_is_refused_for_that() -> None:
    ledger, order_id = stopped(PENDING, "both", is_approved=False)
    expect(ledger, TakeUp(order_id), Refusal(42202, "orderId: this order waits for approval"))
    expect(ledger, Expire(order_id), illegal(PENDING, "expired"), now_ms=PAST_MS - 1)
    expect(ledger, Expire(order_id), ROLLED_BACK, now_ms=PAST_MS)


@each_row("stop", STOPS[1:])
def test_a_final_transfer_settles_a_stopped_order(stop: str) -> None:
    ledger, order_id = stopped(PROCESSING, stop)
    # The batch reads the stops, because a refund in it needs them.
    order, refused = ledger.run(submit(Settle(order_id, "0xfeed"), Refund(order_id)), PAST_MS)
    assert (order_of(order).status, refused) == (PAID, illegal(PAID, f"moved to status {REFUNDED}"))
    assert show_balances(ledger) == "chain:ERC20:USDT 98; fees:USDT 2"


@each_row(("stop", "refusal"), REFUSALS)
def test_a_stopped_order_may_fail_but_keeps_its_hold(stop: str, refusal: Refusal) -> None:
    ledger, order_id = stopped(PROCESSING, stop)
    order, refused = ledger.run(submit(Fail(order_id, "reverted"), Refund(order_id)), PAST_MS)
    assert (order_of(order).status, refused) == (FAILED, refusal)
    assert show_balances(ledger) == "hold:USDT 100"


@each_row("actor", ["operator:ann", "cli:Ann", "cancelled by ", "ann, cancelled by "])
def test_a_cancellations_cause_names_the_actor(actor: str) -> None:
    assert canceller_of(format_cancel_cause(actor)) == actor


def test_a_cause_without_the_usual_words_is_the_actor_itself() -> None:
    assert canceller_of("ann") == "ann"
