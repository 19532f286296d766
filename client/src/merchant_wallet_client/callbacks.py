"""Callbacks: check that a body is the service's, and read it. Pure, but for the clock.

A callback has two signatures, and it is enough to check one:
- `webhook-signature` in the headers (Standard Webhooks) covers the bytes of the body. Its key is your
  callbackSecret.
- `sign` in the body is made like a request's. Its key is your secret.

`verify_callback` takes either secret and accepts the signature that is made with it. Prefer callbackSecret:
it is strong with both sign methods.

Rules: a callback may come more than once, so store its `event_id` and ignore one that you have. Nothing of a
body is read before it is proven, except what the proof needs.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from merchant_wallet_client.errors import BadArgumentError, BadCallbackError
from merchant_wallet_client.results import Chain, Currency, FieldMissing, Reader, TxnStatus
from merchant_wallet_client.signing import (
    CALLBACK_PATH,
    HMAC,
    MD5,
    Method,
    is_signed,
    search_control,
    search_hidden,
)
from merchant_wallet_client.wire import has_only_texts, is_name, read_object

TOLERANCE_S: Final = 300.0
MAX_CALLBACK_BYTES: Final = 64 * 1024
WEBHOOK_PREFIX: Final = "whsec_"
DEPOSIT: Final = "deposit"
MIN_KEY_BYTES: Final = 16
"""With an empty key anybody could sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """What every callback has. `body` is the text that came, for your records."""

    event_id: str
    app_key: str
    sent_at: datetime
    body: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCallback(Callback):
    """A withdrawal order has reached a status. The order may have another status by now."""

    order_id: int
    mc_order_id: str
    amount: Decimal
    amount_arrival: Decimal
    fee: Decimal
    rate: Decimal
    currency: Currency
    chain_type: Chain
    address: str
    txn_status: TxnStatus
    txn_time: datetime
    create_time: datetime
    finish_time: datetime
    tx_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositCallback(Callback):
    """A deposit was credited. Without a user it came to the merchant's own address."""

    transaction_id: int
    user_id: int | None
    ext_user_id: str | None
    send_currency: Currency
    receive_currency: Currency
    amount: Decimal
    amount_arrival: Decimal
    rate: Decimal | None
    chain_type: Chain
    address: str
    txn_time: datetime
    create_time: datetime
    tx_hash: str
    log_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCallback(Callback):
    """A genuine callback of a kind that is newer than this version. Accept it, and ignore it."""

    event_type: str
    fields: Mapping[str, Any]


AnyCallback = OrderCallback | DepositCallback | OtherCallback


def verify_callback(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    sign_method: Method = HMAC,
    tolerance_s: float = TOLERANCE_S,
    now_ms: int | None = None,
) -> AnyCallback:
    """The callback, if it is genuine and fresh. Raises BadCallbackError.

    `body` is what came, unchanged: no JSON that was parsed and printed again. `secret` is your callbackSecret
    or your secret; give several while they are rolled. `sign_method` is for `sign` alone.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(secrets):
        raise BadArgumentError("the secret is empty: anybody could sign with it")
    text = _decode(body)
    fields = read_fields(text)
    if not isinstance(fields.get("eventId"), str) or not fields["eventId"]:
        raise BadCallbackError("notCallback", "the body has no eventId, so it is no callback")
    names = {name.lower(): value for name, value in headers.items()}
    if not any(_is_genuine(each, text, names, fields, sign_method) for each in secrets):
        raise BadCallbackError(
            "signature", "neither sign nor webhook-signature is made with this secret: do not act on it"
        )
    _check_age(fields, tolerance_s, time.time_ns() // 1_000_000 if now_ms is None else now_ms)
    return _read(Reader(fields), fields, text)


def sign_webhook(secret: str, event_id: str, timestamp: str, body: str) -> str:
    """The `webhook-signature` of Standard Webhooks. Raises ValueError if the secret is no Base64 of a key."""
    key = base64.b64decode(secret.removeprefix(WEBHOOK_PREFIX), validate=True)
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"a key has at least {MIN_KEY_BYTES} bytes")
    digest = hmac.digest(key, f"{event_id}.{timestamp}.{body}".encode(), hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def _decode(body: bytes | str) -> str:
    try:
        return body if isinstance(body, str) else bytes(body).decode()
    except UnicodeDecodeError:
        raise BadCallbackError("notCallback", "the body is not valid UTF-8") from None


def read_fields(text: str) -> dict[str, Any]:
    """The fields of a body, numbers as `Number`. Raises BadCallbackError if it has no clear ones."""
    try:
        fields = read_object(text)
    except ValueError as error:
        raise BadCallbackError("notCallback", f"the body is no callback: {error}") from None
    if not has_only_texts(fields) or not all(map(is_name, fields)):
        raise BadCallbackError("notCallback", "the body has a field that can't be signed")
    if any(search_control(value) for value in fields.values() if value):
        raise BadCallbackError("notCallback", "a value has a control character")
    return fields


def _is_genuine(
    secret: str, text: str, headers: Mapping[str, str], fields: Mapping[str, Any], method: Method
) -> bool:
    if has_right_sign(secret, fields, method):
        return True
    return has_right_webhook(secret, text, headers, fields["eventId"])


def has_right_sign(secret: str, fields: Mapping[str, Any], method: Method) -> bool:
    """Whether the body's `sign` is right. With MD5 a value may look like another field: then it is not."""
    if method == MD5 and any(search_hidden(value) for value in fields.values() if value):
        return False
    return is_signed(fields.get("sign"), method, secret, CALLBACK_PATH, fields)


