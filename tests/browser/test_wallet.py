"""A sub-user's wallet in a real browser: money arrives, a PIN is set, debits are paused and limited."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import (
    DESKTOP,
    NARROW,
    PHONE,
    TIMEOUT_MS,
    Shot,
    Visits,
)
from tests.browser.looks import each_language, require_looks
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.deposits.sandbox_deposits import add_deposit

WORKING = True
PAY, TOP_UP = "transferFromUserToMerchant", "transferFromMerchantToUser"
PIN = "482913"
expect.set_options(timeout=TIMEOUT_MS)
SENDER = bytes.fromhex("9f8e7d6c5b4a39281706f5e4d3c2b1a098765432")
PAGES = ("/wallet", "/wallet/activity", "/wallet/receive", "/wallet/security", "/wallet/profile")


class Customer:
    """A sub-user of a tea shop, and what happens to its wallet."""

    def __init__(self, platform: Platform, name: str = "Harbour Tea") -> None:
        self.shop: Shop = platform.open_merchant(name=name)
        self.shop.fund("KFB", "100000")
        self.found = self.shop.user("lin-7")

    def open(self, page: Page, path: str = "/wallet") -> Page:
        """Follow a fresh link, then open a page of the wallet."""
        page.goto(self.shop.user("lin-7")["url"])
        if path != "/wallet":
            page.goto(self.shop.platform.address + path)
        return page

    def top_up(self, amount: str) -> None:
        """The shop pays the customer."""
        order, address = self.shop.next_order(), self.found["address"]
        self.shop.client.do(TOP_UP, mcOrderId=order, amount=amount, address=address, currency="KFB")

    def pay(self, amount: str, code: int = 200) -> None:
        """The shop debits the customer and must get this code."""
        order = self.shop.next_order()
        self.shop.client.expect(code, PAY, mcOrderId=order, amount=amount, extUserId="lin-7", currency="KFB")

    def receive(self, units: int, address: str = "") -> None:
        """Send USDT to the customer's address on TRON, or to another address."""
        family, raw = parse_wallet_address(address or str(self.found["tronAddress"]))
        platform = self.shop.platform
        platform.operate(
            lambda conn: add_deposit(conn, family.key_name, SENDER, raw, units, platform.clock())
        )

    def spend_weeks(self) -> None:
        """Make a few movements on several days."""
        self.receive(120_000_000)
        for count in range(24):
            if count % 3 == 1:
                self.top_up("64.5")
            elif count % 3 == 2:
                self.pay(f"{count % 7 + 12}.4")
        self.shop.platform.rows(
            "update entry e set at_ms = at_ms - 21600000 * (b.last - e.entry_id)"
            " from (select max(entry_id) as last from entry where merchant_id = %s) b"
            " where e.merchant_id = %s",
            self.shop.merchant_id,
            self.shop.merchant_id,
        )
        self.shop.platform.rows(
            "update sub_user set username = 'Lin Xiaoyu' where merchant_id = %s", self.shop.merchant_id
        )


def type_pin(page: Page, dialog: str, press: str, pin: str = PIN) -> None:
    """Type the PIN in an open dialog and press its button."""
    shown = page.locator(f"#{dialog}")
    expect(shown).to_be_visible()
    shown.locator("input[name=pin]").fill(pin)
    shown.get_by_role("button", name=press).click()


