"""Transfers as accounting: who pays, who gets, what is refused and in which order."""

from typing import Any

from msgspec.structs import replace
from tests.book.accounting import addresses, credit, debit, expect, given, locate, units
from tests.book.ledger import START_MS
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Command, MerchantToUser
from merchant_wallet.book.outcomes import (
    ADDRESS_UNKNOWN,
    BALANCE_LIMIT,
    DEBIT_DAY_LIMIT,
    DEBIT_LIMIT,
    DEBITS_PAUSED,
    INSUFFICIENT,
    NOT_ABOVE_FEE,
    ORDER_ID_TAKEN,
    PIN_REQUIRED,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
)

LAST_MS = START_MS + DAY_MS - 1
NEXT_MS = START_MS + DAY_MS


def test_a_free_debit_is_one_posting() -> None:
    posted, after = "user_to_merchant: anna > merchant:KFB 30", "anna 70; merchant:KFB 30"
    outcome = {"amount_units": units("30"), "arrival_units": units("30"), "fee_units": 0, "rate_e8": 0}
    expect(given("anna 100"), debit("d1", "anna", "30"), outcome, posted, after)


def test_a_debit_with_a_fee_is_divided_between_merchant_and_platform() -> None:
    posted = "user_to_merchant: anna > merchant:KFB 29.7; anna > fees:KFB 0.3"
    outcome = {"amount_units": units("30"), "arrival_units": units("29.7"), "fee_units": units("0.3")}
    after = "anna 70; merchant:KFB 29.7; fees:KFB 0.3"
    expect(given("anna 100"), debit("d1", "anna", "30", "0.01"), outcome, posted, after)


@each_row(
    ("coins", "rate", "arrival", "fee"),
    [
        ("0.00005", "0.01", "0.000049", "0.000001"),
        ("0.000049", "0.01", "0.000049", "0"),
        ("0.00015", "0.01", "0.000148", "0.000002"),
        ("0.000149", "0.01", "0.000148", "0.000001"),
        ("1", "0.00000049", "1", "0"),
        ("1", "0.0000005", "0.999999", "0.000001"),
        ("0.000003", "0.5", "0.000001", "0.000002"),
    ],
)
def test_a_fee_is_rounded_half_up_to_a_millionth(coins: str, rate: str, arrival: str, fee: str) -> None:
    posted = f"user_to_merchant: anna > merchant:KFB {arrival}" + (
        f"; anna > fees:KFB {fee}" if fee != "0" else ""
    )
    outcome = {"arrival_units": units(arrival), "fee_units": units(fee)}
    expect(
        given(f"anna {coins}"),
        debit("d1", "anna", coins, rate),
        outcome,
        posted,
        f"merchant:KFB {arrival}; fees:KFB {fee}",
    )


def test_a_debit_may_empty_the_wallet() -> None:
    expect(
        given("anna 30"),
        debit("d1", "anna", "30"),
        {},
        "user_to_merchant: anna > merchant:KFB 30",
        "merchant:KFB 30",
    )


def test_a_usdt_wallet_is_debited_in_usdt() -> None:
    posted = "user_to_merchant: ulla > merchant:USDT 4.5; ulla > fees:USDT 0.5"
    after = "merchant:USDT 4.5; fees:USDT 0.5"
    expect(given("ulla 5"), debit("d1", "ulla", "5", "0.1", currency=USDT), {"currency": USDT}, posted, after)


# Each row breaks one rule more than the row below it. So a rule that is checked too late shows.
IN_ORDER: list[tuple[str, dict[str, Any], Command, Refusal]] = [
    ("unknown", {}, debit("d1", "nobody", "1000", "1", pin=True), SUB_USER_UNKNOWN),
    ("currency", {"paused": True}, debit("d1", "anna", "1000", "1", True, USDT), WRONG_CURRENCY),
    ("PIN", {"paused": True, "limit_debit_units": 0}, debit("d1", "anna", "1000", "1", True), PIN_REQUIRED),
    ("paused", {"paused": True, "limit_debit_units": 0}, debit("d1", "anna", "1000", "1"), DEBITS_PAUSED),
    ("fee", {"limit_debit_units": 0}, debit("d1", "anna", "1000", "1"), NOT_ABOVE_FEE),
    ("each", {"limit_debit_units": 1, "limit_day_units": 0}, debit("d1", "anna", "1000"), DEBIT_LIMIT),
    (
        "day",
        {"limit_debit_units": units("1000"), "limit_day_units": 1},
        debit("d1", "anna", "1000"),
        DEBIT_DAY_LIMIT,
    ),
    ("balance", {"limit_day_units": units("1000")}, debit("d1", "anna", "1000"), INSUFFICIENT),
]


@each_row(("allowed", "command", "refusal"), [row[1:] for row in IN_ORDER], ids=[r[0] for r in IN_ORDER])
def test_the_first_rule_that_a_debit_breaks_is_named(
    allowed: dict[str, Any], command: Command, refusal: Refusal
) -> None:
    expect(given("anna 100; merchant:KFB LIMIT", **allowed), command, refusal)