def has_right_webhook(secret: str, text: str, headers: Mapping[str, str], event_id: str) -> bool:
    """Whether `webhook-signature` is right for this event. `headers` has small letters."""
    named, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if named != event_id or not timestamp:
        return False
    try:
        expected = sign_webhook(secret, named, timestamp, text)
    except (binascii.Error, ValueError):
        return False
    given = headers.get("webhook-signature", "").split(" ")
    # No early end: the time says nothing about which one is right.
    return any([hmac.compare_digest(expected.encode(), each.encode(errors="replace")) for each in given])


def _check_age(fields: dict[str, Any], tolerance_s: float, now_ms: int) -> None:
    try:
        sent_ms = Reader(fields).whole("timestamp")
    except FieldMissing as error:
        raise BadCallbackError("notCallback", str(error)) from None
    age_s = (now_ms - sent_ms) / 1000
    if abs(age_s) > tolerance_s:
        raise BadCallbackError(
            "age", f"it was sent {age_s:.0f} s ago: it is old, or this machine's clock is wrong (NTP)"
        )


def _read(reader: Reader, fields: dict[str, Any], text: str) -> AnyCallback:
    try:
        common: dict[str, Any] = {
            "event_id": reader.text("eventId"),
            "app_key": reader.text("appKey"),
            "sent_at": reader.moment("timestamp"),
            "body": text,
        }
        kind = reader.optional_text("eventType")
        if kind is None:
            return _read_order(reader, common)
        if kind == DEPOSIT:
            return _read_deposit(reader, common)
        return OtherCallback(**common, event_type=kind, fields=fields)
    except FieldMissing as error:
        raise BadCallbackError("fields", f"it is genuine, but {error}") from None


def _read_order(reader: Reader, common: dict[str, Any]) -> OrderCallback:
    return OrderCallback(
        **common,
        order_id=reader.whole("orderId"),
        mc_order_id=reader.text("mcOrderId"),
        amount=reader.decimal("amount"),
        amount_arrival=reader.decimal("amountArrival"),
        fee=reader.decimal("fee"),
        rate=reader.decimal("rate"),
        currency=Currency(reader.text("currency")),
        chain_type=Chain(reader.text("chainType")),
        address=reader.text("address"),
        txn_status=TxnStatus(reader.text("txnStatus")),
        txn_time=reader.moment("txnTime"),
        create_time=reader.moment("createTime"),
        finish_time=reader.moment("finishTime"),
        tx_hash=reader.optional_text("txHash"),
    )


def _read_deposit(reader: Reader, common: dict[str, Any]) -> DepositCallback:
    return DepositCallback(
        **common,
        transaction_id=reader.whole("transactionId"),
        user_id=reader.optional_whole("userId"),
        ext_user_id=reader.optional_text("extUserId"),
        send_currency=Currency(reader.text("sendCurrency")),
        receive_currency=Currency(reader.text("receiveCurrency")),
        amount=reader.decimal("amount"),
        amount_arrival=reader.decimal("amountArrival"),
        rate=reader.optional_decimal("rate"),
        chain_type=Chain(reader.text("chainType")),
        address=reader.text("address"),
        txn_time=reader.moment("txnTime"),
        create_time=reader.moment("createTime"),
        tx_hash=reader.text("txHash"),
        log_index=reader.whole("logIndex"),
    )
