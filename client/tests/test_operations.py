"""The eight operations through both clients: typed arguments, frozen results."""

import dataclasses
import inspect
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from client.tests.conftest import Caller, order_of

from merchant_wallet_client import (
    AsyncMerchantWallet,
    BadArgumentError,
    Chain,
    Currency,
    MerchantWallet,
    TxnStatus,
    operations,
)
from merchant_wallet_client.testing import FakeWallet

METHODS = (
    "transfer_from_user_to_merchant",
    "transfer_from_merchant_to_user",
    "create_merchant_withdraw_order",
    "query_order",
    "get_merchant_customer",
    "get_merchant_balance",
    "exchange",
    "get_withdraw_fee",
)


def test_a_payment_goes_there_and_back(fake: FakeWallet, call: Caller) -> None:
    fake.book.transfer_fee_rate = Decimal("0.005")
    alice = call("get_merchant_customer", ext_user_id="alice")
    assert (alice.currency, alice.balance, alice.ext_user_id) == (Currency.KFB, Decimal(0), "alice")
    assert alice.url not in repr(alice), "a link opens the wallet, so it is in no log"
    topup = call(
        "transfer_from_merchant_to_user",
        currency=Currency.KFB,
        amount=Decimal("100.000001"),
        mc_order_id="topup-1",
        address=alice.address,
    )
    assert topup.amount == Decimal("100.000001")
    paid = call(
        "transfer_from_user_to_merchant",
        ext_user_id="alice",
        currency="KFB",
        amount="40.5",
        mc_order_id="cart-7",
    )
    assert (paid.amount_arrival, paid.fee, paid.rate) == (
        Decimal("40.2975"),
        Decimal("0.2025"),
        Decimal("0.005"),
    )
    balance = call("get_merchant_balance")
    assert balance.kfb_balance == Decimal(1000) - Decimal("100.000001") + Decimal("40.2975")
    assert call("get_merchant_customer", ext_user_id="alice").balance == Decimal("59.500001")


def test_an_exchange_and_a_quotation(fake: FakeWallet, call: Caller) -> None:
    done = call(
        "exchange",
        amount="71.00",
        send_currency=Currency.KFB,
        receive_currency=Currency.USDT,
        mc_order_id="fx-1",
        min_amount_arrival=Decimal("9.9"),
    )
    assert (done.amount, done.amount_arrival, done.rate) == (Decimal(71), Decimal("9.94"), Decimal("0.14"))
    fake.book.withdraw_fee_min = Decimal(1)
    quote = call("get_withdraw_fee", amount=Decimal("12.50"))
    assert (quote.fee, quote.amount_arrival) == (Decimal(1), Decimal("11.5"))


def test_an_order_from_its_creation_to_its_end(fake: FakeWallet, call: Caller) -> None:
    created = call("create_merchant_withdraw_order", **order_of("10001"))
    assert (created.txn_status, created.chain_type) == (TxnStatus.ACCEPTED, Chain.TRC20)
    again = call("create_merchant_withdraw_order", **order_of("10001"))
    assert again == created, "the same order id is the same order"
    fake.finish_order(created.order_id, TxnStatus.PAID)
    order = call("query_order", order_id=created.order_id, mc_order_id="10001")
    assert (order.txn_status, order.txn_status.is_final) == (TxnStatus.PAID, True)
    assert order.mc_order_id == "10001", "always a text, although it is a number on the wire"
    assert order.notify_time is None
    assert abs((datetime.now(UTC) - order.create_time).total_seconds()) < 300


def test_a_result_is_frozen_and_an_order_id_beyond_floats_is_kept(call: Caller, fake: FakeWallet) -> None:
    fake.book._last_id = 2**53 - 3
    user = call("get_merchant_customer", ext_user_id="bob")
    assert user.user_id == 2**53 - 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        user.balance = Decimal(1)


def test_words_that_are_newer_than_the_client_are_kept() -> None:
    assert Chain("SOLANA") == "SOLANA"
    assert TxnStatus("7").is_final is False
    assert Chain("ERC20") is Chain.ERC20


@pytest.mark.parametrize("amount", [1.5, True, "1e3", "-1", "1,000", ".5", Decimal("NaN"), Decimal(-1), ""])
def test_an_amount_that_is_no_plain_decimal_is_not_sent(fake: FakeWallet, call: Caller, amount: Any) -> None:
    with pytest.raises(BadArgumentError):
        call("get_withdraw_fee", amount=amount)
    assert fake.requests == []


def test_a_decimal_with_an_exponent_is_written_plainly(fake: FakeWallet, call: Caller) -> None:
    call("get_withdraw_fee", amount=Decimal("1E+2"))
    assert fake.requests[0].fields["amount"] == "100"


@pytest.mark.parametrize(
    "fields",
    [
        {"extUserId": "a\nb=1"},
        {"extUserId": "a\u0085"},
        {"extUserId": True},
        {"extUserId": 1.5},
        {"extUserId": ["a"]},
        {"a=b": "c"},
        {"": "c"},
        {"eventId": "evt_1"},
        {"extUserId": "\ud800"},
    ],
)
def test_a_value_that_could_look_like_another_field_is_not_signed(call: Caller, fields: Any) -> None:
    with pytest.raises(BadArgumentError):
        call("prepare", "getMerchantCustomer", fields)


def test_with_md5_a_value_that_hides_a_field_is_not_signed(call: Caller) -> None:
    with pytest.raises(BadArgumentError, match="MD5"):
        call("prepare", "getMerchantCustomer", {"x": "a&appKey=b"}, with_options={"sign_method": "MD5"})
    assert call("prepare", "getMerchantCustomer", {"x": "a&appKey=b"}).fields["x"] == "a&appKey=b"


def test_both_clients_and_the_core_have_the_same_methods_with_the_same_arguments() -> None:
    for name in METHODS:
        core = inspect.signature(getattr(operations, name)).parameters
        for client in (MerchantWallet, AsyncMerchantWallet):
            given = dict(inspect.signature(getattr(client, name)).parameters)
            del given["self"]
            assert given == dict(core), name
    public = {name for name in vars(MerchantWallet) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncMerchantWallet) if not name.startswith("_")}


@pytest.mark.parametrize("url", ["wallet.example", "ftp://wallet.example", "https://", "https://a?b", ""])
def test_a_base_url_that_can_t_be_right_is_refused(url: str) -> None:
    with pytest.raises(BadArgumentError, match="base_url must be like"):
        MerchantWallet(url, "key", "secret")


@pytest.mark.parametrize("option", ["timeouts", "retries"])
@pytest.mark.parametrize("client", [MerchantWallet, AsyncMerchantWallet])
def test_an_option_of_the_wrong_type_is_refused_at_once(client: Any, option: str) -> None:
    with pytest.raises(BadArgumentError, match=rf"{option} must be like {option.title()}\(.*, not 5"):
        client("https://wallet.example", "key", "secret", **{option: 5})


def test_no_repr_has_the_secret(wallet: MerchantWallet, fake: FakeWallet) -> None:
    assert fake.secret not in repr(wallet)
    assert fake.app_key in repr(wallet)
    answer = wallet.call("getMerchantCustomer", {"extUserId": "alice"})
    assert answer.data["url"] not in repr(answer), "a link opens the wallet, so it is in no log"
