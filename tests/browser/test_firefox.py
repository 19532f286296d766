"""The journeys of the other modules in Debian's Firefox, and every page of the console.

Rules: the tests are the same functions. Here `browser` is Firefox, driven over WebDriver BiDi
(`firefox_relay`). It shows no phones: a small screen is a small window. axe judges no colours, which take it
most of its time: it reads them from the style sheets, and they are the same in Chromium.
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.browser import test_console, test_every_page, test_wallet
from tests.browser.axe import COLOURS, find_barriers
from tests.browser.conftest import DESKTOP, ROOT, Visits
from tests.browser.looks import list_excess
from tests.console.conftest import ConsoleUser
from tests.tools import require_tool

WORKING = True
PREFERENCES: Final = {"ui.prefersReducedMotion": 1}
"""What Chromium is told through the protocol."""

people, owner, paths = test_every_page.people, test_every_page.owner, test_every_page.paths
busy_shop = test_console.busy_shop

test_an_owner_signs_in_for_the_first_time_and_comes_back = (
    test_console.test_an_owner_signs_in_for_the_first_time_and_comes_back
)
test_a_step_that_hurts_asks_first_and_keys_are_enough = (
    test_console.test_a_step_that_hurts_asks_first_and_keys_are_enough
)
test_the_overview_changes_while_it_is_looked_at = test_console.test_the_overview_changes_while_it_is_looked_at
test_a_customer_sees_money_arrive_and_decides_who_may_take_it = (
    test_wallet.test_a_customer_sees_money_arrive_and_decides_who_may_take_it
)


def test_no_page_of_the_console_has_a_finding_and_nothing_sticks_out(
    visits: Visits, owner: ConsoleUser, paths: list[str]
) -> None:
    page = test_console.open_signed_in(visits, owner, DESKTOP)
    test_every_page.require_no_fault(
        page, paths, lambda page: find_barriers(page, but=COLOURS) + list_excess(page, DESKTOP)
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Firefox, started through the relay."""
    require_tool("playwright")
    starter = write_starter(tmp_path_factory.mktemp("firefox") / "firefox", require_tool("firefox-esr"))
    with sync_playwright() as playwright:
        launched = playwright.firefox.launch(
            executable_path=starter, channel="moz-firefox", firefox_user_prefs={**PREFERENCES}
        )
        try:
            yield launched
        finally:
            launched.close()


def write_starter(path: Path, program: Path) -> Path:
    """A program that Playwright takes for Firefox."""
    words = shlex.join([sys.executable, "-m", "tests.browser.firefox_relay", str(program)])
    path.write_text(f'#!/bin/sh\ncd {shlex.quote(str(ROOT))} && exec {words} "$@"\n')
    path.chmod(0o755)
    return path
