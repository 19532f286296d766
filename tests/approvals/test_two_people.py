"""The rules for a withdrawal above the second limit: two different people, both before the deadline."""

import msgspec
from tests.book.accounting import WITHDRAWAL, expect, given, order_of, units, withdraw
from tests.book.ledger import START_MS, Ledger
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.moments import format_moment
from merchant_wallet.book.commands import (
    SECOND_LIMIT_UNITS,
    Approve,
    Cancel,
    CreateWithdrawal,
    Expire,
    TakeUp,
)
from merchant_wallet.book.outcomes import ORDER_UNKNOWN, OrderRefusal, Withdrawal
from merchant_wallet.book.rules.approvals import (
    NO_PERSON,
    NOT_YET,
    SAME_PERSON,
    TOO_LATE,
    count_given_approvals,
    count_needed_approvals,
    find_approval_violation,
    needs_two,
)
from merchant_wallet.book.rules.withdrawals import (
    BY_LIMIT,
    CANCELLED,
    EXPIRED,
    PENDING,
    PROCESSING,
    encode_order_facts,
)

LAST_MS = START_MS + WITHDRAWAL.deadline_after_ms
WAITS = Refusal(42202, "orderId: this order waits for approval")
ANN, BOB = "operator:ann", "operator:bob"


def large(coins: str = "500.01", limit: str = "100", second: str = "500") -> CreateWithdrawal:
    """A withdrawal that needs one approval above 100 USDT and two above 500, unless changed."""
    return withdraw(
        coins=coins, approval_limit_units=units(limit), second_limit_units=units(second), fee_rate_e8=0
    )


def opened(ledger: Ledger, command: CreateWithdrawal | None = None) -> Withdrawal:
    return order_of(ledger.ask(command or large()))


def counts(order: Withdrawal) -> tuple[int, int]:
    """How many approvals an order has, and how many it needs."""
    return count_given_approvals(order), count_needed_approvals(order)


@each_row(
    ("first", "last", "has_moment", "needs", "fault"),
    [
        (None, None, False, 2, None),
        (None, None, False, 1, None),
        (None, "limit", True, 1, None),
        (None, ANN, True, 1, None),
        (ANN, None, False, 2, None),
        (ANN, BOB, True, 2, None),
        (None, ANN, False, 1, "approved by operator:ann at no moment"),
        (None, None, True, 1, f"approved by nobody at {format_moment(LAST_MS)}"),
        (ANN, BOB, True, 1, "two people's approval of an order that needs one"),
        (ANN, None, False, 1, "two people's approval of an order that needs one"),
        (None, ANN, True, 2, "approved without two people, although it is above the second limit"),
        (ANN, "limit", True, 2, "approved without two people, although it is above the second limit"),
        (ANN, ANN, True, 2, "approved twice by one person, operator:ann and operator:ann"),
        (ANN, "cli:Ann", True, 2, "approved twice by one person, operator:ann and cli:Ann"),
    ],
)
def test_an_orders_approvals_contradict_its_limits_or_do_not(
    first: str | None, last: str | None, has_moment: bool, needs: int, fault: str | None
) -> None:
    order = opened(given("merchant:USDT 1000"), large("500.01" if needs == 2 else "500"))
    order = msgspec.structs.replace(
        order,
        first_approved_by=first,
        approved_by=BY_LIMIT if last == "limit" else last,
        approved_ms=LAST_MS if has_moment else None,
    )
    assert needs_two(order) is (needs == 2)
    assert find_approval_violation(order) == fault


def test_one_yes_to_a_large_order_is_noted_and_pays_nothing() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    noted = {
        "first_approved_by": ANN,
        "approved_by": None,
        "approved_ms": None,
        "status": PENDING,
        "step_no": 0,
    }
    assert counts(order_of(expect(ledger, Approve(order_id, ANN), noted))) == (1, 2)
    expect(ledger, TakeUp(order_id), WAITS)


def test_a_second_person_lets_it_be_paid() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN))
    approved = {"first_approved_by": ANN, "approved_by": BOB, "approved_ms": LAST_MS, "step_no": 0}
    order = order_of(expect(ledger, Approve(order_id, BOB), approved, now_ms=LAST_MS))
    assert counts(order) == (2, 2)
    expect(ledger, TakeUp(order_id), {"status": PROCESSING}, now_ms=LAST_MS)


@each_row("again", [ANN, "operator:Ann", "cli:ann", "ann"])
def test_the_same_person_is_refused_at_the_terminal_and_in_the_console(again: str) -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN))
    expect(ledger, Approve(order_id, again), SAME_PERSON)
    expect(ledger, TakeUp(order_id), WAITS)
    assert counts(ledger.withdrawals[order_id]) == (1, 2)


@each_row("nobody", ["", "operator:", "operator: ", "limit"])
def test_an_approval_names_a_person(nobody: str) -> None:
    ledger = given("merchant:USDT 1000")
    expect(ledger, Approve(opened(ledger).order_id, nobody), NO_PERSON)


