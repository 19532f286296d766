"""Payout rules as a merchant sees them in a sandbox: an order waits in 1, and then goes on or is refunded."""

from collections.abc import Iterator

import pytest
from tests.journeys.client import Answer
from tests.journeys.conftest import Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import withdrawal
from tests.journeys.sandbox import act, query, require_sound, wait_for
from tests.waits import wait_until

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}
CREATE = "createMerchantWithdrawOrder"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


def state_of(shop: Shop, order: Answer) -> str:
    """The state of an order's screening."""
    rows = shop.platform.rows("select state from screening where order_id = %s", int(order["orderId"]))
    return rows[0][0] if rows else "none"


def hold(shop: Shop, endpoint: Endpoint) -> Answer:
    """An order that the merchant's rules hold."""
    shop.change(payout_limit_count="0")
    order = shop.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
    wait_until(lambda: state_of(shop, order) == "held", "it is held")
    assert query(shop, order)["txnStatus"] == "1"
    assert endpoint.statuses(order) == []
    return order


def test_an_order_that_a_rule_holds_is_paid_when_it_is_released(shop: Shop, endpoint: Endpoint) -> None:
    order = hold(shop, endpoint)
    act(shop, "advance", orderId=order["orderId"])
    assert (query(shop, order)["txnStatus"], state_of(shop, order)) == ("2", "released")
    wait_until(lambda: endpoint.statuses(order) == ["2"], "the usual callback")
    require_sound(shop)


def test_an_order_that_a_rule_holds_is_refunded_when_it_is_refused(shop: Shop, endpoint: Endpoint) -> None:
    before = shop.balances()
    order = hold(shop, endpoint)
    act(shop, "fail", orderId=order["orderId"])
    assert (query(shop, order)["txnStatus"], state_of(shop, order)) == ("6", "refused")
    wait_until(lambda: endpoint.statuses(order) == ["3", "6"], "the usual callbacks")
    assert shop.balances() == before
    require_sound(shop)


def test_outside_the_hours_an_order_waits_and_goes_on_when_they_begin(shop: Shop) -> None:
    # No minute of any day is within these hours, but for one of a Sunday's night.
    shop.change(payout_hours="Sun 03:17-03:18 Pacific/Kiritimati")
    order = shop.client.do(CREATE, **withdrawal("1"))
    wait_until(lambda: state_of(shop, order) == "open", "it waits")
    assert query(shop, order)["txnStatus"] == "1"
    shop.change(payout_hours="none")
    shop.platform.rows("update payout set claimed_until_ms = 0 where order_id = %s", int(order["orderId"]))
    wait_for(shop, order, "2")
