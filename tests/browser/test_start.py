"""The start page in a real browser."""

from playwright.sync_api import expect
from tests.browser.conftest import DESKTOP, NARROW, Visits
from tests.browser.looks import each_language, require_looks
from tests.journeys.conftest import Platform

from merchant_wallet.web.languages import Language, translate


@each_language
def test_the_start_page_is_usable_on_every_screen_and_leads_to_the_console(
    platform: Platform, visits: Visits, language: str
) -> None:
    page = visits.open(DESKTOP, language=language)
    page.goto(f"{platform.address}/")
    require_looks(page, NARROW)
    page.get_by_role("link", name=translate(Language(language), "Console"), exact=True).click()
    expect(page).to_have_url(f"{platform.address}/console/sign-in")
