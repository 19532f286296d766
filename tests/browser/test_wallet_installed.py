"""The wallet can be kept on a start screen: what browsers ask of an app before they install it.

The browser of the other tests, chromium-headless-shell, reads a manifest but can't install anything. So a
whole Chromium is asked whether it would.
"""

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import PHONE, Visits
from tests.browser.test_wallet import Customer
from tests.journeys.conftest import Platform
from tests.tools import require_tool
from tests.wallet_site.test_brand import dress


def read_manifest(page: Page) -> dict[str, object]:
    """What the browser has read of the page's manifest. Fails on every error that it found."""
    told = page.context.new_cdp_session(page).send("Page.getAppManifest")
    assert told["errors"] == []
    manifest: dict[str, object] = page.evaluate("text => JSON.parse(text)", told["data"])
    return manifest


@pytest.mark.parametrize("is_dressed", [True, False], ids=["with a logo", "plain"])
def test_a_browser_reads_the_manifest_without_an_error_and_its_icons_are_what_it_says(
    platform: Platform, visits: Visits, *, is_dressed: bool
) -> None:
    customer = Customer(platform)
    if is_dressed:
        dress(platform, customer.shop)
    page = customer.open(visits.open(PHONE))
    manifest = read_manifest(page)
    assert (manifest["name"], manifest["display"]) == ("Harbour Tea", "standalone")
    icons = manifest["icons"]
    assert isinstance(icons, list)
    purposes = {(icon["sizes"], icon["purpose"]) for icon in icons}
    assert purposes == {(f"{side}x{side}", use) for side in (192, 512) for use in ("any", "maskable")}
    touch = page.locator("link[rel=apple-touch-icon]").get_attribute("href")
    for url, size in ((touch, "180x180"), *((icon["src"], icon["sizes"]) for icon in icons)):
        with Image.open(io.BytesIO(page.request.get(f"{platform.address}{url}").body())) as drawn:
            assert (drawn.format, f"{drawn.width}x{drawn.height}") == ("PNG", size)
    page.goto(f"{platform.address}{manifest['start_url']}")
    expect(page.locator(".hero-balance")).to_be_visible()
    assert page.url == f"{platform.address}/wallet"


@pytest.mark.parametrize("is_dressed", [True, False], ids=["with a logo", "plain"])
def test_a_whole_chromium_would_install_it(
    platform: Platform, browser: Browser, tmp_path: Path, *, is_dressed: bool
) -> None:
    # chromium-headless-shell installs nothing.
    found = require_tool("chromium")
    customer = Customer(platform)
    if is_dressed:
        dress(platform, customer.shop)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    # A context of its own would count as incognito, which installs nothing either.
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=found, args=["--headless=new", "--disable-dev-shm-usage", *root]
    )
    try:
        page = customer.open(context.pages[0])
        expect(page.locator(".hero-balance")).to_be_visible()
        session = context.new_cdp_session(page)
        assert session.send("Page.getInstallabilityErrors") == {"installabilityErrors": []}
        assert session.send("Page.getAppId")["recommendedId"] == read_manifest(page)["start_url"]
    finally:
        context.close()