def test_a_debit_that_would_overfill_the_merchants_balance_is_refused() -> None:
    ledger = given("anna 100; merchant:KFB LIMIT-99")
    expect(ledger, debit("d1", "anna", "100"), BALANCE_LIMIT)
    posted = "user_to_merchant: anna > merchant:KFB 99"
    expect(ledger, debit("d2", "anna", "99"), {}, posted, "anna 1; merchant:KFB LIMIT")


def test_the_fee_of_a_debit_does_not_count_towards_the_merchants_balance() -> None:
    posted = "user_to_merchant: anna > merchant:KFB 99; anna > fees:KFB 1"
    after = "merchant:KFB LIMIT; fees:KFB 1"
    expect(given("anna 100; merchant:KFB LIMIT-99"), debit("d1", "anna", "100", "0.01"), {}, posted, after)


def test_a_fee_that_would_overfill_the_platforms_account_is_refused() -> None:
    expect(given("anna 100; fees:KFB LIMIT"), debit("d1", "anna", "100", "0.01"), BALANCE_LIMIT)


def test_a_pin_satisfies_a_merchant_that_requires_one() -> None:
    ledger = given("anna 10", has_pin=True)
    expect(
        ledger,
        debit("d1", "anna", "4", pin=True),
        {},
        "user_to_merchant: anna > merchant:KFB 4",
        "anna 6; merchant:KFB 4",
    )


def test_a_limit_per_debit_is_the_most_that_passes() -> None:
    ledger = given("anna 100", limit_debit_units=units("10"))
    expect(ledger, debit("d1", "anna", "10.000001"), DEBIT_LIMIT)
    expect(
        ledger,
        debit("d1", "anna", "10"),
        {},
        "user_to_merchant: anna > merchant:KFB 10",
        "anna 90; merchant:KFB 10",
    )


def test_a_days_limit_counts_every_debit_of_that_day_and_begins_anew_at_midnight() -> None:
    ledger = given("anna 100", limit_day_units=units("10"))
    expect(
        ledger,
        debit("d1", "anna", "6"),
        {},
        "user_to_merchant: anna > merchant:KFB 6",
        "anna 94; merchant:KFB 6",
    )
    expect(ledger, debit("d2", "anna", "4.000001"), DEBIT_DAY_LIMIT, now_ms=LAST_MS)
    posted, after = "user_to_merchant: anna > merchant:KFB 4", "anna 90; merchant:KFB 10"
    expect(ledger, debit("d3", "anna", "4"), {}, posted, after, LAST_MS)
    expect(ledger, debit("d4", "anna", "0.000001"), DEBIT_DAY_LIMIT, now_ms=LAST_MS)
    posted, after = "user_to_merchant: anna > merchant:KFB 10", "anna 80; merchant:KFB 20"
    expect(ledger, debit("d5", "anna", "10"), {}, posted, after, NEXT_MS)
    expect(ledger, debit("d6", "anna", "1"), DEBIT_DAY_LIMIT, now_ms=NEXT_MS)


@each_row("days", [1, 2, 30])
@each_row(
    ("yesterday", "today"),
    [(["10"], ["4", "6"]), (["6", "4"], ["6", "4"]), (["9"], ["3", "3", "4"]), ([], ["5", "5"])],
)
def test_each_day_has_the_whole_limit_whatever_was_debited_before(
    yesterday: list[str], today: list[str], days: int
) -> None:
    ledger, later_ms = given("anna 100", limit_day_units=units("10")), NEXT_MS + (days - 1) * DAY_MS
    for number, coins in enumerate(yesterday):
        assert not isinstance(ledger.ask(debit(f"y{number}", "anna", coins)), Refusal)
    for number, coins in enumerate(today):
        assert not isinstance(ledger.ask(debit(f"t{number}", "anna", coins), later_ms), Refusal)
    expect(ledger, debit("more", "anna", "1"), DEBIT_DAY_LIMIT, now_ms=later_ms)


def test_a_days_limit_counts_the_fee_of_each_debit() -> None:
    ledger = given("anna 100", limit_day_units=units("10"))
    posted = "user_to_merchant: anna > merchant:KFB 5.4; anna > fees:KFB 0.6"
    after = "anna 94; merchant:KFB 5.4; fees:KFB 0.6"
    expect(ledger, debit("d1", "anna", "6", "0.1"), {}, posted, after)
    expect(ledger, debit("d2", "anna", "4.000001"), DEBIT_DAY_LIMIT)
    posted = "user_to_merchant: anna > merchant:KFB 3.6; anna > fees:KFB 0.4"
    expect(ledger, debit("d3", "anna", "4", "0.1"), {}, posted, "anna 90; merchant:KFB 9; fees:KFB 1")


def test_a_days_limit_counts_what_was_debited_before_it_was_set() -> None:
    ledger = given("anna 100")
    expect(
        ledger,
        debit("d1", "anna", "8"),
        {},
        "user_to_merchant: anna > merchant:KFB 8",
        "anna 92; merchant:KFB 8",
    )
    anna, _ = locate(ledger, "anna")
    ledger.sub_users[anna] = replace(ledger.sub_users[anna], limit_day_units=units("10"))
    expect(ledger, debit("d2", "anna", "3"), DEBIT_DAY_LIMIT)


