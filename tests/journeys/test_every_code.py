"""Each code of the table is provoked through HTTP, and none is missing."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.journeys.client import Answer, Number
from tests.journeys.conftest import Platform, Shop, replace_rule
from tests.journeys.orders import ERC20_ADDRESS, credit, debit, exchange, quote, withdrawal

from merchant_wallet.base.codes import CODES
from merchant_wallet.book.commands import QuoteWithdrawal
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.state import Draft

SETTINGS = {"trusted_proxies": (), "exchange_position_limit": 5_000_000_000}

Scenario = Callable[[Shop, pytest.MonkeyPatch], Answer]
SCENARIOS: dict[int, Scenario] = {}


def gives(code: int) -> Callable[[Scenario], Scenario]:
    """Mark the code that a scenario ends with."""

    def keep(scenario: Scenario) -> Scenario:
        assert code not in SCENARIOS
        SCENARIOS[code] = scenario
        return scenario

    return keep


@gives(200)
def succeed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("getMerchantBalance")


@gives(404)
def call_an_unknown_path(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("payInvoice")


@gives(405)
def read_with_get(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.send("/merchant/exchange", None, None, verb="GET")
    assert answer.headers["allow"] == "POST"
    return answer


@gives(413)
def send_too_much(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("getMerchantBalance", filler="x" * 16 * 1024)


@gives(415)
def send_xml(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.send("/merchant/exchange", b"<exchange/>", "application/xml")


@gives(40000)
def send_no_object(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.send("/merchant/exchange", b"[]")


@gives(40001)
def leave_a_field_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("getWithdrawFee", currency="USDT")
    assert "amount" in answer.msg
    return answer


@gives(40002)
def exchange_a_fraction_of_a_cent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("exchange", **exchange("0.001"))
    assert "amount" in answer.msg
    return answer


@gives(40003)
def withdraw_kfb(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", currency="KFB"))
    assert "currency" in answer.msg
    return answer


@gives(40004)
def withdraw_on_another_chain(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", chain="BEP20"))
    assert "chainType" in answer.msg
    return answer


@gives(40005)
def withdraw_to_the_other_chains_address(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", address=ERC20_ADDRESS))
    assert "address" in answer.msg
    return answer


@gives(40006)
def ask_for_callbacks_by_ftp(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", notifyUrl="ftp://example.com"))
    assert "notifyUrl" in answer.msg
    return answer


@gives(40100)
def call_with_an_unknown_key(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("getMerchantBalance", appKey="nobody")


@gives(40101)
def sign_with_a_wrong_secret(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.with_client(secret="0" * 32).call("getMerchantBalance")


@gives(40102)
def call_with_a_clock_an_hour_late(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    late_ms = shop.client.now_ms() - 3_600_000
    return shop.client.call("getMerchantBalance", timestamp=Number(late_ms))


@gives(40103)
def use_a_nonce_twice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.client.do("getMerchantBalance", nonceStr="twice")
    return shop.client.call("getMerchantBalance", nonceStr="twice")


@gives(40104)
def call_from_elsewhere(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.change(networks="192.0.2.0/24")
    return shop.client.call("getMerchantBalance")


@gives(40300)
def call_while_suspended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.suspend()
    return shop.client.call("getMerchantBalance")


@gives(40301)
def call_a_disabled_operation(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.change(disabled_operations="exchange")
    return shop.client.call("exchange", **exchange())


@gives(40302)
def debit_who_has_paused_debits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.user("alice", "100")
    shop.set_controls("alice", paused=True)
    return shop.client.call("transferFromUserToMerchant", **debit("1"))


@gives(40400)
def debit_an_unknown_user(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("transferFromUserToMerchant", **debit("1", ext_user_id="nobody"))


@gives(40401)
def query_an_unknown_order(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("queryOrder", orderId=Number(1), mcOrderId="1")


@gives(40402)
def credit_an_unknown_wallet(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("transferFromMerchantToUser", **credit("1", ERC20_ADDRESS))


@gives(40403)
def withdraw_to_an_address_off_the_list(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.change(allowed_addresses=ERC20_ADDRESS)
    return shop.client.call("createMerchantWithdrawOrder", **withdrawal("1"))


@gives(40900)
def use_an_order_id_for_two_amounts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.client.do("createMerchantWithdrawOrder", **withdrawal("1", "10"))
    return shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", "11"))


@gives(42200)
def withdraw_more_than_there_is(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", "1000.01"))


@gives(42201)
def withdraw_less_than_the_fee(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.change(withdraw_fee_min="10")
    return shop.client.call("createMerchantWithdrawOrder", **withdrawal("1", "10"))


@gives(42202)
def exchange_more_than_the_desk_takes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    answer = shop.client.call("exchange", **exchange("800"))
    assert "position limit" in answer.msg
    return answer


@gives(42203)
def exchange_while_paused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.pause_rate("USDT:KFB")
    return shop.client.call("exchange", **exchange())


@gives(42900)
def call_too_often(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    shop.change(rate_limit="1")
    answers = [shop.client.call("getMerchantBalance") for _ in range(20)]
    refused = [answer for answer in answers if answer.code != 200]
    assert int(refused[0].headers["retry-after"]) == 1
    assert refused[0].headers["ratelimit"].startswith('"requests";r=0;t=')
    assert refused[0].headers["ratelimit-policy"] == '"requests";q=2;w=2'
    return refused[0]


@gives(50000)
def meet_a_fault_of_ours(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    def stumble(draft: Draft, command: QuoteWithdrawal) -> Outcome:
        raise ZeroDivisionError("a secret of the house")

    replace_rule(monkeypatch, QuoteWithdrawal, stumble)
    answer = shop.client.call("getWithdrawFee", **quote())
    assert "secret of the house" not in answer.text
    return answer


@gives(50300)
def call_while_the_database_is_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    async def stay_away(*_: Any) -> Any:
        raise ConnectionLost("connection refused")

    monkeypatch.setattr(PipelineConnection, "run", stay_away)
    return shop.client.call("getMerchantBalance")


@pytest.mark.parametrize("code", sorted(SCENARIOS))
def test_the_code_is_given_with_its_http_status(
    code: int, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SCENARIOS[code](shop, monkeypatch)
    assert answer.code == code, answer.text
    assert answer.status == CODES[code].http_status


def test_no_code_of_the_table_is_without_a_scenario() -> None:
    assert set(SCENARIOS) == set(CODES)


def test_a_fault_of_ours_is_over_once_it_is_mended(shop: Shop, platform: Platform) -> None:
    with pytest.MonkeyPatch.context() as patch:
        meet_a_fault_of_ours(shop, patch)
    shop.client.do("getWithdrawFee", **quote())
