"""A real service for the tests of the clients: `merchant-wallet up` with one merchant, rates and funds."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from demo.deployment import Deployment, find_installed_program
from tests.ports import find_port

SHOP = "Shop"
PREFIX = "MERCHANT_WALLET_"
TEST_PREFIX = "MERCHANT_WALLET_TEST_"


class Account(NamedTuple):
    """What a merchant has of the service, as environment of a client's tests and examples."""

    base_url: str
    app_key: str
    secret: str
    callback_secret: str
    callback_port: int

    def environment(self, prefix: str) -> dict[str, str]:
        """The names that all clients know: for examples with `PREFIX`, for their tests with `TEST_PREFIX`."""
        return {
            f"{prefix}URL": self.base_url,
            f"{prefix}APP_KEY": self.app_key,
            f"{prefix}SECRET": self.secret,
            f"{prefix}CALLBACK_SECRET": self.callback_secret,
            f"{prefix}CALLBACK_PORT": str(self.callback_port),
        }


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """One merchant with 100,000 of each currency.

    A transfer costs 1 %, a withdrawal 0.5 % and at least 1 USDT.

    The service starts once for all clients, so each test uses order ids and sub-users of its own.
    """
    deployment = Deployment(find_installed_program())
    deployment.set({"WALLET_SANDBOX_CONFIRM_MS": "100"})
    try:
        yield _open_account(deployment)
    finally:
        deployment.stop()


def _open_account(deployment: Deployment) -> Account:
    base_url = deployment.start(0, lambda _: None)
    port = find_port()
    told = json.loads(deployment.run("merchant", "create", SHOP, "--json"))
    fees = ("--transfer-fee-rate", "0.01", "--withdraw-fee-rate", "0.005", "--withdraw-fee-min", "1")
    notified = ("--deposit-notify-url", f"http://127.0.0.1:{port}/callbacks")
    deployment.run("merchant", "set", SHOP, *fees, *notified)
    deployment.run("rates", "set", "USDT:KFB", "7.10")
    deployment.run("rates", "set", "KFB:USDT", "0.14")
    for currency in ("USDT", "KFB"):
        deployment.run("book", "credit", SHOP, currency, "100000", "--reason", "opening funds")
    return Account(base_url, told["appKey"], told["appSecret"], told["callbackSecret"], port)
