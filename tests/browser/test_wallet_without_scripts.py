"""Every act of the wallet page works in a browser without JavaScript."""

import re

from playwright.sync_api import Page, expect
from tests.browser.conftest import NARROW, PHONE, TIMEOUT_MS, Visits
from tests.browser.test_wallet import PIN, Customer
from tests.journeys.conftest import Platform

expect.set_options(timeout=TIMEOUT_MS)
OTHER_PIN = "593024"


def press(page: Page, name: str) -> None:
    """Press a button, or a link that looks like one."""
    page.get_by_role("button", name=name, exact=True).click()


def choose_pin(page: Page) -> None:
    """Set the first PIN."""
    page.get_by_role("textbox", name="New PIN", exact=True).fill(PIN)
    page.get_by_label("New PIN again").fill(PIN)
    press(page, "Set the PIN")
    expect(page.get_by_text("Your PIN is set.")).to_be_visible()


def test_a_sub_user_without_scripts_sets_a_pin_and_decides_about_debits(
    platform: Platform, visits: Visits
) -> None:
    visits.allow("status of 422")
    customer = Customer(platform)
    customer.top_up("100")
    page = customer.open(visits.open(NARROW, java_script_enabled=False), "/wallet/security")
    choose_pin(page)

    press(page, "Pause: Debits by Harbour Tea")
    page.get_by_role("textbox", name="Your PIN").fill(OTHER_PIN)
    press(page, "Pause debits")
    expect(page.get_by_text("That is not your PIN. Tries left: 4.")).to_be_visible()
    page.get_by_role("textbox", name="Your PIN").fill(PIN)
    press(page, "Pause debits")
    expect(page.get_by_text("Debits are paused.")).to_be_visible()
    customer.pay("5", 40302)
    press(page, "Allow: Debits by Harbour Tea")
    page.get_by_role("textbox", name="Your PIN").fill(PIN)
    press(page, "Allow debits")
    customer.pay("5")

    press(page, "Change: Limits")
    page.get_by_label("Most per debit").fill("20")
    page.get_by_role("textbox", name="Your PIN").fill(PIN)
    press(page, "Save the limits")
    expect(page.get_by_text("Your limits are saved.")).to_be_visible()
    customer.pay("20.01", 42202)
    press(page, "Change: Limits")
    press(page, "Not now")
    expect(page.get_by_label("Most per debit")).to_be_hidden()

    press(page, "Change: PIN")
    page.get_by_role("textbox", name="Present PIN").fill(PIN)
    page.get_by_role("textbox", name="New PIN", exact=True).fill(OTHER_PIN)
    page.get_by_label("New PIN again").fill(OTHER_PIN)
    press(page, "Change the PIN")
    expect(page.get_by_text("Your PIN is changed.")).to_be_visible()


def test_a_sub_user_without_scripts_reads_shares_and_leaves(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    for _ in range(22):
        customer.top_up("1")
    page = customer.open(visits.open(PHONE, java_script_enabled=False))
    page.get_by_role("link", name="Show older").click()
    expect(page.locator("a.movement")).to_have_count(2)
    page.get_by_role("link", name="Home").click()
    page.get_by_role("link", name="Out", exact=True).click()
    expect(page.get_by_text("No movement of this kind was made.")).to_be_visible()
    page.get_by_role("link", name="In", exact=True).click()
    page.locator("a.movement").first.click()
    page.get_by_role("link", name="Share the receipt").click()
    expect(page).to_have_url(re.compile("/w/receipt/"))
    expect(page.get_by_role("heading", name="Payment from Harbour Tea")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("link", name="Save as PDF").click()
    assert started.value.path().read_bytes().startswith(b"%PDF-")
    page.go_back()
    page.get_by_role("link", name="Back").click()

    page.get_by_role("link", name="Receive").last.click()
    page.get_by_role("link", name="Ethereum ERC20").click()
    expect(page.get_by_role("heading", name="USDT on Ethereum")).to_be_visible()
    customer.top_up("177.5")
    page.get_by_role("link", name="Look for new money").click()
    expect(page.get_by_text("177.50 KFB arrived")).to_be_visible()

    page.get_by_role("link", name="Profile").click()
    page.get_by_role("link", name="Statements").click()
    with page.expect_download() as started:
        page.locator("a[href$='.pdf']").first.click()
    assert started.value.path().read_bytes().startswith(b"%PDF-")
    page.get_by_role("link", name="Profile").first.click()
    page.get_by_label("Name").fill("Lin Xiaoyu")
    press(page, "Save")
    expect(page.get_by_text("Your name is saved.")).to_be_visible()
    press(page, "Dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    press(page, "中文")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    # The same choices are in the menu at the top of the other pages.
    page.get_by_role("link", name="首页").click()
    page.get_by_label("语言与主题").click()
    press(page, "English")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.get_by_label("Language and theme").click()
    press(page, "Light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_label("Language and theme").click()
    press(page, "中文")
    page.get_by_role("link", name="我的").click()
    press(page, "退出登录")
    expect(page.get_by_text("您已退出")).to_be_visible()


def test_an_arrival_is_announced_once_to_those_who_do_not_see_it(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE), "/wallet/receive")
    said = page.get_by_role("log", name="Just arrived")
    for amount, count in (("177.5", 1), ("2", 2), ("3", 3)):
        customer.top_up(amount)
        expect(said.locator(".arrival")).to_have_count(count)
    expect(said.locator("strong")).to_have_text(
        ["3.00 KFB arrived", "2.00 KFB arrived", "177.50 KFB arrived"]
    )
    expect(said).to_have_attribute("aria-live", "polite")


def test_a_receipt_is_handed_to_the_devices_own_sharing_or_copied(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.top_up("12.5")
    page = visits.open(PHONE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=platform.address)
    page.add_init_script(
        "window.shared = []; navigator.share = async (what) => { window.shared.push(what); }"
    )
    customer.open(page)
    page.locator("a.movement").click()
    page.get_by_role("link", name="Share the receipt").click()
    [what] = page.evaluate("window.shared")
    assert what["title"] == "Payment from Harbour Tea"
    assert what["url"].startswith(f"{platform.address}/w/receipt/")
    page.evaluate("navigator.share = undefined")
    page.get_by_role("link", name="Share the receipt").click()
    expect(page.get_by_text("The link is copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith(f"{platform.address}/w/receipt/")
