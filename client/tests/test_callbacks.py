"""Callbacks: which are taken, and how they are read."""

import base64
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from client.tests.conftest import order_of

from merchant_wallet_client import (
    BadArgumentError,
    BadCallbackError,
    Chain,
    Currency,
    DepositCallback,
    MerchantWallet,
    OrderCallback,
    OtherCallback,
    TxnStatus,
    verify_callback,
)
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.testing.answering import FakeCallback, Keys, make_deposit_callback

Change = Callable[[FakeCallback], FakeCallback]


@pytest.fixture
def paid(fake: FakeWallet, wallet: MerchantWallet) -> FakeCallback:
    """The callback of an order that was paid."""
    order = wallet.create_merchant_withdraw_order(**order_of("10001", "12.50"))
    return fake.finish_order(order.order_id, TxnStatus.PAID)


@pytest.mark.parametrize("by", ["secret", "callback_secret"])
def test_a_callback_of_an_order_is_read_with_types(fake: FakeWallet, paid: FakeCallback, by: str) -> None:
    came = verify_callback(paid.body, paid.headers, getattr(fake, by))
    assert isinstance(came, OrderCallback)
    assert (came.mc_order_id, came.txn_status, came.amount) == ("10001", TxnStatus.PAID, Decimal("12.5"))
    assert (came.currency, came.chain_type) == (Currency.USDT, Chain.TRC20)
    assert came.event_id == f"evt_{came.order_id}_2"
    assert abs(came.finish_time - datetime.now(UTC)) < timedelta(minutes=5)
    assert came.tx_hash
    assert came.body == paid.body.decode()
    assert came.body not in repr(came)


def test_deposits_of_a_user_and_of_the_merchant_are_read_with_types(fake: FakeWallet) -> None:
    sent = fake.deposit("10", ext_user_id="alice")
    came = verify_callback(sent.body, sent.headers, fake.callback_secret)
    assert isinstance(came, DepositCallback)
    assert (came.ext_user_id, came.receive_currency, came.amount_arrival) == ("alice", "KFB", Decimal(71))
    assert (came.rate, came.log_index) == (Decimal("7.1"), 0)
    sent = fake.deposit("10", chain_type="ERC20")
    came = verify_callback(sent.body, sent.headers, fake.callback_secret)
    assert isinstance(came, DepositCallback)
    assert (came.ext_user_id, came.user_id, came.rate) == (None, None, None)


def test_a_kind_that_is_newer_than_the_client_is_taken_as_it_is(fake: FakeWallet) -> None:
    keys = Keys(fake.app_key, fake.secret, fake.callback_secret, "HMAC")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    sent = make_deposit_callback(keys, "", now_ms, 7, {})
    body = sent.body.replace(b'"deposit"', b'"test"')
    with pytest.raises(BadCallbackError):
        verify_callback(body, sent.headers, fake.secret)
    sent = make_deposit_callback(keys, "", now_ms, 7, {"eventType": "test", "word": "hello"})
    came = verify_callback(sent.body, sent.headers, fake.secret)
    assert isinstance(came, OtherCallback)
    assert (came.event_type, came.fields["word"]) == ("test", "hello")


def test_both_secrets_are_taken_while_they_are_rolled(fake: FakeWallet, paid: FakeCallback) -> None:
    assert (
        verify_callback(paid.body, paid.headers, ["A" * 32, fake.callback_secret]).event_id
        == paid.headers["webhook-id"]
    )
    assert (
        verify_callback(paid.body, paid.headers, f"whsec_{fake.callback_secret}").event_id
        == paid.headers["webhook-id"]
    )
    with pytest.raises(BadCallbackError) as caught:
        verify_callback(paid.body, paid.headers, ["A" * 32, "no base64!"])
    assert caught.value.reason == "signature"


def test_names_of_headers_may_have_any_case(fake: FakeWallet, paid: FakeCallback) -> None:
    shouted = {name.upper(): value for name, value in paid.headers.items()}
    assert (
        verify_callback(paid.body.decode(), shouted, fake.callback_secret).event_id
        == paid.headers["webhook-id"]
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda body: body.replace(b'"12.5"', b'"99.5"'), "signature"),
        (lambda body: body.replace(b'"eventId"', b'"eventIt"'), "notCallback"),
        (lambda body: body[:-1], "notCallback"),
        (lambda body: b"\xff", "notCallback"),
        (lambda body: b"[]", "notCallback"),
        (lambda body: body.replace(b'{"appKey"', b'{"orderId":1,"appKey"'), "notCallback"),
        (lambda body: body.replace(b'{"appKey"', b'{"x":true,"appKey"'), "notCallback"),
        (lambda body: body.replace(b'{"appKey"', b'{"a=b":1,"appKey"'), "notCallback"),
        (lambda body: body.replace(b'{"appKey"', b'{"x":"a\\nb","appKey"'), "notCallback"),
    ],
)
def test_a_changed_callback_is_refused_with_a_reason(
    fake: FakeWallet, paid: FakeCallback, change: Any, reason: str
) -> None:
    for secret in (fake.secret, fake.callback_secret):
        with pytest.raises(BadCallbackError) as caught:
            verify_callback(change(paid.body), paid.headers, secret)
        assert caught.value.reason == reason


def test_another_events_headers_prove_nothing(fake: FakeWallet, paid: FakeCallback) -> None:
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        with pytest.raises(BadCallbackError):
            verify_callback(paid.body, {**paid.headers, name: "1"}, fake.callback_secret)


def test_an_old_callback_and_one_from_the_future_are_refused(fake: FakeWallet, paid: FakeCallback) -> None:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    for moved_ms in (301_000, -301_000):
        with pytest.raises(BadCallbackError, match="clock") as caught:
            verify_callback(paid.body, paid.headers, fake.secret, now_ms=now_ms + moved_ms)
        assert caught.value.reason == "age"
    assert (
        verify_callback(
            paid.body, paid.headers, fake.secret, now_ms=now_ms + 301_000, tolerance_s=600
        ).event_id
        == paid.headers["webhook-id"]
    )


@pytest.mark.parametrize("secret", ["whsec_", "whsec_AAAA", "AAAA"])
def test_a_key_that_is_too_short_proves_nothing(paid: FakeCallback, secret: str) -> None:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{paid.headers['webhook-id']}.{paid.headers['webhook-timestamp']}.".encode() + paid.body
    signature = "v1," + base64.b64encode(hmac.digest(key, text, "sha256")).decode()
    with pytest.raises(BadCallbackError):
        verify_callback(paid.body, {**paid.headers, "webhook-signature": signature}, secret)


@pytest.mark.parametrize("secret", ["", [], ["a secret", ""]])
def test_an_empty_secret_is_an_error_of_the_program(paid: FakeCallback, secret: str | list[str]) -> None:
    with pytest.raises(BadArgumentError, match="empty"):
        verify_callback(paid.body, paid.headers, secret)
    with pytest.raises(BadArgumentError, match="empty"):
        MerchantWallet("https://wallet.example", "key", "")
