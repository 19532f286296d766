"""Answers of a running service are what the document says: every operation, and every code."""

import json
from typing import Any

import httpx
import pytest
from tests.journeys import test_every_code
from tests.journeys.client import Answer, Client, write_json
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import all_fields
from tests.openapi.schemas import answer_schema, document, find_errors, request_schema

from merchant_wallet.api.reference.refusals import REFUSALS, show_refusal
from merchant_wallet.base.codes import CODES, SUCCESS, TOO_MANY_REQUESTS
from merchant_wallet.merchants.records import OPERATIONS

SETTINGS = test_every_code.SETTINGS
OWN_VALUES = (40101, 40102, TOO_MANY_REQUESTS)
"""Examples whose texts have a time, a nonce or a limit of their own."""

Call = tuple[str, Answer]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every request of the test's clients: its path and its answer."""
    kept: list[Call] = []
    send = Client.send

    def send_and_keep(self: Client, path: str, *told: Any, **named: Any) -> Answer:
        answer = send(self, path, *told, **named)
        kept.append((path, answer))
        return answer

    monkeypatch.setattr(Client, "send", send_and_keep)
    return kept


def judge(path: str, answer: Answer) -> list[str]:
    """What the document does not say of an answer."""
    known = path if path in document()["paths"] else "/merchant/exchange"
    return find_errors(answer_schema(known, answer.status), json.loads(answer.text))


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_the_answers_of_every_operation_are_what_the_document_says(
    shop: Shop, calls: list[Call], encoding: str
) -> None:
    shop.user("alice", "100")
    ready = all_fields(shop.client)
    client = shop.with_client(encoding=encoding)
    for operation in OPERATIONS:
        fields = ready[operation]
        assert client.call(operation, **fields).code == SUCCESS
        body = json.loads(write_json({**client.common(), **fields, "sign": "0" * 32}))
        assert find_errors(request_schema(operation), body) == []
    assert {path for path, _ in calls} == {f"/merchant/{operation}" for operation in OPERATIONS}
    assert [(path, wrong) for path, answer in calls if (wrong := judge(path, answer))] == []


@pytest.mark.parametrize("code", sorted(test_every_code.SCENARIOS))
def test_every_code_comes_as_the_document_says(
    code: int, shop: Shop, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        answer = test_every_code.SCENARIOS[code](shop, patch)
    assert answer.code == code
    assert [(path, wrong) for path, sent in calls if (wrong := judge(path, sent))] == []
    if code in REFUSALS and code not in OWN_VALUES:
        assert json.loads(answer.text) == show_refusal(code)
    headers = document()["components"]["headers"]
    assert set(headers) == {"RequestId", "RetryAfter", "Allow"}
    assert answer.headers["x-request-id"]
    described = document()["components"]["responses"].get(_name(code), {}).get("headers", {})
    assert {name.lower() for name in described} <= set(answer.headers)


def _name(code: int) -> str:
    return "".join(word.capitalize() for word in CODES[code].name.split("_"))


def test_an_answer_that_is_not_described_would_be_found(shop: Shop) -> None:
    answer = shop.client.call("getMerchantBalance")
    assert judge("/merchant/getMerchantBalance", answer) == []
    assert judge("/merchant/queryOrder", answer) != []


def test_the_document_is_served_to_anybody_and_names_this_service(platform: Platform) -> None:
    served = httpx.get(f"{platform.address}/openapi.json")
    assert served.status_code == 200
    assert served.headers["content-type"] == "application/json"
    told = served.json()
    assert told["servers"] == [{"url": platform.address}]
    chain = told["components"]["schemas"]["CreateMerchantWithdrawOrderRequest"]["properties"]["chainType"]
    assert chain["enum"] == ["ERC20", "TRC20"]
    assert list(told["paths"]) == list(document()["paths"])
