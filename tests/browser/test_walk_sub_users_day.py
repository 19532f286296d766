"""A sub-user's day, as docs/walks/sub-users-day.md tells it."""

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PHONE, Screen, Shot, Visits
from tests.browser.test_wallet import PAY, PIN, Customer
from tests.browser.walks import SCREENS, Walk
from tests.journeys.conftest import Platform

WORKING = True
NAME = "sub-users-day"


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_sub_users_day(screen: Screen, platform: Platform, visits: Visits, shot: Shot) -> None:
    walk, customer = Walk(NAME, screen, shot), Customer(platform)
    page = visits.open(screen)
    with walk.step("Lin opens her wallet from the shop", page):
        customer.open(page)
        expect(page.locator(".hero-balance .money-number")).to_have_text("0.00")
        expect(page.get_by_text("No movements yet")).to_be_visible()
    with walk.step("She shows an address to receive USDT", page):
        page.get_by_role("link", name="Receive").last.click()
        expect(page.get_by_role("button", name="Copy address").first).to_be_visible()
    with walk.step("Her money arrives while she looks", page):
        customer.receive(25_000_000)
        said = page.get_by_role("log", name="Just arrived")
        expect(said).to_contain_text("177.50 KFB arrived")
        expect(said).to_contain_text("Exchanged 25.00 USDT into 177.50 KFB")
    with walk.step("She pays for tea, and sees what it was", page):
        order = "tea-17"
        customer.shop.client.do(PAY, mcOrderId=order, amount="40.5", extUserId="lin-7", currency="KFB")
        page.get_by_role("link", name="Home").click()
        newest = page.locator("a.movement").first
        expect(newest).to_contain_text("You paid Harbour Tea")
        expect(newest).to_contain_text("Order tea-17")
        expect(newest).to_contain_text("\u221240.50")
    with walk.step("She opens the movement", page):
        page.locator("a.movement").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("Balance after")
    receipt = page.get_by_role("link", name="Share the receipt").get_attribute("href")
    friend = visits.open(PHONE)
    with walk.step("Her friend reads the receipt that she shared", friend):
        friend.goto(f"{platform.address}{receipt}")
        expect(friend.get_by_role("heading", name="Payment to Harbour Tea")).to_be_visible()
        expect(friend.get_by_text("Balance after")).to_have_count(0)
        assert friend.goto(f"{platform.address}/wallet") is not None
        expect(friend.locator(".hero-balance")).to_have_count(0)
        friend.goto(f"{platform.address}{receipt}")
    page.keyboard.press("Escape")
    with walk.step("She sets a PIN, and pauses what the shop may take", page):
        page.get_by_role("link", name="Security").last.click()
        page.get_by_label("New PIN", exact=True).fill(PIN)
        page.get_by_label("New PIN again").fill(PIN)
        page.get_by_role("button", name="Set the PIN").click()
        expect(page.get_by_text("Your PIN is set.")).to_be_visible()
        page.get_by_role("button", name="Pause: Debits by Harbour Tea").click()
        page.locator("#debits input[name=pin]").fill(PIN)
        page.locator("#debits").get_by_role("button", name="Pause debits").click()
        expect(page.get_by_text("Debits are paused.")).to_be_visible()
        customer.pay("5", 40302)
    with walk.step("She reads it in Chinese, in the dark, and signs out", page):
        page.get_by_role("link", name="Profile").last.click()
        page.get_by_role("button", name="Dark").click()
        page.get_by_role("button", name="中文").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("button", name="退出登录").click()
        expect(page.get_by_text("您已退出")).to_be_visible()
    visits.allow("401|403|404")
    walk.end()