def test_a_customer_sees_money_arrive_and_decides_who_may_take_it(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE))
    number = page.locator(".hero-balance .money-number")
    expect(number).to_have_text("0.00")
    expect(page.get_by_text("No movements yet")).to_be_visible()
    page.evaluate("window.stays = true")

    customer.receive(100_000_000)
    expect(number).to_have_text("710.00")
    expect(page.locator("a.movement")).to_have_count(1)
    expect(page.locator("a.movement")).to_contain_text("+710.00")
    expect(page.get_by_text("No movements yet")).to_have_count(0)
    customer.top_up("25.5")
    expect(number).to_have_text("735.50")
    expect(page.locator("a.movement").first).to_contain_text("Harbour Tea paid you")
    expect(page.locator("h3.activity-day")).to_have_text(["Today"])
    assert page.evaluate("window.stays") is True

    page.get_by_role("link", name="Security").last.click()
    page.get_by_label("New PIN", exact=True).fill(PIN)
    page.get_by_label("New PIN again").fill(PIN)
    page.get_by_role("button", name="Set the PIN").click()
    expect(page.get_by_text("Your PIN is set.")).to_be_visible()

    customer.pay("5")
    page.get_by_role("button", name="Pause: Debits by Harbour Tea").click()
    type_pin(page, "debits", "Pause debits")
    expect(page.get_by_text("Debits are paused.")).to_be_visible()
    customer.pay("5", 40302)
    page.get_by_role("button", name="Allow: Debits by Harbour Tea").click()
    type_pin(page, "debits", "Allow debits")
    expect(page.get_by_text("Debits are allowed again.")).to_be_visible()
    customer.pay("5")

    page.get_by_role("button", name="Change: Limits").click()
    page.get_by_label("Most per debit").fill("20")
    page.get_by_label("Most per day").fill("40")
    type_pin(page, "limits", "Save the limits")
    expect(page.get_by_text("Your limits are saved.")).to_be_visible()
    customer.pay("20.01", 42202)
    customer.pay("20")
    customer.pay("15", 42202)
    page.reload()
    expect(page.locator(".limits")).to_contain_text("30.00")


def test_a_wrong_pin_is_reported_at_its_field_and_nothing_typed_is_lost(
    platform: Platform, visits: Visits
) -> None:
    visits.allow("status of 422")
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE), "/wallet/security")
    page.get_by_label("New PIN", exact=True).fill("123456")
    page.get_by_label("New PIN again").fill("123456")
    page.get_by_role("button", name="Set the PIN").click()
    expect(page.get_by_text("its digits run up or down")).to_be_visible()
    expect(page.get_by_label("New PIN", exact=True)).to_have_value("")
    expect(page.get_by_label("New PIN", exact=True)).to_be_focused()
    # A phone that restores its tabs opens the form's URL with GET.
    page.goto(page.url)
    expect(page).to_have_url(re.compile("/wallet/security$"))
    page.get_by_label("New PIN", exact=True).fill("48a29-13")
    expect(page.get_by_label("New PIN", exact=True)).to_have_value("4829")
    page.get_by_label("New PIN", exact=True).fill(PIN)
    page.get_by_label("New PIN again").fill(PIN)
    page.get_by_role("button", name="Set the PIN").click()
    page.get_by_role("button", name="Change: Limits").click()
    page.get_by_label("Most per day").fill("1,5")
    type_pin(page, "limits", "Save the limits")
    expect(page.locator("#limits")).to_be_visible()
    expect(page.get_by_label("Most per day")).to_have_value("1,5")
    page.get_by_label("Most per day").fill("15")
    type_pin(page, "limits", "Save the limits", "000001")
    expect(page.locator("#limits")).to_contain_text("That is not your PIN. Tries left: 4.")
    expect(page.get_by_label("Most per day")).to_have_value("15")


def test_a_deposit_counts_up_where_it_is_waited_for(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE), "/wallet/receive")
    customer.receive(400_000)
    expect(page.locator("#pending-deposits")).to_contain_text("Below the minimum")
    customer.receive(600_000)
    expect(page.locator("#pending-deposits")).to_be_hidden()
    page.get_by_role("link", name="Home").click()
    expect(page.locator("a.movement")).to_have_count(2)


