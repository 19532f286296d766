"""Settings as typed and as shown, and the methods of a merchant's record."""

from ipaddress import ip_address, ip_network
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.money import MAX_BALANCE_UNITS, RATE_SCALE
from merchant_wallet.merchants.records import OPERATIONS, Merchant, canonicalize_address
from merchant_wallet.merchants.settings import SETTINGS, SettingRefused, parse_setting, show_settings

EVM = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"

SHOP = Merchant(
    merchant_id=1001,
    name="Shop",
    app_key="mk_shop",
    status="active",
    currency_mode="KFB",
    sign_method="HMAC",
    secrets=("newer-secret", "older-secret"),
    callback_secret="callback-secret",
    networks=(),
    disabled_operations=frozenset(),
    transfer_fee_rate_e8=0,
    withdraw_fee_rate_e8=500_000,
    withdraw_fee_min_units=1_000_000,
    approval_limit_units=1_000_000_000,
    daily_limit_units=None,
    allowed_addresses=frozenset(),
    auto_register=True,
    require_pin=False,
    rate_limit=None,
    account_xpubs={},
    settings_version=1,
    created_ms=1_763_712_000_000,
)


def but(**changes: Any) -> Merchant:
    """The shop with some values changed."""
    return msgspec.structs.replace(SHOP, **changes)


@each_row(
    ("name", "text", "column", "value"),
    [
        ("name", "  Corner shop, Zürich ", "name", "Corner shop, Zürich"),
        ("currency-mode", "USDT", "currency_mode", "USDT"),
        ("sign-method", "MD5", "sign_method", "MD5"),
        ("networks", "192.0.2.0/24, 2001:db8::/32 198.51.100.7", "networks", None),
        ("networks", "none", "networks", []),
        ("disabled-operations", "exchange,queryOrder", "disabled_operations", ["exchange", "queryOrder"]),
        ("disabled-operations", "None", "disabled_operations", []),
        ("transfer-fee-rate", "0.005", "transfer_fee_rate_e8", 500_000),
        ("transfer-fee-rate", "0", "transfer_fee_rate_e8", 0),
        ("withdraw-fee-rate", "1", "withdraw_fee_rate_e8", RATE_SCALE),
        ("withdraw-fee-min", "2.5", "withdraw_fee_min_units", 2_500_000),
        ("approval-limit", "0", "approval_limit_units", 0),
        ("second-approval-limit", "2.5", "second_approval_limit_units", 2_500_000),
        ("daily-limit", "50000", "daily_limit_units", 50_000_000_000),
        ("daily-limit", "none", "daily_limit_units", None),
        ("allowed-addresses", f"{TRON} {EVM}", "allowed_addresses", [EVM.lower(), TRON]),
        ("frame-origins", "none", "frame_origins", []),
        ("frame-origins", "https://Shop.example/", "frame_origins", ["https://shop.example"]),
        (
            "frame-origins",
            "https://a.b:443, https://a.b:08443",
            "frame_origins",
            ["https://a.b", "https://a.b:8443"],
        ),
        ("frame-origins", "http://localhost:5173", "frame_origins", ["http://localhost:5173"]),
        (
            "frame-origins",
            "http://[::1] http://127.0.0.1:80",
            "frame_origins",
            ["http://127.0.0.1", "http://[::1]"],
        ),
        ("frame-origins", "HTTPS://shop.example", "frame_origins", ["https://shop.example"]),
        ("customer-url", "HTTPS://Shop.example/W", "customer_url", "https://Shop.example/W"),
        ("billing-address", " Shop Ltd; 1 Quay; 香港 ", "billing_address", "Shop Ltd; 1 Quay; 香港"),
        ("tax-id", "None", "tax_id", None),
        ("deposit-notify-url", "Https://shop.example/n", "deposit_notify_url", "https://shop.example/n"),
        ("auto-register", "off", "auto_register", False),
        ("require-pin", "ON", "require_pin", True),
        ("rate-limit", "0", "rate_limit", 0),
        ("rate-limit", "1000000", "rate_limit", 1_000_000),
        ("rate-limit", "none", "rate_limit", None),
    ],
)
def test_a_typed_setting_becomes_its_columns_value(name: str, text: str, column: str, value: Any) -> None:
    if value is None and name == "networks":
        value = ["192.0.2.0/24", "198.51.100.7/32", "2001:db8::/32"]
    assert parse_setting(name, text) == (column, value)


