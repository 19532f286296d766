"""Orders that are created by a shop and paid by the workers."""

from tests.journeys.client import Answer
from tests.journeys.conftest import Shop
from tests.journeys.orders import withdrawal
from tests.waits import wait_until

CREATE = "createMerchantWithdrawOrder"


def create_order(shop: Shop, order: str) -> int:
    """Ask for a withdrawal. Returns the code of the answer."""
    return shop.client.call(CREATE, **withdrawal(order)).code


def until_paid(shop: Shop, order: Answer) -> None:
    """Wait until the workers have paid; `order` is the answer of its creation."""
    name = {"orderId": order["orderId"], "mcOrderId": order["mcOrderId"]}
    wait_until(lambda: shop.client.do("queryOrder", **name)["txnStatus"] == "2", "the order is paid")
