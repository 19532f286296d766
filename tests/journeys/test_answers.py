"""Every field of the eight answers: its position, its type, its length, the form of its numbers."""

import re
from typing import Any, NamedTuple

import pytest
from tests.journeys.client import Answer, Number
from tests.journeys.conftest import Shop
from tests.journeys.orders import OPERATIONS, all_fields, credit, debit, exchange, quote, withdrawal

MAX_LONG = 2**53 - 1
match_plain_decimal = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?").fullmatch
match_whole = re.compile(r"0|[1-9][0-9]*").fullmatch
LONG, DECIMAL, TEXT, DECIMAL_TEXT = "Long", "BigDecimal", "String", "String that holds a decimal"


class Field(NamedTuple):
    """One row of the interface's tables. A `nullable` field is null until it has a value."""

    name: str
    kind: str
    max_length: int | None = None
    nullable: bool = False


ANSWERS: dict[str, tuple[Field, ...]] = {
    "transferFromUserToMerchant": (
        Field("transactionId", LONG, 20),
        Field("amount", DECIMAL),
        Field("amountArrival", DECIMAL),
        Field("rate", DECIMAL),
        Field("fee", DECIMAL),
        Field("currency", TEXT),
        Field("mcOrderId", TEXT),
        Field("sign", TEXT, 32),
    ),
    "transferFromMerchantToUser": (
        Field("transactionId", LONG, 20),
        Field("amount", DECIMAL),
        Field("currency", TEXT),
        Field("mcOrderId", TEXT),
        Field("sign", TEXT, 32),
    ),
    "createMerchantWithdrawOrder": (
        Field("orderId", LONG, 20),
        Field("mcOrderId", TEXT, 20),
        Field("amount", DECIMAL),
        Field("amountArrival", DECIMAL),
        Field("currency", TEXT, 20),
        Field("chainType", TEXT, 20),
        Field("address", TEXT),
        Field("txnStatus", TEXT, 6),
        Field("sign", TEXT, 20),
    ),
    "queryOrder": (
        Field("orderId", LONG, 20),
        Field("currency", TEXT, 20),
        Field("amount", DECIMAL),
        Field("rate", DECIMAL),
        Field("fee", DECIMAL),
        Field("amountArrival", DECIMAL),
        Field("txnTime", LONG, 20),
        Field("txnStatus", TEXT, 6),
        Field("createTime", LONG, 20),
        Field("mcOrderId", TEXT, 20),
        Field("notifyTime", LONG, 20, nullable=True),
        Field("extUserId", TEXT, 20, nullable=True),
        Field("chainType", TEXT, 20),
        Field("sign", TEXT, 32),
    ),
    "getMerchantCustomer": (
        Field("userId", LONG, 20),
        Field("extUserId", TEXT, 20),
        Field("username", TEXT, 128),
        Field("currency", TEXT, 10),
        Field("balance", DECIMAL),
        Field("url", TEXT, 1024),
        Field("address", TEXT, 1024),
        Field("tronAddress", TEXT, 1024),
        Field("sign", TEXT, 32),
    ),
    "getMerchantBalance": (
        Field("merchantId", LONG),
        Field("usdtBalance", DECIMAL),
        Field("kfbBalance", DECIMAL),
        Field("sign", TEXT, 32),
    ),
    "exchange": (
        Field("sendCurrency", TEXT, 20),
        Field("receiveCurrency", TEXT, 20),
        Field("amount", DECIMAL_TEXT),
        Field("amountArrival", DECIMAL_TEXT),
        Field("rate", DECIMAL),
        Field("transactionId", LONG),
        Field("sign", TEXT, 20),
    ),
    "getWithdrawFee": (
        Field("amount", DECIMAL),
        Field("amountArrival", DECIMAL),
        Field("fee", DECIMAL),
        Field("rate", DECIMAL),
        Field("sign", TEXT, 32),
    ),
}


