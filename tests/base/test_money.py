"""Amounts and rates keep every unit, refuse every other form, and are rounded as documented."""

from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.codes import AMOUNT_OUT_OF_RANGE, FIELD_INVALID, Refused
from merchant_wallet.base.money import (
    MAX_BALANCE_UNITS,
    MAX_RATE_E8,
    RATE_SCALE,
    UNITS_PER_COIN,
    compute_exchange_units,
    compute_fee_units,
    format_rate,
    format_units,
    parse_amount,
    parse_rate,
    parse_units,
)

MAX_AMOUNT_UNITS = 100_000_000 * UNITS_PER_COIN
amounts_units = st.integers(0, MAX_BALANCE_UNITS)
rates_e8 = st.integers(1, MAX_RATE_E8)


def parse_transfer(text: str) -> int:
    return parse_amount(
        text, "amount", max_length=20, max_decimals=6, minimum_units=1, maximum_units=MAX_AMOUNT_UNITS
    )


def parse_withdrawal(text: str) -> int:
    return parse_amount(
        text, "amount", max_length=20, max_decimals=2, minimum_units=10_000, maximum_units=MAX_AMOUNT_UNITS
    )


@each_row(
    ("text", "units"),
    [
        ("0.000001", 1),
        ("0.5", 500_000),
        ("1", 1_000_000),
        ("12.50", 12_500_000),
        ("12.500000", 12_500_000),
        ("100000000", MAX_AMOUNT_UNITS),
        ("100000000.000000", MAX_AMOUNT_UNITS),
    ],
)
def test_a_plain_decimal_is_read_exactly(text: str, units: int) -> None:
    assert parse_transfer(text) == units


