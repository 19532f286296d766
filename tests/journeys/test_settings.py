"""A changed setting applies from the next request on, although the service caches merchants."""

from collections.abc import Callable

import pytest
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import ERC20_ADDRESS, TRC20_ADDRESS, credit, debit, exchange, quote, withdrawal

DEBIT, CREDIT, CREATE = (
    "transferFromUserToMerchant",
    "transferFromMerchantToUser",
    "createMerchantWithdrawOrder",
)


@pytest.fixture
def warm(shop: Shop) -> Shop:
    """A merchant in the service's cache, whose user alice has 500 KFB."""
    shop.user("alice", "500")
    return shop


def test_a_suspended_merchants_next_request_is_refused(warm: Shop) -> None:
    for _ in range(3):
        warm.suspend()
        warm.client.expect(40300, "getMerchantBalance")
        warm.resume()
        warm.client.do("getMerchantBalance")


def test_a_suspended_merchants_malformed_request_is_refused_for_the_suspension(warm: Shop) -> None:
    warm.suspend()
    warm.client.expect(40300, "getWithdrawFee", amount="ten", currency="USDT")


def test_a_disabled_operation_is_refused_and_others_go_on(warm: Shop) -> None:
    warm.change(disabled_operations="exchange queryOrder")
    warm.client.expect(40301, "exchange", **exchange())
    warm.client.do("getMerchantBalance")
    warm.change(disabled_operations="none")
    warm.client.do("exchange", **exchange())


def test_a_disabled_operations_malformed_request_is_refused_for_that(warm: Shop) -> None:
    warm.change(disabled_operations="getWithdrawFee")
    warm.client.expect(40301, "getWithdrawFee", amount="ten", currency="USDT")


def test_a_retired_secret_is_refused_whatever_else_is_wrong(warm: Shop) -> None:
    newer = warm.with_client(secret=warm.rotate_secret())
    newer.do("getMerchantBalance")
    warm.client.do("getMerchantBalance")
    warm.retire_secret()
    warm.client.expect(40101, "getWithdrawFee", amount="ten", currency="USDT")
    newer.expect(40001, "getWithdrawFee", amount="ten", currency="USDT")


def test_a_new_secret_is_right_at_once(warm: Shop) -> None:
    warm.with_client(secret=warm.rotate_secret()).do("getMerchantBalance")


def test_a_new_sign_method_holds_at_once(warm: Shop) -> None:
    warm.change(sign_method="MD5")
    warm.with_client(method="MD5").do("getMerchantBalance")
    warm.client.expect(40101, "getMerchantBalance")


def test_a_new_currency_mode_holds_at_once(platform: Platform) -> None:
    shop = platform.open_merchant()
    shop.client.expect(40003, DEBIT, **debit("1") | {"currency": "USDT"})
    shop.change(currency_mode="USDT")
    shop.client.expect(40400, DEBIT, **debit("1") | {"currency": "USDT"})
    shop.change(currency_mode="KFB")
    shop.client.expect(40400, DEBIT, **debit("1"))


def test_a_new_transfer_fee_holds_for_the_next_transfer(warm: Shop) -> None:
    assert warm.client.do(DEBIT, **debit("1", "100"))["fee"] == "0"
    warm.change(transfer_fee_rate="0.01")
    assert warm.client.do(DEBIT, **debit("2", "100"))["fee"] == "1"
    warm.change(transfer_fee_rate="0.02")
    assert warm.client.do(DEBIT, **debit("3", "100"))["fee"] == "2"


def test_a_new_withdrawal_fee_holds_for_the_next_quote_and_order(warm: Shop) -> None:
    assert warm.client.do("getWithdrawFee", **quote("100"))["fee"] == "0"
    warm.change(withdraw_fee_rate="0.01", withdraw_fee_min="0.5")
    assert warm.client.do("getWithdrawFee", **quote("100"))["fee"] == "1"
    assert warm.client.do(CREATE, **withdrawal("1", "100"))["amountArrival"] == "99"
    warm.change(withdraw_fee_min="2.5")
    assert warm.client.do(CREATE, **withdrawal("2", "100"))["amountArrival"] == "97.5"


