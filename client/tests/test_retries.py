"""What follows an answer: which calls are repeated, with what, and which error ends them."""

import json
from decimal import Decimal
from typing import Any

import httpx
import pytest
from client.tests.conftest import Caller, order_of

from merchant_wallet_client import (
    MerchantWallet,
    NoAnswerError,
    RefusedError,
    Retries,
    Retry,
    Timeouts,
    UnsafeAnswerError,
)
from merchant_wallet_client.calls import Again, Call, Credentials, Done, Reply, Unanswered
from merchant_wallet_client.codes import find_retry
from merchant_wallet_client.errors import (
    BalanceInsufficientError,
    MerchantSuspendedError,
    NonceRepeatedError,
    SignatureMismatchError,
    TimestampOutOfToleranceError,
    UnavailableError,
)
from merchant_wallet_client.operations import sign_length_of
from merchant_wallet_client.signing import MD5, sign
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.testing.answering import write_refusal

CREATE = "createMerchantWithdrawOrder"


def test_a_lost_answer_is_asked_for_again_and_the_money_moves_once(fake: FakeWallet, call: Caller) -> None:
    fake.lose_answer(CREATE, times=2)
    order = call("create_merchant_withdraw_order", **order_of("10001", "100"))
    assert order.mc_order_id == "10001"
    assert fake.book.balances["USDT"] == Decimal(900)
    assert len(fake.requests) == 3
    for name in ("nonceStr", "sign"):
        assert len({sent.fields[name] for sent in fake.requests}) == 3, f"each attempt has a new {name}"
    own = [{**sent.fields, "nonceStr": "", "sign": "", "timestamp": ""} for sent in fake.requests]
    assert own[0] == own[1] == own[2], "everything else is the same"


@pytest.mark.parametrize("code", [50300, 50000, 42900])
def test_a_busy_service_is_asked_again(fake: FakeWallet, call: Caller, code: int) -> None:
    fake.refuse("getMerchantBalance", code, times=3, retry_after_s=0)
    assert call("get_merchant_balance").usdt_balance == Decimal(1000)
    assert len(fake.requests) == 4


@pytest.mark.parametrize("code", [50300, 50000, 42900])
def test_a_service_that_stays_busy_leaves_the_outcome_unknown(
    fake: FakeWallet, call: Caller, code: int
) -> None:
    fake.refuse("createMerchantWithdrawOrder", code, times=9, retry_after_s=0)
    with pytest.raises(NoAnswerError, match=r"with the same mcOrderId$") as caught:
        call("create_merchant_withdraw_order", **order_of())
    assert (caught.value.tries, len(fake.requests)) == (4, 4)
    assert caught.value.refusal is not None
    assert caught.value.refusal.code == code
    assert caught.value.__cause__ is caught.value.refusal


@pytest.mark.parametrize("code", [50300, 50000, 42900])
def test_after_a_refused_read_nothing_is_unknown(fake: FakeWallet, call: Caller, code: int) -> None:
    fake.refuse("getMerchantBalance", code, times=9, retry_after_s=0)
    with pytest.raises(NoAnswerError, match=r"It moves no money: call it again later$") as caught:
        call("get_merchant_balance")
    assert "known whether" not in str(caught.value)
    assert "mcOrderId" not in str(caught.value)


def test_a_refusal_by_the_rules_is_raised_at_once(fake: FakeWallet, call: Caller) -> None:
    with pytest.raises(BalanceInsufficientError) as caught:
        call("create_merchant_withdraw_order", **order_of(amount="1000.01"))
    error = caught.value
    assert (error.code, error.retry) == (42200, Retry.AFTER_FUNDING)
    assert error.request_id
    assert "Send the same mcOrderId again when there is money" in str(error)
    assert len(fake.requests) == 1


def test_a_late_request_is_sent_once_more_and_a_wrong_clock_is_told(fake: FakeWallet, call: Caller) -> None:
    data = {"serverTime": 1763712008000, "skewMs": -600000}
    fake.refuse("getMerchantBalance", 40102, data=data)
    assert call("get_merchant_balance").usdt_balance == Decimal(1000)
    fake.refuse("getMerchantBalance", 40102, times=2, data=data)
    with pytest.raises(TimestampOutOfToleranceError, match=r"skewMs -600000.*clock"):
        call("get_merchant_balance")
    assert len(fake.requests) == 4


