"""Endpoints for callbacks in Starlette, FastAPI, Django and Flask: they store before they answer.

Three of them are imported where they are used: they take a second, which each worker that collects the tests
would pay.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import httpx
import pytest
from client.tests.conftest import order_of
from starlette.applications import Starlette

from merchant_wallet_client import MerchantWallet, TxnStatus
from merchant_wallet_client.callbacks import AnyCallback
from merchant_wallet_client.handlers import starlette as for_starlette
from merchant_wallet_client.handlers.receiving import Check
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.testing.answering import FakeCallback

Send = Callable[[str, bytes, Mapping[str, str]], "Got"]
Store = Callable[[AnyCallback], object]


class Got(NamedTuple):
    """An endpoint's answer."""

    status: int
    text: str


class Shop:
    """A shop that stores callbacks, each once. `fails` is raised in place of storing."""

    def __init__(self) -> None:
        self.stored: dict[str, AnyCallback] = {}
        self.asked = 0
        self.fails: Exception | None = None

    def store(self, callback: AnyCallback) -> None:
        self.asked += 1
        if self.fails:
            raise self.fails
        self.stored.setdefault(callback.event_id, callback)


def send_starlette(secret: str, store: Store) -> Send:
    app = Starlette()
    app.add_route("/paid", for_starlette.callback_endpoint(secret, store), methods=["POST"])
    return send_asgi(app)


def send_fastapi(secret: str, store: Store) -> Send:
    from fastapi import FastAPI

    async def store_later(callback: AnyCallback) -> None:
        store(callback)

    app = FastAPI()
    app.add_route("/paid", for_starlette.callback_endpoint(secret, store_later), methods=["POST"])
    return send_asgi(app)


def send_asgi(app: Starlette) -> Send:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    async def ask(method: str, body: bytes, headers: Mapping[str, str]) -> Got:
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            response = await client.request(method, "/paid", content=body, headers=dict(headers))
        return Got(response.status_code, response.text)

    def send(method: str, body: bytes, headers: Mapping[str, str]) -> Got:
        return asyncio.run(ask(method, body, headers))

    return send


def send_django(secret: str, store: Store) -> Send:
    import django
    from django.conf import settings
    from django.test import RequestFactory

    from merchant_wallet_client.handlers import django as for_django

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], DEFAULT_CHARSET="utf-8")
        django.setup()
    view = for_django.callback_view(secret, store)

    def send(method: str, body: bytes, headers: Mapping[str, str]) -> Got:
        kind = headers.get("Content-Type", "application/json")
        request = RequestFactory(headers=dict(headers)).generic(method, "/paid", body, content_type=kind)
        try:
            response = view(request)
        except (OSError, TypeError):
            return Got(500, "")  # Django's own handler answers so.
        return Got(response.status_code, response.content.decode())

    return send


def send_flask(secret: str, store: Store) -> Send:
    from flask import Flask

    from merchant_wallet_client.handlers import flask as for_flask

    app = Flask("shop")
    app.add_url_rule("/paid", view_func=for_flask.callback_view(secret, store), methods=["POST"])

    def send(method: str, body: bytes, headers: Mapping[str, str]) -> Got:
        response = app.test_client().open("/paid", method=method, data=body, headers=dict(headers))
        return Got(response.status_code, response.text)

    return send


FRAMEWORKS = {
    "starlette": send_starlette,
    "fastapi": send_fastapi,
    "django": send_django,
    "flask": send_flask,
}


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture(params=FRAMEWORKS)
def send(request: pytest.FixtureRequest, fake: FakeWallet, shop: Shop) -> Send:
    """Sends a request to the endpoint of a framework."""
    return FRAMEWORKS[request.param](fake.callback_secret, shop.store)


@pytest.fixture
def paid(fake: FakeWallet, wallet: MerchantWallet) -> FakeCallback:
    order = wallet.create_merchant_withdraw_order(**order_of())
    return fake.finish_order(order.order_id, TxnStatus.PAID)


def test_a_callback_is_stored_and_then_accepted(send: Send, shop: Shop, paid: FakeCallback) -> None:
    assert send("POST", paid.body, paid.headers) == (200, "success")
    [stored] = shop.stored.values()
    assert stored.body == paid.body.decode()


def test_a_callback_that_comes_twice_is_accepted_twice(send: Send, shop: Shop, paid: FakeCallback) -> None:
    for _ in range(2):
        assert send("POST", paid.body, paid.headers) == (200, "success")
    assert (shop.asked, len(shop.stored)) == (2, 1)


class AsyncShop:
    """A shop whose `store` is async, as with an async database driver."""

    def __init__(self) -> None:
        self.stored: list[str] = []

    async def __call__(self, callback: AnyCallback) -> None:
        await asyncio.sleep(0)
        self.stored.append(callback.event_id)


@pytest.mark.parametrize("framework", ["starlette", "django", "flask"])
def test_an_async_store_is_never_accepted_unawaited(
    framework: str, fake: FakeWallet, paid: FakeCallback
) -> None:
    """A function that returns a coroutine has stored nothing yet."""
    shop = AsyncShop()
    ask = FRAMEWORKS[framework](fake.callback_secret, lambda callback: shop(callback))
    got = ask("POST", paid.body, paid.headers)
    if framework == "starlette":
        assert (got, len(shop.stored)) == ((200, "success"), 1)
    else:
        assert (got.status, shop.stored) == (500, [])


def test_what_could_not_be_stored_is_not_accepted(send: Send, shop: Shop, paid: FakeCallback) -> None:
    shop.fails = OSError("the disk is full")
    assert send("POST", paid.body, paid.headers).status == 500
    shop.fails = None
    assert send("POST", paid.body, paid.headers) == (200, "success")


def test_a_forged_callback_reaches_nobody(send: Send, shop: Shop, paid: FakeCallback) -> None:
    forged = paid.body.replace(b'"12.5"', b'"99.5"')
    assert send("POST", forged, paid.headers) == (400, "signature\n")
    assert send("POST", b"hello", {}) == (400, "notCallback\n")
    assert shop.asked == 0


def test_a_body_that_is_too_long_and_another_method_are_refused(send: Send, shop: Shop) -> None:
    assert send("POST", b"x" * 65_537, {}).status == 413
    assert send("GET", b"", {}).status == 405
    assert shop.asked == 0


def test_no_repr_has_the_secret() -> None:
    assert "hidden" not in repr(Check("hidden"))
