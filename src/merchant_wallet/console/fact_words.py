"""Facts in words, for the audit log, its file, proposals and the command line. Pure.

Rules:
- A fact has one name and one form everywhere. Amounts have their currency, times a unit, people their names.
- A fact that has no words here, such as one of an older version, is spelt out: `leftBehind` is "Left behind".
  A list or a nested fact is never shown as program text.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.moments import format_moment
from merchant_wallet.base.money import format_rate, parse_units
from merchant_wallet.book.rules.withdrawals import BY_LIMIT, PENDING
from merchant_wallet.console.missing_rights import ROLE_NAMES
from merchant_wallet.console.setting_fields import PERCENT, list_fields
from merchant_wallet.merchants.audit_facts import format_fact_name
from merchant_wallet.web.actors import say_actor
from merchant_wallet.web.causes import say_cause
from merchant_wallet.web.kinds import ORDER_STATUSES
from merchant_wallet.web.languages import N_
from merchant_wallet.web.refusals import say_refusal
from merchant_wallet.web.templates import group_digits, show_money
from merchant_wallet.web.typed_values import show_percent, show_time

FACTS: Final[Mapping[str, str]] = {
    "accounts": N_("Accounts"),
    "actNo": N_("Request"),
    "actor": N_("Person"),
    "address": N_("Address"),
    "again": N_("Failed ones again"),
    "allowed": N_("Where withdrawals may go"),
    "alone": N_("Without a second person"),
    "amount": N_("Amount"),
    "amount_units": N_("Amount"),
    "amountUnits": N_("Amount"),
    "approval_limit_units": N_("Approval above"),
    "approvedBy": N_("Approved by"),
    "askedBy": N_("Asked by"),
    "asset": N_("Token or coin"),
    "block": N_("Block"),
    "books": N_("Books"),
    "by_merchant": N_("By the merchant"),
    "cause": N_("Cause"),
    "causes": N_("Causes"),
    "cell": N_("Cell"),
    "chain": N_("Chain"),
    "closedOrders": N_("Closed orders"),
    "coldWallet": N_("Cold wallet"),
    "corrects": N_("Corrects record"),
    "currency": N_("Currency"),
    "currencyMode": N_("Currencies"),
    "daily_limit_units": N_("Limit of orders a day"),
    "day": N_("Day"),
    "deadline_after_ms": N_("Approved within"),
    "digest": N_("Digest of the figures"),
    "direction": N_("Where to"),
    "done": N_("Done"),
    "droppedOrders": N_("Dropped orders"),
    "eligible_ms": N_("Approvals count from"),
    "email": N_("E-mail"),
    "ended": N_("Ended"),
    "enrolled": N_("Second factor set up"),
    "entries": N_("Entries"),
    "entryId": N_("Entry"),
    "even_frozen": N_("Although it was frozen"),
    "eventNo": N_("Test event"),
    "everyAddress": N_("Every address"),
    "evidence": N_("File of the evidence"),
    "evidenceSha256": N_("SHA-256 of the evidence"),
    "exists": N_("Exists"),
    "ext_user_id": N_("Sub-user"),
    "factor": N_("Factor"),
    "failures": N_("Failed sign-ins"),
    "firstApprovedBy": N_("First approved by"),
    "fee_minimum_units": N_("Smallest withdrawal fee"),
    "fee_rate_e8": N_("Withdrawal fee"),
    "firstBlock": N_("First block"),
    "from": N_("From"),
    "fromCell": N_("From cell"),
    "frozen": N_("Frozen"),
    "frozenMs": N_("Frozen since"),
    "frozenOrders": N_("Frozen orders"),
    "extUserId": N_("Sub-user"),
    "hadPin": N_("Had a PIN"),
    "hasPin": N_("Has a PIN"),
    "hotWallet": N_("Hot wallet"),
    "isHeld": N_("Refund waits"),
    "is_own_wallet": N_("To a wallet of the platform"),
    "keyPath": N_("Path of its key"),
    "kinds": N_("Kinds of messages"),
    "lastBlock": N_("Last block"),
    "lastId": N_("Last entry"),
    "lastMerchantId": N_("Last merchant"),
    "lastMs": N_("Last time"),
    "leftBehind": N_("Left behind"),
    "limitDay": N_("Limit per day"),
    "limitDebit": N_("Limit per debit"),
    "logIndex": N_("Place in its transaction's logs"),
    "log_index": N_("Place in its transaction's logs"),
    "maxAgeMs": N_("Holds for"),
    "mcOrderId": N_("Merchant's order number"),
    "mc_order_id": N_("Merchant's order number"),
    "merchantId": N_("Merchant"),
    "month": N_("Month"),
    "months": N_("Months"),
    "mostHot": N_("At most hot"),
    "minimum_arrival_units": N_("Smallest arrival"),
    "name": N_("Name"),
    "networks": N_("Source networks"),
    "newCredentials": N_("New password and second factor"),
    "newKey": N_("New key"),
    "notify_url": N_("Callback URL"),
    "no": N_("Record"),
    "operations": N_("Operations"),
    "order_id": N_("Order"),
    "orderId": N_("Order"),
    "outcome": N_("Outcome"),
    "overlapMs": N_("The old secret works for another"),
    "paidOrders": N_("Orders paid to it before"),
    "paused": N_("Paused"),
    "platformRate": N_("The platform's rate"),
    "position_limit_units": N_("Limit of the exchange desk"),
    "problem": N_("Problem"),
    "proposalNo": N_("Proposal"),
    "proposed_by": N_("Proposed by"),
    "proposedBy": N_("Proposed by"),
    "rate": N_("Rate"),
    "receive_currency": N_("Currency received"),
    "reason": N_("Reason"),
    "recorded": N_("Recorded"),
    "ref": N_("Reference"),
    "refillBelow": N_("Refill below"),
    "refused": N_("Refused with code"),
    "repeated": N_("Was done before"),
    "require_pin": N_("Require a PIN"),
    "rescueNo": N_("Rescue"),
    "rescues": N_("Rescues of this address before"),
    "resent": N_("Sent again"),
    "resumed": N_("Resumed"),
    "revoked": N_("Revoked"),
    "role": N_("Role"),
    "rolled": N_("New secret"),
    "round": N_("Round"),
    "schema": N_("Schema"),
    "second_limit_units": N_("Second approval above"),
    "secretNo": N_("Number of the key's secret"),
    "send_currency": N_("Currency sent"),
    "second factor": N_("Second factor"),
    "signed_units": N_("Amount"),
    "sinceMs": N_("Since"),
    "signs": N_("Signs of a rollback"),
    "state": N_("State"),
    "status": N_("Status"),
    "stopped": N_("Stopped"),
    "stoppedBy": N_("Stopped by"),
    "stops": N_("Stops"),
    "sweepId": N_("Sweep"),
    "sweepIds": N_("Sweeps"),
    "target": N_("Target"),
    "to": N_("To"),
    "toCell": N_("To cell"),
    "transferId": N_("Transfer"),
    "transfers": N_("Transfers"),
    "txHash": N_("Transaction"),
    "tx_hash": N_("Transaction"),
    "txnStatus": N_("Status"),
    "underWay": N_("Transfer under way"),
    "upTo": N_("Up to"),
    "url": N_("URL"),
    "version": N_("Version"),
    "way": N_("Who signs"),
    "webhookHost": N_("Host of the webhook"),
    **{name: one.label for one in list_fields() for name in (one.name, format_fact_name(one.name))},
}
"""The name of each fact; for a setting the label of its field."""
_PERCENTS: Final = {
    name for one in list_fields() if one.kind == PERCENT for name in (one.name, format_fact_name(one.name))
}
_IN_USDT: Final = frozenset(
    {
        *("amount", "refillBelow", "target", "mostHot"),
        *(
            name
            for setting in (
                *("approval-limit", "second-approval-limit", "daily-limit", "withdraw-fee-min"),
                *("payout-limit", "first-payout-limit"),
            )
            for name in (setting, format_fact_name(setting))
        ),
    }
)
"""Amounts as texts. Their currency is USDT unless a fact beside them names it, or another asset."""
_IN_OWN_CURRENCY: Final = frozenset({"limitDebit", "limitDay"})
"""Amounts as texts in the currency of a wallet, which is said if a fact beside them names it."""
_SPANS: Final = frozenset({"maxAgeMs", "overlapMs", "deadline_after_ms"})
_ACTORS: Final = frozenset({"actor", "approvedBy", "askedBy", "firstApprovedBy", "proposedBy", "proposed_by"})
_CAUSES: Final = frozenset({"cause", "causes", "outcome", "problem", "reason"})
_NOTHING: Final[Mapping[str, str]] = {
    "allowed-addresses": N_("anywhere"),
    "allowedAddresses": N_("anywhere"),
    "daily-limit": N_("no limit"),
    "dailyLimit": N_("no limit"),
    "daily_limit_units": N_("no limit"),
    "second_limit_units": N_("no limit"),
    "approval_limit_units": N_("no limit"),
    "limitDay": N_("no limit"),
    "limitDebit": N_("no limit"),
    "maxAgeMs": N_("no limit"),
    "allowed": N_("anywhere"),
    "overlapMs": N_("It ends now"),
    "stoppedBy": N_("nobody"),
}
"""What it means that a fact has no value; of others, "none"."""
_FACTORS: Final[Mapping[str, str]] = {
    "password": N_("password"),
    "code": N_("code of the authenticator"),
    "first code": N_("first code of the authenticator"),
    "recovery code": N_("recovery code"),
}
_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "amount": {"all": N_("everything that is there")},
    "approvedBy": {BY_LIMIT: N_("nobody: it is below the limit")},
    "currencyMode": {"KFB": N_("USDT and KFB"), "USDT": N_("USDT alone")},
    "direction": {
        "to_cold": N_("To the cold wallet"),
        "to_hot": N_("Refill of the hot wallet"),
        "IN": N_("Into custody"),
        "OUT": N_("Out of custody"),
    },
    "factor": _FACTORS,
    "role": {str(role): name for role, name in ROLE_NAMES.items()},
    "second factor": _FACTORS,
    "state": {
        "open": N_("open"),
        "closed": N_("closed"),
        "restated": N_("restated"),
        "accepted": N_("accepted"),
        "failed": N_("failed"),
        "passed": N_("passed"),
        "held": N_("held"),
        "refused": N_("refused"),
        "released": N_("released"),
    },
    "status": {"active": N_("Active"), "disabled": N_("Disabled"), "suspended": N_("Suspended")},
    "txnStatus": {str(status): word for status, word in ORDER_STATUSES.items()},
    "way": {
        "signer": N_("The workers' signer"),
        "elsewhere": N_("Somebody elsewhere"),
        "recorded": N_("It was made elsewhere"),
    },
}
"""Values that are words of the program."""
_is_decimal = re.compile(r"-?[0-9]+(\.[0-9]+)?").fullmatch
_is_word = re.compile(r"[a-z]+(_[a-z]+)+").fullmatch
_list_parts = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+").findall

Translate = Callable[..., str]


def say_fact_name(name: str, translate: Translate) -> str:
    """A fact's name in words."""
    return translate(FACTS[name]) if name in FACTS else _spell(name)