def test_a_used_nonce_is_replaced(fake: FakeWallet, call: Caller) -> None:
    fake.refuse("getMerchantBalance", 40103, times=2)
    call("get_merchant_balance")
    fake.refuse("getMerchantBalance", 40103, times=9)
    with pytest.raises(NoAnswerError) as caught:
        call("get_merchant_balance")
    assert isinstance(caught.value.refusal, NonceRepeatedError)
    assert len(fake.requests) == 3 + 4


def test_a_used_nonce_says_that_a_copy_of_the_request_came_first_and_may_have_been_carried_out(
    fake: FakeWallet, call: Caller
) -> None:
    """Nonces are random: something on the way has sent this very request twice."""
    fake.refuse(CREATE, 40103)
    fake.refuse(CREATE, 40300)
    with pytest.raises(NoAnswerError) as caught:
        call("create_merchant_withdraw_order", **order_of())
    assert isinstance(caught.value.refusal, MerchantSuspendedError)
    fake.refuse("exchange", 40103)
    with pytest.raises(NoAnswerError):
        call("call", "exchange", {"amount": "10", "sendCurrency": "USDT", "receiveCurrency": "KFB"})


def test_a_new_code_with_the_http_status_of_a_fault_leaves_the_outcome_unknown() -> None:
    body = b'{"code":40999,"msg":"new","data":null}'
    assert judge(Reply(503, {}, body)).wait_s >= 1
    assert judge(Reply(429, {"retry-after": "7"}, body)).wait_s >= 7
    with pytest.raises(NoAnswerError) as caught:
        judge(Reply(503, {}, body), retries=Retries(1))
    assert caught.value.refusal is not None
    with pytest.raises(RefusedError):
        judge(Reply(200, {}, body), retries=Retries(1))


def test_an_answer_with_a_wrong_signature_is_never_asked_for_again(fake: FakeWallet, call: Caller) -> None:
    fake.sign_wrongly("getMerchantBalance")
    with pytest.raises(UnsafeAnswerError, match="its signature is wrong"):
        call("get_merchant_balance")
    assert len(fake.requests) == 1


def test_a_refusal_by_the_first_checks_says_nothing_of_an_attempt_before(
    fake: FakeWallet, call: Caller
) -> None:
    fake.lose_answer(CREATE)
    fake.refuse(CREATE, 40300)
    with pytest.raises(NoAnswerError) as caught:
        call("create_merchant_withdraw_order", **order_of())
    assert isinstance(caught.value.refusal, MerchantSuspendedError)
    fake.refuse(CREATE, 40300)
    with pytest.raises(MerchantSuspendedError):
        call("create_merchant_withdraw_order", **order_of("10002"))


def test_a_refusal_after_the_order_id_was_looked_for_is_definite(fake: FakeWallet, call: Caller) -> None:
    fake.lose_answer(CREATE, carries_out=False)
    with pytest.raises(BalanceInsufficientError):
        call("create_merchant_withdraw_order", **order_of(amount="5000"))


def test_an_exchange_without_an_order_id_is_never_repeated(fake: FakeWallet, call: Caller) -> None:
    fields = {"amount": "10", "sendCurrency": "USDT", "receiveCurrency": "KFB"}
    fake.lose_answer("exchange")
    with pytest.raises(NoAnswerError):
        call("call", "exchange", fields)
    assert len(fake.requests) == 1
    fake.lose_answer("exchange")
    call("call", "exchange", {**fields, "mcOrderId": "fx-1"})
    assert len(fake.requests) == 3


def test_a_code_that_is_newer_than_the_client_is_a_refusal(fake: FakeWallet, call: Caller) -> None:
    fake.refuse("getMerchantBalance", 40999, "something new")
    with pytest.raises(RefusedError, match="40999: something new") as caught:
        call("get_merchant_balance")
    assert type(caught.value) is RefusedError
    assert caught.value.retry is Retry.NEVER


def test_the_first_digits_of_a_new_code_say_what_it_is() -> None:
    """As the documentation promises: docs/site/en/promises/codes.md."""
    for code in (40099, 40199, 40399, 40499, 40999):
        assert find_retry(code) is Retry.NEVER
    assert find_retry(42299) is Retry.LATER
    assert find_retry(42999) is Retry.AFTER_RETRY_AFTER
    for code in (50099, 59999, 49999, 60000, 418, 0):
        assert find_retry(code) is Retry.SAME_ORDER_ID


