"""The fake's answers: envelopes, signatures and callbacks, as the service makes them."""

import json
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from merchant_wallet_client.callbacks import sign_webhook
from merchant_wallet_client.codes import CODES, SUCCESS
from merchant_wallet_client.operations import sign_length_of
from merchant_wallet_client.signing import CALLBACK_PATH, MD5, Method, sign
from merchant_wallet_client.testing.book import FakeOrder, format_amount
from merchant_wallet_client.wire import Number


class Keys(NamedTuple):
    """The merchant's secrets."""

    app_key: str
    secret: str
    callback_secret: str
    method: Method

    def __repr__(self) -> str:
        return f"Keys({self.app_key!r})"


class FakeCallback(NamedTuple):
    """A callback as it is sent."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def write_success(keys: Keys, path: str, nonce: str, data: Mapping[str, Any]) -> bytes:
    """The envelope of a success. A number is signed with the text that is sent."""
    texts = {name: _text_of(value) for name, value in data.items()}
    bound = texts if keys.method == MD5 else {**texts, "code": SUCCESS, "nonceStr": nonce}
    signature = sign(keys.method, keys.secret, path, bound)[: sign_length_of(path)]
    parts = [f"{json.dumps(name)}:{_write(value)}" for name, value in {**data, "sign": signature}.items()]
    return f'{{"code":200,"msg":"success","data":{{{",".join(parts)}}}}}'.encode()


def write_refusal(code: int, msg: str, data: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
    """The HTTP status and the envelope of a refusal."""
    known = CODES.get(code)
    body = json.dumps({"code": code, "msg": msg, "data": data}, separators=(",", ":"))
    return (known.http_status if known else 200), body.encode()


def make_order_callback(keys: Keys, order: FakeOrder, now_ms: int) -> FakeCallback:
    """The callback about an order's present status."""
    return _make(
        keys,
        order.notify_url,
        f"evt_{order.order_id}_{order.status}",
        now_ms,
        {
            "orderId": order.order_id,
            "mcOrderId": order.mc_order_id,
            "amount": format_amount(order.amount),
            "amountArrival": format_amount(order.amount - order.fee),
            "fee": format_amount(order.fee),
            "rate": format_amount(order.rate),
            "currency": "USDT",
            "chainType": order.chain_type,
            "address": order.address,
            "txnStatus": order.status,
            "txnTime": order.created_ms,
            "createTime": order.created_ms,
            "finishTime": now_ms,
            "txHash": order.tx_hash,
        },
    )


def make_deposit_callback(
    keys: Keys, url: str, now_ms: int, transaction_id: int, fields: Mapping[str, Any]
) -> FakeCallback:
    """The callback about a credited deposit."""
    return _make(
        keys,
        url,
        f"evt_{transaction_id}",
        now_ms,
        {"eventType": "deposit", "transactionId": transaction_id, **fields},
    )


def _make(keys: Keys, url: str, event_id: str, now_ms: int, own: Mapping[str, Any]) -> FakeCallback:
    fields: dict[str, Any] = {
        "appKey": keys.app_key,
        "timestamp": now_ms,
        "nonceStr": secrets.token_hex(8),
        "eventId": event_id,
        **own,
    }
    fields["sign"] = sign(keys.method, keys.secret, CALLBACK_PATH, fields)
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    timestamp = str(now_ms // 1000)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "merchant-wallet",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": sign_webhook(keys.callback_secret, event_id, timestamp, body),
    }
    return FakeCallback(url, headers, body.encode())


def _text_of(value: object) -> str | None:
    if value is None:
        return None
    return format_amount(value) if isinstance(value, Decimal) else str(value)


def _write(value: object) -> str:
    if value is None:
        return "null"
    text = _text_of(value)
    return str(text) if isinstance(value, Decimal | int | Number) else json.dumps(text, ensure_ascii=False)
