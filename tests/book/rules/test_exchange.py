"""The exchange as accounting: rounding down, the current rate, the exchange position."""

import pytest
from tests.book.accounting import expect, given, show_entry, swap, units
from tests.book.ledger import START_MS
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import (
    ARRIVES_AS_ZERO,
    BALANCE_LIMIT,
    BELOW_MINIMUM_ARRIVAL,
    INSUFFICIENT,
    NO_RATE,
    ORDER_ID_TAKEN,
    POSITION_LIMIT,
    RATE_ALLOWS_ARBITRAGE,
    RATE_PAUSED,
    RATE_TOO_OLD,
)
from merchant_wallet.book.state import Rate

TO_KFB, TO_USDT = (USDT, KFB), (KFB, USDT)


def rate(e8: int | None, *, paused: bool = False, max_age_ms: int | None = None) -> Rate:
    """A rate that was set when the book began."""
    return Rate(e8, paused, START_MS, max_age_ms)


def test_both_sides_of_an_exchange_are_posted_against_the_exchange_account() -> None:
    posted = "exchange: merchant:USDT > exchange:USDT 10; exchange:KFB > merchant:KFB 70"
    after = "merchant:USDT 90; exchange:USDT 10; merchant:KFB 70; exchange:KFB -70"
    outcome = {"amount_units": units("10"), "arrival_units": units("70"), "rate_e8": 7 * 10**8}
    expect(given("merchant:USDT 100"), swap("x1", "10"), outcome, posted, after)


def test_an_exchange_without_an_order_id_is_made_each_time() -> None:
    ledger = given("merchant:KFB 100")
    for left, got in (("90", "1.4"), ("80", "2.8")):
        posted = "exchange: merchant:KFB > exchange:KFB 10; exchange:USDT > merchant:USDT 1.4"
        after = (
            f"merchant:KFB {left}; exchange:KFB {100 - int(left)}; merchant:USDT {got}; exchange:USDT -{got}"
        )
        expect(ledger, swap(None, "10", KFB, USDT), {"arrival_units": units("1.4")}, posted, after)


@each_row(
    ("coins", "e8", "arrival"),
    [
        ("0.01", 33_333_333, "0.003333"),
        ("0.03", 33_333_333, "0.009999"),
        ("1", 99_999_999, "0.999999"),
        ("1", 199, "0.000001"),
        ("100", 1, "0.000001"),
    ],
)
def test_what_arrives_is_rounded_down_to_a_millionth(coins: str, e8: int, arrival: str) -> None:
    ledger = given("merchant:KFB 100")
    ledger.rates = {TO_USDT: rate(e8)}
    posted = f"exchange: merchant:KFB > exchange:KFB {coins}; exchange:USDT > merchant:USDT {arrival}"
    ledger.ask(swap("x1", coins, KFB, USDT))
    assert show_entry(ledger, ledger.entries[-1]) == posted


BROKEN: list[tuple[str, dict[tuple[str, str], Rate | None], Command, Refusal]] = [
    ("none", {TO_KFB: None}, swap("x1", "1000"), NO_RATE),
    ("unset", {TO_KFB: rate(None)}, swap("x1", "1000"), NO_RATE),
    ("paused", {TO_KFB: rate(1, paused=True, max_age_ms=1)}, swap("x1", "1000"), RATE_PAUSED),
    ("old", {TO_KFB: rate(10**9, max_age_ms=999)}, swap("x1", "1000"), RATE_TOO_OLD),
    ("pumps", {TO_KFB: rate(714_285_715)}, swap("x1", "0.000001"), RATE_ALLOWS_ARBITRAGE),
    ("zero", {TO_KFB: rate(1)}, swap("x1", "99.999999", least="1", position="0"), ARRIVES_AS_ZERO),
    ("least", {}, swap("x1", "1000", least="7000.000001", position="0"), BELOW_MINIMUM_ARRIVAL),
    ("position", {}, swap("x1", "1000", least="7000", position="6999"), POSITION_LIMIT),
    ("balance", {}, swap("x1", "1000", least="7000", position="7000"), INSUFFICIENT),
]


