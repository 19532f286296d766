"""A callback's content and its two signatures."""

import base64
import hashlib
import hmac
import json

import msgspec
from tests.rows import each_row

from merchant_wallet.base.webhooks import sign_webhook
from merchant_wallet.callbacks.answers import is_accepted
from merchant_wallet.callbacks.payloads import WithdrawalEvent, build_payload
from merchant_wallet.merchants.records import Merchant

NOW_MS = 1_763_712_000_999
PAID = WithdrawalEvent(
    order_id=8_589_934_599,
    status=2,
    at_ms=1_763_712_000_500,
    mc_order_id="10001",
    amount_units=12_500_000,
    fee_units=1_000_001,
    rate_e8=100_000,
    chain="TRC20",
    address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    created_ms=1_763_712_000_000,
    tx_hash="ab12",
)
MERCHANT = Merchant(
    merchant_id=1001,
    name="Shop",
    app_key="demo",
    status="active",
    currency_mode="KFB",
    sign_method="HMAC",
    secrets=("0123456789abcdef0123456789abcdef", "old secret of this merchant....."),
    callback_secret="MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    networks=(),
    disabled_operations=frozenset(),
    transfer_fee_rate_e8=0,
    withdraw_fee_rate_e8=0,
    withdraw_fee_min_units=0,
    approval_limit_units=0,
    daily_limit_units=None,
    allowed_addresses=frozenset(),
    auto_register=True,
    require_pin=False,
    rate_limit=None,
    account_xpubs={},
    deposit_notify_url=None,
    settings_version=1,
    created_ms=0,
)
STRING_TO_SIGN = """callback
address=TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC
amount=12.5
amountArrival=11.499999
appKey=demo
chainType=TRC20
createTime=1763712000000
currency=USDT
eventId=evt_8589934599_2
fee=1.000001
finishTime=1763712000500
mcOrderId=10001
nonceStr=n1
orderId=8589934599
rate=0.001
timestamp=1763712000999
txHash=ab12
txnStatus=2
txnTime=1763712000000"""


def write(event: WithdrawalEvent = PAID, merchant: Merchant = MERCHANT) -> dict[str, object]:
    """The body's fields for an order's event."""
    payload = build_payload(merchant, f"evt_{event.order_id}_{event.status}", event.fields(), "n1", NOW_MS)
    fields: dict[str, object] = json.loads(payload.body)
    return fields


def test_a_callback_has_every_field_with_its_type() -> None:
    fields = write()
    sign = fields.pop("sign")
    assert fields == {
        "appKey": "demo",
        "timestamp": NOW_MS,
        "nonceStr": "n1",
        "eventId": "evt_8589934599_2",
        "orderId": 8_589_934_599,
        "mcOrderId": "10001",
        "amount": "12.5",
        "amountArrival": "11.499999",
        "fee": "1.000001",
        "rate": "0.001",
        "currency": "USDT",
        "chainType": "TRC20",
        "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
        "txnStatus": "2",
        "txnTime": 1_763_712_000_000,
        "createTime": 1_763_712_000_000,
        "finishTime": 1_763_712_000_500,
        "txHash": "ab12",
    }
    assert isinstance(sign, str)
    assert len(sign) == 32


def test_the_sign_is_a_requests_with_the_word_callback_as_first_line() -> None:
    digest = hmac.new(b"0123456789abcdef0123456789abcdef", STRING_TO_SIGN.encode(), "sha256").hexdigest()
    assert write()["sign"] == digest[:32]


def test_a_merchant_with_md5_gets_the_md5_rule() -> None:
    pairs = "&".join(STRING_TO_SIGN.split("\n")[1:]) + "&key=0123456789abcdef0123456789abcdef"
    merchant = msgspec.structs.replace(MERCHANT, sign_method="MD5")
    assert write(merchant=merchant)["sign"] == hashlib.md5(pairs.encode()).hexdigest().upper()


def test_what_has_no_value_is_null_and_not_signed() -> None:
    failed = msgspec.structs.replace(PAID, status=3, tx_hash=None)
    fields = write(failed)
    assert (fields["txHash"], fields["txnStatus"]) == (None, "3")
    lines = [line for line in STRING_TO_SIGN.split("\n") if not line.startswith("txHash=")]
    signed = "\n".join(lines).replace("txnStatus=2", "txnStatus=3").replace("_2", "_3")
    digest = hmac.new(b"0123456789abcdef0123456789abcdef", signed.encode(), "sha256").hexdigest()
    assert fields["sign"] == digest[:32]


@each_row("status", [2, 3, 4, 5, 6])
def test_every_status_that_is_told_has_the_moment_it_was_reached(status: int) -> None:
    assert write(msgspec.structs.replace(PAID, status=status))["finishTime"] == PAID.at_ms


def test_the_headers_are_those_of_standard_webhooks() -> None:
    payload = build_payload(MERCHANT, "evt_1_2", PAID.fields(), "n1", NOW_MS)
    headers = dict(payload.headers)
    assert headers[b"webhook-id"] == b"evt_1_2"
    assert headers[b"webhook-timestamp"] == b"1763712000"
    key = base64.b64decode(MERCHANT.callback_secret)
    digest = hmac.new(key, b"evt_1_2.1763712000." + payload.body, hashlib.sha256).digest()
    assert headers[b"webhook-signature"] == b"v1," + base64.b64encode(digest)
    assert headers[b"Content-Type"] == b"application/json; charset=utf-8"


def test_the_webhook_signature_is_that_of_the_published_example() -> None:
    signature = sign_webhook(
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signature == b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@each_row("answer", [b"success", b"SUCCESS", b" Success\r\n"])
def test_the_word_success_in_any_case_takes_a_callback(answer: bytes) -> None:
    assert is_accepted(200, answer)


@each_row(
    ("status", "answer"),
    [
        (200, b""),
        (200, b"successful"),
        (200, b'"success"'),
        (200, b"fail"),
        (201, b"success"),
        (500, b"success"),
    ],
)
def test_anything_else_does_not(status: int, answer: bytes) -> None:
    assert not is_accepted(status, answer)