def test_what_one_sub_user_was_debited_is_nobody_elses_limit() -> None:
    ledger = given("anna 10; bert 10", limit_day_units=units("5"))
    expect(
        ledger,
        debit("d1", "bert", "10"),
        {},
        "user_to_merchant: bert > merchant:KFB 10",
        "anna 10; merchant:KFB 10",
    )
    expect(
        ledger,
        debit("d2", "anna", "5"),
        {},
        "user_to_merchant: anna > merchant:KFB 5",
        "anna 5; merchant:KFB 15",
    )


def test_a_repeated_debit_gives_the_first_answer_and_moves_nothing() -> None:
    ledger = given("anna 100")
    first = ledger.ask(debit("d1", "anna", "100", "0.01"))
    anna, _ = locate(ledger, "anna")
    ledger.sub_users[anna] = replace(ledger.sub_users[anna], paused=True)
    again = expect(ledger, debit("d1", "anna", "100", "0.5", pin=True), {})
    assert again == first


@each_row(
    "other",
    [
        debit("d1", "anna", "30.000001"),
        debit("d1", "bert", "30"),
        debit("d1", "nobody", "30"),
        debit("d1", "anna", "30", currency=USDT),
    ],
    ids=["amount", "sub-user", "unknown sub-user", "currency"],
)
def test_a_debits_order_id_with_other_values_is_refused(other: Command) -> None:
    ledger = given("anna 100; bert 100")
    ledger.ask(debit("d1", "anna", "30"))
    expect(ledger, other, ORDER_ID_TAKEN)


def test_a_refused_debit_leaves_its_order_id_free() -> None:
    ledger = given("anna 10")
    expect(ledger, debit("d1", "anna", "11"), INSUFFICIENT)
    expect(
        ledger,
        debit("d1", "anna", "9"),
        {},
        "user_to_merchant: anna > merchant:KFB 9",
        "anna 1; merchant:KFB 9",
    )


def test_a_credit_is_one_posting_without_a_fee() -> None:
    posted, after = "merchant_to_user: merchant:KFB > anna 30", "anna 30; merchant:KFB 70"
    outcome = {"amount_units": units("30"), "arrival_units": units("30"), "fee_units": 0, "currency": KFB}
    expect(given("merchant:KFB 100"), credit("c1", "anna", "30"), outcome, posted, after)


def test_either_address_of_a_wallet_is_credited() -> None:
    ledger = given("merchant:KFB 100")
    command = MerchantToUser("c1", addresses("bert")[1], KFB, units("1"))
    expect(ledger, command, {}, "merchant_to_user: merchant:KFB > bert 1", "bert 1; merchant:KFB 99")


@each_row(
    ("balances", "command", "refusal"),
    [
        ("anna LIMIT", credit("c1", "nobody", "100"), ADDRESS_UNKNOWN),
        ("anna LIMIT", credit("c1", "anna", "100", USDT), WRONG_CURRENCY),
        ("anna LIMIT; merchant:KFB 99.999999", credit("c1", "anna", "100"), INSUFFICIENT),
        ("anna LIMIT-99; merchant:KFB 100", credit("c1", "anna", "100"), BALANCE_LIMIT),
    ],
    ids=["unknown", "currency", "balance", "overfilled"],
)
def test_the_first_rule_that_a_credit_breaks_is_named(
    balances: str, command: Command, refusal: Refusal
) -> None:
    expect(given(balances), command, refusal)


def test_a_paused_wallet_can_still_be_credited() -> None:
    ledger = given("merchant:KFB 5", paused=True, limit_debit_units=0)
    expect(ledger, credit("c1", "anna", "5"), {}, "merchant_to_user: merchant:KFB > anna 5", "anna 5")


def test_a_repeated_credit_to_either_address_gives_the_first_answer() -> None:
    ledger = given("merchant:KFB 100")
    first = ledger.ask(credit("c1", "anna", "100"))
    assert expect(ledger, MerchantToUser("c1", addresses("anna")[1], KFB, units("100")), {}) == first


@each_row(
    "other",
    [credit("c1", "anna", "31"), credit("c1", "bert", "30"), credit("c1", "nobody", "30")],
    ids=["amount", "sub-user", "unknown address"],
)
def test_a_credits_order_id_with_other_values_is_refused(other: Command) -> None:
    ledger = given("merchant:KFB 100")
    ledger.ask(credit("c1", "anna", "30"))
    expect(ledger, other, ORDER_ID_TAKEN)


def test_an_order_id_names_one_order_in_each_direction() -> None:
    ledger = given("merchant:KFB 100; anna 10")
    expect(
        ledger,
        credit("o1", "anna", "1"),
        {},
        "merchant_to_user: merchant:KFB > anna 1",
        "merchant:KFB 99; anna 11",
    )
    expect(
        ledger,
        debit("o1", "anna", "2"),
        {},
        "user_to_merchant: anna > merchant:KFB 2",
        "merchant:KFB 101; anna 9",
    )
