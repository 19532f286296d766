"""Every page of the console, whatever it is about: nobody is kept out by size, language, theme, zoom, motion
or a keyboard.

Rules: the pages are the console's own routes, with the records of the tests of rights. So a new page is
looked at without a new line here.
"""

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import DESKTOP, NARROW, Screen, Visits, each_look, find_barriers
from tests.browser.test_console import open_signed_in
from tests.console.conftest import ConsoleUser, People
from tests.console.test_rights import PAGES, Scene
from tests.journeys.conftest import Platform

ZOOMED: Final = Screen("zoomed", 720, 450, 2, touch=False)
"""A desktop's window of 1440 pixels with a zoom of 200 %."""
LARGE_TEXT: Final = {"standard": 32, "fixed": 26}
"""Twice the usual size, as people set it in their browser. Layouts are in `rem`, so they follow."""
WIDTH: Final = "document.documentElement.scrollWidth"
MOVING: Final = """() => document.getAnimations()
    .filter(one => one.playState === "running" && one.effect.getComputedTiming().endTime > 1)
    .map(one => one.effect.target.outerHTML.slice(0, 120))"""
# Of radio buttons with one name only one is in the way of the Tab key.
MARK_TARGETS: Final = """() => {
    const groups = new Set();
    const targets = [...document.querySelectorAll(
        "a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(one => {
        if (one.disabled || one.tabIndex < 0 || one.type === "hidden" || !one.checkVisibility()) return false;
        if (getComputedStyle(one).visibility === "hidden" || one.closest("[inert]")) return false;
        if (one.type !== "radio") return true;
        const isFirst = !groups.has(one.name);
        groups.add(one.name);
        return isFirst;
    });
    window.targets = new Set(targets);
    return targets.length;
}"""
NOTE_FOCUS: Final = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return [window.targets.size, ""];
    const isNew = window.targets.delete(one);
    if (one.type === "radio")
        for (const other of [...window.targets]) if (other.name === one.name) window.targets.delete(other);
    const styles = [one, one.closest("label"), one.nextElementSibling].filter(Boolean).map(getComputedStyle);
    const shows = styles.some(style => style.outlineStyle !== "none" || style.boxShadow !== "none");
    const told = shows || !isNew ? "" : "the focus is not seen: " + one.outerHTML.slice(0, 160);
    return [window.targets.size, told];
}"""
MISSED: Final = "() => [...window.targets].map(one => one.outerHTML.slice(0, 160))"


@pytest.fixture(scope="module")
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


@pytest.fixture(scope="module")
def owner(people: People) -> ConsoleUser:
    return people.signed_in("owner", name="noor")


@pytest.fixture(scope="module")
def paths(platform: Platform, people: People, owner: ConsoleUser) -> list[str]:
    """Every page that an owner may open. Parts of pages and downloads are left out."""
    scene = Scene(platform, people)
    found = [scene.fill(page.path, scene.shop) for page in PAGES if page.method == "GET"]
    return [path for path in dict.fromkeys(found) if is_page(owner, path)]


def is_page(person: ConsoleUser, path: str) -> bool:
    answer = person.get(path)
    assert answer.status_code < 400, f"{path}: {answer.status_code}"
    is_html = answer.headers.get("content-type", "").startswith("text/html")
    return is_html and answer.status_code == 200 and "<html" in answer.text


@each_look((NARROW, "en", "light"), (ZOOMED, "en", "light"))
def test_no_page_has_a_finding_and_nothing_sticks_out(
    visits: Visits, owner: ConsoleUser, paths: list[str], screen: Screen, language: str, theme: str
) -> None:
    page = open_signed_in(visits, owner, screen, language=language, theme=theme)
    require_no_fault(page, paths, lambda page, path: list_faults(page, path, screen))


def list_faults(page: Page, path: str, screen: Screen) -> list[str]:
    """What keeps people out of a page: what axe finds, and a page wider than the screen."""
    width = page.evaluate(WIDTH)
    wide = [f"{path} sticks out to {width} px"] if width > screen.width else []
    return [f"{path}: {barrier}" for barrier in find_barriers(page)] + wide


def require_no_fault(page: Page, paths: list[str], judge: Callable[[Page, str], list[str]]) -> None:
    """Open each page and let it be judged. All faults are told together."""
    faults = []
    for path in paths:
        page.goto(path)
        faults += judge(page, path)
    assert not faults, "\n".join(faults)


def test_text_of_twice_the_size_stays_within_every_page(
    visits: Visits, owner: ConsoleUser, paths: list[str]
) -> None:
    page = open_signed_in(visits, owner, DESKTOP)
    page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": LARGE_TEXT})

    def judge(page: Page, path: str) -> list[str]:
        assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
        width = page.evaluate(WIDTH)
        return [f"{path} sticks out to {width} px"] if width > DESKTOP.width else []

    require_no_fault(page, paths, judge)


def test_nothing_moves_for_people_whom_motion_makes_ill(
    visits: Visits, owner: ConsoleUser, paths: list[str]
) -> None:
    def judge(page: Page, path: str) -> list[str]:
        return [f"{path}: {moving}" for moving in page.evaluate(MOVING)]

    require_no_fault(open_signed_in(visits, owner, DESKTOP), paths, judge)


def test_the_keyboard_reaches_everything_on_every_page_and_one_sees_where_it_is(
    visits: Visits, owner: ConsoleUser, paths: list[str]
) -> None:
    def judge(page: Page, path: str) -> list[str]:
        unseen = walk_by_keyboard(page, page.evaluate(MARK_TARGETS))
        missed = page.evaluate(MISSED)
        return [f"{path}: not reached: {one}" for one in missed] + [f"{path}: {one}" for one in unseen]

    require_no_fault(open_signed_in(visits, owner, DESKTOP), paths, judge)


def walk_by_keyboard(page: Page, targets: int) -> list[str]:
    """Press Tab until everything was reached. Returns what had the focus without showing it.

    A page may begin in its middle, and a field for a day has several stops.
    """
    unseen: list[str] = []
    for _ in range(3 * targets):
        page.keyboard.press("Tab")
        left, told = page.evaluate(NOTE_FOCUS)
        if told:
            unseen.append(told)
        if not left:
            break
    return unseen