def test_an_approval_that_does_not_count_yet_approves_nothing() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    early = Approve(order_id, ANN, eligible_ms=LAST_MS)
    refused = expect(ledger, early, NOT_YET, now_ms=LAST_MS - 1)
    assert isinstance(refused, Refusal)
    since, at = format_moment(LAST_MS), format_moment(LAST_MS - 1)
    assert refused.figures == f"yours count from {since} on, it is {at}"
    counted = {"first_approved_by": ANN, "first_approved_ms": LAST_MS, "first_eligible_ms": LAST_MS}
    expect(ledger, early, counted, now_ms=LAST_MS)
    expect(ledger, Approve(order_id, BOB, eligible_ms=LAST_MS + 1), NOT_YET, now_ms=LAST_MS)
    order = order_of(ledger.ask(Approve(order_id, BOB, eligible_ms=5), LAST_MS))
    assert (order.approved_by, order.approved_eligible_ms) == (BOB, 5)
    assert find_approval_violation(order) is None


AT = {more_ms: format_moment(LAST_MS + more_ms) for more_ms in (-1, 0, 1)}


@each_row(
    ("change", "fault"),
    [
        (
            {"first_approved_ms": LAST_MS - 1},
            f"approved by {ANN} at {AT[-1]}, whose approvals count from {AT[0]} on",
        ),
        (
            {"first_approved_ms": None},
            f"approved by {ANN} at no moment, whose approvals count from {AT[0]} on",
        ),
        (
            {"approved_eligible_ms": LAST_MS + 1},
            f"approved by {BOB} at {AT[0]}, whose approvals count from {AT[1]} on",
        ),
        (
            {"approved_ms": None},
            f"approved by {BOB} at no moment, whose approvals count from 1970-01-01 00:00:00.005Z on",
        ),
    ],
)
def test_an_approval_before_it_counts_is_a_violation(change: dict[str, int | None], fault: str) -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN, eligible_ms=LAST_MS), LAST_MS)
    order = order_of(ledger.ask(Approve(order_id, BOB, eligible_ms=5), LAST_MS))
    assert find_approval_violation(order) is None
    assert find_approval_violation(msgspec.structs.replace(order, **change)) == fault


def test_a_third_yes_changes_nothing() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN))
    approved = order_of(ledger.ask(Approve(order_id, BOB)))
    for actor in (ANN, BOB, "operator:eve"):
        assert ledger.ask(Approve(order_id, actor), LAST_MS + 1) == approved


@each_row(
    ("command", "needed"),
    [
        (large("500"), 1),
        (large("500.01"), 2),
        (large("100"), 0),
        (large("100.01"), 1),
        (large("600", limit="1000"), 2),
        (large("500", limit="1000"), 0),
        (large("3", limit="0", second="0"), 2),
    ],
    ids=[
        "the second limit itself",
        "just above the second",
        "the first limit itself",
        "just above the first",
        "above a second limit that is below the first",
        "up to a second limit that is below the first",
        "both limits at nothing",
    ],
)
def test_how_many_must_say_yes(command: CreateWithdrawal, needed: int) -> None:
    ledger = given("merchant:USDT 1000")
    order = opened(ledger, command)
    assert counts(order) == (0, needed)
    assert (order.approved_ms is None) == (needed > 0)
    for number, actor in enumerate([ANN, BOB][:needed], 1):
        order = order_of(ledger.ask(Approve(order.order_id, actor)))
        assert counts(order) == (number, needed)
        assert find_approval_violation(order) is None
    expect(ledger, TakeUp(order.order_id), {"status": PROCESSING})


def test_the_second_yes_past_the_deadline_is_refused_and_the_order_expires() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN), LAST_MS)
    refused = expect(ledger, Approve(order_id, BOB), TOO_LATE, now_ms=LAST_MS + 1)
    assert isinstance(refused, Refusal)
    assert refused.figures == f"it was {format_moment(LAST_MS)}, it is {format_moment(LAST_MS + 1)}"
    posted = "expire: hold:USDT > merchant:USDT 500.01"
    expect(ledger, Expire(order_id), {"status": EXPIRED}, posted, "merchant:USDT 1000", LAST_MS + 1)


def test_an_order_with_one_yes_may_be_cancelled() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger).order_id
    ledger.ask(Approve(order_id, ANN))
    posted = "cancel: hold:USDT > merchant:USDT 500.01"
    expect(ledger, Cancel(order_id, ANN), {"status": CANCELLED}, posted, "merchant:USDT 1000")
    expect(
        ledger,
        Approve(order_id, BOB),
        Refusal(42202, "orderId: an order in status 4 can't be approved", name=OrderRefusal.STATUS),
    )


def test_a_yes_to_an_unknown_order_is_refused() -> None:
    expect(given("merchant:USDT 1"), Approve(999, ANN), ORDER_UNKNOWN)


def test_the_limit_that_held_at_creation_is_covered_by_the_journals_hash() -> None:
    ledger = given("merchant:USDT 1000")
    order = opened(ledger)
    assert order.second_limit_units == units("500")
    assert '"secondLimit":500000000' in ledger.entries[-1].facts
    assert ledger.entries[-1].facts == encode_order_facts(order)


def test_an_order_without_a_second_limit_has_no_such_fact() -> None:
    order = Withdrawal(1, "w", 10, 1, 0, "ERC20", "0x", "https://a", 0, 0, None, 2, 1, None, None, None)
    assert "secondLimit" not in encode_order_facts(order)
    assert counts(order) == (0, 1)


def test_without_a_word_from_the_merchants_settings_the_limit_is_100000_usdt() -> None:
    assert units("100000") == SECOND_LIMIT_UNITS == WITHDRAWAL.second_limit_units
