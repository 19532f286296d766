"""Transfers in both directions: who pays what, and which debits a sub-user allows."""

import pytest
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import ERC20_ADDRESS, TRC20_ADDRESS, ZERO, credit, debit

from merchant_wallet.base.units import DAY_MS

CLOCK_MS = 1763712000000
DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"


@pytest.fixture
def funded(shop: Shop) -> Shop:
    """A merchant whose user alice has 500 KFB."""
    shop.user("alice", "500")
    return shop


def test_a_debit_moves_the_amount_less_the_fee_to_the_merchant(funded: Shop) -> None:
    funded.change(transfer_fee_rate="0.01")
    funded.client.do(DEBIT, **debit("1", "100"))
    assert (funded.user_balance("alice"), funded.balances()) == ("400", ("1000", "1099"))


def test_a_credit_moves_the_whole_amount_to_the_user(funded: Shop) -> None:
    funded.change(transfer_fee_rate="0.5")
    funded.client.do(CREDIT, **credit("1", funded.user("alice")["address"], "100"))
    assert (funded.user_balance("alice"), funded.balances()) == ("600", ("1000", "900"))


def test_a_fee_is_rounded_half_up_to_a_millionth(funded: Shop) -> None:
    for amount, rate, fee, arrival in (
        ("100", "0.005", "0.5", "99.5"),
        ("0.000003", "0.5", "0.000002", "0.000001"),
        ("0.000005", "0.3", "0.000002", "0.000003"),
        ("0.000005", "0.29999999", "0.000001", "0.000004"),
        ("0.000001", "0.49999999", "0", "0.000001"),
        ("1", "0.00000049", "0", "1"),
        ("1", "0.0000005", "0.000001", "0.999999"),
        ("33.333333", "0.00333333", "0.111111", "33.222222"),
        ("99.999999", "0", "0", "99.999999"),
    ):
        funded.change(transfer_fee_rate=rate)
        answer = funded.client.do(DEBIT, **debit(f"{amount} at {rate}", amount))
        assert (answer["fee"], answer["amountArrival"], answer["rate"]) == (fee, arrival, rate)


@pytest.mark.parametrize(("amount", "rate"), [("100", "1"), ("0.000001", "0.5")])
def test_a_debit_of_no_more_than_its_fee_is_refused(amount: str, rate: str, funded: Shop) -> None:
    funded.change(transfer_fee_rate=rate)
    funded.client.expect(42201, DEBIT, **debit("1", amount))
    assert funded.user_balance("alice") == "500"


def test_the_last_millionth_can_be_debited_and_not_one_more(funded: Shop) -> None:
    funded.client.expect(42200, DEBIT, **debit("1", "500.000001"))
    funded.client.do(DEBIT, **debit("1", "500"))
    funded.client.expect(42200, DEBIT, **debit("2", "0.000001"))
    assert funded.user_balance("alice") == "0"


def test_the_last_millionth_can_be_credited_and_not_one_more(funded: Shop) -> None:
    address = funded.user("alice")["address"]
    funded.client.expect(42200, CREDIT, **credit("1", address, "1000.000001"))
    funded.client.do(CREDIT, **credit("1", address, "1000"))
    funded.client.expect(42200, CREDIT, **credit("2", address, "0.000001"))


def test_a_debit_never_registers_a_user(shop: Shop) -> None:
    entries = shop.entry_count()
    shop.client.expect(40400, DEBIT, **debit("1"))
    assert shop.entry_count() == entries


def test_an_address_of_no_user_is_refused(funded: Shop) -> None:
    for address in (
        ERC20_ADDRESS,
        ERC20_ADDRESS.lower(),
        TRC20_ADDRESS,
        ZERO["ERC20"],
        "x",
        "0x",
        "T" * 34,
        "x" * 128,
        "адрес",
    ):
        assert funded.client.call(CREDIT, **credit("1", address)).code == 40402, address


def test_an_address_with_a_wrong_checksum_is_refused(funded: Shop) -> None:
    alice = funded.user("alice")
    for address in (
        alice["address"].swapcase(),
        f"0x{alice['address'][2:].upper()}",
        alice["tronAddress"][:-1],
    ):
        funded.client.expect(40402, CREDIT, **credit("1", address))