@each_row(("rates", "command", "refusal"), [row[1:] for row in BROKEN], ids=[r[0] for r in BROKEN])
def test_the_first_rule_that_an_exchange_breaks_is_named(
    rates: dict[tuple[str, str], Rate | None], command: Command, refusal: Refusal
) -> None:
    ledger = given("merchant:USDT 999.999999; merchant:KFB LIMIT")
    for pair, changed in rates.items():
        ledger.rates.pop(pair) if changed is None else ledger.rates.update({pair: changed})
    expect(ledger, command, refusal, now_ms=START_MS + 1000)


@each_row(
    "balances",
    [
        "merchant:USDT 10; merchant:KFB LIMIT-69",
        "merchant:USDT 10; exchange:USDT LIMIT-9",
        "merchant:USDT 10; exchange:KFB -LIMIT",
    ],
    ids=["merchant", "desk's receipt", "desk's payment"],
)
def test_an_exchange_that_would_overfill_a_balance_is_refused(balances: str) -> None:
    ledger = given(balances.replace("; exchange:KFB -LIMIT", ""))
    if "-LIMIT" in balances:
        ledger.balances[7], ledger.balances[11] = -units("LIMIT"), units("LIMIT")
    expect(ledger, swap("x1", "10"), BALANCE_LIMIT)


def test_a_rate_holds_until_it_is_older_than_its_age() -> None:
    ledger = given("merchant:USDT 1")
    ledger.rates[TO_KFB] = rate(10**8, max_age_ms=1000)
    expect(ledger, swap("x1", "1"), RATE_TOO_OLD, now_ms=START_MS + 1001)
    ledger.last_ms = START_MS
    posted = "exchange: merchant:USDT > exchange:USDT 1; exchange:KFB > merchant:KFB 1"
    after = "exchange:USDT 1; merchant:KFB 1; exchange:KFB -1"
    expect(ledger, swap("x1", "1"), {}, posted, after, START_MS + 1000)


def test_rates_that_give_back_exactly_what_was_sent_are_in_order() -> None:
    ledger = given("merchant:USDT 1")
    ledger.rates = {TO_KFB: rate(4 * 10**8), TO_USDT: rate(25 * 10**6)}
    posted = "exchange: merchant:USDT > exchange:USDT 1; exchange:KFB > merchant:KFB 4"
    after = "exchange:USDT 1; merchant:KFB 4; exchange:KFB -4"
    expect(ledger, swap("x1", "1"), {}, posted, after)


def test_rates_that_would_gain_are_refused_while_the_other_direction_is_paused() -> None:
    ledger = given("merchant:USDT 1")
    ledger.rates = {TO_KFB: rate(4 * 10**8), TO_USDT: rate(26 * 10**6, paused=True)}
    expect(ledger, swap("x1", "1"), RATE_ALLOWS_ARBITRAGE)


def test_what_the_desk_has_received_widens_its_position() -> None:
    ledger = given("merchant:USDT 10; exchange:KFB 50")
    expect(ledger, swap("x1", "10", position="19"), POSITION_LIMIT)
    posted = "exchange: merchant:USDT > exchange:USDT 10; exchange:KFB > merchant:KFB 70"
    after = "exchange:USDT 10; merchant:KFB 70; exchange:KFB -20"
    expect(ledger, swap("x1", "10", position="20"), {}, posted, after)


def test_a_repeated_exchange_gives_the_first_answer_whatever_the_rate_is_now() -> None:
    ledger = given("merchant:USDT 10")
    first = ledger.ask(swap("x1", "10"))
    ledger.rates = {TO_KFB: rate(10**8, paused=True)}
    assert expect(ledger, swap("x1", "10", least="1000", position="0"), {}) == first


@pytest.mark.parametrize("other", [swap("x1", "5"), swap("x1", "10", KFB, USDT)], ids=["amount", "direction"])
def test_an_exchanges_order_id_with_other_values_is_refused(other: Command) -> None:
    ledger = given("merchant:USDT 100; merchant:KFB 100")
    ledger.ask(swap("x1", "10"))
    expect(ledger, other, ORDER_ID_TAKEN)


def test_exchanging_to_and_fro_never_gains() -> None:
    ledger = given("merchant:KFB 1")
    ledger.rates = {TO_KFB: rate(3 * 10**8), TO_USDT: rate(33_333_333)}
    ledger.ask(swap(None, "1", KFB, USDT))
    ledger.ask(swap(None, "0.333333"))
    assert ledger.balances[2] == units("0.999999")