def check_field(field: Field, value: Any) -> None:
    if value is None:
        assert field.nullable, f"{field.name} is null"
        return
    assert field.max_length is None or len(value) <= field.max_length, field.name
    if field.kind in (LONG, DECIMAL):
        assert type(value) is Number, f"{field.name} is no number"
        matches = match_whole if field.kind == LONG else match_plain_decimal
        assert matches(value), f"{field.name}: {value}"
        assert field.kind != LONG or int(value) <= MAX_LONG, field.name
    else:
        assert type(value) is str, f"{field.name} is no string"
        assert value, f"{field.name} is empty"
        assert field.kind != DECIMAL_TEXT or match_plain_decimal(value), f"{field.name}: {value}"


def check_answer(operation: str, answer: Answer) -> None:
    fields = ANSWERS[operation]
    assert list(answer.data) == [field.name for field in fields]
    for field in fields:
        check_field(field, answer[field.name])
    assert len(answer["sign"]) == fields[-1].max_length


@pytest.fixture
def seller(shop: Shop) -> Shop:
    """A merchant with fees, whose user alice has 50 KFB."""
    shop.change(transfer_fee_rate="0.005", withdraw_fee_rate="0.01", withdraw_fee_min="0.5")
    shop.user("alice", "50")
    return shop


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_each_field_has_its_position_type_and_length(encoding: str, seller: Shop) -> None:
    asked = all_fields(seller.client)
    for operation in OPERATIONS:
        answer = seller.with_client(encoding=encoding).do(operation, **asked[operation])
        check_answer(operation, answer)


def test_the_table_names_each_operation() -> None:
    assert tuple(ANSWERS) == OPERATIONS


def test_an_amount_is_shown_as_its_shortest_plain_decimal(seller: Shop) -> None:
    address = seller.user("alice")["address"]
    amounts: list[tuple[Any, str]] = [
        ("10", "10"),
        ("10.0", "10"),
        ("10.500000", "10.5"),
        ("0.000001", "0.000001"),
        ("0.10", "0.1"),
        ("0.00002", "0.00002"),
        (Number("12.50"), "12.5"),
        (Number("20"), "20"),
    ]
    for number, (sent, shown) in enumerate(amounts):
        answer = seller.client.do("transferFromMerchantToUser", **credit(str(number), address, sent))
        assert answer["amount"] == shown, sent


def test_the_largest_amount_is_shown_without_exponent(seller: Shop) -> None:
    seller.fund("KFB", "100000000")
    address = seller.user("alice")["address"]
    answer = seller.client.do("transferFromMerchantToUser", **credit("1", address, "100000000"))
    assert answer["amount"] == "100000000"


def test_a_debit_shows_rate_fee_and_what_arrives(seller: Shop) -> None:
    answer = seller.client.do("transferFromUserToMerchant", **debit("A-1", "10.5"))
    shown = (answer["amount"], answer["rate"], answer["fee"], answer["amountArrival"])
    assert shown == ("10.5", "0.005", "0.0525", "10.4475")
    assert (answer["currency"], answer["mcOrderId"]) == ("KFB", "A-1")


def test_a_withdrawal_shows_what_was_ordered(seller: Shop) -> None:
    answer = seller.client.do("createMerchantWithdrawOrder", **withdrawal("10001", "12.50"))
    expected = {
        "orderId": answer["orderId"],
        "mcOrderId": "10001",
        "amount": "12.5",
        "amountArrival": "12",
        "currency": "USDT",
        "chainType": "TRC20",
        "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
        "txnStatus": "0",
    }
    assert answer.without_sign() == expected


def test_a_query_shows_the_order_with_its_fee_and_times(seller: Shop) -> None:
    before_ms = seller.client.now_ms()
    made = seller.client.do("createMerchantWithdrawOrder", **withdrawal("10001", "200"))
    found = seller.client.do("queryOrder", orderId=made["orderId"], mcOrderId="10001")
    shown = (found["amount"], found["rate"], found["fee"], found["amountArrival"], found["txnStatus"])
    assert shown == ("200", "0.01", "2", "198", "0")
    assert found["txnTime"] == found["createTime"]
    assert before_ms - 1 <= int(found["createTime"]) <= seller.client.now_ms() + 1
    assert (found["notifyTime"], found["extUserId"], found["chainType"]) == (None, None, "TRC20")


