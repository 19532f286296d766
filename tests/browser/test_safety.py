"""The page Safety in a real browser: an hour of trouble, on both screens, with and without scripts."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from psycopg.types.json import Jsonb
from tests.browser.conftest import DESKTOP, NARROW, PHONE, CheckAxe, Screen, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.test_banner import assert_fits
from tests.browser.test_console import open_signed_in, people
from tests.console.conftest import People
from tests.console.test_banner import CAUSE, all_goes_on, hold, stop
from tests.console.test_safety import SAFETY, nothing_asked, work
from tests.console.test_withdrawals import Till
from tests.journeys.conftest import Platform

__all__ = ["all_goes_on", "nothing_asked", "people"]

SETTINGS = {"reconcile_interval_s": 0, "sandbox_two_people": True, "operator_wait_s": 0}


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    """A merchant with orders."""
    shop = platform.open_merchant(name="Harbour Tea & Coffee", approval_limit="5000", withdraw_fee_min="1")
    shop.fund("USDT", "184250.75")
    return Till(platform, shop)


@pytest.fixture
def trouble(till: Till) -> Iterator[Till]:
    """One chain is stopped, an order is frozen, one waits for funds, and a node is behind."""
    platform = till.platform
    now_ms = platform.clock()
    platform.rows(
        "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
        " values ('TRC20', %s, 12405000000, 0, %s)"
        " on conflict (chain) do update set funds = excluded.funds, funds_ended_payouts = 0,"
        " checked_ms = excluded.checked_ms",
        b"\x07" * 20,
        now_ms - 600_000,
    )
    node = {"chain": "TRC20", "head": 68_120_944, "headMs": now_ms, "final": 68_120_925, "tookMs": 48}
    node |= {"callsPerSecond": None, "callsPerDay": None, "callsToday": 0, "restsUntilMs": None}
    nodes = (
        {**node, "name": "tron-a.example:443", "failure": None},
        {**node, "name": "tron-b.example:443", "head": 68_120_101, "failure": None},
        {**node, "name": "tron-c.example:443", "head": None, "final": None, "failure": "timed out"},
    )
    for place, one in enumerate(nodes, 1):
        platform.rows(
            "insert into worker_report values ('node', %s, %s, 'host 7', %s)",
            f"TRC20 {place}",
            Jsonb(one),
            now_ms,
        )
    stop(platform)
    hold(till, till.order("40.5", chain="TRC20"), frozen_cause="it may have been paid before", frozen_ms=5)
    hold(
        till,
        till.order("900", chain="TRC20"),
        obstacle_kind="funds",
        obstacle_cause="holds 12 of 900 USDT",
        obstacle_ms=7,
    )
    yield till
    platform.rows("delete from payout")


def press(page: Page, card: str, button: str, confirm: str) -> None:
    """Open a dialog of a card and confirm it."""
    where = page.locator(f"#{card}")
    where.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name=confirm, exact=True).click()


@each_language
def test_the_page_of_an_hour_of_trouble(
    visits: Visits,
    people: People,
    trouble: Till,
    language: str,
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"), language=language)
    page.goto(SAFETY)
    expect(page.locator("main")).to_contain_text(CAUSE)
    expect(page.locator("#nodes")).to_contain_text("tron-b.example:443")
    require_looks(page, NARROW, colours=language == "en")
    page.goto(f"{SAFETY}/acts")
    require_looks(page, NARROW, colours=language == "en")


def test_an_act_is_asked_for_and_its_page_follows_it_to_its_end(
    visits: Visits, people: People, trouble: Till, check_axe: CheckAxe
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"), DESKTOP)
    page.goto(SAFETY)
    page.locator("#chain-TRC20").get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Ask a worker").click()
    expect(page.locator("main")).to_contain_text("Waits for a worker")
    check_axe(page)
    work(trouble.platform)
    expect(page.locator("#act-state")).to_contain_text("Done", timeout=30_000)
    expect(page.locator("#act-state")).to_contain_text("Books match the chain")
    check_axe(page)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=lambda screen: screen.name)
def test_without_scripts_all_chains_are_stopped_and_a_sweep_plan_is_asked_for(
    visits: Visits, people: People, till: Till, screen: Screen
) -> None:
    person = people.signed_in("operator")
    page = open_signed_in(visits, person, screen, has_scripts=False)
    page.goto(SAFETY)
    page.locator("#stop-all-reason").fill("a node lies")
    page.locator("#stop-all").get_by_role("button", name="Stop all payouts").click()
    expect(page.locator("main")).to_contain_text("Stopped: nothing new is signed on ERC20, TRC20.")
    page.locator("#plan-TRC20").get_by_role("button", name="Ask a worker").click()
    expect(page.locator("main")).to_contain_text("Waits for a worker")
    expect(page.locator(".live-on")).to_be_hidden()
    work(till.platform)
    page.get_by_role("link", name="Refresh").click()
    expect(page.locator("main")).to_contain_text("There is nothing to sweep")
    expect(page).to_have_url(re.compile(r"/console/safety/acts/\d+$"))
    assert_fits(page, screen)
