"""Screening in a browser: what is held, its page, the order's page, and a decision."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Screen, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.test_console import open_signed_in
from tests.console.conftest import ConsoleUser, People
from tests.console.test_screening import MIXER, RULE, find, hold_order, url_of
from tests.console.test_withdrawals import Till, till
from tests.journeys.conftest import Platform

from merchant_wallet.screening.screening_states import State

__all__ = ["till"]

SCREENING = "/console/screening"


@pytest.fixture(scope="module")
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


@pytest.fixture(scope="module")
def ann(people: People) -> ConsoleUser:
    return people.signed_in("operator", name="ann")


@each_language
def test_what_is_held_can_be_read_by_everyone(
    visits: Visits,
    till: Till,
    ann: ConsoleUser,
    language: str,
) -> None:
    known = hold_order(till, MIXER, RULE)
    page = open_signed_in(visits, ann, language=language)
    for path in (SCREENING, url_of(known), f"/console/withdrawals/{known.order_id}"):
        page.goto(path)
        require_looks(page, colours=language == "en")


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=lambda screen: screen.name)
def test_a_person_refuses_what_is_held_with_a_reason(
    visits: Visits, check_axe: CheckAxe, till: Till, ann: ConsoleUser, screen: Screen
) -> None:
    known = hold_order(till)
    page = open_signed_in(visits, ann, screen)
    page.goto(url_of(known))
    page.get_by_role("button", name="Refuse").click()
    dialog = page.get_by_role("dialog", name="Refuse it?")
    expect(dialog).to_be_visible()
    check_axe(page, "dialog[open]")
    dialog.get_by_label("Reason").fill("on the list of Monday")
    dialog.get_by_role("button", name="Refuse").click()
    expect(
        page.get_by_text("Refused. The order fails, and the merchant gets the amount back.")
    ).to_be_visible()
    assert find(till.platform, known).state is State.REFUSED
