"""Callbacks of a running service: its workers look up the merchant's endpoint and deliver every event."""

import base64
import hmac
import json
from collections.abc import Iterator

import pytest
from tests.journeys.client import Answer
from tests.journeys.conftest import Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import FAILING, withdrawal
from tests.waits import wait_until

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}
CREATE = "createMerchantWithdrawOrder"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


def query(shop: Shop, order: Answer) -> Answer:
    return shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId=str(order["mcOrderId"]))


def test_a_paid_order_has_a_callback_and_the_query_shows_its_time(shop: Shop, endpoint: Endpoint) -> None:
    order = shop.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
    wait_until(lambda: query(shop, order)["notifyTime"] is not None, "a callback was delivered")
    paid = query(shop, order)
    assert paid["txnStatus"] == "2"
    assert paid["notifyTime"] >= paid["createTime"]
    assert endpoint.statuses(order) == ["2"]


def test_a_failed_order_has_two_callbacks_in_order(shop: Shop, endpoint: Endpoint) -> None:
    fields = withdrawal("1", chain="ERC20", address=FAILING["ERC20"], notifyUrl=endpoint.url)
    order = shop.client.do(CREATE, **fields)
    wait_until(lambda: len(endpoint.statuses(order)) == 2, "both callbacks came")
    assert endpoint.statuses(order) == ["3", "6"]


def test_a_merchant_can_verify_both_signatures(shop: Shop, endpoint: Endpoint) -> None:
    shop.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
    wait_until(lambda: bool(endpoint.told), "a callback came")
    body, headers = endpoint.told[0]
    fields = json.loads(body)
    lines = [
        f"{name}={fields[name]}" for name in sorted(fields) if name != "sign" and fields[name] is not None
    ]
    signed = "\n".join(["callback", *lines]).encode()
    assert fields["sign"] == hmac.new(shop.client.secret.encode(), signed, "sha256").hexdigest()[:32]
    known = {name.lower(): text for name, text in headers.items()}
    content = b"%s.%s.%s" % (known["webhook-id"].encode(), known["webhook-timestamp"].encode(), body)
    digest = hmac.new(base64.b64decode(shop.callback_secret), content, "sha256").digest()
    assert known["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert known["webhook-id"] == fields["eventId"]
