"""The notice of a cell that is away in a real browser: in lists, on the overview, on a merchant's page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PHONE, Visits
from tests.browser.looks import changing, each_language, require_looks, show
from tests.browser.test_console import open_signed_in
from tests.cells.layout import open_near_layout
from tests.cells.two_shops import CellShop, open_shops
from tests.console.conftest import ConsoleUser, People
from tests.journeys.conftest import running

from merchant_wallet.base.db import connect_sync

NOTICES: Final = {"en": "Away now: cell far", "zh-CN": "单元 far 暂时无响应"}
AWAY: Final = {"en": "Cell far is away", "zh-CN": "单元 far 无响应"}
PATHS: Final = (
    "/console",
    "/console/merchants",
    "/console/withdrawals/all",
    "/console/sub-users",
    "/console/search?q=alice",
)


@pytest.fixture
def scene(url_with_cell: str, tmp_path: Path) -> Iterator[tuple[ConsoleUser, CellShop]]:
    """An owner, and a merchant whose cell is closed."""
    layout = open_near_layout(url_with_cell)
    with running(layout.url, tmp_path) as platform:
        _, far = open_shops(platform, layout)
        with connect_sync(layout.far_url) as connection:
            connection.execute("update cell_state set is_open = false")
        people = People(platform)
        yield people.signed_in("owner", name="jonas"), far
        people.leave()


@each_language
def test_a_cell_that_is_away_is_named_on_every_screen(
    scene: tuple[ConsoleUser, CellShop],
    visits: Visits,
    language: str,
) -> None:
    owner, far = scene
    visits.allow("status of 503")
    page = open_signed_in(visits, owner, language=language)
    for path in PATHS:
        page.goto(path)
        notice = page.locator("[data-away]")
        expect(notice).to_have_count(1)
        expect(notice).to_contain_text(NOTICES[language])
        expect(notice).to_be_in_viewport()
        if path != "/console/search?q=alice":
            require_looks(page, colours=language == "en")
        with changing(page) as device:
            show(page, device, PHONE, "light")
            expect(notice).to_be_in_viewport()
    page.goto(f"/console/withdrawals/{far.order_id}")
    expect(page.locator("[data-away]")).to_contain_text(AWAY[language])
    require_looks(page, colours=language == "en")
