"""An operator's entries as accounting, and the registrations that open a wallet."""

import pytest
from tests.book.accounting import addresses, expect, given, locate, registration, units
from tests.book.ledger import Ledger, check_chain, submit
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book.commands import Adjust, ReadBalances, ReadSubUser, Register, WithdrawFees
from merchant_wallet.book.outcomes import (
    BALANCE_LIMIT,
    INSUFFICIENT,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
    Adjusted,
    SubUserFound,
)
from merchant_wallet.book.rules.operators import NO_REASON, NOTHING_TO_MOVE


def adjustment(coins: str, currency: str = KFB, user: str | None = None, reason: str = "a gift") -> Adjust:
    """An operator's entry. A minus sign debits."""
    sign = -1 if coins.startswith("-") else 1
    return Adjust(currency, sign * units(coins.removeprefix("-")), reason, "ann", user)


def taking_fees(coins: str | None = None, currency: str = KFB, reason: str = "monthly") -> WithdrawFees:
    """The platform withdraws its fees."""
    return WithdrawFees(currency, None if coins is None else units(coins), reason, "ann")


@each_row(
    ("command", "posted", "after"),
    [
        (adjustment("5"), "adjustment:KFB > merchant:KFB 5", "merchant:KFB 15; anna 10"),
        (adjustment("-10"), "merchant:KFB > adjustment:KFB 10", "anna 10"),
        (adjustment("5", KFB, "anna"), "adjustment:KFB > anna 5", "merchant:KFB 10; anna 15"),
        (adjustment("-4", KFB, "anna"), "anna > adjustment:KFB 4", "merchant:KFB 10; anna 6"),
        (
            adjustment("5", USDT),
            "adjustment:USDT > merchant:USDT 5",
            "merchant:KFB 10; merchant:USDT 5; anna 10",
        ),
    ],
)
def test_an_adjustment_is_posted_against_the_adjustment_account(
    command: Adjust, posted: str, after: str
) -> None:
    ledger = given("merchant:KFB 10; anna 10")
    outcome = {"amount_units": abs(command.signed_units), "currency": command.currency}
    answer = expect(ledger, command, outcome, f"adjust: {posted}", after)
    mine = posted.split()[2 if command.signed_units > 0 else 0]
    assert isinstance(answer, Adjusted)
    assert answer.balance_units == ledger.balances[locate(ledger, mine)[0]]


@each_row(
    ("command", "refusal"),
    [
        (adjustment("0", USDT, "nobody", " \t"), NO_REASON),
        (adjustment("0", USDT, "nobody"), SUB_USER_UNKNOWN),
        (adjustment("0", USDT, "anna"), WRONG_CURRENCY),
        (adjustment("0", KFB, "anna"), NOTHING_TO_MOVE),
        (adjustment("-10.000001", KFB, "anna"), INSUFFICIENT),
        (adjustment("LIMIT", KFB, "anna"), BALANCE_LIMIT),
    ],
)
def test_the_first_rule_that_an_adjustment_breaks_is_named(command: Adjust, refusal: Refusal) -> None:
    expect(given("anna 10"), command, refusal)


def test_the_adjustment_account_itself_has_a_limit() -> None:
    expect(given("anna LIMIT"), adjustment("0.000001"), BALANCE_LIMIT)


def test_who_made_an_entry_and_why_is_in_the_journal() -> None:
    ledger = given()
    ledger.ask(adjustment("1"))
    assert ledger.entries[-1].facts == '{"actor":"ann","reason":"a gift"}'
    check_chain(ledger)


@pytest.mark.parametrize(
    ("command", "posted", "after"),
    [
        (taking_fees(), "fees:KFB > adjustment:KFB 7", ""),
        (taking_fees("2.5"), "fees:KFB > adjustment:KFB 2.5", "fees:KFB 4.5"),
    ],
)
def test_fees_are_taken_out_of_the_book(command: WithdrawFees, posted: str, after: str) -> None:
    expect(given("fees:KFB 7"), command, {"currency": KFB}, f"fee_withdraw: {posted}", after)


@each_row(
    ("command", "refusal"),
    [
        (taking_fees("8", reason=""), NO_REASON),
        (taking_fees("0"), NOTHING_TO_MOVE),
        (taking_fees(None, USDT), NOTHING_TO_MOVE),
        (WithdrawFees(KFB, -1, "monthly", "ann"), NOTHING_TO_MOVE),
        (taking_fees("7.000001"), INSUFFICIENT),
    ],
)
def test_the_first_rule_that_taking_fees_breaks_is_named(command: WithdrawFees, refusal: Refusal) -> None:
    expect(given("fees:KFB 7"), command, refusal)


def test_balances_are_the_merchants_own() -> None:
    ledger = given("merchant:USDT 1; merchant:KFB 2; hold:USDT 4; anna 8")
    expect(ledger, ReadBalances(), {"usdt_units": units("1"), "kfb_units": units("2")})


def test_a_sub_user_is_read_with_its_balance_and_addresses() -> None:
    ledger = given("anna 3")
    evm, tron = addresses("anna")
    outcome = {
        "user_id": locate(ledger, "anna")[0],
        "ext_user_id": "anna",
        "username": "anna",
        "currency": KFB,
        "balance_units": units("3"),
        "evm_address": evm,
        "tron_address": tron,
        "created": False,
    }
    expect(ledger, ReadSubUser("anna"), outcome)
    expect(ledger, ReadSubUser("Anna"), SUB_USER_UNKNOWN)


def test_opening_a_wallet_is_an_entry_that_says_whose_it_is() -> None:
    ledger = Ledger()
    first, again = ledger.run(submit(registration("anna", 4), registration("anna", 5)))
    assert isinstance(first, SubUserFound)
    assert isinstance(again, SubUserFound)
    assert (first.created, again.created) == (True, False)
    (entry,) = ledger.entries
    assert (entry.kind, entry.postings) == ("register", ())
    evm, tron = addresses("anna")
    assert entry.facts == f"4:annaKFB;4;{evm.hex()};{tron.hex()}"
    assert first.user_id == again.user_id == entry.entry_id
    assert ledger.sub_users[entry.entry_id].ext_user_id == "anna"
    assert ledger.address_indexes == {entry.entry_id: 4}
    check_chain(ledger)


def test_a_known_sub_user_is_answered_as_it_stands() -> None:
    ledger = given("anna 3")
    outcome = {
        "user_id": locate(ledger, "anna")[0],
        "balance_units": units("3"),
        "currency": KFB,
        "created": False,
    }
    expect(ledger, Register("anna", USDT, 9, b"e" * 20, b"t" * 20), outcome)
