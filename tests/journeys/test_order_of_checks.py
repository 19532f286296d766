"""Which check comes first if a request breaks several rules."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.journeys.client import Answer, write_json
from tests.journeys.conftest import Shop
from tests.journeys.orders import FAILING, ZERO, credit, debit, exchange, quote, withdrawal
from tests.rows import each_row

BALANCE = "/merchant/getMerchantBalance"
FAR_NETWORK = "192.0.2.0/24"
CREATE = "createMerchantWithdrawOrder"
LONG = "x" * 65

Call = Callable[[Shop], Answer]


def send_malformed_and_unkeyed(shop: Shop) -> Answer:
    return shop.client.send(BALANCE, b'{"a": 1, "a": 2}')


def malformed_key_from_elsewhere(shop: Shop) -> Answer:
    shop.change(networks=FAR_NETWORK)
    return shop.client.call("getMerchantBalance", appKey="x" * 21)


def unknown_key_with_everything_wrong(shop: Shop) -> Answer:
    return shop.client.call("getMerchantBalance", appKey="nobody", timestamp="x", nonceStr="!", sign="x")


def stale_from_elsewhere(shop: Shop) -> Answer:
    shop.change(networks=FAR_NETWORK)
    return shop.client.call("getMerchantBalance", timestamp="x", nonceStr="!", sign="x")


def stale_with_a_malformed_nonce(shop: Shop) -> Answer:
    return shop.client.call("getMerchantBalance", timestamp="1", nonceStr="!", sign="x")


def malformed_time_with_a_malformed_nonce(shop: Shop) -> Answer:
    answer = shop.client.call("getMerchantBalance", timestamp="x", nonceStr="!", sign="x")
    assert "timestamp" in answer.msg
    return answer


def malformed_nonce_with_a_wrong_signature(shop: Shop) -> Answer:
    answer = shop.client.call("getMerchantBalance", nonceStr="!", sign="0" * 32)
    assert "nonceStr" in answer.msg
    return answer


def wrong_signature_too_often(shop: Shop) -> Answer:
    shop.change(rate_limit="1")
    use_up_the_rate(shop)
    return shop.client.call("getMerchantBalance", sign="0" * 32)


def wrong_signature_while_suspended(shop: Shop) -> Answer:
    shop.suspend()
    return shop.client.call("getMerchantBalance", sign="0" * 32)


def too_often_while_suspended(shop: Shop) -> Answer:
    shop.change(rate_limit="1")
    shop.suspend()
    return use_up_the_rate(shop)


def suspended_and_disabled(shop: Shop) -> Answer:
    shop.change(disabled_operations="getMerchantBalance")
    shop.suspend()
    return shop.client.call("getMerchantBalance")


def disabled_with_a_malformed_field(shop: Shop) -> Answer:
    shop.change(disabled_operations="getWithdrawFee")
    return shop.client.call("getWithdrawFee", amount="x")


def malformed_field_with_a_used_nonce(shop: Shop) -> Answer:
    shop.client.do("getMerchantBalance", nonceStr="mine")
    return shop.client.call("getWithdrawFee", nonceStr="mine", amount="x", currency="USDT")


def used_nonce_with_a_known_order(shop: Shop) -> Answer:
    shop.client.do(CREATE, nonceStr="mine", **withdrawal("1"))
    return shop.client.call(CREATE, nonceStr="mine", **withdrawal("1"))


def known_order_beyond_the_balance(shop: Shop) -> Answer:
    shop.client.do(CREATE, **withdrawal("1"))
    return shop.client.call(CREATE, **withdrawal("1", "99999"))


def use_up_the_rate(shop: Shop) -> Answer:
    answers = [shop.client.call("getMerchantBalance") for _ in range(20)]
    return next((answer for answer in answers if answer.code == 42900), answers[-1])


FIRST: dict[Call, int] = {
    send_malformed_and_unkeyed: 40000,
    malformed_key_from_elsewhere: 40001,
    unknown_key_with_everything_wrong: 40100,
    stale_from_elsewhere: 40104,
    malformed_time_with_a_malformed_nonce: 40001,
    stale_with_a_malformed_nonce: 40102,
    malformed_nonce_with_a_wrong_signature: 40001,
    wrong_signature_too_often: 40101,
    wrong_signature_while_suspended: 40101,
    too_often_while_suspended: 42900,
    suspended_and_disabled: 40300,
    disabled_with_a_malformed_field: 40301,
    malformed_field_with_a_used_nonce: 40001,
    used_nonce_with_a_known_order: 40103,
    known_order_beyond_the_balance: 40900,
}


@pytest.mark.parametrize("call", FIRST, ids=lambda call: call.__name__)
def test_of_two_broken_rules_the_earlier_answers(call: Call, shop: Shop) -> None:
    answer = call(shop)
    assert answer.code == FIRST[call], answer.text


def test_a_body_of_another_type_is_refused_before_it_is_read(same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, b"{", "text/plain").code == 415


def test_the_method_is_looked_at_before_the_body(same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, b"{", "text/plain", verb="PUT").code == 405


@each_row(
    ("missing", "named"),
    [
        (("appKey", "timestamp", "nonceStr", "sign"), "appKey"),
        (("timestamp", "nonceStr", "sign"), "timestamp"),
        (("nonceStr", "sign"), "nonceStr"),
        (("sign",), "sign"),
    ],
)
def test_common_fields_are_missed_one_at_a_time(
    missing: tuple[str, ...], named: str, same_shop: Shop
) -> None:
    fields = {**same_shop.client.common(), "sign": "0" * 32}
    kept = {name: value for name, value in fields.items() if name not in missing}
    answer = same_shop.client.send(BALANCE, write_json(kept))
    assert (answer.code, answer.msg) == (40001, f"{named} is required")


def test_a_control_character_is_refused_at_the_signatures_step(shop: Shop) -> None:
    shop.client.expect(40102, "getMerchantBalance", timestamp="1", note="\n")
    shop.client.expect(40001, "getMerchantBalance", sign="0" * 32, note="\n")
    shop.suspend()
    shop.client.expect(40001, "getMerchantBalance", note="\n")


DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"
GOOD: dict[str, dict[str, Any]] = {
    DEBIT: debit("1"),
    CREDIT: credit("1", ZERO["ERC20"]),
    CREATE: withdrawal("1"),
    "queryOrder": {"orderId": "1", "mcOrderId": "1"},
    "getMerchantCustomer": {"extUserId": "alice"},
    "exchange": exchange(),
    "getWithdrawFee": quote(),
}

# Each operation's fields in the interface's order, with values that break their rules and the codes.
BROKEN: dict[str, list[tuple[str, list[tuple[Any, int]]]]] = {
    DEBIT: [
        ("extUserId", [(None, 40001), ("x" * 21, 40001)]),
        ("currency", [(None, 40001), ("EUR", 40003), ("USDT", 40003), ("kfb", 40003)]),
        ("amount", [(None, 40001), ("x", 40001), ("1" * 21, 40001), ("0", 40002)]),
        ("mcOrderId", [(None, 40001), (LONG, 40001)]),
    ],
    CREDIT: [
        ("currency", [(None, 40001), ("EUR", 40003)]),
        ("amount", [(None, 40001), ("-1", 40001), ("0", 40002)]),
        ("mcOrderId", [(None, 40001), (LONG, 40001)]),
        ("address", [(None, 40001), ("x" * 129, 40001)]),
    ],
    CREATE: [
        ("amount", [(None, 40001), ("1" * 21, 40001), ("1e1", 40001), ("0.001", 40002)]),
        ("chainType", [(None, 40001), ("x" * 21, 40001), ("trc20", 40004)]),
        ("currency", [(None, 40001), ("x" * 21, 40001), ("KFB", 40003)]),
        ("mcOrderId", [(None, 40001), ("x" * 21, 40001)]),
        ("address", [(None, 40001), ("x" * 65, 40001), ("x", 40005), (ZERO["TRC20"], 40005)]),
        ("notifyUrl", [(None, 40001), (f"https://example.com/{'x' * 81}", 40001), ("x", 40006)]),
    ],
    "queryOrder": [
        ("orderId", [(None, 40001), ("x", 40001), ("-1", 40001), ("01", 40001), ("1" * 21, 40001)]),
        ("mcOrderId", [(None, 40001), ("x" * 21, 40001)]),
    ],
    "getMerchantCustomer": [("extUserId", [(None, 40001), ("x" * 21, 40001)])],
    "exchange": [
        ("amount", [(None, 40001), ("1" * 21, 40001), (".5", 40001), ("0.001", 40002)]),
        ("sendCurrency", [(None, 40001), ("x" * 21, 40001), ("EUR", 40003)]),
        ("receiveCurrency", [(None, 40001), ("x" * 21, 40001), ("EUR", 40003), ("USDT", 40003)]),
        ("mcOrderId", [(LONG, 40001)]),
        (
            "minAmountArrival",
            [("x", 40001), ("1" * 21, 40001), ("0.0000001", 40002), ("1" + "0" * 12, 40002)],
        ),
    ],
    "getWithdrawFee": [
        ("amount", [(None, 40001), ("1" * 16, 40001), ("x", 40001), ("0", 40002)]),
        ("currency", [(None, 40001), ("x" * 16, 40001), ("KFB", 40003)]),
    ],
}


@pytest.mark.parametrize("operation", BROKEN)
def test_each_field_is_refused_for_what_is_wrong_with_it(operation: str, same_shop: Shop) -> None:
    for name, values in BROKEN[operation]:
        for value, code in values:
            answer = same_shop.client.call(operation, **{**GOOD[operation], name: value})
            assert (answer.code, name in answer.msg) == (code, True), (name, value, answer.text)


@pytest.mark.parametrize("operation", BROKEN)
def test_of_two_broken_fields_the_earlier_in_the_interface_is_named(operation: str, same_shop: Shop) -> None:
    fields = BROKEN[operation]
    for (first, first_values), (second, second_values) in pairwise(fields):
        for value, code in first_values:
            broken = {**GOOD[operation], first: value, second: second_values[0][0]}
            answer = same_shop.client.call(operation, **broken)
            assert (answer.code, first in answer.msg) == (code, True), (first, value, answer.text)


# The book's rules in their declared order: each merchant breaks two of them.


def test_a_known_id_answers_before_the_sub_user_is_looked_for(shop: Shop) -> None:
    shop.user("alice", "100")
    shop.client.do(DEBIT, **debit("1"))
    shop.client.expect(40900, DEBIT, **debit("1", ext_user_id="nobody"))


def test_an_unknown_sub_user_is_refused_before_the_pin_that_it_lacks(shop: Shop) -> None:
    shop.change(require_pin="on")
    shop.client.expect(40400, DEBIT, **debit("1", ext_user_id="nobody"))


def test_a_paused_sub_user_is_refused_before_fee_limit_and_balance(shop: Shop) -> None:
    shop.user("alice")
    shop.change(transfer_fee_rate="1")
    shop.set_controls("alice", paused=True, limit_debit_units="1")
    shop.client.expect(40302, DEBIT, **debit("1", "10"))


def test_the_fee_is_refused_before_the_users_limit(shop: Shop) -> None:
    shop.user("alice")
    shop.change(transfer_fee_rate="1")
    shop.set_controls("alice", limit_debit_units="1")
    shop.client.expect(42201, DEBIT, **debit("1", "10"))


def test_a_limit_is_refused_before_the_balance(shop: Shop) -> None:
    shop.user("alice")
    shop.set_controls("alice", limit_debit_units="1")
    shop.client.expect(42202, DEBIT, **debit("1", "10"))


def test_an_address_off_the_list_is_refused_before_fee_limit_and_balance(shop: Shop) -> None:
    shop.change(allowed_addresses=FAILING["ERC20"], withdraw_fee_min="50000", daily_limit="1")
    shop.client.expect(40403, CREATE, **withdrawal("1", "20000"))


def test_the_fee_is_refused_before_daily_limit_and_balance(shop: Shop) -> None:
    shop.change(withdraw_fee_min="50000", daily_limit="1")
    shop.client.expect(42201, CREATE, **withdrawal("1", "20000"))


def test_the_daily_limit_is_refused_before_the_balance(shop: Shop) -> None:
    shop.change(daily_limit="1")
    shop.client.expect(42202, CREATE, **withdrawal("1", "20000"))


def test_a_missing_rate_is_refused_before_the_balance(shop: Shop) -> None:
    shop.pause_rate("USDT:KFB")
    shop.client.expect(42203, "exchange", **exchange("20000"))
