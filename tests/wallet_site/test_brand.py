"""A wallet wears its merchant's colour and logo, and can be kept on a phone's start screen."""

import io
import json
import re

import pytest
from PIL import Image
from tests.journeys.conftest import Clock, Platform, Shop
from tests.merchants.test_brand import draw
from tests.wallet_site.conftest import Browser, path_of, texts
from tests.wallet_site.test_home import entries
from tests.wallet_site.test_receipts import share

from merchant_wallet.merchants import brand
from merchant_wallet.sub_users.links import LINK_LIFETIME_MS

CLOCK_MS = 1_763_712_000_000
CUSTOMER_URL = "https://shop.example/wallet"


def dress(platform: Platform, shop: Shop) -> str:
    """Give a shop a colour, a logo and a page of its own. Returns the logo's digest."""
    digest = platform.operate(
        lambda conn: brand.add_logo(
            conn, shop.merchant_id, brand.encode_logo(draw()), actor="cli:ann", at_ms=platform.clock()
        )
    )
    shop.change(brand_colour="#8a1538", brand_logo=digest, customer_url=CUSTOMER_URL)
    return str(digest)


def test_pages_and_receipts_wear_the_merchants_colour_and_logo(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice", "5")
    page = browser.open(alice["url"])
    assert "/wallet/brand/" not in page.text
    digest = dress(platform, shop)
    page = browser.get("/wallet")
    receipt = other_browser.get(share(browser, entries(page)[0]))
    for shown in (page, receipt):
        assert f'<img class="mark-logo" src="/wallet/brand/{digest}.png" alt="">' in shown.text
        assert 'href="/wallet/brand/8a1538.css"' in shown.text
    styles = other_browser.get("/wallet/brand/8a1538.css")
    assert styles.headers["content-type"].startswith("text/css")
    assert "--accent:#8a1538;" in styles.text
    logo = other_browser.get(f"/wallet/brand/{digest}.png")
    assert (logo.status_code, logo.headers["content-type"]) == (200, "image/png")
    assert logo.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert logo.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["red.css", "8A1538.css", "8a153.css", "8a1538;}.css", f"{'0' * 64}.png", "x.png", f"{'0' * 64}/192.png"],
)
def test_other_files_do_not_exist(path: str, browser: Browser) -> None:
    assert browser.get(f"/wallet/brand/{path}").status_code == 404


def test_the_manifest_names_the_merchant_and_no_wallet(platform: Platform, browser: Browser) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice", "5")
    assert browser.get("/wallet/manifest.webmanifest").status_code == 403
    page = browser.open(alice["url"])
    digest = dress(platform, shop)
    assert 'rel="manifest" href="/wallet/manifest.webmanifest" crossorigin="use-credentials"' in page.text
    answer = browser.get("/wallet/manifest.webmanifest")
    assert answer.headers["content-type"].startswith("application/manifest+json")
    assert answer.headers["cache-control"] == "no-store"
    manifest = json.loads(answer.text)
    assert (manifest["name"], manifest["display"], manifest["scope"]) == (
        "Harbour Tea",
        "standalone",
        "/wallet",
    )
    assert manifest["start_url"].startswith("/wallet/start/")
    token = path_of(alice["url"]).removeprefix("/w/")
    assert token not in answer.text
    assert str(alice["userId"]) not in answer.text
    icon = next(one for one in manifest["icons"] if one["sizes"] == "512x512")
    assert digest in icon["src"]
    with Image.open(io.BytesIO(browser.get(icon["src"]).content)) as drawn:
        assert drawn.size == (512, 512)
    assert "serviceWorker" not in page.text


def test_the_icon_leads_to_the_open_wallet_and_later_to_the_merchant(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    browser.open(shop.user("alice", "5")["url"])
    dress(platform, shop)
    start = json.loads(browser.get("/wallet/manifest.webmanifest").text)["start_url"]
    opened = browser.get(start)
    assert (opened.status_code, opened.headers["location"]) == (303, "/wallet")
    platform.rows("delete from wallet_session where merchant_id = %s", shop.merchant_id)
    for page in (browser.get(start), browser.get("/wallet"), other_browser.get(start)):
        assert page.status_code == 403
        assert "Go to Harbour Tea" in texts(page)
        assert f'href="{CUSTOMER_URL}"' in page.text
    assert "Harbour Tea" not in texts(other_browser.get("/wallet"))
    assert other_browser.get(f"{start[:-1]}{'A' if start[-1] != 'A' else 'Q'}").status_code == 404


def test_an_expired_link_leads_to_the_merchant(platform: Platform, browser: Browser, clock: Clock) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    dress(platform, shop)
    url = path_of(shop.user("alice")["url"])
    clock.advance(LINK_LIFETIME_MS)
    page = browser.get(url)
    assert page.status_code == 410
    assert f'href="{CUSTOMER_URL}"' in page.text
    assert "Go to" not in texts(browser.get("/w/unknown"))


def test_signing_out_forgets_the_merchant_too(platform: Platform, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    dress(platform, shop)
    browser.send("/wallet/leave")
    assert not re.search("Go to", texts(browser.get("/wallet")))
