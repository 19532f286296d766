"""A running platform, and an HTTP client that opens wallets on it as a browser does."""

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import httpx
import pytest
from tests.journeys.conftest import Platform, Shop, clock, own_platform, platform, shop

from merchant_wallet.base.addresses import parse_wallet_address

__all__ = ["clock", "own_platform", "platform", "shop"]


@dataclass
class Browser:
    """Sends requests as a browser does: with cookies. It follows no redirect by itself."""

    client: httpx.Client

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Request a page. In header names `_` stands for `-`."""
        return self.client.get(path, headers=_make_headers(headers))

    def part(self, path: str) -> httpx.Response:
        """Request a part of a page, as htmx does."""
        return self.get(path, hx_request="true")

    def open(self, url: str, **headers: str) -> httpx.Response:
        """Follow a link to a wallet, and the redirect to its page."""
        answer = self.get(path_of(url), **headers)
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["location"])

    def send(self, path: str, page: str = "/wallet", /, **fields: str) -> httpx.Response:
        """Send the form of a page, with its CSRF token."""
        return self.post(path, {"csrf": read_csrf(self.get(page)), **fields})

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send any form."""
        return self.client.post(path, data=fields, headers=_make_headers(headers))


def _make_headers(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}


def path_of(url: str) -> str:
    """The path of a link."""
    return httpx.URL(url).path


def read_csrf(page: httpx.Response) -> str:
    """The page's CSRF token."""
    found = re.search(r'<meta name="csrf" content="([0-9a-f]+)">', page.text)
    assert found is not None, page.text
    return found[1]


def texts(page: httpx.Response) -> str:
    """A page's text without its tags, with single spaces."""
    body = re.sub(r"(?s)<(head|script|svg)\b.*?</\1>", " ", page.text)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


NewBrowser = Callable[..., Browser]


@pytest.fixture
def new_browser(platform: Platform) -> Iterator[NewBrowser]:
    """Makes browsers without cookies, for this platform or another. In header names `_` stands for `-`."""
    clients: list[httpx.Client] = []

    def make(at: Platform = platform, **headers: str) -> Browser:
        heads = {"accept-language": "en", **_make_headers(headers)}
        clients.append(httpx.Client(base_url=at.address, headers=heads, verify=False, timeout=60))
        return Browser(clients[-1])

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def browser(new_browser: NewBrowser) -> Browser:
    """A browser without cookies."""
    return new_browser()


@pytest.fixture
def other_browser(new_browser: NewBrowser) -> Browser:
    """Another person's browser."""
    return new_browser()


def let_arrive(shop: Shop, address: str, amount_units: int, status: str = "seen", **values: Any) -> str:
    """Insert a deposit, as the watcher does. Returns its transaction hash."""
    family, raw = parse_wallet_address(address)
    chain = family.key_name
    found = shop.platform.rows(
        "select user_id from wallet_address where merchant_id = %s and address = %s", shop.merchant_id, raw
    )
    tx_hash = secrets.token_hex(32)
    at_ms = shop.platform.clock()
    shop.platform.rows(
        "insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms)"
        " values (%s, 90, 'f', 111, 'h', %s) on conflict do nothing",
        chain,
        at_ms,
    )
    shop.platform.rows(
        "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
        " address, user_id, amount, status, seen_ms, final_ms, cause)"
        " values (%s, %s, %s, 0, 100, 'b', %s, %s, %s, %s, %s, %s, %s, %s)",
        shop.merchant_id,
        chain,
        tx_hash,
        bytes(20),
        raw,
        found[0][0],
        amount_units,
        status,
        values.get("seen_ms", at_ms),
        None if status in ("seen", "undone") else at_ms,
        values.get("cause"),
    )
    return tx_hash
