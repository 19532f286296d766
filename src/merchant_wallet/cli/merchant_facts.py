"""What commands print about a merchant."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from merchant_wallet.merchants.records import Merchant

PAYOUT_RULES: Final = (
    "payout-limit",
    "payout-limit-count",
    "payout-window",
    "first-payout-limit",
    "payout-hours",
)

UNITS: Final = {
    **dict.fromkeys(
        (
            *("withdrawFeeMin", "approvalLimit", "secondApprovalLimit"),
            *("dailyLimit", "payoutLimit", "firstPayoutLimit"),
        ),
        "USDT",
    ),
    "payoutWindow": "h",
    "rateLimit": "requests a second",
}
"""The units of a merchant's limits, for people."""


def describe(merchant: "Merchant") -> dict[str, Any]:
    """Everything about a merchant that may be shown."""
    from merchant_wallet.base.addresses import address_of_merchant, to_eip55, to_tron
    from merchant_wallet.base.chains import EVM, TRON
    from merchant_wallet.base.money import format_rate, format_units
    from merchant_wallet.merchants.audit_facts import format_fact_name, list_settings_facts

    facts = list_settings_facts(merchant)
    xpubs = merchant.account_xpubs
    daily = merchant.daily_limit_units
    return {
        "merchantId": merchant.merchant_id,
        "name": merchant.name,
        "appKey": merchant.app_key,
        "status": merchant.status,
        "currencyMode": merchant.currency_mode,
        "signMethod": merchant.sign_method,
        "transferFeeRate": format_rate(merchant.transfer_fee_rate_e8),
        "withdrawFeeRate": format_rate(merchant.withdraw_fee_rate_e8),
        "transferFeePercent": format_rate(merchant.transfer_fee_rate_e8 * 100),
        "withdrawFeePercent": format_rate(merchant.withdraw_fee_rate_e8 * 100),
        "withdrawFeeMin": format_units(merchant.withdraw_fee_min_units),
        "approvalLimit": format_units(merchant.approval_limit_units),
        "secondApprovalLimit": format_units(merchant.second_approval_limit_units),
        "dailyLimit": None if daily is None else format_units(daily),
        **{format_fact_name(name): facts[format_fact_name(name)] for name in PAYOUT_RULES},
        "rateLimit": merchant.rate_limit,
        "depositAddress": to_eip55(address_of_merchant(xpubs[EVM.key_name])),
        "depositTronAddress": to_tron(address_of_merchant(xpubs[TRON.key_name])),
        "depositNotifyUrl": merchant.deposit_notify_url,
        "autoRegister": merchant.auto_register,
        "requirePin": merchant.require_pin,
        "allowedNetworks": sorted(map(str, merchant.networks)),
        "allowedAddresses": sorted(merchant.allowed_addresses),
        "frameOrigins": sorted(merchant.frame_origins),
        "brandColour": merchant.brand_colour,
        "brandLogo": merchant.brand_logo,
        "customerUrl": merchant.customer_url,
        "billingAddress": merchant.billing_address,
        "taxId": merchant.tax_id,
        "disabledOperations": sorted(merchant.disabled_operations),
        "liveSecrets": len(merchant.secrets),
        "createdMs": merchant.created_ms,
    }


def show_units(described: dict[str, Any]) -> dict[str, Any]:
    """A merchant for people, with the units of its limits."""
    return {
        name: f"{value} {UNITS[name]}" if name in UNITS and value not in (None, "none") else value
        for name, value in described.items()
    }
