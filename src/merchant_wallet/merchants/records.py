"""A merchant, and the settings that an operator may change. Pure.

`SETTINGS` is the only list of settings. Each knows its column, how typed text becomes the column's value, and
how the value is shown. What is shown can be typed again. A refusal is a `SettingRefused` with a sentence for
the terminal. Secrets never appear in a `repr`.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.base.codes import Refused
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import RATE_SCALE, format_rate, format_units, parse_rate, parse_units
from merchant_wallet.base.notify_url import check_notify_url
from merchant_wallet.base.opening_hours import canonicalize_hours
from merchant_wallet.base.signing import HMAC, MD5, Method
from merchant_wallet.base.user_input import InvalidInput
from merchant_wallet.book.commands import SECOND_LIMIT_UNITS

Network = IPv4Network | IPv6Network
Value = str | int | bool | list[str] | None

ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"

OPERATIONS: Final = (
    "transferFromUserToMerchant",
    "transferFromMerchantToUser",
    "createMerchantWithdrawOrder",
    "queryOrder",
    "getMerchantCustomer",
    "getMerchantBalance",
    "exchange",
    "getWithdrawFee",
)
"""The eight operations, by the last part of their paths (interface 4)."""

_T = TypeVar("_T", int, str)
_NONE: Final = "none"
_MAX_NAME: Final = 128
_MAX_URL: Final = 100
_MAX_RATE_LIMIT: Final = 1_000_000
_MAX_COUNT: Final = 1_000_000
_MAX_WINDOW_H: Final = 168
_MAX_PORT: Final = 65_535
_USUAL_PORTS: Final = {"https": 443, "http": 80}
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN: Final = re.compile(
    rf"(https?)://({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?::([0-9]{{1,5}}))?"
)


class SettingRefused(ValueError):
    """The typed text is no setting, or no value for it. The message says what is."""


class Merchant(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a request needs to know about its merchant.

    `secrets` are the live ones, newest first. Empty `networks` and `allowed_addresses` mean "any". None
    means: no limit for `daily_limit_units`, the platform's limit for `rate_limit` (requests a second, 0 is no
    limit), no callbacks about deposits for `deposit_notify_url`, the platform's own look for `brand_colour`
    and `brand_logo`, no page of the merchant for `customer_url`. Only pages of `frame_origins` may frame the
    wallet page. `settings_version` is the version of these values: the book refuses a command made under an
    older one. `is_carried` says whether the book's cell knows this version.

    A merchant may have several keys. `app_key`, `secrets` and the fields with `key_` are those of the key by
    which the merchant was found; without one, of its first. The older of two secrets ends at
    `overlap_ends_ms`, if that is not None.
    """

    merchant_id: int
    name: str
    app_key: str
    status: str
    currency_mode: str
    sign_method: Method
    secrets: tuple[str, ...]
    callback_secret: str
    networks: tuple[Network, ...]
    disabled_operations: frozenset[str]
    transfer_fee_rate_e8: int
    withdraw_fee_rate_e8: int
    withdraw_fee_min_units: int
    approval_limit_units: int
    daily_limit_units: int | None
    allowed_addresses: frozenset[str]
    auto_register: bool
    require_pin: bool
    rate_limit: int | None
    account_xpubs: dict[str, str]
    settings_version: int
    cell_id: int = DEFAULT_CELL_ID
    is_carried: bool = True
    created_ms: int
    deposit_notify_url: str | None = None
    frame_origins: tuple[str, ...] = ()
    brand_colour: str | None = None
    brand_logo: str | None = None
    customer_url: str | None = None
    second_approval_limit_units: int = SECOND_LIMIT_UNITS
    key_no: int = 1
    key_operations: frozenset[str] = frozenset()
    key_networks: tuple[Network, ...] = ()
    overlap_ends_ms: int | None = None
    payout_limit_units: int | None = None
    payout_limit_count: int | None = None
    payout_window_h: int = 24
    first_payout_limit_units: int | None = None
    payout_hours: str | None = None

    def __repr__(self) -> str:
        return f"Merchant({self.merchant_id}, {self.name!r}, {self.app_key!r}, {self.status})"

    @property
    def wallet_currency(self) -> str:
        """The currency that this merchant's sub-users hold (interface 4.1, 4.2)."""
        return USDT if self.currency_mode == USDT else KFB

    def admits(self, source: IPv4Address | IPv6Address) -> bool:
        """Whether requests may come from this address. An IPv4 address written as IPv6 counts as IPv4."""
        return _admits(self.networks, source)

    def admits_to_key(self, source: IPv4Address | IPv6Address) -> bool:
        """Whether requests with this key may come from this address."""
        return _admits(self.key_networks, source)

    def valid_secrets(self, at_ms: int) -> tuple[str, ...]:
        """The secrets that sign requests at this time, newest first."""
        if self.overlap_ends_ms is None or at_ms < self.overlap_ends_ms:
            return self.secrets
        return self.secrets[:1]

    def allows_address(self, address: str) -> bool:
        """Whether the allow-list, if there is one, permits a withdrawal to this valid address."""
        return not self.allowed_addresses or canonicalize_address(address) in self.allowed_addresses


