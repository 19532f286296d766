"""The settings of a merchant that an operator may change. Pure.

`SETTINGS` is the only list of settings. Each knows its column, how typed text becomes the column's value, and
how the value is shown. A refusal is a `SettingRefused` with a sentence for the terminal.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.invisible_text import trim
from merchant_wallet.base.money import format_rate, format_units, parse_units
from merchant_wallet.base.opening_hours import canonicalize_hours
from merchant_wallet.base.signing import HMAC, MD5
from merchant_wallet.merchants.records import OPERATIONS, Merchant
from merchant_wallet.merchants.setting_values import (
    COLOUR,
    DIGEST,
    MAX_BILLING_ADDRESS,
    MAX_NAME,
    MAX_TAX_ID,
    MAX_URL,
    NONE,
    or_none,
    parse_address,
    parse_fee_rate,
    parse_form,
    parse_line,
    parse_list,
    parse_name,
    parse_network,
    parse_operation,
    parse_origin,
    parse_switch,
    parse_url,
    parse_whole,
    parse_word,
    show_list,
    show_or_none,
    show_switch,
    show_text_or_none,
)

Value = str | int | bool | list[str] | None

_MAX_RATE_LIMIT: Final = 1_000_000
_MAX_COUNT: Final = 1_000_000
_MAX_WINDOW_H: Final = 168
_FEE_RATE_RULE: Final = "a percentage from 0% to 100%, such as 0.5%"
_AMOUNT_RULE: Final = "an amount such as 1000 or 2.5"
_SECURE: Final = ("deposit-notify-url", "frame-origins", "customer-url")
"""Settings with URLs."""
_URL_RULE: Final = f"a URL of at most {MAX_URL} characters, or {NONE}"


class SettingRefused(ValueError):
    """The typed text is no setting, or no value for it. The message says what is."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its column, its parser (raises ValueError), its formatter, and its rule as text."""

    column: str
    parse: Callable[[str], Value]
    show: Callable[[Any], str]
    rule: str


