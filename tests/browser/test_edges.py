"""Pages at the edges: a zoom of 400 %, forced colours, more space between letters, paper."""

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PHONE, Screen, Visits
from tests.browser.looks import list_excess
from tests.browser.test_console import open_signed_in, people
from tests.browser.test_console_orders import QUEUE, open_till
from tests.console.conftest import ConsoleUser, People
from tests.console.test_withdrawals import Till
from tests.journeys.conftest import Platform

__all__ = ["people"]

ZOOMED = Screen("zoomed", 320, 256, 1, touch=False)
"""A window of 1280 by 1024 pixels at 400 % (WCAG 1.4.10)."""
LIST_UNSEEN = """async () => {
    const unseen = [];
    const stops = "main :is(a[href], button, input:not([type=hidden]), summary)";
    for (const one of document.querySelectorAll(stops)) {
        if (one.disabled || !one.checkVisibility({visibilityProperty: true})) continue;
        one.focus();
        await new Promise(requestAnimationFrame);
        const box = (one.closest("label") ?? one).getBoundingClientRect();
        const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        if (!top || !(one.closest("label") ?? one).contains(top)) unseen.push(one.outerHTML.slice(0, 120));
    }
    return unseen;
}"""
SPACED = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
        word-spacing: 0.16em !important } p { margin-bottom: 2em !important }`);
    document.adoptedStyleSheets = [sheet];
    return [...document.querySelectorAll(".movement *")].filter(one => one.scrollHeight > one.clientHeight + 2
        && getComputedStyle(one).overflow !== "visible").map(one => one.outerHTML);
}"""
COLOUR = "one => getComputedStyle(one).backgroundColor"


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    return open_till(platform)


@pytest.fixture
def owner(people: People) -> ConsoleUser:
    return people.signed_in("owner")


def test_at_a_zoom_of_400_percent_nothing_stands_before_what_has_the_focus(
    visits: Visits, owner: ConsoleUser, till: Till
) -> None:
    page = open_signed_in(visits, owner, ZOOMED)
    for path in (QUEUE, f"{QUEUE}/all", f"/console/merchants/{till.shop.merchant_id}/settings"):
        page.goto(path)
        assert page.evaluate(LIST_UNSEEN) == [], path


def test_with_forced_colours_the_chosen_tab_and_the_current_page_are_told_from_the_others(
    visits: Visits, owner: ConsoleUser, till: Till
) -> None:
    page = open_signed_in(visits, owner)
    page.emulate_media(forced_colors="active")
    page.goto(QUEUE)
    for name in (".segment", ".side-link"):
        chosen, other = (
            page.locator(f"{name}[aria-current]"),
            page.locator(f"{name}:not([aria-current])").first,
        )
        assert chosen.evaluate(COLOUR) != other.evaluate(COLOUR)


def test_with_more_space_between_letters_no_movement_of_a_wallet_is_cut(visits: Visits, till: Till) -> None:
    url = till.shop.client.do("getMerchantCustomer", extUserId="player-7")["url"]
    for screen in (PHONE, Screen("narrow", 320, 640, 1, touch=True)):
        page = visits.open(screen, language="zh-CN")
        page.goto(url)
        assert page.evaluate(SPACED) == []
        assert list_excess(page, screen) == []


def test_on_paper_a_page_says_who_printed_it_when_and_about_whom(
    visits: Visits, owner: ConsoleUser, till: Till
) -> None:
    page = open_signed_in(visits, owner)
    page.goto(f"/console/books/{till.shop.merchant_id}")
    line = page.locator(".print-only")
    expect(line).to_be_hidden()
    page.emulate_media(media="print")
    expect(line).to_contain_text(f"Printed by {owner.name}")
    expect(line).to_contain_text("Harbour Tea & Coffee")
    expect(line.locator("time")).to_have_count(1)
    mark = page.evaluate("() => getComputedStyle(document.documentElement, '::after').position")
    assert mark == "fixed", "what is fixed is printed on every page"


def test_on_a_narrow_desk_the_whole_menu_is_seen_and_a_merchants_tabs_do_not_scroll(
    visits: Visits, owner: ConsoleUser, till: Till
) -> None:
    page = open_signed_in(visits, owner, Screen("small desk", 1280, 800, 1, touch=False))
    page.goto(f"/console/merchants/{till.shop.merchant_id}")
    for name in (".side", ".segments-many"):
        sizes = page.locator(name).evaluate(
            "one => [one.scrollHeight - one.clientHeight, one.scrollWidth - one.clientWidth]"
        )
        assert sizes == [0, 0], name
    page.goto(QUEUE)
    order = page.get_by_role("link", name="INV-2026-0819")
    assert order.bounding_box()["height"] < 30  # type: ignore[index]  # it is visible, so it has a box
