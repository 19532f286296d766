"""The first visit is small: everything that a phone loads before it shows the wallet."""

import re

from tests.journeys.conftest import Shop
from tests.wallet_site.conftest import Browser, path_of

MAX_BYTES = 60_000


def received_bytes(browser: Browser, path: str) -> tuple[int, str]:
    """The size of an answer as transferred, with headers, and its text."""
    with browser.client.stream("GET", path, headers={"accept-encoding": "gzip"}) as stream:
        head = sum(len(name) + len(value) + 4 for name, value in stream.headers.raw)
        stream.read()
        return head + stream.num_bytes_downloaded, stream.text


def test_a_first_visit_loads_less_than_60_kb_and_nothing_from_elsewhere(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100000")
    for count in range(25):
        shop.client.do(
            "transferFromUserToMerchant",
            mcOrderId=f"order-{count:014}",
            amount=f"{count + 100}.123456",
            extUserId="alice",
            currency="KFB",
        )
    opened, _ = received_bytes(browser, path_of(alice["url"]))
    page, text = received_bytes(browser, "/wallet")
    assert text.count("data-entry=") == 20
    loaded = sorted(set(re.findall(r'(?:src|href)="(/static/[^"#]+)', text)))
    parts = {path: received_bytes(browser, path)[0] for path in loaded}
    told = "\n".join(f"{size:7} {path}" for path, size in {"/w/…": opened, "/wallet": page, **parts}.items())
    assert opened + page + sum(parts.values()) < MAX_BYTES, told
    assert not re.findall(r'(?:src|href|action)="(?!/|#)', text)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)
    assert "uPlot" not in text