def test_a_query_shows_when_the_merchant_was_told(seller: Shop) -> None:
    made = seller.client.do("createMerchantWithdrawOrder", **withdrawal("told"))
    seller.platform.rows(
        "update withdrawal set notified_ms = %s where merchant_id = %s", 1763712000123, seller.merchant_id
    )
    found = seller.client.do("queryOrder", orderId=made["orderId"], mcOrderId="told")
    check_answer("queryOrder", found)
    assert found["notifyTime"] == "1763712000123"


def test_a_query_gives_a_whole_order_id_below_2_to_the_53_as_a_number(seller: Shop) -> None:
    for mc_order_id, is_number in (
        ("10001", True),
        ("0", True),
        ("9007199254740991", True),
        ("9007199254740992", False),
        ("99999999999999999999", False),
        ("007", False),
        ("1.0", False),
        ("+1", False),
        ("A1", False),
        ("١", False),
    ):
        made = seller.client.do("createMerchantWithdrawOrder", **withdrawal(mc_order_id))
        found = seller.client.do("queryOrder", orderId=made["orderId"], mcOrderId=mc_order_id)
        assert type(made["mcOrderId"]) is str
        assert (found["mcOrderId"], type(found["mcOrderId"]) is Number) == (mc_order_id, is_number)


def test_an_exchange_gives_its_amounts_as_strings_and_its_rate_as_a_number(seller: Shop) -> None:
    answer = seller.client.do("exchange", **exchange("10.50"))
    expected = {
        "sendCurrency": "USDT",
        "receiveCurrency": "KFB",
        "amount": "10.5",
        "amountArrival": "74.55",
        "rate": "7.1",
        "transactionId": answer["transactionId"],
    }
    assert answer.without_sign() == expected


def test_a_quote_shows_the_fee(seller: Shop) -> None:
    answer = seller.client.do("getWithdrawFee", **quote("100.10"))
    expected = {"amount": "100.1", "amountArrival": "99.099", "fee": "1.001", "rate": "0.01"}
    assert answer.without_sign() == expected


def test_an_empty_balance_is_zero(seller: Shop) -> None:
    answer = seller.client.do("getMerchantCustomer", extUserId="bob")
    assert (answer["balance"], answer["currency"], answer["username"]) == ("0", "KFB", "bob")


def test_a_balance_names_the_merchant(seller: Shop) -> None:
    answer = seller.client.do("getMerchantBalance")
    expected = {"merchantId": str(seller.merchant_id), "usdtBalance": "1000", "kfbBalance": "1000"}
    assert answer.without_sign() == expected


def test_the_largest_balance_keeps_every_digit(seller: Shop) -> None:
    seller.fund("USDT", "100000000000.000001")
    assert seller.balances()[0] == "100000001000.000001"


def test_ids_are_whole_numbers_below_2_to_the_53_and_all_different(seller: Shop) -> None:
    address = seller.user("alice")["address"]
    ids = [
        seller.client.do("transferFromMerchantToUser", **credit("1", address))["transactionId"],
        seller.client.do("transferFromUserToMerchant", **debit("1"))["transactionId"],
        seller.client.do("exchange", **exchange())["transactionId"],
        seller.client.do("createMerchantWithdrawOrder", **withdrawal("1"))["orderId"],
        seller.client.do("getMerchantCustomer", extUserId="alice")["userId"],
    ]
    assert len(set(ids)) == len(ids)
    assert all(int(number) <= MAX_LONG for number in ids)


def test_every_answer_has_a_request_id_of_its_own(seller: Shop) -> None:
    answers = [seller.client.call("getMerchantBalance") for _ in range(3)]
    answers += [seller.client.call("nothing"), seller.client.send("/merchant/exchange", b"")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 5