def test_a_new_rate_holds_for_the_next_exchange(warm: Shop, platform: Platform) -> None:
    assert warm.client.do("exchange", **exchange("1"))["rate"] == "7.1"
    warm.set_rate("USDT:KFB", "5")
    assert warm.client.do("exchange", **exchange("1"))["rate"] == "5"
    other = platform.open_merchant()
    other.fund("USDT", "10")
    assert other.client.do("exchange", **exchange("1"))["rate"] == "7.1"
    platform.set_rate("USDT:KFB", "7.05")
    assert other.client.do("exchange", **exchange("1"))["rate"] == "7.05"
    platform.set_rate("USDT:KFB", "7.1")


def test_a_new_allow_list_holds_for_the_next_withdrawal(warm: Shop) -> None:
    warm.client.do(CREATE, **withdrawal("1"))
    warm.change(allowed_addresses=ERC20_ADDRESS)
    warm.client.expect(40403, CREATE, **withdrawal("2"))
    warm.change(allowed_addresses=f"{ERC20_ADDRESS} {TRC20_ADDRESS}")
    warm.client.do(CREATE, **withdrawal("2"))


def test_new_networks_hold_for_the_next_request(warm: Shop) -> None:
    warm.change(networks="192.0.2.0/24")
    warm.client.expect(40104, "getMerchantBalance")
    warm.change(networks="192.0.2.0/24 127.0.0.0/8")
    warm.client.do("getMerchantBalance")


def test_auto_register_switched_off_holds_for_the_next_lookup(warm: Shop) -> None:
    warm.change(auto_register="off")
    warm.client.expect(40400, "getMerchantCustomer", extUserId="carol")
    warm.client.do("getMerchantCustomer", extUserId="alice")
    warm.change(auto_register="on")
    warm.client.do("getMerchantCustomer", extUserId="carol")


def test_a_pin_required_from_now_on_holds_for_the_next_debit(warm: Shop) -> None:
    warm.client.do(DEBIT, **debit("1"))
    warm.change(require_pin="on")
    warm.client.expect(40302, DEBIT, **debit("2"))


def test_a_users_pause_holds_for_the_next_debit(warm: Shop) -> None:
    warm.client.do(DEBIT, **debit("1"))
    warm.set_controls("alice", paused=True)
    warm.client.expect(40302, DEBIT, **debit("2"))


def test_a_raised_rate_limit_holds_for_the_next_request(warm: Shop) -> None:
    warm.change(rate_limit="1")
    while warm.client.call("getMerchantBalance").code == 200:
        pass
    warm.change(rate_limit="0")
    warm.client.do("getMerchantBalance")


def test_a_change_of_another_setting_lets_no_request_past_the_rate_limit(warm: Shop) -> None:
    warm.change(rate_limit="1")
    while warm.client.call("getMerchantBalance").code == 200:
        pass
    warm.change(transfer_fee_rate="0.01")
    warm.client.expect(42900, "getMerchantBalance")


def suspend_and_resume(shop: Shop) -> None:
    shop.suspend()
    shop.resume()


CHANGES: dict[str, Callable[[Shop], object]] = {
    "a fee": lambda shop: shop.change(transfer_fee_rate="0.01"),
    "a secret": lambda shop: shop.rotate_secret(),
    "a suspension lifted": suspend_and_resume,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_request_that_met_a_change_keeps_its_nonce_and_is_done_once(what: str, warm: Shop) -> None:
    address = warm.user("alice")["address"]
    entries = warm.entry_count()
    CHANGES[what](warm)
    warm.client.do(CREDIT, nonceStr="mine", **credit("1", address))
    assert warm.entry_count() == entries + 1
    warm.client.expect(40103, CREDIT, nonceStr="mine", **credit("1", address))
