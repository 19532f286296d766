"""The control actions are what the document says: fields, texts, and the answers of a running service."""

import json
from typing import Any

import pytest
from tests.journeys.client import Answer, Client
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal
from tests.journeys.sandbox import act
from tests.openapi.described import CONTEXT, ReadFields
from tests.openapi.schemas import answer_schema, document, find_errors
from tests.rows import each_row
from tests.waits import wait_until

from merchant_wallet.api.reference.openapi import build_document
from merchant_wallet.api.reference.sandbox_controls import CONTROLS, EXAMPLES, LISTEN
from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.sandbox.recipients import PROCESSING
from merchant_wallet.sandbox.actions import ACTIONS
from merchant_wallet.sandbox.listening import FIELDS, NAME, SUMMARY

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}


def test_every_action_is_described_with_its_fields_in_the_words_of_the_guide() -> None:
    described = {
        control.name: (control.text, tuple((field.name, field.meaning) for field in control.request))
        for control in CONTROLS
    }
    assert described == {action.name: (action.summary, action.fields) for action in ACTIONS} | {
        NAME: (SUMMARY, FIELDS)
    }


@each_row("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_reads_the_fields_that_are_described(action: Any) -> None:
    control = next(control for control in CONTROLS if control.name == action.name)
    fields = ReadFields({name: str(value) for name, value in EXAMPLES[action.name].items()})
    action.read(fields, CONTEXT)
    assert set(fields.read) == {field.name for field in control.request}


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_an_example_is_what_the_schema_says(control: Any) -> None:
    body = document()["paths"][control.path]["post"]["requestBody"]["content"]["application/json"]
    assert find_errors(body["schema"], body["example"]) == []


def test_a_live_service_describes_none_of_them() -> None:
    live = build_document(sandbox=False)
    assert not any(path.startswith("/sandbox/") for path in live["paths"])
    assert "Sandbox" not in [tag["name"] for tag in live["tags"]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Answer]]:
    """Every request of the test's clients: its path and its answer."""
    kept: list[tuple[str, Answer]] = []
    send = Client.send

    def send_and_keep(self: Client, path: str, *told: Any, **named: Any) -> Answer:
        answer = send(self, path, *told, **named)
        kept.append((path, answer))
        return answer

    monkeypatch.setattr(Client, "send", send_and_keep)
    return kept


def test_the_answers_of_every_action_are_what_the_document_says(
    shop: Shop, platform: Platform, calls: list[tuple[str, Answer]]
) -> None:
    shop.user("alice")
    act(shop, "fund", currency="USDT", amount="1000", mcOrderId="tap-1")
    act(shop, "fund", currency="KFB", amount="5", extUserId="alice")
    act(shop, "deposit", chainType="ERC20", extUserId="alice", amount="25")
    manual = act(shop, "deposit", chainType="TRC20", extUserId="alice", amount="25", finality="manual")
    act(shop, "reorganise", txHash=manual["txHash"])
    act(shop, "confirm", txHash=manual["txHash"])
    held = act(shop, "deposit", chainType="TRC20", extUserId="alice", amount="25", screening="hold")
    wait_until(lambda: shop.platform.rows("select 1 from screening where state = 'held'") == [(1,)], "held")
    act(shop, "release", txHash=held["txHash"])
    for action, last in (("freeze", "1"), ("advance", "2"), ("fail", "6")):
        # It stays in 1. An order to any other address could be paid before the action comes.
        wanted = withdrawal(f"to-{last}", address=format_address("TRC20", PROCESSING))
        order = shop.client.do("createMerchantWithdrawOrder", **wanted)
        act(shop, action, orderId=order["orderId"])
    event = f"evt_{order['orderId']}_3"
    act(shop, "resendCallback", event=event)
    act(shop, "acceptCallback", event=event)
    asked = {path for path, _ in calls if path.startswith("/sandbox/")}
    assert asked == {control.path for control in CONTROLS if control.name != LISTEN}
    wrong = {
        path: told
        for path, answer in calls
        if (told := find_errors(answer_schema(path, answer.status), json.loads(answer.text)))
    }
    assert wrong == {}
    refused = shop.client.post("/sandbox/fund", {"appKey": "nobody"})
    assert find_errors(answer_schema("/sandbox/fund", refused.status), json.loads(refused.text)) == []