def test_older_movements_come_as_one_scrolls_by_the_days_of_ones_own_zone(
    platform: Platform, visits: Visits
) -> None:
    customer = Customer(platform)
    for _ in range(50):
        customer.top_up("1")
    page = customer.open(visits.open(PHONE, timezone_id="Asia/Shanghai"))
    expect(page.locator("a.movement")).to_have_count(20)
    for count in (40, 50):
        page.mouse.wheel(0, 100_000)
        expect(page.locator("a.movement")).to_have_count(count)
    ids = [int(found.get_attribute("data-entry") or 0) for found in page.locator("li[data-entry]").all()]
    assert ids == sorted(set(ids), reverse=True)
    expect(page.locator("h3.activity-day")).to_have_count(1)


def test_midnight_is_the_readers_own(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.top_up("1")
    customer.top_up("2")
    # Two hours apart: across midnight in Shanghai, on one day in UTC.
    for offset_ms, amount in ((3_600_000, 1_000_000), (-3_600_000, 2_000_000)):
        platform.rows(
            "update entry e set at_ms = 1763827200000 - %s from posting p where e.merchant_id = %s"
            " and p.merchant_id = e.merchant_id and p.entry_id = e.entry_id and p.amount = %s",
            offset_ms,
            customer.shop.merchant_id,
            amount,
        )
    for zone, days in (("Asia/Shanghai", 2), ("Europe/London", 1)):
        page = customer.open(visits.open(PHONE, timezone_id=zone))
        expect(page.locator("h3.activity-day")).to_have_count(days)


def test_a_movement_opens_in_a_sheet_and_its_ids_can_be_copied(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.top_up("12.5")
    page = visits.open(PHONE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=platform.address)
    customer.open(page)
    page.locator("a.movement").click()
    sheet = page.locator("dialog#entry")
    expect(sheet).to_contain_text("+12.50")
    sheet.get_by_role("button", name="Copy the receipt number").click()
    entry_id = page.locator("li[data-entry]").get_attribute("data-entry")
    assert page.evaluate("navigator.clipboard.readText()") == entry_id
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.locator("a.movement").click()
    expect(sheet).to_be_visible()
    page.goto(f"{platform.address}/wallet/activity/{entry_id}")
    expect(page.get_by_role("heading", name="Harbour Tea paid you")).to_be_visible()


def test_everything_can_be_done_with_the_keyboard(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    page = customer.open(visits.open(DESKTOP))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".hero-actions a").last).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/wallet/security")
    page.get_by_label("New PIN", exact=True).focus()
    page.keyboard.type(PIN)
    page.keyboard.press("Tab")
    page.keyboard.type(PIN)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Your PIN is set.")).to_be_visible()
    page.get_by_role("button", name="Pause: Debits by Harbour Tea").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#debits")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pause: Debits by Harbour Tea")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#debits-pin")).to_be_focused()
    page.keyboard.type(PIN)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Debits are paused.")).to_be_visible()
    customer.pay("1", 40302)


@each_language
def test_every_page_can_be_used_by_everybody(language: str, platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.top_up("12.5")
    page = customer.open(visits.open(DESKTOP, language=language))
    for path in PAGES:
        page.goto(platform.address + path)
        expect(page.locator("html")).to_have_attribute("lang", language)
        require_looks(page, NARROW, colours=language == "en")
    page.goto(platform.address + "/wallet")
    page.locator("a.movement").click()
    expect(page.locator("dialog#entry")).to_be_visible()
    require_looks(page, NARROW, colours=language == "en")


def test_language_and_theme_stay_chosen(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE), "/wallet/profile")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="退出登录").click()
    expect(page.get_by_text("您已退出")).to_be_visible()


def test_a_page_that_is_cut_off_says_so_in_words_and_not_by_a_colour_alone(
    platform: Platform, visits: Visits
) -> None:
    visits.allow("ERR_FAILED")
    page = visits.open(PHONE)
    cut_off = "**/wallet/events*"
    page.route(cut_off, lambda route: route.abort())
    Customer(platform).open(page, "/wallet")
    expect(page.get_by_text("reconnecting")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_hidden()
    page.unroute(cut_off)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_text("reconnecting")).to_be_hidden()


