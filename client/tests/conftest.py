"""A fake service and both clients. A test that asks for `call` runs with each of them."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import pytest
from client.tests.certificates import certificates_are_read_once

from merchant_wallet_client import AsyncMerchantWallet, MerchantWallet, Retries
from merchant_wallet_client.testing import FakeWallet

__all__ = ["certificates_are_read_once"]

AT_ONCE: Final = Retries(first_wait_s=0)
Caller = Callable[..., Any]
TRON_ADDRESS: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


@pytest.fixture
def fake() -> Iterator[FakeWallet]:
    """A fake service whose merchant has 1,000 USDT and 1,000 KFB."""
    with FakeWallet() as service:
        service.credit("USDT", 1000)
        service.credit("KFB", 1000)
        yield service


@pytest.fixture
def wallet(fake: FakeWallet) -> Iterator[MerchantWallet]:
    """A client that does not wait between attempts."""
    with MerchantWallet(fake.base_url, fake.app_key, fake.secret, retries=AT_ONCE) as made:
        yield made


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, fake: FakeWallet) -> Caller:
    """Call a method of a client by its name. `with_options` are options of the client."""
    keys = (fake.base_url, fake.app_key, fake.secret)

    def call_sync(method: str, *values: Any, with_options: Any = None, **named: Any) -> Any:
        with MerchantWallet(*keys, **{"retries": AT_ONCE, **(with_options or {})}) as client:
            return getattr(client, method)(*values, **named)

    def call_async(method: str, *values: Any, with_options: Any = None, **named: Any) -> Any:
        async def run() -> Any:
            async with AsyncMerchantWallet(*keys, **{"retries": AT_ONCE, **(with_options or {})}) as client:
                came = getattr(client, method)(*values, **named)
                return await came if inspect.isawaitable(came) else came

        return asyncio.run(run())

    return call_sync if request.param == "sync" else call_async


def order_of(mc_order_id: str = "10001", amount: str = "12.50", **changed: Any) -> dict[str, Any]:
    """The arguments of a withdrawal."""
    return {
        "amount": Decimal(amount),
        "chain_type": "TRC20",
        "mc_order_id": mc_order_id,
        "address": TRON_ADDRESS,
        "notify_url": "https://shop.example/paid",
        **changed,
    }
