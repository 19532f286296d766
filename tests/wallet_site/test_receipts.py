"""A receipt of one movement can be shared: its link shows that movement, and opens nothing else."""

import re

import pytest
from tests.journeys.conftest import Platform, Shop
from tests.wallet_site.conftest import Browser, texts
from tests.wallet_site.test_home import entries

from merchant_wallet.sub_users import pins
from merchant_wallet.sub_users.receipts import RECEIPT_KEY, RECEIPT_LIFETIME_MS, make_receipt_token

PAY = "transferFromUserToMerchant"


def share(browser: Browser, entry_id: int) -> str:
    """The link to a receipt that the owner of a wallet gets from its page."""
    found = re.search(r'href="(/w/receipt/[^"]+)"', browser.get(f"/wallet/activity/{entry_id}").text)
    assert found is not None
    return found[1]


def test_a_strangers_browser_sees_what_was_paid_and_nothing_else_of_the_wallet(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice-7", "100")
    shop.client.do(PAY, mcOrderId="cup-7", amount="30", extUserId="alice-7", currency="KFB")
    newest = entries(browser.open(alice["url"]))[0]
    page = other_browser.get(share(browser, newest))
    said = texts(page)
    assert page.status_code == 200
    for told in ("Receipt", "Payment to Harbour Tea", "30.00 KFB", "Order cup-7", str(newest)):
        assert told in said
    for hidden in ("70.00", "Balance", "alice", "/wallet", str(alice["userId"]), alice["address"]):
        assert hidden not in re.sub(r'"/static/[^"]*"', "", page.text)
    assert "set-cookie" not in page.headers
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-robots-tag"] == "noindex"
    assert other_browser.get("/wallet").status_code == 403


def test_a_receipt_does_not_say_whether_another_entry_or_wallet_exists(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop = platform.open_merchant()
    alice = shop.user("alice", "5")
    bob = entries(other_browser.open(shop.user("bob", "3")["url"]))[0]
    mine = entries(browser.open(alice["url"]))[0]
    key = platform.base.keyring.derive(RECEIPT_KEY)
    at_ms = platform.clock()
    user = int(alice["userId"])
    wrong = [
        make_receipt_token(key, shop.merchant_id, user, bob, at_ms),
        make_receipt_token(key, shop.merchant_id, 999_999, mine, at_ms),
        make_receipt_token(key, 999_999, user, mine, at_ms),
        "x" * 80,
    ]
    answers = [other_browser.get(f"/w/receipt/{token}") for token in wrong]
    assert {answer.status_code for answer in answers} == {404}
    assert len({texts(answer) for answer in answers}) == 1
    late = make_receipt_token(key, shop.merchant_id, user, mine, at_ms - RECEIPT_LIFETIME_MS)
    assert other_browser.get(f"/w/receipt/{late}").status_code == 410


def test_a_reset_of_the_pin_takes_shared_receipts_back(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "5")
    link = share(browser, entries(browser.open(alice["url"]))[0])
    assert browser.get(link).status_code == 200
    shop.platform.operate(lambda conn: pins.reset(conn, shop.merchant_id, "alice", shop.platform.clock))
    assert browser.get(link).status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_receipt_speaks_the_language_of_its_reader(language: str, shop: Shop, browser: Browser) -> None:
    link = share(browser, entries(browser.open(shop.user("alice", "5")["url"]))[0])
    said = texts(browser.get(link, accept_language=language))
    assert ("平台入账" in said) is (language == "zh-CN")


def test_a_receipts_link_is_not_in_the_log(shop: Shop) -> None:
    from merchant_wallet.observability.logs import hide_link

    assert hide_link("/w/receipt/AQAAA") == "/w/\u2026"
