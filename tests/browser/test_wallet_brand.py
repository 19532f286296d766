"""A wallet in a merchant's own colours can be read by everybody, also if the merchant chose a pale one."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import DESKTOP, NARROW, PHONE, TIMEOUT_MS, CheckAxe, Screen, Visits
from tests.browser.test_wallet import PAGES, Customer
from tests.journeys.conftest import Platform
from tests.wallet_site.test_brand import dress

expect.set_options(timeout=TIMEOUT_MS)
LOOKS = (
    (PHONE, "en", "light", "#ffe600"),
    (NARROW, "zh-CN", "dark", "#101828"),
    (DESKTOP, "en", "dark", "#8a1538"),
)


@pytest.mark.parametrize(("screen", "language", "theme", "colour"), LOOKS)
def test_every_page_can_be_read_in_any_merchants_colour(
    screen: Screen,
    language: str,
    theme: str,
    colour: str,
    platform: Platform,
    visits: Visits,
    check_axe: CheckAxe,
) -> None:
    visits.allow("status of 403")
    customer = Customer(platform)
    customer.top_up("12.5")
    dress(platform, customer.shop)
    customer.shop.change(brand_colour=colour)
    page = customer.open(visits.open(screen, language=language, theme=theme))
    for path in (*PAGES, "/wallet/statements"):
        page.goto(platform.address + path)
        check_axe(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= screen.width, f"{path} is {width} wide"
        drawn = page.locator(".mark-logo").evaluate("picture => picture.naturalWidth")
        assert drawn > 0, "the logo is not shown"
    page.goto(platform.address + "/wallet")
    page.locator("a.movement").click()
    expect(page.locator("dialog#entry")).to_be_visible()
    check_axe(page)
    link = page.locator("a[data-share]").get_attribute("href")
    page.goto(f"{platform.address}{link}")
    check_axe(page)
    platform.rows("delete from wallet_session where merchant_id = %s", customer.shop.merchant_id)
    page.goto(platform.address + "/wallet")
    expect(page.get_by_role("link", name=re.compile("Harbour Tea"))).to_be_visible()
    check_axe(page)