def test_another_merchants_user_cannot_be_credited_or_debited(funded: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    other.fund("KFB", "100")
    alice = funded.user("alice")
    for address in (alice["address"], alice["tronAddress"]):
        other.client.expect(40402, CREDIT, **credit("1", address))
    other.client.expect(40400, DEBIT, **debit("1"))


def test_a_users_address_is_taken_in_three_spellings(funded: Shop) -> None:
    alice = funded.user("alice")
    spellings = (alice["address"], alice["address"].lower(), alice["tronAddress"])
    for number, address in enumerate(spellings):
        funded.client.do(CREDIT, **credit(f"{number}", address, "1"))
    assert funded.user_balance("alice") == "503"


def test_a_user_who_paused_debits_is_not_debited_but_can_be_credited(funded: Shop) -> None:
    funded.set_controls("alice", paused=True)
    answer = funded.client.expect(40302, DEBIT, **debit("1"))
    assert "paused" in answer.msg
    funded.client.do(CREDIT, **credit("1", funded.user("alice")["address"]))
    funded.set_controls("alice", paused=False)
    funded.client.do(DEBIT, **debit("1"))


def test_where_a_pin_is_required_debits_wait_for_it(funded: Shop) -> None:
    funded.change(require_pin="on")
    answer = funded.client.expect(40302, DEBIT, **debit("1"))
    assert "PIN" in answer.msg
    funded.client.do(CREDIT, **credit("1", funded.user("alice")["address"]))
    funded.set_pin("alice")
    funded.client.do(DEBIT, **debit("1"))


def test_a_limit_per_debit_holds_for_each_debit(funded: Shop) -> None:
    funded.set_controls("alice", limit_debit_units="50")
    answer = funded.client.expect(42202, DEBIT, **debit("1", "50.000001"))
    assert "limit per debit" in answer.msg
    for number in range(3):
        funded.client.do(DEBIT, **debit(f"{number}", "50"))


def test_a_limit_per_day_holds_for_the_days_sum_and_begins_anew(funded: Shop, clock: Clock) -> None:
    funded.set_controls("alice", limit_day_units="100")
    funded.client.do(DEBIT, **debit("1", "60"))
    answer = funded.client.expect(42202, DEBIT, **debit("2", "40.000001"))
    assert "limit per day" in answer.msg
    funded.client.do(DEBIT, **debit("2", "40"))
    clock.advance(DAY_MS - clock() % DAY_MS - 1)
    funded.client.expect(42202, DEBIT, **debit("3", "0.000001"))
    clock.advance(1)
    funded.client.do(DEBIT, **debit("3", "100"))


def test_what_was_debited_before_a_days_limit_was_set_counts(funded: Shop) -> None:
    funded.client.do(DEBIT, **debit("1", "60"))
    funded.set_controls("alice", limit_day_units="100")
    funded.client.expect(42202, DEBIT, **debit("2", "41"))


def test_a_refused_debit_does_not_count_for_the_days_limit(funded: Shop) -> None:
    funded.set_controls("alice", limit_day_units="600")
    funded.client.expect(42200, DEBIT, **debit("1", "501"))
    funded.client.do(DEBIT, **debit("1", "500"))


def test_a_merchant_of_usdt_alone_has_users_who_hold_usdt(platform: Platform) -> None:
    shop = platform.open_merchant(currency_mode="USDT")
    shop.fund("USDT", "100")
    alice = shop.user("alice", "10", "USDT")
    assert (alice["currency"], alice["balance"]) == ("USDT", "10")
    in_usdt = {"currency": "USDT"}
    shop.client.do(DEBIT, **debit("1", "1") | in_usdt)
    shop.client.do(CREDIT, **credit("1", alice["address"], "2") | in_usdt)
    shop.client.expect(40003, DEBIT, **debit("2", "1"))
    shop.client.expect(40003, CREDIT, **credit("2", alice["address"], "1"))
    assert (shop.user_balance("alice"), shop.balances()) == ("11", ("99", "0"))


def test_another_currency_is_not_supported(funded: Shop) -> None:
    address = funded.user("alice")["address"]
    for currency in ("USDT", "kfb", "KFB ", "EUR", "x" * 5000):
        funded.client.expect(40003, DEBIT, **debit("1") | {"currency": currency})
        funded.client.expect(40003, CREDIT, **credit("1", address) | {"currency": currency})


def test_an_address_that_is_none_uses_its_nonce_and_meets_its_known_order_like_any_other(
    funded: Shop,
) -> None:
    alice = funded.user("alice")["address"]
    funded.client.do(CREDIT, **credit("1", alice))
    funded.client.expect(40900, CREDIT, **credit("1", "garbage"))
    funded.client.expect(40402, CREDIT, nonceStr="spent", **credit("2", "garbage"))
    funded.client.expect(40103, CREDIT, nonceStr="spent", **credit("2", alice))
