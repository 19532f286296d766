"""A withdrawal as accounting: its creation, its fee, the approval limit and the daily limit."""

import pytest
from tests.book.accounting import WITHDRAWAL, expect, given, order_of, units, withdraw
from tests.book.ledger import START_MS
from tests.book.orders import NEXT_MS, NOBODY, PAST_MS, illegal, opened, walk
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Approve,
    CreateWithdrawal,
    Expire,
    QuoteWithdrawal,
    ReadWithdrawal,
    TakeUp,
)
from merchant_wallet.book.outcomes import (
    ADDRESS_NOT_ALLOWED,
    BALANCE_LIMIT,
    INSUFFICIENT,
    NOT_ABOVE_FEE,
    ORDER_ID_TAKEN,
    ORDER_UNKNOWN,
    WITHDRAW_DAY_LIMIT,
    OrderRefusal,
)
from merchant_wallet.book.rules.withdrawals import (
    CANCELLED,
    EXPIRED,
    FAILED,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
    encode_order_facts,
)

HELD = "withdraw: merchant:USDT > hold:USDT 100"


def test_an_order_is_opened_with_its_amount_in_hold() -> None:
    ledger = given("merchant:USDT 100")
    outcome = {
        "status": PENDING,
        "step_no": 0,
        "fee_units": units("2"),
        "rate_e8": 10**6,
        "finished_ms": None,
    }
    order = order_of(expect(ledger, withdraw(), outcome, HELD, "hold:USDT 100"))
    entry = ledger.entries[-1]
    assert (entry.entry_id, entry.mc_order_id, entry.facts) == (
        order.order_id,
        "w1",
        encode_order_facts(order),
    )
    assert order.arrival_units == units("98")
    assert order.created_ms == START_MS
    assert order.deadline_ms == START_MS + WITHDRAWAL.deadline_after_ms
    assert [(s.step_no, s.from_status, s.to_status) for s in ledger.steps] == [(0, None, PENDING)]
    assert not ledger.callbacks


@each_row(
    ("coins", "rate_e8", "minimum", "fee"),
    [
        ("100", 10**6, "2", "2"),
        ("300", 10**6, "2", "3"),
        ("200", 10**6, "2", "2"),
        ("100", 0, "0", "0"),
        ("0.01", 15, "0", "0"),
    ],
)
def test_the_fee_is_the_rates_share_but_at_least_the_minimum_and_quoted_alike(
    coins: str, rate_e8: int, minimum: str, fee: str
) -> None:
    ledger = given(f"merchant:USDT {coins}")
    outcome = {"fee_units": units(fee), "rate_e8": rate_e8, "amount_units": units(coins)}
    expect(ledger, QuoteWithdrawal(units(coins), rate_e8, units(minimum)), outcome)
    command = withdraw("w1", coins, fee_rate_e8=rate_e8, fee_minimum_units=units(minimum))
    expect(ledger, command, outcome, f"withdraw: merchant:USDT > hold:USDT {coins}", f"hold:USDT {coins}")


@each_row(("rate_e8", "minimum"), [(10**8, "0"), (0, "100"), (10**8 - 1, "100")])
def test_an_amount_that_does_not_exceed_the_fee_is_refused_and_quoted_so(rate_e8: int, minimum: str) -> None:
    ledger = given("merchant:USDT 100")
    expect(ledger, QuoteWithdrawal(units("100"), rate_e8, units(minimum)), NOT_ABOVE_FEE)
    expect(ledger, withdraw(fee_rate_e8=rate_e8, fee_minimum_units=units(minimum)), NOT_ABOVE_FEE)


BROKEN = [
    (
        "allow-list",
        withdraw("w1", "1000", allowed=False, fee_rate_e8=10**8, daily_limit_units=0),
        ADDRESS_NOT_ALLOWED,
    ),
    ("fee", withdraw("w1", "1000", fee_rate_e8=10**8, daily_limit_units=0), NOT_ABOVE_FEE),
    ("day", withdraw("w1", "1000", daily_limit_units=units("999.99")), WITHDRAW_DAY_LIMIT),
    ("balance", withdraw("w1", "1000", daily_limit_units=units("1000")), INSUFFICIENT),
    ("hold", withdraw("w1", "100"), BALANCE_LIMIT),
]