def test_a_wrong_secret_is_told_with_what_the_sandbox_signed(fake: FakeWallet) -> None:
    with (
        MerchantWallet(fake.base_url, fake.app_key, "x" * 32) as stranger,
        pytest.raises(SignatureMismatchError) as caught,
    ):
        stranger.get_merchant_balance()
    assert caught.value.data["stringToSign"].startswith("/merchant/getMerchantBalance\nappKey=")


@pytest.mark.parametrize(("operation", "name"), [(CREATE, "mcOrderId"), ("getMerchantCustomer", "extUserId")])
def test_with_md5_the_true_answer_for_another_order_or_user_is_not_believed(
    operation: str, name: str
) -> None:
    """MD5 signs no nonce, so an old answer could be sent again."""
    credentials = Credentials("key", "secret", MD5)
    for answered, is_believed in (("mine", True), ("other", False)):
        call = Call(credentials, operation, {name: "mine"}, Retries())
        call.prepare("nonce", 0)
        signed = sign(MD5, "secret", "", {name: answered})[: sign_length_of(f"/merchant/{operation}")]
        data = {name: answered, "sign": signed}
        reply = Reply(200, {}, json.dumps({"code": 200, "msg": "success", "data": data}).encode())
        if is_believed:
            assert isinstance(call.judge(reply), Done)
        else:
            with pytest.raises(UnsafeAnswerError, match=f"another {name}"):
                call.judge(reply)


def test_nobody_at_the_other_end_is_no_answer() -> None:
    with (
        MerchantWallet("http://127.0.0.1:9", "key", "secret", retries=Retries(2, 0)) as alone,
        pytest.raises(NoAnswerError, match="after 2 tries"),
    ):
        alone.get_merchant_balance()


def judge(reply: Reply | Unanswered, tries_before: int = 0, retries: Retries | None = None) -> Again:
    """What follows a reply after some attempts."""
    call = Call(Credentials("key", "secret"), "getMerchantBalance", {}, retries or Retries())
    for _ in range(tries_before):
        call.prepare("nonce", 0)
    call.prepare("nonce", 0)
    step = call.judge(reply)
    assert isinstance(step, Again)
    return step


def test_waits_double_from_one_second_and_are_as_long_as_the_service_says() -> None:
    for before, shortest in ((0, 1), (1, 2), (2, 4)):
        wait_s = judge(Unanswered("silence"), before).wait_s
        assert shortest <= wait_s <= shortest * 1.25
    status, body = write_refusal(50300, "busy")
    assert 7 <= judge(Reply(status, {"retry-after": "7"}, body)).wait_s <= 7 * 1.25
    with pytest.raises(NoAnswerError) as caught:
        judge(Reply(status, {"retry-after": "61"}, body))
    assert isinstance(caught.value.refusal, UnavailableError)
    assert caught.value.refusal.retry_after_s == 61


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"code":"200"}', b'{"code":200}', b"[" * 9999])
def test_what_a_proxy_answers_is_no_answer(body: bytes) -> None:
    with pytest.raises(NoAnswerError, match="HTTP 502"):
        judge(Reply(502, {}, body), retries=Retries(1))


class Drip(httpx.SyncByteStream):
    """A body that never ends."""

    def __iter__(self) -> Any:
        while True:
            yield b"x" * 65536


@pytest.mark.parametrize("timeouts", [Timeouts(), Timeouts(answer_s=-1)])
def test_an_answer_that_is_too_long_or_too_slow_is_given_up(timeouts: Timeouts) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Drip()))
    with httpx.Client(transport=transport) as http:
        client = MerchantWallet(
            "https://wallet.example", "key", "secret", http=http, timeouts=timeouts, retries=Retries(1)
        )
        with pytest.raises(NoAnswerError, match=r"longer than|too slowly"):
            client.get_merchant_balance()
        client.close()
        assert not http.is_closed, "who gave it closes it"


def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": "https://elsewhere.example"})

    with httpx.Client(transport=httpx.MockTransport(answer), follow_redirects=True) as http:
        client = MerchantWallet("https://wallet.example/", "key", "secret", http=http, retries=Retries(1))
        with pytest.raises(NoAnswerError, match="HTTP 307"):
            client.get_merchant_balance()
    assert asked == ["https://wallet.example/merchant/getMerchantBalance"]
