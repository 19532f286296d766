"""The fake service: it refuses what the service refuses, and does what a test scripts."""

import socket
import threading
from contextlib import ExitStack
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from client.tests.conftest import AT_ONCE, TRON_ADDRESS, order_of

from merchant_wallet_client import MerchantWallet, RefusedError, verify_callback
from merchant_wallet_client.errors import (
    AddressUnusableError,
    AmountOutOfRangeError,
    AmountWithinFeeError,
    AppKeyUnknownError,
    BalanceInsufficientError,
    ChainUnsupportedError,
    CurrencyUnsupportedError,
    ExchangeUnavailableError,
    FieldInvalidError,
    OrderIdConflictError,
    OrderNotFoundError,
    PathUnknownError,
    SubuserNotFoundError,
    WalletNotFoundError,
)
from merchant_wallet_client.signing import HMAC, MD5, Method
from merchant_wallet_client.testing import FakeWallet

TRANSFER = {"extUserId": "alice", "currency": "KFB", "amount": "1", "mcOrderId": "1"}
CREDIT = {"currency": "KFB", "amount": "1", "mcOrderId": "1", "address": "0x1"}
EXCHANGE = {"amount": "1", "sendCurrency": "USDT", "receiveCurrency": "KFB", "mcOrderId": "1"}
ORDER = {
    "amount": "10",
    "chainType": "TRC20",
    "currency": "USDT",
    "mcOrderId": "1",
    "address": TRON_ADDRESS,
    "notifyUrl": "https://shop.example",
}


@pytest.mark.parametrize(
    ("error", "operation", "fields"),
    [
        (PathUnknownError, "getEverything", {}),
        (FieldInvalidError, "getMerchantCustomer", {}),
        (FieldInvalidError, "getMerchantCustomer", {"extUserId": "a" * 21}),
        (SubuserNotFoundError, "transferFromUserToMerchant", TRANSFER),
        (CurrencyUnsupportedError, "transferFromUserToMerchant", {**TRANSFER, "currency": "USDT"}),
        (AmountOutOfRangeError, "transferFromUserToMerchant", {**TRANSFER, "amount": "1.0000001"}),
        (FieldInvalidError, "transferFromUserToMerchant", {**TRANSFER, "amount": "1e3"}),
        (WalletNotFoundError, "transferFromMerchantToUser", CREDIT),
        (ExchangeUnavailableError, "exchange", {**EXCHANGE, "minAmountArrival": "8"}),
        (CurrencyUnsupportedError, "exchange", {**EXCHANGE, "receiveCurrency": "USDT"}),
        (AmountOutOfRangeError, "exchange", {**EXCHANGE, "amount": "0.001"}),
        (ChainUnsupportedError, "createMerchantWithdrawOrder", {**ORDER, "chainType": "BEP20"}),
        (AddressUnusableError, "createMerchantWithdrawOrder", {**ORDER, "chainType": "ERC20"}),
        (BalanceInsufficientError, "createMerchantWithdrawOrder", {**ORDER, "amount": "1001"}),
        (OrderNotFoundError, "queryOrder", {"orderId": 1, "mcOrderId": "1"}),
    ],
)
def test_it_refuses_what_the_service_refuses(
    wallet: MerchantWallet, error: type[RefusedError], operation: str, fields: dict[str, object]
) -> None:
    with pytest.raises(error):
        wallet.call(operation, fields)


def test_many_clients_connect_at_once() -> None:
    fake = FakeWallet()
    address = fake.base_url.removeprefix("http://").rsplit(":", 1)
    with ExitStack() as waiting:
        # It does not serve yet, so all of them wait.
        for _ in range(50):
            waiting.enter_context(socket.create_connection((address[0], int(address[1])), timeout=30))
        with fake:
            assert httpx.get(fake.base_url, timeout=30).status_code == 405


def test_an_order_id_is_for_one_order(fake: FakeWallet, wallet: MerchantWallet) -> None:
    wallet.call("exchange", EXCHANGE)
    wallet.call("exchange", EXCHANGE)
    assert fake.book.balances["KFB"] == Decimal("1007.1")
    with pytest.raises(OrderIdConflictError):
        wallet.call("exchange", {**EXCHANGE, "amount": "2"})


def test_a_fee_that_takes_everything_is_refused(fake: FakeWallet, wallet: MerchantWallet) -> None:
    fake.book.withdraw_fee_min = Decimal(10)
    with pytest.raises(AmountWithinFeeError):
        wallet.get_withdraw_fee(amount=10)


def test_a_strangers_key_and_a_second_use_of_a_request_are_refused(
    fake: FakeWallet, wallet: MerchantWallet
) -> None:
    with (
        MerchantWallet(fake.base_url, "mk_test_nobody", fake.secret, retries=AT_ONCE) as stranger,
        pytest.raises(AppKeyUnknownError),
    ):
        stranger.get_merchant_balance()
    once = wallet.prepare("getMerchantBalance", {})
    assert wallet.send(once).code == 200
    assert wallet.send(once).code == 40103


@pytest.mark.parametrize("method", [HMAC, MD5])
def test_it_signs_by_both_methods(method: Method) -> None:
    with FakeWallet(sign_method=method) as fake:
        keys = (fake.base_url, fake.app_key, fake.secret)
        with MerchantWallet(*keys, sign_method=method) as wallet:
            assert wallet.get_merchant_balance().usdt_balance == 0


def test_a_cancelled_order_gives_the_money_back(fake: FakeWallet, wallet: MerchantWallet) -> None:
    order = wallet.create_merchant_withdraw_order(**order_of(amount="100"))
    assert wallet.get_merchant_balance().usdt_balance == 900
    fake.finish_order(order.order_id, "4")
    assert wallet.get_merchant_balance().usdt_balance == 1000


def test_a_callback_is_delivered_to_the_shops_endpoint(fake: FakeWallet, wallet: MerchantWallet) -> None:
    came: list[bytes] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.rfile.read(int(self.headers["Content-Length"])))
            verify_callback(came[0], dict(self.headers), fake.callback_secret)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"Success\n")

        def log_message(self, format: str, *args: object) -> None:
            """No log."""

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/paid"
        order = wallet.create_merchant_withdraw_order(**order_of(notify_url=url))
        answer = fake.deliver(fake.finish_order(order.order_id))
        thread.join()
    assert answer.status_code == 200
    assert wallet.query_order(order_id=order.order_id, mc_order_id="10001").notify_time is not None


def test_bodies_that_are_no_requests_are_refused(fake: FakeWallet) -> None:
    url = f"{fake.base_url}/merchant/getMerchantBalance"
    with httpx.Client(trust_env=False) as http:
        assert http.post(url, content=b"{").json()["code"] == 415
        headers = {"Content-Type": "application/json"}
        assert http.post(url, content=b"{", headers=headers).json()["code"] == 40000
        assert http.post(url, content=b"x" * 20_000, headers=headers).json()["code"] == 413
        assert http.get(url).json()["code"] == 405
        for fields in ({"appKey": fake.app_key}, {"appKey": fake.app_key, "timestamp": 1}):
            assert http.post(url, json=fields).json()["code"] in (40001, 40102)