def parse_setting(name: str, text: str) -> tuple[str, Value]:
    """The column and the value of a typed setting. Raises SettingRefused."""
    setting = SETTINGS.get(name)
    if setting is None:
        near = difflib.get_close_matches(name, SETTINGS, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" Settings are: {', '.join(SETTINGS)}."
        raise SettingRefused(f"{name!r} is no setting of a merchant.{hint}")
    try:
        return setting.column, setting.parse(trim(text))
    except ValueError as error:
        raise SettingRefused(f"{name} must be {setting.rule}: {error}.") from None


def find_insecure(texts: Mapping[str, str]) -> list[str]:
    """The settings, by name, whose typed URLs do not begin with https://. Only the sandbox allows that."""
    return [name for name in _SECURE if any(map(_is_insecure, _split(texts.get(name, ""))))]


def refuse_insecure(texts: Mapping[str, str]) -> None:
    """Refuse URLs that only the sandbox allows. Raises SettingRefused."""
    if names := find_insecure(texts):
        raise SettingRefused(f"{names[0]} must begin with https:// outside the sandbox.")


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _is_insecure(url: str) -> bool:
    return url.lower().startswith("http:")


def show_settings(merchant: Merchant) -> dict[str, str]:
    """The current value of every setting, in a form that can be typed again."""
    return {name: setting.show(getattr(merchant, setting.column)) for name, setting in SETTINGS.items()}


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "name": Setting("name", parse_name, str, f"1 to {MAX_NAME} printable characters, not digits alone"),
        "currency-mode": Setting(
            "currency_mode", parse_word(KFB, USDT), str, "KFB (both currencies) or USDT (that one alone)"
        ),
        "sign-method": Setting("sign_method", parse_word(HMAC, MD5), str, "HMAC or MD5 (weak)"),
        "networks": Setting(
            "networks",
            parse_list(parse_network),
            show_list,
            f"networks such as 192.0.2.0/24, or {NONE}",
        ),
        "disabled-operations": Setting(
            "disabled_operations",
            parse_list(parse_operation),
            show_list,
            f"some of {', '.join(OPERATIONS)}, or {NONE}",
        ),
        "transfer-fee-rate": Setting("transfer_fee_rate_e8", parse_fee_rate, format_rate, _FEE_RATE_RULE),
        "withdraw-fee-rate": Setting("withdraw_fee_rate_e8", parse_fee_rate, format_rate, _FEE_RATE_RULE),
        "withdraw-fee-min": Setting("withdraw_fee_min_units", parse_units, format_units, _AMOUNT_RULE),
        "approval-limit": Setting("approval_limit_units", parse_units, format_units, _AMOUNT_RULE),
        "second-approval-limit": Setting(
            "second_approval_limit_units", parse_units, format_units, _AMOUNT_RULE
        ),
        "daily-limit": Setting(
            "daily_limit_units",
            or_none(parse_units),
            show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {NONE}",
        ),
        "payout-limit": Setting(
            "payout_limit_units",
            or_none(parse_units),
            show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {NONE}",
        ),
        "payout-limit-count": Setting(
            "payout_limit_count",
            or_none(parse_whole(0, _MAX_COUNT)),
            show_or_none(str),
            f"a whole number up to {_MAX_COUNT}, or {NONE}",
        ),
        "payout-window": Setting(
            "payout_window_h", parse_whole(1, _MAX_WINDOW_H), str, f"whole hours from 1 to {_MAX_WINDOW_H}"
        ),
        "first-payout-limit": Setting(
            "first_payout_limit_units",
            or_none(parse_units),
            show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {NONE}",
        ),
        "payout-hours": Setting(
            "payout_hours",
            or_none(canonicalize_hours),
            show_or_none(str),
            f"days, times and a time zone such as Mon-Fri 09:00-18:00 Asia/Shanghai, or {NONE}",
        ),
        "allowed-addresses": Setting(
            "allowed_addresses",
            parse_list(parse_address),
            show_list,
            f"addresses of {' or '.join(DEFAULT_CODES)}, or {NONE}",
        ),
        "auto-register": Setting("auto_register", parse_switch, show_switch, "on or off"),
        "require-pin": Setting("require_pin", parse_switch, show_switch, "on or off"),
        "rate-limit": Setting(
            "rate_limit",
            or_none(parse_whole(0, _MAX_RATE_LIMIT)),
            show_or_none(str),
            f"requests a second up to {_MAX_RATE_LIMIT}, 0 for no limit, or {NONE} for the platform's",
        ),
        "deposit-notify-url": Setting(
            "deposit_notify_url",
            parse_url,
            show_text_or_none,
            _URL_RULE,
        ),
        "frame-origins": Setting(
            "frame_origins",
            parse_list(parse_origin),
            show_list,
            f"origins such as https://shop.example (http:// for localhost, in the sandbox), or {NONE}",
        ),
        "brand-colour": Setting(
            "brand_colour", parse_form(COLOUR), show_text_or_none, f"a colour such as #8a1538, or {NONE}"
        ),
        "brand-logo": Setting(
            "brand_logo", parse_form(DIGEST), show_text_or_none, f"the digest of a stored logo, or {NONE}"
        ),
        "customer-url": Setting("customer_url", parse_url, show_text_or_none, _URL_RULE),
        "billing-address": Setting(
            "billing_address",
            or_none(parse_line(MAX_BILLING_ADDRESS)),
            show_text_or_none,
            f"1 to {MAX_BILLING_ADDRESS} printable characters, or {NONE}; a semicolon begins a new line",
        ),
        "tax-id": Setting(
            "tax_id",
            or_none(parse_line(MAX_TAX_ID)),
            show_text_or_none,
            f"1 to {MAX_TAX_ID} printable characters, or {NONE}",
        ),
    }
)
"""The settings of a merchant, by the name that is typed."""
SHARES: Final = frozenset({"transfer-fee-rate", "withdraw-fee-rate"})
"""Settings whose text is a share, `0.005`. People type and see the percentage, `0.5%`."""
