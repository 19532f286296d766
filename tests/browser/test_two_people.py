"""Two operators in a real browser: a higher limit is proposed on a desktop and accepted on a phone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.test_console import open_signed_in
from tests.console.conftest import People
from tests.journeys.conftest import Platform

SETTINGS = {"sandbox_two_people": True}


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def test_a_higher_limit_is_proposed_at_a_desk_and_accepted_on_a_phone(
    visits: Visits, people: People, platform: Platform, check_axe: CheckAxe
) -> None:
    shop = platform.open_merchant(name="Harbour Tea & Coffee")
    ann, bob = people.signed_in("operator", name="ann.lee"), people.signed_in("operator", name="bob.wu")
    visits.allow("422")
    desk = open_signed_in(visits, ann, DESKTOP)
    desk.goto(f"/console/merchants/{shop.merchant_id}/settings")
    limit = desk.get_by_label("Approval above", exact=True)
    limit.fill("500000")
    desk.get_by_role("button", name="Save settings").click()
    expect(desk.get_by_role("alert").first).to_contain_text("needs your reason")
    expect(limit).to_have_value("500000")
    desk.get_by_label("Reason").fill("contract of 3 March")
    check_axe(desk)
    desk.get_by_role("button", name="Save settings").click()
    expect(desk.get_by_text("Another person must accept it.").first).to_be_visible()
    check_axe(desk)
    phone = open_signed_in(visits, bob, PHONE, theme="dark")
    phone.goto("/console/proposals")
    expect(phone.get_by_text("Another owner or operator")).to_be_visible()
    check_axe(phone)
    phone.get_by_role("link", name="Settings of a merchant").click()
    phone.get_by_role("button", name="Accept", exact=True).click()
    check_axe(phone, "dialog[open]")
    phone.get_by_role("button", name="Accept and carry out").click()
    expect(phone.get_by_text("Accepted and carried out.")).to_be_visible()
    found = platform.rows(
        "select approval_limit_units from merchant where merchant_id = %s", shop.merchant_id
    )
    assert found == [(500_000_000_000,)]


@each_language
def test_each_page_fits_its_screen_in_both_languages_and_themes(
    visits: Visits,
    people: People,
    platform: Platform,
    language: str,
) -> None:
    shop = platform.open_merchant(name="Quayside Books")
    owner, other = people.signed_in("owner"), people.newcomer("auditor")
    assert other.operator is not None
    answer = owner.post(
        f"/console/operators/{other.operator.operator_id}/role",
        {"role": "owner", "merchant": "", "reason": "she runs the shop from now on, see the minutes of May"},
    )
    places = (
        "/console/proposals",
        answer.headers["location"],
        f"/console/merchants/{shop.merchant_id}/settings",
        "/console/rates",
        f"/console/operators/{other.operator.operator_id}",
        "/console/operators/new",
    )
    page = open_signed_in(visits, owner, language=language)
    for place in places:
        page.goto(place)
        require_looks(page, colours=language == "en")