@each_row(
    "text",
    [
        *("-1", "+1", "1e2", "1E2", "01", "00", "00.5", ".5", "5.", ".", "1.2.3", "1,5", "1 000", " 1", "1 "),
        *("", "abc", "0x10", "NaN", "Infinity", "1_000", "1\n", "\u0661", "\uff11", "1.\u0662", "½", "1..2"),
    ],
)
def test_any_other_form_is_refused_as_malformed(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_transfer(text)
    assert caught.value.refusal.code == FIELD_INVALID
    assert caught.value.refusal.msg.startswith("amount ")


@each_row("text", ["0", "0.0", "100000000.000001", "100000001", "1.0000000", "0.0000001"])
def test_a_transfer_outside_its_range_or_with_a_seventh_decimal_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_transfer(text)
    assert caught.value.refusal.code == AMOUNT_OUT_OF_RANGE


@each_row(
    ("text", "rule"),
    [
        ("0", "amount must be between 0.01 and 100000000"),
        ("0.00", "amount must be between 0.01 and 100000000"),
        ("100000000.01", "amount must be between 0.01 and 100000000"),
        ("12.500", "amount must have at most 2 decimals"),
        ("0.010", "amount must have at most 2 decimals"),
    ],
)
def test_a_withdrawal_counts_decimals_as_written_and_names_the_broken_rule(text: str, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_withdrawal(text)
    assert (caught.value.refusal.code, caught.value.refusal.msg) == (AMOUNT_OUT_OF_RANGE, rule)


@pytest.mark.parametrize(("text", "units"), [("0.01", 10_000), ("100000000.00", MAX_AMOUNT_UNITS)])
def test_both_ends_of_the_range_are_inside_it(text: str, units: int) -> None:
    assert parse_withdrawal(text) == units


@each_row("text", ["x" * 21, "1" * 21, "0." + "0" * 18 + "1"])
def test_too_long_is_judged_before_form_and_range(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_transfer(text)
    assert caught.value.refusal.code == FIELD_INVALID
    assert "at most 20 characters" in caught.value.refusal.msg


def test_form_is_judged_before_decimals_and_range() -> None:
    with pytest.raises(Refused) as caught:
        parse_withdrawal("-0.0001")
    assert caught.value.refusal.code == FIELD_INVALID


@each_row(
    ("units", "text"),
    [
        (100_000_000, "100"),
        (100_500_000, "100.5"),
        (1, "0.000001"),
        (0, "0"),
        (-1_500_000, "-1.5"),
        (-1, "-0.000001"),
    ],
)
def test_amounts_print_as_the_shortest_plain_decimal(units: int, text: str) -> None:
    assert format_units(units) == text


@given(amounts_units)
def test_a_printed_amount_reads_back_as_itself(units: int) -> None:
    text = format_units(units)
    assert parse_units(text) == units
    assert "e" not in text.lower()
    assert "." not in text or not text.endswith(("0", "."))


@given(rates_e8)
def test_a_printed_rate_reads_back_as_itself(rate_e8: int) -> None:
    assert parse_rate(format_rate(rate_e8)) == rate_e8


@each_row(
    ("text", "rate_e8"),
    [("1", RATE_SCALE), ("0.00000001", 1), ("7.25", 725_000_000), ("1000000", MAX_RATE_E8)],
)
def test_a_rate_is_read_exactly(text: str, rate_e8: int) -> None:
    assert parse_rate(text) == rate_e8


@each_row("text", ["0", "0.000000001", "1000000.00000001", "-1", "1e3", "", "1,5", "9" * 5000])
def test_a_rate_that_is_zero_too_fine_too_large_or_malformed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]{1,120}$"):
        parse_rate(text)


def test_a_fee_rate_may_be_zero_and_has_its_own_ceiling() -> None:
    assert parse_rate("0", minimum_e8=0, maximum_e8=RATE_SCALE) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        parse_rate("1.1", minimum_e8=0, maximum_e8=RATE_SCALE)


@each_row("text", ["1.0000001", "-1", "1e3", "", "9" * 5000, "4611686018427.387905"])
def test_a_typed_amount_that_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]{1,120}$"):
        parse_units(text)


@each_row(
    ("amount_units", "rate_e8", "fee"),
    [(1, 50_000_000, 1), (1, 49_999_999, 0), (3, 50_000_000, 2), (10_000_000, 100_000, 10_000), (5, 0, 0)],
)
def test_a_fee_rounds_half_up_to_a_unit(amount_units: int, rate_e8: int, fee: int) -> None:
    assert compute_fee_units(amount_units, rate_e8) == fee


@given(amounts_units, rates_e8)
def test_both_roundings_agree_with_exact_decimals(amount_units: int, rate_e8: int) -> None:
    exact = Decimal(amount_units * rate_e8).scaleb(-8)
    assert compute_fee_units(amount_units, rate_e8) == int(exact.quantize(Decimal(1), ROUND_HALF_UP))
    assert compute_exchange_units(amount_units, rate_e8) == int(exact.quantize(Decimal(1), ROUND_FLOOR))


@given(amounts_units, st.integers(1, RATE_SCALE))
def test_an_exchange_there_and_back_never_gains(amount_units: int, rate_e8: int) -> None:
    back_e8 = RATE_SCALE * RATE_SCALE // rate_e8
    assert compute_exchange_units(compute_exchange_units(amount_units, rate_e8), back_e8) <= amount_units


@pytest.mark.parametrize(
    ("text", "code"), [("1." + "0" * 18, AMOUNT_OUT_OF_RANGE), ("1." + "0" * 19, FIELD_INVALID)]
)
def test_the_longest_text_is_read_and_a_longer_one_is_malformed(text: str, code: int) -> None:
    with pytest.raises(Refused) as refused:
        parse_transfer(text)
    assert refused.value.refusal.code == code


@each_row(("rate_e8", "text"), [(14_000_000, "0.14"), (710_000_000, "7.1"), (10**8, "1")])
def test_rates_print_as_the_shortest_plain_decimal(rate_e8: int, text: str) -> None:
    assert format_rate(rate_e8) == text


def test_the_largest_balance_can_be_typed_and_nothing_above_it() -> None:
    most = format_units(MAX_BALANCE_UNITS)
    assert parse_units(most) == MAX_BALANCE_UNITS
    above = format_units(MAX_BALANCE_UNITS + 1)
    with pytest.raises(ValueError, match=f"^{above} is more than {most}, the largest amount kept$"):
        parse_units(above)


def test_an_amount_can_be_typed_as_pages_print_it() -> None:
    assert [parse_units(text) for text in ("1,000", "12,345,678.50")] == [10**9, 12_345_678_500_000]


def test_a_typed_amount_has_forty_characters_at_most() -> None:
    assert parse_units("0." + "0" * 6) == 0
    with pytest.raises(ValueError, match="has more than 6 decimals"):
        parse_units("0." + "0" * 38)
    with pytest.raises(ValueError, match="is not a plain decimal number"):
        parse_units("0." + "0" * 39)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1e2", "'1e2' is not a plain decimal number such as 12.5"),
        ("8,20", "'8,20' is not a plain decimal number such as 12.5: it has a comma"),
        ("10,00.5", "'10,00.5' is not a plain decimal number such as 12.5: it has a comma"),
        ("1.0000001", "1.0000001 has more than 6 decimals"),
    ],
)
def test_an_operator_is_told_what_is_wrong_with_an_amount(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        parse_units(text)
