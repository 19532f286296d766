"""The components of pages: on a phone and a desktop, light and dark, in both languages, by keyboard and by
touch.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect
from tests.browser import conftest
from tests.browser.conftest import NARROW, PHONE, SCREENS, Screen, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.showroom import PAID_UNITS, Showroom

GALLERIES = ("wallet.html", "console.html", "parts.html")
FINGER_PX = 44
# Controls that are too small (WCAG 2.2, 2.5.8). A checkbox or radio counts with its whole line. Links within
# a text or a table row may be smaller.
SMALL_TARGETS = """size => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter(target => target.checkVisibility() && target.type !== "hidden")
    .filter(target => !target.closest("dialog:not([open]), .side, .skip, .crumbs, table, dd"))
    .map(target => [target, (target.closest("label") || target).getBoundingClientRect()])
    .filter(([target, box]) => Math.min(box.width, box.height) < size)
    .map(([target, box]) => `${target.outerHTML.slice(0, 120)} ${box.width} x ${box.height}`)"""
PRESS_THRICE = """form => {
    const button = form.querySelector("[type=submit]");
    for (let times = 0; times < 3; times += 1) button.click();
}"""


@pytest.fixture
def showroom(visits: Visits) -> Showroom:
    """Shows templates in the browser."""
    return Showroom(visits)


@each_language
@pytest.mark.parametrize("gallery", GALLERIES)
def test_nobody_is_kept_out(showroom: Showroom, gallery: str, language: str) -> None:
    page = showroom.show(gallery, language=language)
    require_looks(page, NARROW, colours=language == "en")
    for dialog in page.locator("dialog").all():
        dialog.evaluate("dialog => dialog.showModal()")
        require_looks(page, within="dialog[open]", colours=language == "en")
        dialog.evaluate("dialog => dialog.close()")


def test_an_error_page_can_be_read_by_everyone(showroom: Showroom) -> None:
    # The status chooses a decoration and nothing else.
    for status in (403, 404, 429, 500, 503):
        page = showroom.show(
            "web/error.html",
            title="Nothing here",
            text="There is no such page, or you may not see it.",
            status=status,
            home="/wallet",
            request_id="4f1c2a",
        )
        expect(page.get_by_role("heading", level=1)).to_have_text("Nothing here")
        expect(page.get_by_role("link", name="Back to the start")).to_have_attribute("href", "/wallet")
        if status in (404, 500):
            require_looks(page)


@pytest.mark.parametrize("gallery", GALLERIES)
def test_a_finger_hits_what_is_meant(showroom: Showroom, gallery: str) -> None:
    page = showroom.show(gallery, PHONE)
    small = page.evaluate(SMALL_TARGETS, FINGER_PX)
    assert not small, "\n".join(small)


def test_the_first_tab_leads_past_the_menu_to_the_page(showroom: Showroom) -> None:
    page = showroom.show("console.html")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_an_address_is_copied_whole_and_said_so(showroom: Showroom) -> None:
    page = showroom.show("wallet.html", PHONE)
    page.get_by_role("button", name="Copy address").click()
    expect(page.locator("#announcer")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


def test_a_dialog_opens_by_its_button_and_gives_the_focus_back(showroom: Showroom) -> None:
    page = showroom.show("console.html")
    opener = page.get_by_role("button", name="Approve")
    ways: tuple[Callable[[], object], ...] = (
        lambda: page.keyboard.press("Escape"),
        lambda: page.get_by_role("dialog").get_by_role("button", name="Not now").click(),
        lambda: page.mouse.click(20, 20),
    )
    for close in ways:
        opener.click()
        expect(page.get_by_role("dialog", name="Approve this withdrawal?")).to_be_visible()
        expect(page.get_by_role("button", name="Not now")).to_be_focused()
        close()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(opener).to_be_focused()


def test_a_theme_shows_at_once_and_is_kept(showroom: Showroom) -> None:
    page = showroom.show("console.html", path="/console")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_label("Language and theme").click()
    with page.expect_request("**/look") as sent:
        page.get_by_role("button", name="Dark").click()
    assert sent.value.post_data == "back=%2F&theme=dark"
    assert page.evaluate(background) != light
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="As the device")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Dark")).to_be_hidden()


def test_a_chosen_theme_goes_before_the_devices(showroom: Showroom) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    seen = {
        (theme, scheme): showroom.show("parts.html", theme=theme, scheme=scheme).evaluate(background)
        for theme in ("auto", "light", "dark")
        for scheme in ("light", "dark")
    }
    light, dark = seen["auto", "light"], seen["auto", "dark"]
    assert light != dark
    assert seen["light", "light"] == seen["light", "dark"] == light
    assert seen["dark", "light"] == seen["dark", "dark"] == dark


def test_a_language_is_asked_for_by_a_form_of_the_page(showroom: Showroom) -> None:
    page = showroom.show("console.html", path="/console")
    page.get_by_label("Language and theme").click()
    with page.expect_request("**/look") as sent:
        page.get_by_role("button", name="中文").click()
    assert sent.value.post_data == "back=%2Fconsole&language=zh-CN"


def test_times_are_shown_in_the_readers_zone_and_language(showroom: Showroom, visits: Visits) -> None:
    page = showroom.show("parts.html", language="zh-CN")
    time = page.locator("time").first
    # 2025-11-21 08:00 UTC. These browsers are set to UTC.
    expect(time).to_have_text("2025年11月21日 08:00:00")
    expect(time).to_have_attribute("title", "2025-11-21 08:00:00 UTC")


def test_a_form_is_sent_once_however_often_it_is_pressed(showroom: Showroom) -> None:
    page = showroom.show("parts.html")
    page.locator("#field-pin").fill("482913")
    page.locator("#form").evaluate(PRESS_THRICE)
    expect(page.locator("#form")).to_have_attribute("aria-busy", "true")
    assert [asked[:2] for asked in showroom.asked] == [("POST", "/forms")]


def test_a_pin_takes_digits_only(showroom: Showroom) -> None:
    page = showroom.show("parts.html", PHONE)
    page.locator("#field-pin").press_sequentially("4a8 2-913x7")
    expect(page.locator("#field-pin")).to_have_value("482913")


def test_a_password_is_shown_when_asked_and_hidden_again(showroom: Showroom) -> None:
    page = showroom.show("parts.html")
    reveal = page.get_by_role("button", name="Show what is typed")
    for kind in ("text", "password"):
        reveal.click()
        expect(page.locator("#field-password")).to_have_attribute("type", kind)


def test_an_error_is_shown_with_its_field(showroom: Showroom) -> None:
    limit = showroom.show("parts.html").get_by_label("Approval limit")
    expect(limit).to_have_attribute("aria-invalid", "true")
    expect(limit).to_have_accessible_description(
        "At most two decimals. More than this waits for an operator."
    )
    expect(limit).to_have_value("12.345")


def test_the_side_opens_on_a_phone_and_closes_by_keyboard(showroom: Showroom) -> None:
    page = showroom.show("console.html", PHONE)
    side, menu = page.get_by_role("navigation", name="Console pages"), page.get_by_role("button", name="Menu")
    expect(side).to_be_hidden()
    menu.click()
    expect(side.get_by_role("link", name="Withdrawals")).to_be_focused()
    page.keyboard.press("Escape")
    expect(side).to_be_hidden()
    expect(menu).to_be_focused()


def test_a_slash_leads_to_the_search(showroom: Showroom) -> None:
    page = showroom.show("console.html")
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    search.press_sequentially("a/b")
    expect(search).to_have_value("a/b")


def test_a_table_stays_a_table_when_it_turns_into_cards(showroom: Showroom) -> None:
    page = showroom.show("console.html", PHONE)
    table = page.get_by_role("table", name="Withdrawals")
    expect(table.get_by_role("row")).to_have_count(8)
    expect(table.get_by_role("columnheader")).to_have_count(6)
    expect(table.get_by_role("cell", name="Paid")).to_be_visible()


def test_a_chart_is_drawn_in_the_colours_of_the_theme_and_told_in_a_table(showroom: Showroom) -> None:
    page = showroom.show("console.html")
    drawn = "() => document.querySelector('.chart canvas').toDataURL()"
    expect(page.locator(".chart canvas")).to_have_count(1)
    light = page.evaluate(drawn)
    page.get_by_label("Language and theme").click()
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function(f"light => ({drawn})() !== light", arg=light)
    page.get_by_text("Show as a table").click()
    cells = page.get_by_role("table").filter(has_text="2025-11-12").locator("td").all_inner_texts()
    assert cells == [f"{coins:,}.00USDT" for coins in PAID_UNITS]


def test_a_balance_that_changes_is_written_while_the_page_is_open(showroom: Showroom) -> None:
    def answer(route: Route) -> None:
        told = 'event: balance\ndata: {"balance": "12,498.50"}\n\nevent: activity\ndata: \n\n'
        route.fulfill(body=told, content_type="text/event-stream")

    showroom.answers["/wallet/events"] = answer
    page = showroom.show("wallet.html", PHONE, live_url="/wallet/events")
    expect(page.locator("[data-live=balance]")).to_have_text("12,498.50")
    # This stream has ended; the page reconnects by itself.
    with page.expect_request("**/wallet/events"):
        pass


def test_an_answer_may_leave_a_toast(showroom: Showroom) -> None:
    page = showroom.show("parts.html")
    page.evaluate(
        "document.dispatchEvent(new CustomEvent('toast', {detail: {text: '<b>Saved</b>', tone: 'good'}}))"
    )
    expect(page.get_by_text("<b>Saved</b>")).to_be_visible()


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_picture_for_the_documents_is_small(
    showroom: Showroom, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "IMAGES", tmp_path)
    conftest.keep_image(showroom.show("console.html", screen), "console")
    kept = (tmp_path / "console.webp").read_bytes()
    assert kept[8:12] == b"WEBP"
    assert len(kept) <= conftest.MAX_IMAGE_BYTES
