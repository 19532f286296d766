"""Deposits as accounting: to whom, in which currency, once, and what makes one wait."""

import msgspec
from msgspec.structs import replace
from tests.book.accounting import addresses, arrived, expect, given, units
from tests.book.ledger import START_MS, Ledger
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book.commands import CreditDeposit, DepositKey, Submission
from merchant_wallet.book.outcomes import (
    ADDRESS_UNKNOWN,
    ARRIVES_AS_ZERO,
    BALANCE_LIMIT,
    DEPOSIT_DIFFERS,
    DEPOSIT_NOT_DUE,
    DEPOSIT_UNKNOWN,
    NO_RATE,
    RATE_ALLOWS_ARBITRAGE,
    RATE_PAUSED,
    RATE_TOO_OLD,
    Credited,
)
from merchant_wallet.book.state import CallbackDue, Rate

TO_KFB = USDT, KFB


def test_a_deposit_to_a_wallet_of_usdt_is_credited_as_it_came() -> None:
    ledger = given()
    posted = "deposit: chain:ERC20:USDT > ulla 12.5"
    outcome = {"currency": USDT, "amount_units": units("12.5"), "arrival_units": units("12.5"), "rate_e8": 0}
    expect(ledger, arrived(ledger, "ulla", "12.5"), outcome, posted, "chain:ERC20:USDT -12.5; ulla 12.5")


def test_a_deposit_to_a_wallet_of_kfb_is_exchanged_in_the_same_entry() -> None:
    ledger = given()
    posted = "deposit: chain:TRC20:USDT > exchange:USDT 10; exchange:KFB > anna 70"
    after = "chain:TRC20:USDT -10; exchange:USDT 10; exchange:KFB -70; anna 70"
    outcome = {
        "currency": KFB,
        "amount_units": units("10"),
        "arrival_units": units("70"),
        "rate_e8": 7 * 10**8,
    }
    expect(ledger, arrived(ledger, "anna", "10", "TRC20"), outcome, posted, after)


def test_a_deposit_to_the_merchants_own_address_is_its_usdt() -> None:
    ledger = given("merchant:USDT 1")
    posted = "deposit: chain:ERC20:USDT > merchant:USDT 2"
    expect(ledger, arrived(ledger, "merchant", "2"), {}, posted, "chain:ERC20:USDT -2; merchant:USDT 3")


@each_row(
    ("coins", "e8", "arrival"),
    [("0.03", 33_333_333, "0.009999"), ("1.000001", 99_999_999, "1"), ("100", 1, "0.000001")],
)
def test_what_a_wallet_of_kfb_gets_is_rounded_down(coins: str, e8: int, arrival: str) -> None:
    ledger = given()
    ledger.rates = {TO_KFB: Rate(e8, False, START_MS, None)}
    outcome = ledger.ask(arrived(ledger, "anna", coins))
    assert isinstance(outcome, Credited)
    assert outcome.arrival_units == units(arrival)


def test_a_deposit_is_credited_once_however_often_it_is_asked_for() -> None:
    ledger = given()
    command = arrived(ledger, "anna", "10")
    first = ledger.ask(command)
    ledger.rates = {}
    assert expect(ledger, command, {}) == first
    told = msgspec.structs.replace(command, wants_callback=True)
    assert expect(ledger, told, {}) == first
    assert not ledger.callbacks


def test_two_credits_of_one_deposit_in_one_batch_are_one() -> None:
    ledger = given()
    command = arrived(ledger, "ulla", "10")
    outcomes, draft = ledger.judge([Submission(command), Submission(command)])
    assert outcomes[0] == outcomes[1]
    assert len(draft.changes.entries) == len(draft.changes.credited) == 1


def test_two_transfers_of_one_transaction_are_two_deposits() -> None:
    ledger = given()
    first = arrived(ledger, "ulla", "10")
    key = msgspec.structs.replace(first.key, log_index=1)
    ledger.deposits[key] = msgspec.structs.replace(ledger.deposits[first.key], key=key)
    ledger.ask(first)
    posted = "deposit: chain:ERC20:USDT > ulla 10"
    after = "chain:ERC20:USDT -20; ulla 20"
    expect(ledger, msgspec.structs.replace(first, key=key), {}, posted, after)


def test_a_callback_is_stored_in_the_same_commit_if_the_merchant_wants_it() -> None:
    ledger = given()
    ledger.ask(msgspec.structs.replace(arrived(ledger, "anna", "10"), wants_callback=True))
    entry_id = ledger.entries[-1].entry_id
    assert ledger.callbacks == [CallbackDue(entry_id, 0, f"evt_{entry_id}_deposit", START_MS, "deposit")]


