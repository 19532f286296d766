"""The Python client against the real service, and its fake beside the real one."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.base.codes import CODES
from merchant_wallet_client import (
    AsyncMerchantWallet,
    MerchantWallet,
    TxnStatus,
    UnsafeAnswerError,
    codes,
)
from merchant_wallet_client.calls import Credentials, verify
from merchant_wallet_client.errors import OrderIdConflictError, SignatureMismatchError
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.wire import Number

WORKING = True
ROOT = Path(__file__).parents[2]
TRON_ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
EXAMPLE = ROOT / "client" / "examples" / "quickstart.py"


@pytest.fixture
def shop(platform: Platform) -> Shop:
    """A merchant with money in both currencies, and rates."""
    made = platform.open_merchant(transfer_fee_rate="0.005", withdraw_fee_min="1")
    made.fund("USDT", "1000")
    made.fund("KFB", "1000")
    made.set_rate("KFB:USDT", "0.14")
    return made


@pytest.fixture
def wallet(platform: Platform, shop: Shop) -> Iterator[MerchantWallet]:
    keys = (shop.client.app_key, shop.client.secret)
    with MerchantWallet(f"http://127.0.0.1:{platform.port}", *keys) as made:
        yield made


def play(wallet: MerchantWallet) -> list[tuple[str, Any]]:
    """One call of each operation. Returns each answer's `data`."""
    answers: list[tuple[str, Any]] = []

    def call(operation: str, **fields: object) -> Any:
        data = wallet.call(operation, fields).data
        answers.append((operation, data))
        return data

    alice = call("getMerchantCustomer", extUserId="alice")
    transfer = {"currency": "KFB", "amount": "100", "mcOrderId": "1", "address": alice["address"]}
    call("transferFromMerchantToUser", **transfer)
    debit = {"extUserId": "alice", "currency": "KFB", "amount": "40.5", "mcOrderId": "2"}
    call("transferFromUserToMerchant", **debit)
    swap = {"amount": "71", "sendCurrency": "KFB", "receiveCurrency": "USDT", "mcOrderId": "3"}
    call("exchange", **swap)
    call("getWithdrawFee", amount="12.50", currency="USDT")
    order = call(
        "createMerchantWithdrawOrder",
        amount="12.50",
        chainType="TRC20",
        currency="USDT",
        mcOrderId="10001",
        address=TRON_ADDRESS,
        notifyUrl="http://127.0.0.1:9/paid",
    )
    call("queryOrder", orderId=order["orderId"], mcOrderId="10001")
    call("getMerchantBalance")
    return answers


def test_the_fake_answers_as_the_service_does(wallet: MerchantWallet) -> None:
    real = play(wallet)
    with FakeWallet() as fake:
        fake.credit("USDT", 1000)
        fake.credit("KFB", 1000)
        fake.book.transfer_fee_rate, fake.book.withdraw_fee_min = Decimal("0.005"), Decimal(1)
        with MerchantWallet(fake.base_url, fake.app_key, fake.secret) as other:
            faked = play(other)
    own = ("transactionId", "orderId", "userId", "merchantId", "url", "address", "tronAddress", "sign")
    times = ("txnTime", "createTime", "notifyTime", "txnStatus")
    for (operation, theirs), (_, ours) in zip(real, faked, strict=True):
        assert list(ours) == list(theirs), operation
        for name, value in theirs.items():
            kinds = {type(value), type(ours[name])}
            assert len(kinds) == 1 or name == "notifyTime", f"{operation} {name}: {kinds}"
            assert name in (*own, *times) or ours[name] == value, f"{operation} {name}"
            assert len(ours["sign"]) == len(theirs["sign"])


def test_a_payout_is_followed_to_its_end(wallet: MerchantWallet) -> None:
    order = wallet.create_merchant_withdraw_order(
        amount=Decimal("12.50"),
        chain_type="TRC20",
        mc_order_id="10001",
        address=TRON_ADDRESS,
        notify_url="http://127.0.0.1:9/paid",
    )
    assert order.amount_arrival == Decimal("11.5")
    while not (seen := wallet.query_order(order_id=order.order_id, mc_order_id="10001")).txn_status.is_final:
        pass
    assert seen.txn_status is TxnStatus.PAID
    with pytest.raises(OrderIdConflictError):
        wallet.create_merchant_withdraw_order(
            amount=Decimal("13"),
            chain_type="TRC20",
            mc_order_id="10001",
            address=TRON_ADDRESS,
            notify_url="http://127.0.0.1:9/paid",
        )


