"""The addresses for deposits, and the deposits' states."""

import re

import pytest
from tests.journeys.conftest import Clock, Platform, RunPlatform, Shop
from tests.wallet_site.conftest import Browser, NewBrowser, texts

CLOCK_MS = 1_763_712_000_000


def addresses(page: object) -> list[str]:
    """What a page offers to copy, in order."""
    return re.findall(r'data-copy="([^"]+)"', getattr(page, "text", ""))


def test_both_networks_have_their_address_and_code(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice")
    browser.open(alice["url"])
    page = browser.get("/wallet/receive")
    assert addresses(page) == [alice["tronAddress"], alice["address"]]
    assert page.text.count('<div class="qr" role="img"') == 2
    assert "only on TRON (TRC20)" in texts(page)
    assert "only on Ethereum (ERC20)" in texts(page)
    shown = re.findall(r'<article class="card way"( data-other)?', page.text)
    assert shown == ["", " data-other"]
    other = browser.get("/wallet/receive?network=ERC20")
    assert re.findall(r'<article class="card way"( data-other)?', other.text) == [" data-other", ""]


def test_no_address_is_shown_of_a_network_that_is_not_followed(
    own_platform: RunPlatform, new_browser: NewBrowser
) -> None:
    with own_platform(sandbox=False, trc20_rpc=("http://127.0.0.1:9",)) as platform:
        shop = platform.open_merchant()
        alice = shop.user("alice")
        browser = new_browser(platform)
        browser.open(alice["url"])
        page = browser.get("/wallet/receive?network=ERC20")
        assert addresses(page) == [alice["tronAddress"]]
        assert alice["address"] not in page.text


def test_a_wallet_of_kfb_shows_the_rate_and_one_of_usdt_that_there_is_none(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    browser.open(platform.open_merchant().user("alice")["url"])
    said = texts(browser.get("/wallet/receive"))
    assert "You get KFB: 1 USDT is 7.1 KFB now." in said
    assert "At least 1.00 USDT" in said
    plain = platform.open_merchant(currency_mode="USDT")
    other_browser.open(plain.user("alice")["url"])
    said = texts(other_browser.get("/wallet/receive"))
    assert "You get the USDT that was sent." in said
    assert "KFB" not in said


@pytest.mark.parametrize("why", ["paused", "too old"])
def test_without_a_rate_in_force_the_page_says_that_deposits_wait(
    platform: Platform, clock: Clock, browser: Browser, why: str
) -> None:
    shop = platform.open_merchant()
    shop.set_rate("USDT:KFB", "7", max_age_ms=1 if why == "too old" else None)
    if why == "paused":
        shop.pause_rate("USDT:KFB")
    else:
        clock.advance(2)
    browser.open(shop.user("alice")["url"])
    said = texts(browser.get("/wallet/receive"))
    assert "deposits wait" in said
    assert "7 KFB" not in said


def test_the_merchants_own_rate_is_the_one_shown(platform: Platform, browser: Browser) -> None:
    shop = platform.open_merchant()
    shop.set_rate("USDT:KFB", "6.95")
    browser.open(shop.user("alice")["url"])
    assert "1 USDT is 6.95 KFB now" in texts(browser.get("/wallet/receive"))
