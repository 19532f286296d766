"""A sub-user's day, as docs/walks/sub-users-day.md tells it."""

import io

from PIL import Image, ImageChops, ImageDraw
from playwright.sync_api import Page, expect
from pypdf import PdfReader
from tests.browser.conftest import PHONE, Shot, Visits
from tests.browser.test_wallet import PAY, PIN, Customer
from tests.browser.test_wallet_installed import read_manifest
from tests.browser.walks import Walk
from tests.journeys.conftest import Platform

from merchant_wallet.merchants import brand

WORKING = True
NAME = "sub-users-day"
COLOUR = "#1f6f4a"


def draw_leaf(side: int = 256) -> bytes:
    """The shop's logo: a tea leaf, where two circles overlap."""
    shape = [Image.new("L", (side, side)) for _ in range(2)]
    for mask, (x, y) in zip(shape, ((-0.35, 0.0), (0.0, -0.35)), strict=True):
        ImageDraw.Draw(mask).ellipse([x * side, y * side, (x + 1.35) * side, (y + 1.35) * side], fill=255)
    leaf = ImageChops.multiply(*shape)
    picture = Image.new("RGBA", (side, side))
    picture.paste(COLOUR, (0, 0, side, side), leaf)
    ImageDraw.Draw(picture).line([0.24 * side, 0.24 * side, 0.8 * side, 0.8 * side], "white", side // 20)
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def open_shop(platform: Platform) -> Customer:
    """The tea shop with its own colour and logo, and Lin, its customer."""
    customer = Customer(platform)
    shop = customer.shop
    digest = platform.operate(
        lambda conn: brand.add_logo(
            conn,
            shop.merchant_id,
            brand.encode_logo(draw_leaf()),
            actor="merchant:mei",
            at_ms=platform.clock(),
        )
    )
    shop.change(brand_colour=COLOUR, brand_logo=digest, customer_url="https://shop.example/wallet")
    return customer


def read_statement(page: Page) -> str:
    """Save this month's statement, and read it."""
    with page.expect_download() as started:
        page.locator("a[href$='.pdf']").first.click()
    reader = PdfReader(started.value.path())
    return " ".join(" ".join(sheet.extract_text().split()) for sheet in reader.pages)


def test_a_sub_users_day(platform: Platform, visits: Visits, shot: Shot) -> None:
    walk, customer = Walk(NAME, shot), open_shop(platform)
    page = visits.open(PHONE)
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
    with walk.step("She saves the month as a statement", page):
        page.get_by_role("link", name="Profile").last.click()
        page.get_by_role("link", name="Statements").click()
        statement = read_statement(page)
        for told in (
            "Balance at the start 0.00 KFB",
            "In 177.50 KFB",
            "Out 40.50 KFB",
            "Balance at the end 137.00 KFB",
            "You paid Harbour Tea · Order tea-17",
            "Deposit from TRON · Exchanged 25.00 USDT into 177.50 KFB",
        ):
            assert told in statement, statement
    with walk.step("She keeps the wallet on her start screen", page):
        manifest = read_manifest(page)
        assert (manifest["name"], manifest["display"]) == ("Harbour Tea", "standalone")
        # What the icon opens, while her session lasts.
        page.goto(f"{platform.address}{manifest['start_url']}")
        expect(page.locator(".hero-balance .money-number")).to_have_text("137.00")
        stranger = visits.open(PHONE)
        stranger.goto(f"{platform.address}{manifest['start_url']}")
        expect(stranger.get_by_role("link", name="Go to Harbour Tea")).to_be_visible()
    with walk.step("She reads it in Chinese, in the dark, and signs out", page):
        page.get_by_role("link", name="Profile").last.click()
        page.get_by_role("button", name="Dark").click()
        page.get_by_role("button", name="中文").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("button", name="退出登录").click()
        expect(page.get_by_text("您已退出")).to_be_visible()
    visits.allow("401|403|404")
    walk.end()