def say_fact(
    name: str, facts: Mapping[str, Any], names: Mapping[int, str], translate: Translate
) -> str | None:
    """The value of a fact in words. None if it is not among the facts. `names` are those of merchants."""
    if name not in facts:
        return None
    value = facts[name]
    if value in (None, "none", [], {}) or (value == 0 and name.endswith(("Ms", "_ms"))):
        return translate(_NOTHING.get(name) or N_("none"))
    if isinstance(value, bool):
        return translate(N_("Yes")) if value else translate(N_("No"))
    if isinstance(value, list):
        return ", ".join(say_fact(name, {**facts, name: one}, names, translate) or "" for one in value)
    if isinstance(value, dict):
        return say_facts(value, names, translate)
    if name == "txnStatus" and str(value) == str(PENDING) and facts.get("approvedBy") not in (None, "none"):
        return translate(N_("Approved, not yet paid"))
    if str(value) in _VALUES.get(name, ()):
        return translate(_VALUES[name][str(value)])
    if name == "amount" and "asset" in facts:
        return translate(N_("{count} smallest units"), count=value)
    if name in _CAUSES:
        told = str(value)
        return say_refusal(told, translate) if _is_refusal(name, facts) else say_cause(told, translate)
    if name == "stoppedBy":
        return "; ".join(_say_stop(one, translate) for one in str(value).split("; "))
    if name in _ACTORS:
        return "; ".join(say_actor(one, translate) for one in str(value).split("; "))
    if isinstance(value, int):
        return _say_number(name, value, facts, names)
    return _say_text(name, str(value), facts)


