"""A real service for the tests of the clients: over HTTP, with workers, one merchant, rates and funds."""

from typing import NamedTuple

import pytest
from tests.journeys.conftest import Platform, clock, platform
from tests.ports import find_port

__all__ = ["clock", "platform"]

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
def account(platform: Platform) -> Account:
    """One merchant with 100,000 of each currency.

    A transfer costs 1 %, a withdrawal 0.5 % and at least 1 USDT.

    The service starts once for all clients, so each test uses order ids and sub-users of its own.
    """
    port = find_port()
    shop = platform.open_merchant(
        transfer_fee_rate="0.01",
        withdraw_fee_rate="0.005",
        withdraw_fee_min="1",
        deposit_notify_url=f"http://127.0.0.1:{port}/callbacks",
    )
    for currency in ("USDT", "KFB"):
        shop.fund(currency, "100000")
    url = f"http://127.0.0.1:{platform.port}"
    return Account(url, shop.client.app_key, shop.client.secret, shop.callback_secret, port)