@each_row(("command", "refusal"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_the_first_rule_that_a_creation_breaks_is_named(command: CreateWithdrawal, refusal: Refusal) -> None:
    expect(given("merchant:USDT 999.99; hold:USDT LIMIT-99"), command, refusal)


def test_a_repeated_creation_gives_the_order_as_it_now_stands() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger)
    outcome = {"order_id": order_id, "status": PENDING, "fee_units": units("2")}
    expect(ledger, withdraw(fee_rate_e8=0, allowed=False, daily_limit_units=0), outcome)
    walk(ledger, order_id, [PROCESSING, PAID])
    expect(ledger, withdraw(), {"order_id": order_id, "status": PAID, "tx_hash": "0xfeed"})


def test_the_same_evm_address_in_other_letters_is_the_same_address() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger)
    expect(
        ledger,
        withdraw(address=WITHDRAWAL.address.lower()),
        {"order_id": order_id, "address": WITHDRAWAL.address},
    )


@each_row(
    "other",
    [
        withdraw("w1", "99.99"),
        withdraw(chain="TRC20"),
        withdraw(chain="BEP20"),
        withdraw(address="0x52908400098527886E0F7030069857D2E4169EE7"),
        withdraw(notify_url="https://shop.example/N"),
    ],
    ids=["amount", "chain", "chain with the same addresses", "address", "notifyUrl"],
)
def test_a_withdrawals_order_id_with_other_values_is_refused(other: CreateWithdrawal) -> None:
    ledger = given("merchant:USDT 1000")
    opened(ledger)
    expect(ledger, other, ORDER_ID_TAKEN)


def test_a_tron_address_in_other_letters_is_another_address() -> None:
    ledger = given("merchant:USDT 1000")
    opened(ledger, withdraw(chain="TRC20", address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"))
    expect(ledger, withdraw(chain="TRC20", address="tJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"), ORDER_ID_TAKEN)


def test_an_order_to_tron_is_repeated_by_the_same_letters() -> None:
    ledger = given("merchant:USDT 1000")
    tron = withdraw(chain="TRC20", address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC")
    expect(ledger, tron, {"order_id": opened(ledger, tron)})


def test_an_order_is_read_by_both_its_ids_alone() -> None:
    ledger = given("merchant:USDT 200")
    first, second = opened(ledger), opened(ledger, withdraw("w2"))
    expect(ledger, ReadWithdrawal(first, "w1"), {"order_id": first, "mc_order_id": "w1"})
    for order_id, name in ((first, "w2"), (second, "w1"), (NOBODY, "w1"), (first, "W1")):
        expect(ledger, ReadWithdrawal(order_id, name), ORDER_UNKNOWN)


def test_the_approval_limit_itself_needs_no_operator() -> None:
    ledger = given("merchant:USDT 1000")
    command = withdraw(approval_limit_units=units("100"))
    expect(ledger, command, {"approved_ms": START_MS}, HELD, "merchant:USDT 900; hold:USDT 100")
    assert list(ledger.approved_by.values()) == ["limit"]
    command = withdraw("w2", "100.01", approval_limit_units=units("100"))
    order = order_of(ledger.ask(command))
    assert order.approved_ms is None
    assert order.order_id not in ledger.approved_by


def test_an_order_above_the_limit_waits_for_its_approval() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger, withdraw(approval_limit_units=0))
    expect(ledger, TakeUp(order_id), Refusal(42202, "orderId: this order waits for approval"))
    last_ms = START_MS + WITHDRAWAL.deadline_after_ms
    outcome = {"approved_ms": last_ms, "status": PENDING, "step_no": 0}
    expect(ledger, Approve(order_id, "ann"), outcome, now_ms=last_ms)
    assert ledger.approved_by == {order_id: "ann"}
    expect(ledger, Approve(order_id, "bob"), {"approved_ms": last_ms}, now_ms=PAST_MS)
    assert ledger.approved_by == {order_id: "ann"}
    expect(ledger, TakeUp(order_id), {"status": PROCESSING, "step_no": 1}, now_ms=PAST_MS + DAY_MS)


def test_an_approval_past_the_deadline_is_refused_although_the_order_still_waits() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger, withdraw(approval_limit_units=0))
    msg = "orderId: the approval deadline of this order has passed"
    refusal = Refusal(42202, msg, name=OrderRefusal.TOO_LATE)
    expect(ledger, Approve(order_id, "ann"), refusal, now_ms=PAST_MS)
    posted = "expire: hold:USDT > merchant:USDT 100"
    outcome = {"status": EXPIRED, "finished_ms": PAST_MS}
    expect(ledger, Expire(order_id), outcome, posted, "merchant:USDT 100", PAST_MS)


def test_an_order_does_not_expire_before_its_deadline_has_passed() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger, withdraw(approval_limit_units=0))
    expect(ledger, Expire(order_id), illegal(PENDING, "expired"), now_ms=PAST_MS - 1)


