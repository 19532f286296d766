"""Cold money in a real browser: limits, a proposal on a desktop, its acceptance on a phone, a signature."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.test_console import open_signed_in
from tests.cold.cold_scene import COLD
from tests.console.conftest import People
from tests.console.money_scene import HOT, begin_cold_transfer
from tests.journeys.conftest import Platform

from merchant_wallet.base.addresses import format_address

SETTINGS = {"sandbox_two_people": True}
ADDRESS = format_address("ERC20", COLD)


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


@pytest.fixture(autouse=True)
def hot_wallet(platform: Platform) -> None:
    """The hot wallet holds 1000 USDT, and should hold 300."""
    for statement in ("delete from cold_transfer", "delete from cold_limit", "delete from cold_wallet"):
        platform.rows(statement)
    platform.rows(
        "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
        " values ('ERC20', %s, 1000000000, 0, %s) on conflict (chain) do update"
        " set address = excluded.address, funds = excluded.funds, checked_ms = excluded.checked_ms",
        *(HOT, platform.clock()),
    )


def set_up(platform: Platform) -> None:
    platform.rows(
        "insert into cold_wallet (chain, address, registered_ms, opening, balance, balance_block, balance_ms)"
        " values ('ERC20', %s, 1, 0, 2500000000, 7, %s)",
        *(COLD, platform.clock()),
    )
    platform.rows(
        "insert into cold_limit (chain, least, target, most, changed_ms)"
        " values ('ERC20', 100000000, 300000000, 500000000, 1)"
    )


def test_cold_money_is_proposed_at_a_desk_and_accepted_on_a_phone(
    visits: Visits, people: People, platform: Platform, check_axe: CheckAxe
) -> None:
    set_up(platform)
    ann, bob = people.signed_in("operator", name="ann.lee"), people.signed_in("operator", name="bob.wu")
    desk = open_signed_in(visits, ann, DESKTOP)
    desk.goto("/console/cold")
    expect(desk.get_by_text("Too much is hot")).to_be_visible()
    check_axe(desk)
    desk.get_by_role("button", name="Move money").click()
    # What is above the target is filled in.
    expect(desk.get_by_label("Amount", exact=True)).to_have_value("700")
    check_axe(desk, "dialog[open]")
    desk.locator("dialog[open]").get_by_label("Reason").fill("a week of payouts stays hot")
    desk.get_by_role("button", name="Propose", exact=True).click()
    expect(desk.get_by_text("Another person must accept it.").first).to_be_visible()
    phone = open_signed_in(visits, bob, PHONE, theme="dark")
    phone.goto("/console/proposals")
    phone.get_by_role("link", name="Transfer of cold money").click()
    expect(phone.get_by_role("table").get_by_text(ADDRESS)).to_be_visible()
    check_axe(phone)
    phone.get_by_role("button", name="Accept", exact=True).click()
    phone.get_by_role("button", name="Accept and carry out").click()
    expect(phone.get_by_text("Accepted and carried out.")).to_be_visible()
    phone.goto("/console/cold")
    expect(phone.get_by_text("A transfer is under way")).to_be_visible()
    check_axe(phone)


@each_language
def test_each_page_fits_its_screen_in_both_languages_and_themes(
    visits: Visits,
    people: People,
    platform: Platform,
    language: str,
) -> None:
    set_up(platform)
    page = open_signed_in(visits, people.signed_in("operator"), language=language)
    page.goto("/console/cold")
    require_looks(page, colours=language == "en")
    page.locator("button[data-opens^=move]").first.click()
    require_looks(page, within="dialog[open]", colours=language == "en")
    number = begin_cold_transfer(platform.open_merchant())
    page.goto(f"/console/cold/transfers/{number}")
    require_looks(page, colours=language == "en")
    page.goto("/console/cold")
    require_looks(page, colours=language == "en")
