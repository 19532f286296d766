"""The sandbox's page in the console: each of its plays with its callback, by the merchant's own person."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.sandbox import require_sound
from tests.reporting.finance.conftest import ISSUER
from tests.waits import wait_until

from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.audit.records import Author
from merchant_wallet.base.cells import Databases
from merchant_wallet.processes.base import open_writer
from merchant_wallet.processes.month_reports import MonthReports
from merchant_wallet.reporting import rollup
from merchant_wallet.reporting.finance import signing
from merchant_wallet.sandbox.played_month import play_month

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


@pytest.fixture
def new_shop(shop: Shop, endpoint: Endpoint) -> Shop:
    """A merchant that nobody else plays with."""
    made = shop.platform.open_merchant()
    made.change(deposit_notify_url=endpoint.url)
    made.client.do("getMerchantCustomer", extUserId="alice")
    return made


@pytest.fixture
def mei(new_shop: Shop, people: People) -> ConsoleUser:
    """The merchant's own person."""
    return people.signed_in("merchant", new_shop.merchant_id)


def url_of(shop: Shop) -> str:
    return f"/console/merchants/{shop.merchant_id}/sandbox"


def play(person: ConsoleUser, shop: Shop, name: str, **fields: str) -> str:
    """Play with the form, and read the page that follows."""
    answer = person.post(url_of(shop), {"play": name, **fields})
    return read_text(person.follow(answer).text)


def told(endpoint: Endpoint) -> list[dict[str, Any]]:
    """The callbacks that came."""
    return [json.loads(body) for body, _ in endpoint.told]


def find_hidden(person: ConsoleUser, shop: Shop, name: str) -> str:
    """The value of a hidden field on the page: a transaction or an order that waits."""
    found = re.search(rf'type="hidden" name="{name}" value="([^"]+)"', person.page(url_of(shop)))
    return "" if found is None else found[1]


def wait_for_hidden(person: ConsoleUser, shop: Shop, name: str) -> str:
    wait_until(lambda: find_hidden(person, shop, name) != "", f"a {name} waits")
    return find_hidden(person, shop, name)


SIGNER = CheckpointSigner(bytes(range(32)))
DEPOSIT = {"chainType": "TRC20", "amount": "10", "extUserId": "alice"}


def test_a_held_deposit_is_played_and_released(mei: ConsoleUser, new_shop: Shop, endpoint: Endpoint) -> None:
    assert "screening holds it" in play(mei, new_shop, "held-deposit", **DEPOSIT)
    tx_hash = wait_for_hidden(mei, new_shop, "txHash")
    page = mei.page(url_of(new_shop))
    assert "Held by screening" in read_text(page)
    assert f'data-copy="{tx_hash}"' in page, "two of the same amount are told apart"
    assert told(endpoint) == []
    assert "it is credited now" in play(mei, new_shop, "release-deposit", txHash=tx_hash)
    wait_until(lambda: bool(told(endpoint)), "the callback")
    assert (told(endpoint)[0]["eventType"], told(endpoint)[0]["txHash"]) == ("deposit", tx_hash)
    assert "Held by screening" not in read_text(mei.page(url_of(new_shop)))
    found = "select actor, action from audit_entry where merchant_id = %s order by audit_no desc limit 2"
    who = f"merchant:{mei.name}"
    assert new_shop.platform.rows(found, new_shop.merchant_id) == [
        (who, "sandbox.screening"),
        (who, "sandbox.deposit"),
    ]
    require_sound(new_shop)


def test_a_merchant_without_a_url_for_deposits_is_warned(mei: ConsoleUser, new_shop: Shop) -> None:
    warning = "its deposits have no callbacks"
    assert warning not in mei.page(url_of(new_shop))
    new_shop.change(deposit_notify_url="none")
    assert warning in mei.page(url_of(new_shop))


def test_a_deposit_whose_block_disappears_is_played(
    mei: ConsoleUser, new_shop: Shop, endpoint: Endpoint
) -> None:
    assert "Not final" in play(mei, new_shop, "unconfirmed-deposit", **DEPOSIT)
    tx_hash = find_hidden(mei, new_shop, "txHash")
    status = "select status from deposit where tx_hash = %s"
    wait_until(lambda: new_shop.platform.rows(status, tx_hash) == [("seen",)], "seen")
    assert "Its block is gone" in play(mei, new_shop, "reorganise-deposit", txHash=tx_hash)
    wait_until(lambda: new_shop.platform.rows(status, tx_hash) == [("undone",)], "undone")
    assert told(endpoint) == []
    assert "Its block is gone" not in play(mei, new_shop, "confirm-deposit", txHash=tx_hash)
    wait_until(lambda: [one["txHash"] for one in told(endpoint)] == [tx_hash], "the callback")
    require_sound(new_shop)


