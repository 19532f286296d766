"""A merchant as the service knows it, and the words for its status and its operations. Pure.

Secrets never appear in a `repr`. Its settings as typed and shown are in `settings.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, Final

import msgspec

from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.signing import Method
from merchant_wallet.book.commands import SECOND_LIMIT_UNITS

Network = IPv4Network | IPv6Network

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


class Merchant(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a request needs to know about its merchant.

    `secrets` are the live ones, newest first. Empty `networks` and `allowed_addresses` mean "any". None
    means: no limit for `daily_limit_units`, the platform's limit for `rate_limit` (requests a second, 0 is no
    limit), no callbacks about deposits for `deposit_notify_url`, the platform's own look for `brand_colour`
    and `brand_logo`, no page of the merchant for `customer_url`, nothing on invoices for `billing_address`
    and `tax_id`. Only pages of `frame_origins` may frame the wallet page. `settings_version` is the version
    of these values: the book refuses a command made under an older one. `is_carried` says whether the book's
    cell knows this version.

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
    billing_address: str | None = None
    tax_id: str | None = None
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


def as_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of columns, as they are parsed or stored, in the form that a merchant has them."""
    return {name: _FORMS[name](value) if name in _FORMS else value for name, value in values.items()}


def _read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


_FORMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "networks": _read_networks,
    "disabled_operations": frozenset,
    "allowed_addresses": frozenset,
    "frame_origins": tuple,
    "key_operations": frozenset,
    "key_networks": _read_networks,
}


def _admits(networks: tuple[Network, ...], source: IPv4Address | IPv6Address) -> bool:
    mapped = source.ipv4_mapped if isinstance(source, IPv6Address) else None
    return not networks or any((mapped or source) in network for network in networks)


def canonicalize_address(address: str) -> str:
    """The form in which a valid address is stored and compared: EVM in lower case, TRON unchanged."""
    return address.lower() if address.startswith("0x") else address