def test_the_async_client_and_a_merchant_with_md5(platform: Platform) -> None:
    shop = platform.open_merchant(sign_method="MD5")
    shop.fund("USDT", "7.25")

    async def ask(method: Any) -> Decimal:
        keys = (f"http://127.0.0.1:{platform.port}", shop.client.app_key, shop.client.secret)
        async with AsyncMerchantWallet(*keys, sign_method=method) as wallet:
            return (await wallet.get_merchant_balance()).usdt_balance

    assert asyncio.run(ask("MD5")) == Decimal("7.25")
    with pytest.raises(SignatureMismatchError):
        asyncio.run(ask("HMAC"))


def test_a_merchant_with_md5_believes_every_true_answer(platform: Platform) -> None:
    """Numbers as order ids too: `queryOrder` answers with a number what was asked with a text."""
    shop = platform.open_merchant(sign_method="MD5", transfer_fee_rate="0.005", withdraw_fee_min="1")
    shop.fund("USDT", "1000")
    shop.fund("KFB", "1000")
    shop.set_rate("KFB:USDT", "0.14")
    keys = (f"http://127.0.0.1:{platform.port}", shop.client.app_key, shop.client.secret)
    with MerchantWallet(*keys, sign_method="MD5") as wallet:
        answers = play(wallet)
        assert [operation for operation, _ in answers][-1] == "getMerchantBalance"
        paid_in = {"extUserId": "alice", "chainType": "TRC20", "amount": "5"}
        assert wallet.sandbox("deposit", paid_in).data["amount"] == "5"
        given = {"currency": "USDT", "amount": "5", "mcOrderId": "tap-1"}
        assert wallet.sandbox("fund", given).data["amount"] == "5"


def test_a_wrong_secret_is_told_with_the_string_that_the_sandbox_signed(
    platform: Platform, shop: Shop
) -> None:
    stranger = MerchantWallet(f"http://127.0.0.1:{platform.port}", shop.client.app_key, "x" * 32)
    with stranger, pytest.raises(SignatureMismatchError) as caught:
        stranger.get_merchant_balance()
    assert caught.value.data["stringToSign"].startswith("/merchant/getMerchantBalance\n")


def test_the_codes_of_the_client_are_those_of_the_service() -> None:
    theirs = [tuple(row) for row in CODES.values()]
    ours = [
        (row.code, row.name, row.meaning, row.retry.value, row.http_status) for row in codes.CODES.values()
    ]
    assert ours == theirs


def test_the_quick_start_takes_a_payment_and_pays_out(platform: Platform, shop: Shop) -> None:
    told = {
        "MERCHANT_WALLET_URL": f"http://127.0.0.1:{platform.port}",
        "MERCHANT_WALLET_APP_KEY": shop.client.app_key,
        "MERCHANT_WALLET_SECRET": shop.client.secret,
        "MERCHANT_WALLET_CALLBACK_SECRET": shop.callback_secret,
    }
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        env={**os.environ, **told, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    payment, refusal, payout, callback = done.stdout.splitlines()
    assert payment == "payment: 40.2975 KFB arrived"
    assert refusal.startswith("refused: 42200 Send the same mcOrderId again")
    assert payout.endswith("has status 0")
    assert "has status 2, transaction " in callback


def test_an_answer_that_someone_changed_on_the_way_is_not_believed(wallet: MerchantWallet) -> None:
    request = wallet.prepare("getMerchantBalance", {})
    answer = wallet.send(request)
    assert isinstance(answer.data["usdtBalance"], Number)
    assert json.loads(answer.body)["data"]["usdtBalance"] == 1000
    other = wallet.prepare("getMerchantBalance", {})
    with pytest.raises(UnsafeAnswerError):
        verify(Credentials(wallet.app_key, "x"), other, answer)
