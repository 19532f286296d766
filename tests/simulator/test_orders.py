"""The simulator's own rules of orders: fees, rates and refusals, written out by hand."""

import pytest
from simulator.orders import (
    CREDIT,
    DEBIT,
    E8,
    EXCHANGE,
    WITHDRAW,
    Effect,
    Order,
    Refusal,
    Tariff,
    judge,
    parse,
    write,
    write_rate,
)

TARIFF = Tariff(
    transfer_fee_e8=E8 // 1000,
    withdraw_fee_e8=E8 // 100,
    withdraw_minimum=500_000,
    rates_e8={("USDT", "KFB"): 7 * E8},
)
BALANCES = {"USDT": 10_000_000, "KFB": 3_000_000, "user:alice": 1_000_500}


@pytest.mark.parametrize(
    ("order", "outcome"),
    [
        (
            Order(DEBIT, "1", 1_000_500, account="user:alice"),
            # A fee of 1000.5 millionths rounds up.
            Effect((("user:alice", -1_000_500), ("KFB", 999_499)), 999_499, 1_001),
        ),
        (Order(DEBIT, "1", 1_000_501, account="user:alice"), Refusal(42200)),
        (Order(DEBIT, "1", 1, account="user:bob"), Refusal(42200)),
        (
            Order(CREDIT, "1", 3_000_000, account="user:bob"),
            Effect((("KFB", -3_000_000), ("user:bob", 3_000_000)), 3_000_000),
        ),
        (Order(CREDIT, "1", 3_000_001, account="user:bob"), Refusal(42200)),
        (Order(WITHDRAW, "1", 10_000_000), Effect((("USDT", -10_000_000),), 9_500_000, 500_000)),
        (Order(WITHDRAW, "1", 500_000), Refusal(42201)),
        (Order(WITHDRAW, "1", 10_010_000), Refusal(42200)),
        (
            Order(EXCHANGE, "1", 1_234_567, send="USDT", receive="KFB"),
            Effect((("USDT", -1_234_567), ("KFB", 8_641_969)), 8_641_969),
        ),
        (Order(EXCHANGE, "1", 10_000, send="KFB", receive="USDT"), Refusal(42203)),
    ],
)
def test_an_order_moves_what_the_interface_says(order: Order, outcome: Effect | Refusal) -> None:
    assert judge(order, BALANCES, TARIFF) == outcome


@pytest.mark.parametrize(
    ("text", "units"), [("0", 0), ("0.000001", 1), ("12.5", 12_500_000), ("-100", -100_000_000)]
)
def test_amounts_are_read_and_written(text: str, units: int) -> None:
    assert (parse(text), write(units)) == (units, text)


def test_a_rate_is_written_with_all_its_decimals() -> None:
    assert [write_rate(each) for each in (712_345_678, E8, 12_000_000)] == ["7.12345678", "1", "0.12"]


@pytest.mark.parametrize("text", ["1.0000001", "1e5", "", "1.-5", "x"])
def test_what_is_no_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no amount"):
        parse(text)