def test_the_journal_keeps_which_transfer_was_credited() -> None:
    ledger = given()
    ledger.ask(arrived(ledger, "ulla", "10", tx_hash="0xfe"))
    facts = msgspec.json.decode(ledger.entries[-1].facts)
    address = addresses("ulla")[0].hex()
    assert facts == {"address": address, "chain": "ERC20", "logIndex": 0, "told": False, "txHash": "0xfe"}


BROKEN: list[tuple[str, dict[tuple[str, str], Rate | None], str, Refusal]] = [
    ("none", {TO_KFB: None}, "1000", NO_RATE),
    ("paused", {TO_KFB: Rate(7, True, START_MS, 1)}, "1000", RATE_PAUSED),
    ("old", {TO_KFB: Rate(7, False, START_MS, 999)}, "1000", RATE_TOO_OLD),
    ("pumps", {TO_KFB: Rate(714_285_715, False, START_MS, None)}, "1000", RATE_ALLOWS_ARBITRAGE),
    ("zero", {TO_KFB: Rate(1, False, START_MS, None)}, "99.999999", ARRIVES_AS_ZERO),
]


@each_row(("rates", "coins", "refusal"), [row[1:] for row in BROKEN], ids=[r[0] for r in BROKEN])
def test_without_a_rate_a_wallet_of_kfb_waits(
    rates: dict[tuple[str, str], Rate | None], coins: str, refusal: Refusal
) -> None:
    ledger = given()
    for pair, changed in rates.items():
        ledger.rates.pop(pair) if changed is None else ledger.rates.update({pair: changed})
    expect(ledger, arrived(ledger, "anna", coins), refusal, now_ms=START_MS + 1000)


def test_a_wallet_of_usdt_asks_for_no_rate() -> None:
    ledger = given()
    ledger.rates = {}
    expect(
        ledger,
        arrived(ledger, "ulla", "1"),
        {},
        "deposit: chain:ERC20:USDT > ulla 1",
        "chain:ERC20:USDT -1; ulla 1",
    )


def test_what_nobody_saw_arrive_is_not_credited() -> None:
    ledger = given()
    command = CreditDeposit(DepositKey("ERC20", "0xno", 0), addresses("ulla")[0], 1, False)
    expect(ledger, command, DEPOSIT_UNKNOWN)


@each_row("changes", [{"amount_units": units("11")}, {"address": addresses("bert")[0]}])
@each_row("is_credited", [False, True])
def test_another_amount_or_address_than_arrived_is_refused(
    changes: dict[str, int], is_credited: bool
) -> None:
    ledger = given()
    command = arrived(ledger, "ulla", "10")
    if is_credited:
        ledger.ask(command)
    expect(ledger, msgspec.structs.replace(command, **changes), DEPOSIT_DIFFERS)


def test_a_deposit_that_is_not_final_or_is_dust_is_not_credited() -> None:
    ledger = given()
    expect(ledger, arrived(ledger, "ulla", "10", is_due=False), DEPOSIT_NOT_DUE)


def test_an_address_that_is_nobodys_gets_nothing() -> None:
    ledger = given()
    expect(ledger, arrived(ledger, "stranger", "10"), ADDRESS_UNKNOWN)


FULL: list[tuple[str, str, str]] = [
    ("anna", "anna", "LIMIT-69"),
    ("anna", "exchange:USDT", "LIMIT-9"),
    ("ulla", "ulla", "LIMIT-9"),
    ("merchant", "merchant:USDT", "LIMIT-9"),
]


@each_row(("name", "account", "coins"), FULL)
def test_a_deposit_that_would_overfill_a_balance_waits(name: str, account: str, coins: str) -> None:
    ledger = given(f"{account} {coins}")
    expect(ledger, arrived(ledger, name, "10"), BALANCE_LIMIT)


@each_row(("name", "account_id"), [("ulla", 8), ("anna", 8), ("anna", 7)])
def test_a_deposit_that_would_take_an_outside_account_beyond_its_floor_waits(
    name: str, account_id: int
) -> None:
    ledger = given()
    opposite = {8: 10, 7: 11}[account_id]
    ledger.balances[account_id], ledger.balances[opposite] = -units("LIMIT"), units("LIMIT")
    expect(ledger, arrived(ledger, name, "10"), BALANCE_LIMIT)


def test_a_paused_sub_user_is_credited_all_the_same() -> None:
    ledger: Ledger = given()
    ulla = next(user for user in ledger.sub_users.values() if user.ext_user_id == "ulla")
    ledger.sub_users[ulla.user_id] = replace(ulla, paused=True)
    expect(
        ledger,
        arrived(ledger, "ulla", "1"),
        {},
        "deposit: chain:ERC20:USDT > ulla 1",
        "chain:ERC20:USDT -1; ulla 1",
    )