def _admits(networks: tuple[Network, ...], source: IPv4Address | IPv6Address) -> bool:
    mapped = source.ipv4_mapped if isinstance(source, IPv6Address) else None
    return not networks or any((mapped or source) in network for network in networks)


def canonicalize_address(address: str) -> str:
    """The form in which a valid address is stored and compared: EVM in lower case, TRON unchanged."""
    return address.lower() if address.startswith("0x") else address


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
        return setting.column, setting.parse(text.strip())
    except ValueError as error:
        raise SettingRefused(f"{name} must be {setting.rule}: {error}.") from None


def show_settings(merchant: Merchant) -> dict[str, str]:
    """The current value of every setting, in a form that can be typed again."""
    return {name: setting.show(getattr(merchant, setting.column)) for name, setting in SETTINGS.items()}


def _parse_name(text: str) -> str:
    if not 1 <= len(text) <= _MAX_NAME or not text.isprintable():
        raise InvalidInput(text[:_MAX_NAME], "is not")
    if text.isdecimal():
        raise ValueError(f"{text} would read as a merchant id")
    return text


def _parse_list(parse_item: Callable[[str], str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        if text.lower() == _NONE:
            return []
        items = text.replace(",", " ").split()
        if not items:
            raise ValueError(f"nothing was given; say {_NONE} to empty the list")
        return sorted({parse_item(item) for item in items})

    return parse


def _parse_network(text: str) -> str:
    try:
        ip_network(text, strict=False)
    except ValueError:
        raise InvalidInput(text, "does not appear to be an IPv4 or IPv6 network") from None
    # A network with host bits is refused by `ip_network` itself.
    return str(ip_network(text))


def _parse_operation(text: str) -> str:
    if text not in OPERATIONS:
        raise InvalidInput(text, "is no operation")
    return text


def _parse_address(text: str) -> str:
    parse_wallet_address(text)
    return canonicalize_address(text)


def _parse_word(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise InvalidInput(text, "is neither")
        return text

    return parse


def _parse_switch(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise InvalidInput(text, "is neither")
    return text.lower() == "on"


def _parse_fee_rate(text: str) -> int:
    return parse_rate(text, minimum_e8=0, maximum_e8=RATE_SCALE)


def _parse_whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or len(text) > 7 or not lowest <= int(text) <= highest:
            raise InvalidInput(text, "is not")
        return int(text)

    return parse


def _parse_url(text: str) -> str | None:
    if text.lower() == _NONE:
        return None
    if len(text) > _MAX_URL:
        raise ValueError(f"it has {len(text)} characters")
    try:
        # Whether http is allowed depends on the sandbox. The caller knows that.
        check_notify_url(text, sandbox=True)
    except Refused as refused:
        raise ValueError(refused.refusal.msg.removeprefix("notifyUrl ")) from None
    return text


def _parse_form(form: re.Pattern[str]) -> Callable[[str], str | None]:
    def parse(text: str) -> str | None:
        if text.lower() == _NONE:
            return None
        if form.fullmatch(text.lower()) is None:
            raise InvalidInput(text[:_MAX_URL], "is not")
        return text.lower()

    return parse


def _parse_origin(text: str) -> str:
    """An origin as browsers send it. It goes into a header, so nothing else is accepted."""
    form = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    if form is None:
        raise InvalidInput(text[:_MAX_URL], "is not")
    scheme, host, port = form.groups()
    if port is not None and not 1 <= int(port) <= _MAX_PORT:
        raise InvalidInput(text[:_MAX_URL], "has no such port")
    # A local host is allowed only in the sandbox, which the caller knows. Other hosts need https.
    if scheme == "http" and host not in _LOCAL_HOSTS:
        raise InvalidInput(text[:_MAX_URL], "begins with http:// and is not on this machine")
    is_usual = port is None or int(port) == _USUAL_PORTS[scheme]
    return f"{scheme}://{host}" if is_usual else f"{scheme}://{host}:{int(port)}"


def _or_none(parse: Callable[[str], _T]) -> Callable[[str], _T | None]:
    return lambda text: None if text.lower() == _NONE else parse(text)


def _show_list(items: Any) -> str:
    return " ".join(sorted(str(item) for item in items)) or _NONE


def _show_switch(value: bool) -> str:
    return "on" if value else "off"


def _show_text_or_none(value: str | None) -> str:
    return _NONE if value is None else value


def _show_or_none(show: Callable[[_T], str]) -> Callable[[_T | None], str]:
    return lambda value: _NONE if value is None else show(value)


_FEE_RATE_RULE: Final = "a share between 0 and 1, such as 0.005"
_AMOUNT_RULE: Final = "an amount such as 1000 or 2.5"
_URL_RULE: Final = f"a URL of at most {_MAX_URL} characters, or {_NONE}"
_COLOUR: Final = re.compile("#[0-9a-f]{6}")
_DIGEST: Final = re.compile("[0-9a-f]{64}")

SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "name": Setting("name", _parse_name, str, f"1 to {_MAX_NAME} printable characters, not digits alone"),
        "currency-mode": Setting(
            "currency_mode", _parse_word(KFB, USDT), str, "KFB (both currencies) or USDT (that one alone)"
        ),
        "sign-method": Setting("sign_method", _parse_word(HMAC, MD5), str, "HMAC or MD5 (weak)"),
        "networks": Setting(
            "networks",
            _parse_list(_parse_network),
            _show_list,
            f"networks such as 192.0.2.0/24, or {_NONE}",
        ),
        "disabled-operations": Setting(
            "disabled_operations",
            _parse_list(_parse_operation),
            _show_list,
            f"some of {', '.join(OPERATIONS)}, or {_NONE}",
        ),
        "transfer-fee-rate": Setting("transfer_fee_rate_e8", _parse_fee_rate, format_rate, _FEE_RATE_RULE),
        "withdraw-fee-rate": Setting("withdraw_fee_rate_e8", _parse_fee_rate, format_rate, _FEE_RATE_RULE),
        "withdraw-fee-min": Setting("withdraw_fee_min_units", parse_units, format_units, _AMOUNT_RULE),
        "approval-limit": Setting("approval_limit_units", parse_units, format_units, _AMOUNT_RULE),
        "second-approval-limit": Setting(
            "second_approval_limit_units", parse_units, format_units, _AMOUNT_RULE
        ),
        "daily-limit": Setting(
            "daily_limit_units",
            _or_none(parse_units),
            _show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {_NONE}",
        ),
        "payout-limit": Setting(
            "payout_limit_units",
            _or_none(parse_units),
            _show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {_NONE}",
        ),
        "payout-limit-count": Setting(
            "payout_limit_count",
            _or_none(_parse_whole(0, _MAX_COUNT)),
            _show_or_none(str),
            f"a whole number up to {_MAX_COUNT}, or {_NONE}",
        ),
        "payout-window": Setting(
            "payout_window_h", _parse_whole(1, _MAX_WINDOW_H), str, f"whole hours from 1 to {_MAX_WINDOW_H}"
        ),
        "first-payout-limit": Setting(
            "first_payout_limit_units",
            _or_none(parse_units),
            _show_or_none(format_units),
            f"{_AMOUNT_RULE}, or {_NONE}",
        ),
        "payout-hours": Setting(
            "payout_hours",
            _or_none(canonicalize_hours),
            _show_or_none(str),
            f"days, times and a time zone such as Mon-Fri 09:00-18:00 Asia/Shanghai, or {_NONE}",
        ),
        "allowed-addresses": Setting(
            "allowed_addresses",
            _parse_list(_parse_address),
            _show_list,
            f"addresses of {' or '.join(DEFAULT_CODES)}, or {_NONE}",
        ),
        "auto-register": Setting("auto_register", _parse_switch, _show_switch, "on or off"),
        "require-pin": Setting("require_pin", _parse_switch, _show_switch, "on or off"),
        "rate-limit": Setting(
            "rate_limit",
            _or_none(_parse_whole(0, _MAX_RATE_LIMIT)),
            _show_or_none(str),
            f"requests a second up to {_MAX_RATE_LIMIT}, 0 for no limit, or {_NONE} for the platform's",
        ),
        "deposit-notify-url": Setting(
            "deposit_notify_url",
            _parse_url,
            _show_text_or_none,
            _URL_RULE,
        ),
        "frame-origins": Setting(
            "frame_origins",
            _parse_list(_parse_origin),
            _show_list,
            f"origins such as https://shop.example (http:// for localhost, in the sandbox), or {_NONE}",
        ),
        "brand-colour": Setting(
            "brand_colour", _parse_form(_COLOUR), _show_text_or_none, f"a colour such as #8a1538, or {_NONE}"
        ),
        "brand-logo": Setting(
            "brand_logo", _parse_form(_DIGEST), _show_text_or_none, f"the digest of a stored logo, or {_NONE}"
        ),
        "customer-url": Setting("customer_url", _parse_url, _show_text_or_none, _URL_RULE),
    }
)
"""The settings of a merchant, by the name that is typed."""