def test_an_approved_order_never_expires() -> None:
    ledger = given("merchant:USDT 100")
    expect(ledger, Expire(opened(ledger)), illegal(PENDING, "expired"), now_ms=PAST_MS)


def limited(order: str, coins: str) -> CreateWithdrawal:
    """A withdrawal under a limit of 100 a day."""
    return withdraw(order, coins, daily_limit_units=units("100"))


def test_a_days_withdrawals_are_limited_and_begin_anew_at_midnight() -> None:
    ledger = given("merchant:USDT 1000")
    opened(ledger, limited("w1", "60"))
    expect(ledger, limited("w2", "40.01"), WITHDRAW_DAY_LIMIT)
    opened(ledger, limited("w3", "40"), NEXT_MS - 1)
    expect(ledger, limited("w4", "3"), WITHDRAW_DAY_LIMIT, now_ms=NEXT_MS - 1)
    opened(ledger, limited("w5", "100"), NEXT_MS)
    expect(ledger, limited("w6", "3"), WITHDRAW_DAY_LIMIT, now_ms=NEXT_MS)


def test_a_daily_limit_of_zero_lets_nothing_out() -> None:
    ledger = given("merchant:USDT 1000")
    expect(ledger, withdraw("w1", "3", daily_limit_units=0), WITHDRAW_DAY_LIMIT)


@each_row("days", [1, 2, 30])
@each_row(
    ("yesterday", "today"),
    [
        # The limit is 100. What was used before midnight does not count after it.
        (["100"], ["40", "60"]),
        (["60", "40"], ["60", "40"]),
        (["99.99"], ["33", "33", "34"]),
        (["3"], ["97", "3"]),
        ([], ["50", "50"]),
    ],
)
def test_each_day_has_the_whole_allowance_whatever_was_used_before(
    yesterday: list[str], today: list[str], days: int
) -> None:
    ledger, later_ms = given("merchant:USDT 1000"), NEXT_MS + (days - 1) * DAY_MS
    for number, coins in enumerate(yesterday):
        opened(ledger, limited(f"y{number}", coins))
    for number, coins in enumerate(today):
        opened(ledger, limited(f"t{number}", coins), later_ms)
    expect(ledger, limited("more", "3"), WITHDRAW_DAY_LIMIT, now_ms=later_ms)


def test_what_was_withdrawn_before_the_limit_was_set_counts() -> None:
    ledger = given("merchant:USDT 1000")
    opened(ledger, withdraw("w1", "60"))
    expect(ledger, limited("w2", "40.01"), WITHDRAW_DAY_LIMIT)


@pytest.mark.parametrize("way", [[CANCELLED], [PROCESSING, FAILED, REFUNDED]])
def test_an_order_that_came_to_nothing_on_its_day_gives_its_allowance_back(way: list[int]) -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger, limited("w1", "60"))
    opened(ledger, limited("w2", "30"))
    walk(ledger, order_id, way, NEXT_MS - 1)
    expect(ledger, limited("w3", "70.01"), WITHDRAW_DAY_LIMIT, now_ms=NEXT_MS - 1)
    opened(ledger, limited("w4", "70"), NEXT_MS - 1)


def test_an_order_that_failed_but_was_not_refunded_still_counts() -> None:
    ledger = given("merchant:USDT 1000")
    walk(ledger, opened(ledger, limited("w1", "60")), [PROCESSING, FAILED])
    expect(ledger, limited("w2", "41"), WITHDRAW_DAY_LIMIT)


def test_the_whole_allowance_is_there_again_at_any_time_of_the_day() -> None:
    ledger, noon_ms = given("merchant:USDT 100"), START_MS + DAY_MS // 2
    order_id = opened(ledger, withdraw(daily_limit_units=units("100")), noon_ms)
    walk(ledger, order_id, [CANCELLED], noon_ms)
    assert ledger.withdrawn_units == 0
    opened(ledger, withdraw("w2", daily_limit_units=units("100")), noon_ms)


def test_an_order_of_yesterday_gives_todays_limit_nothing_back() -> None:
    ledger = given("merchant:USDT 1000")
    order_id = opened(ledger, limited("w1", "60"))
    opened(ledger, limited("w2", "90"), NEXT_MS)
    walk(ledger, order_id, [CANCELLED], NEXT_MS)
    expect(ledger, limited("w3", "10.01"), WITHDRAW_DAY_LIMIT, now_ms=NEXT_MS)
    opened(ledger, limited("w4", "10"), NEXT_MS)
