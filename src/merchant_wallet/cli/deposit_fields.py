"""The fields of deposits, and of the chains that they are read from, in the output of commands."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merchant_wallet.cli.session import Session
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


def show_currencies(described: Mapping[str, Any]) -> dict[str, Any]:
    """A deposit for people: a sub-user in KFB is credited another currency than what arrived."""
    shown = {name: described[name] for name in described if name not in ("currency", "creditedCurrency")}
    shown["amount"] = f"{described['amount']} {described['currency']}"
    if described["credited"] is not None:
        shown["credited"] = f"{described['credited']} {described['creditedCurrency']}"
    return shown


async def describe_reading(session: "Session") -> list[dict[str, Any]]:
    """How far each chain was read, and what stops the reading. Those not read yet are listed, too."""
    from merchant_wallet.approvals.acts.reports import NODE, list_reports
    from merchant_wallet.reporting.deposits import list_cursors

    read = [
        {
            "chainType": cursor.chain,
            "finalBlock": cursor.final_number,
            "headBlock": cursor.head_number,
            "movedMs": cursor.moved_ms,
            "alert": cursor.alert,
        }
        for cursor in await list_cursors(session.conn)
    ]
    if session.settings.sandbox:
        return read
    known = {one["chainType"] for one in read}
    said = [one.report for one in await list_reports(session.conn) if one.topic == NODE]
    for chain in session.settings.open_chains:
        if chain not in known:
            failures = [one["failure"] for one in said if one["chain"] == chain and one["failure"]]
            alert = "; ".join(["not read yet", *failures])
            nothing = dict.fromkeys(("finalBlock", "headBlock", "movedMs"))
            read.append({"chainType": chain, **nothing, "alert": alert})
    return read
