"""A wallet whose first movements are archived says so, with whom to ask."""

import asyncio

from tests.archive_scene import archive_book
from tests.journeys.conftest import Clock, Platform
from tests.wallet_site.conftest import Browser, texts

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import open_nonce_days

CLOCK_MS = 1_763_712_000_000
MONTH_MS = 30 * DAY_MS
PAY = "transferFromUserToMerchant"


def test_the_end_of_the_list_names_what_is_archived(
    platform: Platform, clock: Clock, browser: Browser
) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    shop.fund("KFB", "1000")
    shop.user("alice", "100")
    clock.advance(MONTH_MS)
    asyncio.run(open_nonce_days(platform.url, clock() // DAY_MS))
    shop.client.do(PAY, mcOrderId="c1", amount="30.25", extUserId="alice", currency="KFB")
    folder = platform.base.settings.archive_folder
    asyncio.run(archive_book(platform.url, folder, shop.merchant_id, "2025-12"))
    said = texts(browser.open(shop.user("alice")["url"]))
    assert "69.75 KFB" in said
    assert "+100.00 KFB" not in said
    assert "Movements up to 2025-11-21 are archived. Ask Harbour Tea for them." in said