def _say_stop(text: str, translate: Translate) -> str:
    """Who stopped payouts, and why: `cli:root: a look at the books`. A cause may have a semicolon."""
    actor, colon, cause = text.partition(": ")
    return f"{say_actor(actor, translate)}{colon}{cause}"


def _is_refusal(name: str, facts: Mapping[str, Any]) -> bool:
    """Whether a text is a refusal of the interface, and not the words of a person or a worker."""
    return (name == "reason" and "refused" in facts) or (name == "outcome" and facts.get("state") == "failed")


def say_facts(facts: Mapping[str, Any] | None, names: Mapping[int, str], translate: Translate) -> str:
    """Facts on one line: `Transfer fee: 0.5%; Reason: new contract`."""
    said = facts or {}
    return "; ".join(
        f"{say_fact_name(name, translate)}: {say_fact(name, said, names, translate)}" for name in said
    )


def _say_number(name: str, value: int, facts: Mapping[str, Any], names: Mapping[int, str]) -> str:
    if name in ("merchantId", "merchant_id", "lastMerchantId"):
        return names.get(value, str(value))
    if name.endswith(("_units", "Units")):
        return f"{show_money(value)} {facts.get('currency') or USDT}"
    if name.endswith("_rate_e8"):
        return show_percent(format_rate(value))
    if name in _SPANS:
        return show_time(value)
    if name == "day":
        return date.fromordinal(date(1970, 1, 1).toordinal() + value).isoformat()
    if name.endswith(("Ms", "_ms")):
        return format_moment(value)
    return str(value)


def _say_text(name: str, value: str, facts: Mapping[str, Any]) -> str:
    if name in _PERCENTS:
        return show_percent(value)
    if name in _IN_USDT and "asset" not in facts:
        return f"{_say_amount(value)} {facts.get('currency') or USDT}"
    if name in _IN_OWN_CURRENCY:
        return " ".join(filter(None, (_say_amount(value), facts.get("currency"))))
    return _spell(value).lower() if _is_word(value) else value


def _say_amount(text: str) -> str:
    """An amount that was stored as a text. What is no amount is left as it is."""
    if not _is_decimal(text):
        return text
    try:
        units = parse_units(text.removeprefix("-"))
    except ValueError:
        return group_digits(text)
    return show_money(-units if text.startswith("-") else units)


def _spell(name: str) -> str:
    """A name of the program as words: `leftBehind` is "Left behind". Values have their unit themselves."""
    name = name.removesuffix("_ms").removesuffix("Ms").removesuffix("_units").removesuffix("Units") or name
    words = " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in _list_parts(name))
    return words[:1].upper() + words[1:] if words else name