def test_a_frozen_order_is_played_and_resumed(
    mei: ConsoleUser, people: People, new_shop: Shop, endpoint: Endpoint
) -> None:
    order = {"chainType": "ERC20", "amount": "25", "notifyUrl": endpoint.url}
    assert "Frozen" in play(mei, new_shop, "frozen-order", **order)
    order_id = find_hidden(mei, new_shop, "orderId")
    assert "Frozen 25.00 USDT" in read_text(mei.page(url_of(new_shop)))
    ann = people.signed_in("operator")
    assert "a test of the sandbox froze it" in read_text(ann.page(f"/console/withdrawals/{order_id}"))
    assert told(endpoint) == []
    play(mei, new_shop, "resume-order", orderId=order_id)
    wait_until(lambda: bool(told(endpoint)), "the callback")
    assert (str(told(endpoint)[0]["orderId"]), told(endpoint)[0]["txnStatus"]) == (order_id, "2")
    assert find_hidden(mei, new_shop, "orderId") == ""
    require_sound(new_shop)


def test_a_played_frozen_order_is_paid_when_an_operator_resumes_it_on_its_own_page(
    mei: ConsoleUser, people: People, new_shop: Shop, endpoint: Endpoint
) -> None:
    play(mei, new_shop, "frozen-order", chainType="ERC20", amount="25", notifyUrl=endpoint.url)
    order_id = find_hidden(mei, new_shop, "orderId")
    people.signed_in("operator").post(f"/console/withdrawals/{order_id}/thaw", {})
    wait_until(lambda: bool(told(endpoint)), "the callback")
    assert (str(told(endpoint)[0]["orderId"]), told(endpoint)[0]["txnStatus"]) == (order_id, "2")


def test_a_months_end_is_played_from_the_page_to_the_invoice(
    mei: ConsoleUser, people: People, new_shop: Shop
) -> None:
    platform, ann, url = new_shop.platform, people.signed_in("operator"), url_of(new_shop)
    base, at_ms = platform.base, platform.clock()
    assert "merchant-wallet finance simulate" in ann.page(url)
    # What the command does.
    author, open_clocked = Author("cli:root", "terminal", at_ms), partial(open_writer, base)
    month, shop_id = platform.operate(
        lambda conn: play_month(conn, base.keyring, author, open_clocked, secret_wait_ms=0)
    )
    platform.operate(lambda conn: rollup.advance_all(conn, at_ms, pause_s=0))
    worker = MonthReports(base)
    platform.run(worker.run_once)
    platform.run(worker._connections.close)
    (link,) = re.findall(rf'href="(/console/finance/months/{month})"', ann.page(url))
    assert "The month is closed." in read_text(ann.follow(ann.post(f"{link}/close")).text)
    platform.operate(lambda conn: signing.close_accepted(Databases(conn), SIGNER.sign_text, ISSUER, at_ms))
    assert "Closed and signed" in read_text(ann.page(link))
    assert "No month waits to be closed" in read_text(ann.page(url))
    assert "finance simulate" not in ann.page(url)
    assert link not in mei.page(url), "a month is of all merchants"
    own = people.signed_in("merchant", shop_id).page("/console/finance/invoices")
    (fees,) = re.findall(r'data-label="Fees">(.*?)</td>', own, re.S)
    assert read_text(f"<body>{fees}</body>") == "3.00 KFB"


def test_what_is_refused_is_said_on_the_page_with_what_was_typed(mei: ConsoleUser, new_shop: Shop) -> None:
    answer = mei.post(url_of(new_shop), {"play": "held-deposit", **DEPOSIT, "amount": "1e9"})
    assert answer.status_code == 422
    assert "amount must be a plain decimal such as 12.5" in read_text(answer.text)
    assert 'value="alice"' in answer.text
    assert mei.post(url_of(new_shop), {"play": "frozen-order", "chainType": "DOGE"}).status_code == 422
    assert mei.post(url_of(new_shop), {"play": "nothing"}).status_code == 400
