"""A sub-user's statement of a month and its receipts can be kept as PDF, and say the same as the pages."""

import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.held_builder import held_builder
from tests.journeys.conftest import Clock, Platform, Shop
from tests.late_modules import pypdf
from tests.waits import wait_until
from tests.wallet_site.conftest import Browser, NewBrowser, texts
from tests.wallet_site.test_home import entries
from tests.wallet_site.test_receipts import share

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.wallet_site.statements import list_months
from merchant_wallet.web.pdf.download import MAX_OF_ONE

PAY, TOP_UP = "transferFromUserToMerchant", "transferFromMerchantToUser"
CLOCK_MS = 1_763_712_000_000


def read(browser: Browser, path: str) -> str:
    """The text of a PDF file."""
    answer = browser.get(path)
    assert answer.status_code == 200, texts(answer)
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["cache-control"] == "no-store"
    pages = pypdf.PdfReader(io.BytesIO(answer.content)).pages
    return " ".join(" ".join(page.extract_text() for page in pages).split())


def go_on(platform: Platform, clock: Clock, days: int) -> None:
    """Some days pass."""
    clock.advance(days * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def test_a_months_movements_lead_from_its_first_balance_to_its_last(
    platform: Platform, browser: Browser, clock: Clock
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice", "100")
    shop.client.do(PAY, mcOrderId="november", amount="30", extUserId="alice", currency="KFB")
    go_on(platform, clock, 15)
    shop.fund("KFB", "500")
    for count in range(105):
        shop.client.do(
            TOP_UP, mcOrderId=f"december-{count}", amount="1", address=alice["address"], currency="KFB"
        )
    shop.client.do(PAY, mcOrderId="cup-7", amount="0.5", extUserId="alice", currency="KFB")
    browser.open(shop.user("alice")["url"])
    page = browser.get("/wallet/statements")
    assert re.findall(r"/wallet/statements/([0-9-]+)\.pdf", page.text) == ["2025-12", "2025-11"]
    assert "November 2025" in page.text
    assert "2025年11月" in browser.get("/wallet/statements", accept_language="zh-CN").text
    first = read(browser, "/wallet/statements/2025-11.pdf")
    assert "November 2025" in first
    for said in (
        "Harbour Tea",
        "Balance at the start 0.00 KFB",
        "Out 30.00 KFB",
        "Balance at the end 70.00 KFB",
        "You paid Harbour Tea · Order november",
    ):
        assert said in first
    assert "december" not in first
    second = read(browser, "/wallet/statements/2025-12.pdf")
    for said in (
        "Balance at the start 70.00 KFB",
        "In 105.00 KFB",
        "Out 0.50 KFB",
        "Balance at the end 174.50 KFB",
        "Harbour Tea paid you · Order december-0",
        "Order december-104",
    ):
        assert said in second
    assert second.index("december-0") < second.index("december-104") < second.index("cup-7")
    assert "Nothing moved in this time." in read(browser, "/wallet/statements/2025-10.pdf")


@pytest.mark.parametrize("month", ["2026-01", "2024-11", "2025-13", "x", "2025-11.pdf", "../2025-11"])
def test_other_months_have_no_statement(month: str, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice", "1")["url"])
    assert browser.get(f"/wallet/statements/{month}.pdf").status_code == 404


def test_a_statement_shows_no_other_wallet(shop: Shop, new_browser: NewBrowser) -> None:
    bob, stranger = new_browser(), new_browser()
    shop.user("alice", "77")
    bob.open(shop.user("bob", "3")["url"])
    name = list_months(shop.platform.clock())[0].name
    assert "77.00" not in read(bob, f"/wallet/statements/{name}.pdf")
    assert stranger.get(f"/wallet/statements/{name}.pdf").status_code == 403


def test_a_receipt_as_pdf_says_what_its_page_says_and_no_balance(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice-7", "100")
    shop.client.do(PAY, mcOrderId="cup-7", amount="30", extUserId="alice-7", currency="KFB")
    entry_id = entries(browser.open(alice["url"]))[0]
    link = share(browser, entry_id)
    assert f'href="{link}/receipt.pdf"' in other_browser.get(link).text
    said = read(other_browser, f"{link}/receipt.pdf")
    for told in (
        "Receipt",
        "No real money moves here",
        "Payment to Harbour Tea",
        "30.00 KFB",
        "cup-7",
        str(entry_id),
    ):
        assert told in said
    for hidden in ("70.00", "alice"):
        assert hidden not in said
    assert other_browser.get("/w/receipt/unknown/receipt.pdf").status_code == 404


def test_statements_that_wait_to_be_built_keep_nobody_else_waiting(
    shop: Shop, new_browser: NewBrowser
) -> None:
    alice, bob = new_browser(), new_browser()
    alice.open(shop.user("alice", "1")["url"])
    bob.open(shop.user("bob", "1")["url"])
    path = f"/wallet/statements/{list_months(shop.platform.clock())[0].name}.pdf"
    with ThreadPoolExecutor(8) as pool, held_builder():
        asked = [pool.submit(alice.get, path) for _ in range(8)]
        wait_until(lambda: sum(one.done() for one in asked) == 8 - MAX_OF_ONE, "the others are refused")
        assert bob.get("/wallet").status_code == 200
    statuses = [one.result().status_code for one in asked]
    assert sorted(statuses) == [200] * MAX_OF_ONE + [503] * (8 - MAX_OF_ONE)
    refused = next(one.result() for one in asked if one.result().status_code == 503)
    assert refused.headers["retry-after"] == "5"
    assert alice.get(path).status_code == 200


def test_months_are_those_of_utc_and_the_newest_comes_first() -> None:
    months = list_months(1_767_225_600_000)
    assert [one.name for one in months[:3]] == ["2026-01", "2025-12", "2025-11"]
    assert months[1].end_ms == months[0].start_ms == 1_767_225_600_000
    assert len(months) == 12
