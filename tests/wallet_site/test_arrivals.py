"""Money that arrives is said where the sub-user waits for it, once, with or without scripts."""

import re

import pytest
from tests.journeys.conftest import Shop
from tests.wallet_site.conftest import Browser, texts

PAY, TOP_UP = "transferFromUserToMerchant", "transferFromMerchantToUser"


def pay_in(shop: Shop, address: str, amount: str) -> None:
    """The shop pays the sub-user."""
    shop.client.do(TOP_UP, mcOrderId=shop.next_order(), amount=amount, address=address, currency="KFB")


def next_question(page: object) -> str:
    """The URL that an open page asks next."""
    found = re.search(r'name="after" value="(\d+)"', str(getattr(page, "text", page)))
    assert found is not None
    return f"/wallet/arrivals?after={found[1]}"


def test_each_arrival_is_said_once_with_its_amount(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100")
    browser.open(alice["url"])
    page = browser.get("/wallet/receive")
    assert "arrived" not in texts(page)
    pay_in(shop, alice["address"], "177.5")
    shop.client.do(PAY, mcOrderId="c1", amount="30", extUserId="alice", currency="KFB")
    first = browser.part(next_question(page))
    assert "177.50 KFB arrived" in texts(first)
    assert "30.00" not in texts(first)
    assert "<html" not in first.text
    again = browser.part(next_question(first))
    assert texts(again) == ""
    pay_in(shop, alice["address"], "2")
    second = texts(browser.part(next_question(again)))
    assert "2.00 KFB arrived" in second
    assert "177.50" not in second


def test_without_scripts_a_link_looks_for_new_money(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100")
    browser.open(alice["url"])
    found = re.search(r'href="(/wallet/receive\?[^"]*after=\d+)"', browser.get("/wallet/receive").text)
    assert found is not None
    link = found[1].replace("&amp;", "&")
    assert "arrived" not in texts(browser.get(link))
    pay_in(shop, alice["address"], "177.5")
    for _ in range(2):
        assert "177.50 KFB arrived" in texts(browser.get(link))


@pytest.mark.parametrize("after", ["", "x", "-1", "9" * 40])
def test_an_invalid_entry_is_no_fault(after: str, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice", "1")["url"])
    answer = browser.client.get("/wallet/arrivals", params={"after": after})
    assert (answer.status_code, "arrived" in texts(answer)) == (200, False)
