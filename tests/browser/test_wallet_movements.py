"""Every kind of movement that a wallet has: said in a sentence, and readable on each screen."""

import io
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from pypdf import PdfReader
from tests.browser.conftest import DESKTOP, NARROW, PHONE, TIMEOUT_MS, CheckAxe, Screen, Visits
from tests.browser.test_wallet import PAY, SENDER, TOP_UP, Customer
from tests.journeys.conftest import Platform
from tests.waits import wait_until

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.book.commands import Adjust
from merchant_wallet.deposits.sandbox_deposits import add_deposit

WORKING = True
expect.set_options(timeout=TIMEOUT_MS)
WHO: Final = "lin-7"
REASON: Final = "ticket 881: the fraud team agrees"
LONG_ORDER: Final = "订单-" + "9" * 61
SENTENCES: Final = {
    "en": [
        "Test money from the sandbox",
        "Debit by the platform",
        "Credit by the platform",
        "You paid Harbour Tea",
        "Harbour Tea paid you",
        "Deposit from Ethereum",
        "Deposit from TRON",
    ],
    "zh-CN": [
        "沙盒测试资金",
        "平台扣款",
        "平台入账",
        "付款给 Harbour Tea",
        "Harbour Tea 向您付款",
        "Ethereum 充值",
        "TRON 充值",
    ],
}
LOOKS: Final = ((PHONE, "en", "light"), (NARROW, "en", "dark"), (DESKTOP, "zh-CN", "light"))

# Elements that have no room for their content, or stand beyond the edge of the screen.
_CUT: Final = """() => {
    const shown = ".movement-title, .movement-amount, .hero-balance, .hero-actions .button";
    const isCut = (one) => one.clientWidth < 40 || one.scrollWidth > one.clientWidth + 1
        || (one.matches(".movement-title") && one.scrollHeight > one.clientHeight + 1)
        || one.getBoundingClientRect().right > innerWidth;
    return [...document.querySelectorAll(shown)].filter(isCut)
        .map((one) => `${one.className}: ${one.textContent.trim()}`);
}"""


def live_through(customer: Customer) -> None:
    """One movement of each kind, also a large one with the longest order id."""
    shop, address = customer.shop, str(customer.found["address"])
    customer.receive(25_000_000)
    family, raw = parse_wallet_address(address)
    platform = shop.platform
    platform.operate(
        lambda conn: add_deposit(conn, family.key_name, SENDER, raw, 300_000_000, platform.clock())
    )
    wait_for_movements(customer, 2)
    shop.fund("KFB", "20000000")
    shop.client.do(TOP_UP, mcOrderId=LONG_ORDER, amount="10000000.123456", address=address, currency="KFB")
    shop.client.do(PAY, mcOrderId="tea-17", amount="9999999.5", extUserId=WHO, currency="KFB")
    for units, actor in (
        (12_500_000, "operator:ann"),
        (-2_500_000, "operator:ann"),
        (1_000_000, "sandbox:mk"),
    ):
        shop.ask_book(Adjust("KFB", units, REASON, actor, WHO))


def wait_for_movements(customer: Customer, count: int) -> None:
    """Wait until the workers have credited so many deposits."""
    asked = "select count(*) from entry where merchant_id = %s and kind = 'deposit'"
    shop = customer.shop
    wait_until(lambda: shop.platform.rows(asked, shop.merchant_id) == [(count,)], f"{count} deposits")


def find_cut(page: Page) -> list[str]:
    """What is cut off on a page."""
    found: list[str] = page.evaluate(_CUT)
    return found


def read_pdf(page: Page, url: str, language: str) -> str:
    """The text of a PDF without spaces, which Chinese texts get between their characters."""
    reader = PdfReader(io.BytesIO(page.request.get(url, headers={"accept-language": language}).body()))
    return "".join("".join(sheet.extract_text().split()) for sheet in reader.pages)


@pytest.mark.parametrize(("screen", "language", "theme"), LOOKS)
def test_each_kind_of_movement_is_a_sentence_that_nothing_cuts_off(
    screen: Screen, language: str, theme: str, platform: Platform, visits: Visits, check_axe: CheckAxe
) -> None:
    customer = Customer(platform)
    live_through(customer)
    page = customer.open(visits.open(screen, language=language, theme=theme))
    titles = page.locator(".movement-title")
    expect(titles).to_have_count(len(SENTENCES[language]))
    said = titles.all_inner_texts()
    # The two deposits come in either order.
    assert (said[:5], sorted(said[5:])) == (SENTENCES[language][:5], sorted(SENTENCES[language][5:]))
    assert not find_cut(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= screen.width
    links = [str(one.get_attribute("href")) for one in page.locator("a.movement").all()]
    for link in links:
        page.goto(platform.address + link)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen.width, link
        assert REASON not in page.content(), "the operators' reason is theirs"
        if link == links[0]:
            check_axe(page)
        receipt = f"{platform.address}{page.locator('a[data-share]').get_attribute('href')}"
        page.goto(receipt)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen.width, link
        assert REASON not in page.content()
        written = read_pdf(page, f"{receipt}/receipt.pdf", language)
        for told in page.locator("dt, h1").all_inner_texts():
            assert "".join(told.split()) in written, f"{told} is not in the PDF of {link}"


def test_a_balance_as_long_as_they_get_stays_on_its_card(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.shop.ask_book(Adjust("KFB", 99_999_999_999_123_456, "opening balance", "operator:ann", WHO))
    page = customer.open(visits.open(NARROW))
    expect(page.locator(".hero-balance .money-number")).to_have_text("99,999,999,999.123456")
    assert not find_cut(page)
    height = page.locator(".hero-balance .money-number").evaluate("number => number.getClientRects().length")
    assert height == 1, "the number is broken into lines"