def test_a_page_whose_session_is_over_says_so_by_itself(platform: Platform, visits: Visits) -> None:
    visits.allow("status of 403")
    customer = Customer(platform)
    page = customer.open(visits.open(PHONE))
    expect(page.locator("body")).to_have_attribute("data-live-state", "open")
    platform.rows("delete from wallet_session where merchant_id = %s", customer.shop.merchant_id)
    customer.top_up("1")
    expect(page.locator(".hero-balance")).to_be_hidden()
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_the_pictures_of_the_documents(platform: Platform, visits: Visits, shot: Shot) -> None:
    customer = Customer(platform)
    customer.spend_weeks()
    page = customer.open(visits.open(PHONE), "/wallet/security")
    page.get_by_label("New PIN", exact=True).fill(PIN)
    page.get_by_label("New PIN again").fill(PIN)
    page.get_by_role("button", name="Set the PIN").click()
    page.get_by_role("button", name="Change: Limits").click()
    page.get_by_label("Most per debit").fill("100")
    page.get_by_label("Most per day").fill("500")
    type_pin(page, "limits", "Save the limits")
    customer.pay("86.5")
    page.goto(f"{platform.address}/wallet/security")
    expect(page.locator(".limits")).to_contain_text("500.00")
    shot(page, "wallet-security")
    page.goto(f"{platform.address}/wallet/receive")
    expect(page.locator(".qr").first).to_be_visible()
    shot(page, "wallet-receive")
    page.goto(f"{platform.address}/wallet")
    expect(page.locator("h3.activity-day").first).to_have_text("Today")
    expect(page.locator("body")).to_have_attribute("data-live-state", "open")
    shot(page, "wallet-home")


class ShopSite:
    """The shop's own site at `origin`: its pages embed a wallet."""

    def __init__(self) -> None:
        self.framed = ""
        site = self

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = f'<!doctype html><title>Shop</title><iframe src="{site.framed}" height="800"></iframe>'
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:
                """No log lines in the tests' output."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.origin = f"http://localhost:{self.server.server_address[1]}"


@pytest.fixture
def shop_site() -> Iterator[ShopSite]:
    """The shop's site, on the same host as the wallet."""
    site = ShopSite()
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def test_the_wallet_works_inside_the_pages_that_may_frame_it(
    platform: Platform, visits: Visits, shop_site: ShopSite
) -> None:
    visits.allow("favicon")
    customer = Customer(platform)
    customer.top_up("12.5")
    customer.shop.change(frame_origins=shop_site.origin)
    shop_site.framed = str(customer.shop.user("lin-7")["url"]).replace("127.0.0.1", "localhost")
    page = visits.open(DESKTOP)
    page.goto(f"{shop_site.origin}/account")
    wallet = page.frame_locator("iframe")
    expect(wallet.locator(".hero-balance")).to_contain_text("12.50")
    customer.top_up("1")
    expect(wallet.locator(".hero-balance")).to_contain_text("13.50")
    wallet.get_by_role("link", name="Security").last.click()
    wallet.get_by_label("New PIN", exact=True).fill(PIN)
    wallet.get_by_label("New PIN again").fill(PIN)
    wallet.get_by_role("button", name="Set the PIN").click()
    expect(wallet.get_by_text("Your PIN is set.")).to_be_visible()


def test_no_other_page_can_frame_the_wallet(platform: Platform, visits: Visits, shop_site: ShopSite) -> None:
    visits.allow("frame-ancestors|X-Frame-Options|chrome-error|favicon")
    customer = Customer(platform)
    customer.top_up("12.5")
    shop_site.framed = str(customer.shop.user("lin-7")["url"]).replace("127.0.0.1", "localhost")
    page = visits.open(DESKTOP)
    page.goto(f"{shop_site.origin}/account")
    expect(page.frame_locator("iframe").locator(".hero-balance")).to_have_count(0)
    assert any("frame-ancestors" in told for told in visits.complaints), visits.complaints
