"""The content and the signatures of a callback. Pure.

Rules:
- The content of an event is the same at every attempt, whatever happened since. Only timestamp, nonce and
  signatures change.
- Values are strings and whole numbers. Money is a string. A missing value is null and not signed.
- There are two signatures, because receivers know one or the other: `sign` as in a request, and the headers
  of Standard Webhooks 1.0 (`base.webhooks`). The callback secret is the key of the second: 32 letters and
  digits, which are the Base64 of 24 bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.base.signing import CALLBACK_PATH, sign
from merchant_wallet.base.spans import TRACEPARENT
from merchant_wallet.base.webhooks import ID, SIGNATURE, TIMESTAMP, sign_webhook
from merchant_wallet.merchants.records import Merchant

DEPOSIT: Final = "deposit"

Value = str | int | None
Header = tuple[bytes, bytes]


class WithdrawalEvent(msgspec.Struct, frozen=True, gc=False):
    """An order and one status of it. `at_ms` is when it reached the status."""

    order_id: int
    status: int
    at_ms: int
    mc_order_id: str
    amount_units: int
    fee_units: int
    rate_e8: int
    chain: str
    address: str
    created_ms: int
    tx_hash: str | None

    def fields(self) -> dict[str, Value]:
        """The event's own fields, in the order of the documentation."""
        return {
            "orderId": self.order_id,
            "mcOrderId": self.mc_order_id,
            "amount": format_units(self.amount_units),
            "amountArrival": format_units(self.amount_units - self.fee_units),
            "fee": format_units(self.fee_units),
            "rate": format_rate(self.rate_e8),
            "currency": USDT,
            "chainType": self.chain,
            "address": self.address,
            "txnStatus": str(self.status),
            "txnTime": self.created_ms,
            "createTime": self.created_ms,
            "finishTime": self.at_ms,
            "txHash": self.tx_hash,
        }


class DepositEvent(msgspec.Struct, frozen=True, gc=False):
    """A deposit and its credit by an entry at `at_ms`. Without a user it belongs to the merchant."""

    entry_id: int
    at_ms: int
    user_id: int | None
    ext_user_id: str | None
    chain: str
    address: bytes
    tx_hash: str
    log_index: int
    amount_units: int
    currency: str
    arrival_units: int
    rate_e8: int
    seen_ms: int

    def fields(self) -> dict[str, Value]:
        """The event's own fields, in the order of the documentation. The names are those of an exchange."""
        return {
            "eventType": DEPOSIT,
            "transactionId": self.entry_id,
            "userId": self.user_id,
            "extUserId": self.ext_user_id,
            "sendCurrency": USDT,
            "receiveCurrency": self.currency,
            "amount": format_units(self.amount_units),
            "amountArrival": format_units(self.arrival_units),
            "rate": format_rate(self.rate_e8) if self.rate_e8 else None,
            "chainType": self.chain,
            "address": format_address(self.chain, self.address),
            "txnTime": self.at_ms,
            "createTime": self.seen_ms,
            "txHash": self.tx_hash,
            "logIndex": self.log_index,
        }


CallbackEvent = WithdrawalEvent | DepositEvent


class Payload(msgspec.Struct, frozen=True):
    """One attempt's body and its headers."""

    body: bytes
    headers: Sequence[Header]


def build_payload(
    merchant: Merchant, event_id: str, fields: Mapping[str, Value], nonce: str, at_ms: int
) -> Payload:
    """The payload of one attempt, signed with the merchant's newest secret."""
    values: dict[str, Value] = {
        "appKey": merchant.app_key,
        "timestamp": at_ms,
        "nonceStr": nonce,
        "eventId": event_id,
    }
    values |= fields
    present = {name: str(value) for name, value in values.items() if value is not None}
    values["sign"] = sign(merchant.sign_method, merchant.secrets[0], CALLBACK_PATH, present)
    body = msgspec.json.encode(values)
    return Payload(body, _headers(merchant.callback_secret, event_id, at_ms // 1000, body))


def add_traceparent(payload: Payload, traceparent: str) -> Payload:
    """The payload of a traced order: one header more. It is not signed, and no receiver needs it."""
    return Payload(payload.body, [*payload.headers, (TRACEPARENT, traceparent.encode())])


def _headers(secret: str, event_id: str, at_s: int, body: bytes) -> tuple[Header, ...]:
    return (
        (b"Content-Type", b"application/json; charset=utf-8"),
        (ID.encode(), event_id.encode()),
        (TIMESTAMP.encode(), b"%d" % at_s),
        (SIGNATURE.encode(), sign_webhook(secret, event_id, at_s, body)),
    )
