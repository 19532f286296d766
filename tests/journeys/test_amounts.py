"""Amounts: which forms are read, how decimals are counted, the smallest and the largest amount."""

from decimal import Decimal
from typing import Any

import pytest
from tests.journeys.client import Number
from tests.journeys.conftest import Shop
from tests.journeys.orders import credit, exchange, quote, withdrawal

# After each amount: the code for a transfer (6 decimals, above 0) and for the others (2 decimals, from 0.01).
FORMS: list[tuple[Any, int, int]] = [
    ("1", 200, 200),
    ("1.0", 200, 200),
    ("1.5", 200, 200),
    ("1.50", 200, 200),
    ("0.01", 200, 200),
    ("0.10", 200, 200),
    ("12.500", 200, 40002),
    ("0.001", 200, 40002),
    ("0.000001", 200, 40002),
    ("0.009999", 200, 40002),
    ("1.000000", 200, 40002),
    ("0.0000001", 40002, 40002),
    ("1.0000000", 40002, 40002),
    ("0", 40002, 40002),
    ("0.0", 40002, 40002),
    ("0.00", 40002, 40002),
    ("100000000", 200, 200),
    ("100000000.00", 200, 200),
    ("100000000.01", 40002, 40002),
    ("100000000.00001", 40002, 40002),
    ("100000001", 40002, 40002),
    ("99999999999999", 40002, 40002),
    ("-1", 40001, 40001),
    ("-0", 40001, 40001),
    ("+1", 40001, 40001),
    ("01", 40001, 40001),
    ("00.5", 40001, 40001),
    (".5", 40001, 40001),
    ("5.", 40001, 40001),
    (".", 40001, 40001),
    ("1.2.3", 40001, 40001),
    ("1,5", 40001, 40001),
    ("1,000", 40001, 40001),
    ("1 000", 40001, 40001),
    (" 1", 40001, 40001),
    ("1 ", 40001, 40001),
    ("1e2", 40001, 40001),
    ("1E+2", 40001, 40001),
    ("0x10", 40001, 40001),
    ("1_000", 40001, 40001),
    ("١٢", 40001, 40001),
    ("１２", 40001, 40001),
    ("²", 40001, 40001),
    ("½", 40001, 40001),
    ("ten", 40001, 40001),
    ("NaN", 40001, 40001),
    ("Infinity", 40001, 40001),
    (Number("1"), 200, 200),
    (Number("1.50"), 200, 200),
    (Number("12.500"), 200, 40002),
    (Number("-1"), 40001, 40001),
    (Number("-0"), 40001, 40001),
    (Number("1e2"), 40001, 40001),
    (Number("1.0E+2"), 40001, 40001),
    (Number("0"), 40002, 40002),
]
CENTS = {
    "createMerchantWithdrawOrder": lambda amount: withdrawal("1", amount),
    "exchange": exchange,
    "getWithdrawFee": quote,
}


@pytest.fixture(scope="module")
def rich(platform: Any) -> Shop:
    """A merchant with more money than any amount here."""
    made: Shop = platform.open_merchant()
    made.fund("USDT", "10000000000")
    made.fund("KFB", "10000000000")
    return made


def test_an_amount_is_read_by_its_form(rich: Shop) -> None:
    address = rich.user("alice")["address"]
    for number, (amount, transfer_code, cent_code) in enumerate(FORMS):
        for code, operation, fields in (
            (transfer_code, "transferFromMerchantToUser", credit(f"form {number}", address, amount)),
            (cent_code, "createMerchantWithdrawOrder", withdrawal(f"form {number}", amount)),
            (cent_code, "exchange", exchange(amount)),
            (cent_code, "getWithdrawFee", quote(amount)),
        ):
            answer = rich.client.call(operation, **fields)
            assert answer.code == code, f"{operation} {amount!r}: {answer.text}"
        if cent_code != 200:
            assert "amount" in answer.msg, amount


@pytest.mark.parametrize("operation", ["createMerchantWithdrawOrder", "exchange"])
def test_an_amount_of_more_than_20_characters_is_malformed(operation: str, rich: Shop) -> None:
    rich.client.expect(40002, operation, **CENTS[operation]("1." + "0" * 18))
    rich.client.expect(40001, operation, **CENTS[operation]("1." + "0" * 19))


def test_a_transfers_amount_of_more_than_20_characters_is_malformed(rich: Shop) -> None:
    address = rich.user("alice")["address"]
    rich.client.expect(40002, "transferFromMerchantToUser", **credit("1", address, "1." + "0" * 18))
    rich.client.expect(40001, "transferFromMerchantToUser", **credit("1", address, "1." + "0" * 19))


def test_a_quotes_amount_of_more_than_15_characters_is_malformed(rich: Shop) -> None:
    rich.client.expect(40002, "getWithdrawFee", **quote("1." + "0" * 13))
    rich.client.expect(40001, "getWithdrawFee", **quote("1." + "0" * 14))


def test_no_amount_moves_more_or_less_than_itself(rich: Shop) -> None:
    usdt, kfb = rich.balances()
    address = rich.user("bob")["address"]
    rich.client.do("transferFromMerchantToUser", **credit("b1", address, "0.000001"))
    rich.client.do("transferFromMerchantToUser", **credit("b2", address, "99999999.999999"))
    assert rich.user_balance("bob") == "100000000"
    after_usdt, after_kfb = rich.balances()
    assert after_usdt == usdt
    assert Decimal(kfb) - Decimal(after_kfb) == Decimal(100_000_000)