@each_row(
    ("name", "text"),
    [
        ("name", ""),
        ("name", "   "),
        ("name", "x" * 129),
        ("name", "a\nb"),
        ("name", "a\0b"),
        ("name", "1001"),
        ("name", "١٠٠١"),
        ("currency-mode", "kfb"),
        ("currency-mode", "EUR"),
        ("sign-method", "SHA1"),
        ("networks", ""),
        ("networks", "192.0.2.1/24"),
        ("networks", "example.com"),
        ("disabled-operations", "Exchange"),
        ("disabled-operations", "exchange none"),
        ("transfer-fee-rate", "1.00000001"),
        ("transfer-fee-rate", "-0.1"),
        ("transfer-fee-rate", "0.000000001"),
        ("transfer-fee-rate", "1%"),
        ("withdraw-fee-min", "1e3"),
        ("withdraw-fee-min", "0.0000001"),
        ("approval-limit", "none"),
        ("second-approval-limit", "none"),
        ("approval-limit", str(MAX_BALANCE_UNITS)),
        ("daily-limit", "-1"),
        ("allowed-addresses", EVM[:-1] + "8"),
        ("allowed-addresses", EVM.replace("d", "D")),
        ("allowed-addresses", TRON[:-1]),
        ("frame-origins", ""),
        ("frame-origins", "shop.example"),
        ("frame-origins", "http://shop.example"),
        ("frame-origins", "http://localhost.example"),
        ("frame-origins", "https://*.example"),
        ("frame-origins", "https://shop.example/page"),
        ("frame-origins", "https://user@shop.example"),
        ("frame-origins", "https://shop.example;script-src"),
        ("frame-origins", "https://shop.example'"),
        ("frame-origins", "https://shop.example:0"),
        ("frame-origins", "https://shop.example:65536"),
        ("frame-origins", "https://-shop.example"),
        ("frame-origins", "https://магазин.example"),
        ("frame-origins", "https://"),
        ("billing-address", ""),
        ("billing-address", "x" * 301),
        ("billing-address", "1 Quay\nHong Kong"),
        ("tax-id", "x" * 65),
        ("auto-register", "maybe"),
        ("require-pin", ""),
        ("rate-limit", "1000001"),
        ("rate-limit", "1.5"),
        ("rate-limit", "٣"),
        ("rate-limit", "00000005"),
    ],
)
def test_a_value_that_breaks_the_rule_is_refused_by_a_sentence_that_names_the_setting(
    name: str, text: str
) -> None:
    with pytest.raises(SettingRefused, match=rf"^{name} must be .+\.$"):
        parse_setting(name, text)


@each_row(
    ("name", "hint"),
    [
        ("aprovel-limit", "Did you mean approval-limit"),
        ("status", "Settings are: name"),
        ("", "Settings are"),
    ],
)
def test_a_misspelt_setting_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(SettingRefused, match=hint):
        parse_setting(name, "on")


def test_every_setting_stands_for_one_field_of_the_record() -> None:
    columns = [setting.column for setting in SETTINGS.values()]
    assert len(set(columns)) == len(columns)
    assert set(columns) <= set(Merchant.__struct_fields__)


amounts = st.integers(0, MAX_BALANCE_UNITS)
merchants = st.builds(
    but,
    name=st.sampled_from(["Shop", "Лавка", "a b"]),
    currency_mode=st.sampled_from(["KFB", "USDT"]),
    networks=st.lists(st.ip_addresses().map(ip_network), unique=True).map(tuple),
    disabled_operations=st.frozensets(st.sampled_from(OPERATIONS)),
    transfer_fee_rate_e8=st.integers(0, RATE_SCALE),
    withdraw_fee_min_units=amounts,
    daily_limit_units=st.none() | amounts,
    allowed_addresses=st.frozensets(
        st.binary(min_size=20, max_size=20).map(lambda a: canonicalize_address(to_eip55(a)))
        | st.binary(min_size=20, max_size=20).map(to_tron),
        max_size=4,
    ),
    require_pin=st.booleans(),
    rate_limit=st.none() | st.integers(0, 1_000_000),
)


@given(merchants)
def test_what_is_shown_can_be_typed_again_and_means_the_same(merchant: Merchant) -> None:
    for name, text in show_settings(merchant).items():
        column, value = parse_setting(name, text)
        kept = getattr(merchant, column)
        if isinstance(value, list):
            assert set(value) == {str(item) for item in kept}
        else:
            assert value == kept


def test_no_secret_shows_when_a_merchant_is_printed() -> None:
    printed = f"{SHOP} {SHOP!r} {[SHOP]}"
    assert "1001" in printed
    assert "secret" not in printed


@pytest.mark.parametrize(("mode", "currency"), [("KFB", "KFB"), ("USDT", "USDT")])
def test_the_currency_mode_says_what_wallets_hold(mode: str, currency: str) -> None:
    assert but(currency_mode=mode).wallet_currency == currency


@each_row(
    ("source", "admitted"),
    [
        ("192.0.2.255", True),
        ("192.0.3.0", False),
        ("::ffff:192.0.2.1", True),
        ("::ffff:192.0.3.1", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
    ],
)
def test_only_the_named_networks_are_admitted(source: str, admitted: bool) -> None:
    merchant = but(networks=(ip_network("192.0.2.0/24"), ip_network("2001:db8::/32")))
    assert merchant.admits(ip_address(source)) is admitted


def test_without_networks_every_source_is_admitted() -> None:
    assert SHOP.admits(ip_address("203.0.113.9"))
    assert SHOP.admits(ip_address("2001:db8::1"))


def test_the_allow_list_compares_addresses_and_not_their_spelling() -> None:
    merchant = but(allowed_addresses=frozenset({EVM.lower(), TRON}))
    assert merchant.allows_address(EVM)
    assert merchant.allows_address(EVM.lower())
    assert merchant.allows_address(TRON)
    assert not merchant.allows_address(to_tron(bytes(19) + b"\1"))
    assert SHOP.allows_address(to_tron(bytes(19) + b"\1"))
