"""The fields of a deposit in the output of commands."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merchant_wallet.reporting.deposits import DepositLine


def describe(shown: "DepositLine") -> dict[str, Any]:
    """A deposit for output. Where the interface has a name for a field, it is used."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.currencies import USDT
    from merchant_wallet.base.money import format_rate, format_units

    credited, rate_e8 = shown.credited_units, shown.rate_e8
    return {
        "merchantId": shown.merchant_id,
        "extUserId": shown.ext_user_id,
        "userId": shown.user_id,
        "chainType": shown.chain,
        "txHash": shown.tx_hash,
        "logIndex": shown.log_index,
        "block": shown.block_number,
        "confirmations": shown.confirmations,
        "sender": format_address(shown.chain, shown.sender),
        "address": format_address(shown.chain, shown.address),
        "amount": format_units(shown.amount_units),
        "currency": USDT,
        "status": shown.status,
        "cause": shown.cause,
        "entryId": shown.entry_id,
        "credited": None if credited is None else format_units(credited),
        "creditedCurrency": shown.currency,
        "rate": format_rate(rate_e8) if rate_e8 else None,
        "seenMs": shown.seen_ms,
        "finalMs": shown.final_ms,
    }
