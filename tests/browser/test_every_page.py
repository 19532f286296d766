"""Every page of the console, whatever it is about: nobody is kept out by size, language, theme, zoom, motion
or a keyboard.

Rules: the pages are the console's own routes, with the records of the tests of rights. So a new page is
looked at without a new line here. The states that a page can be in are listed.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from socket import gethostname
from typing import Final

import pytest
from playwright.sync_api import CDPSession, Page
from tests.browser.conftest import DESKTOP, NARROW, Screen, Visits
from tests.browser.looks import each_language, list_excess, list_faults
from tests.browser.test_console import fill_weeks, open_signed_in
from tests.browser.test_console_orders import list_states, open_till
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_rights import PAGES, Scene
from tests.journeys.conftest import Platform

PARTS: Final = 3
"""So many tests share the pages. Two workers then end at about the same time."""
ZOOMED: Final = Screen("zoomed", 720, 450, 2, touch=False)
"""A desktop's window of 1440 pixels with a zoom of 200 %."""
USUAL_TEXT: Final = {"standard": 16, "fixed": 13}
LARGE_TEXT: Final = {"standard": 32, "fixed": 26}
"""Twice the usual size, as people set it in their browser. Layouts are in `rem`, so they follow."""
IS_TEXT_OF: Final = "size => getComputedStyle(document.documentElement).fontSize === `${size}px`"
MOVING: Final = """() => document.getAnimations()
    .filter(one => one.playState === "running" && one.effect.getComputedTiming().endTime > 1)
    .map(one => one.effect.target.outerHTML.slice(0, 120))"""
# Of radio buttons with one name only one is in the way of the Tab key.
WATCH_FOCUS: Final = """within => {
    const groups = new Set();
    const targets = [...document.querySelector(within).querySelectorAll(
        "a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(one => {
        if (one.disabled || one.tabIndex < 0 || one.type === "hidden" || !one.checkVisibility()) return false;
        if (getComputedStyle(one).visibility === "hidden" || one.closest("[inert]")) return false;
        if (one.type !== "radio") return true;
        const isFirst = !groups.has(one.name);
        groups.add(one.name);
        return isFirst;
    });
    window.targets = new Set(targets);
    window.unseen = new Set();
    const note = () => {
        const one = document.activeElement;
        if (!one || one === document.body) return;
        // A page that follows something puts a new button in the place of an equal one.
        const isSame = other => other === one || (!other.isConnected && other.outerHTML === one.outerHTML)
            || (one.type === "radio" && other.name === one.name);
        for (const other of [...window.targets]) if (isSame(other)) window.targets.delete(other);
        const parts = [one, one.closest("label"), one.nextElementSibling].filter(Boolean);
        const isShown = parts.map(part => getComputedStyle(part)).some(
            style => style.outlineStyle !== "none" || style.boxShadow !== "none");
        if (!isShown) window.unseen.add("the focus is not seen: " + one.outerHTML.slice(0, 160));
    };
    document.addEventListener("focusin", note);
    return window.targets.size;
}"""
COUNT_LEFT: Final = "() => window.targets.size"
NAMES: Final = frozenset(
    # Products and forms of files.
    {"Citus", "Ethereum", "Lines", "Standard", "Webhook", "Webhooks", "webhook"}
    # Words of the interface, of commands and of what the hash of an entry covers.
    | {"accept", "address", "amount", "currency", "exchange", "min", "proposals", "sign", "success", "test"}
    | {"arrival", "chain", "deadline", "fee", "timestamp"}
    # The other language, this machine, and whom the tests' records name.
    | {"English", gethostname(), "Books", "Coffee", "Harbour", "Quayside", "Shop", "Tea"}
    | {"ann", "mei", "noor"}
    # What a person typed, or a node said.
    | {
        "answers",
        "dear",
        "entered",
        "entry",
        "for",
        "harbour",
        "node",
        "nothing",
        "rights",
        "see",
        "the",
        "twice",
    }
)
"""What is English on a Chinese page."""
drop_code = partial(
    re.compile(r'(?s)<(code|pre|span class="(?:code|hash)[^"]*")[^>]*>.*?</(?:code|pre|span)>').sub, " "
)
find_words = re.compile(r"(?<![\w.:/'@#?=&-])[A-Za-z][a-z]{2,}(?![\w:/'@#?=&-])").findall
FAULTS_OF_FOCUS: Final = """() => [
    ...[...window.targets].map(one => "not reached: " + one.outerHTML.slice(0, 160)), ...window.unseen]"""


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


@pytest.fixture(scope="module")
def states(platform: Platform, paths: list[str], owner: ConsoleUser) -> list[str]:
    """Pages in other states than on their own: full, empty, filtered."""
    till = open_till(platform)
    fill_weeks(platform, till.shop)
    found = list_states(platform, till)
    assert all(is_page(owner, path) for path in found)
    return found


def is_page(person: ConsoleUser, path: str) -> bool:
    answer = person.get(path)
    assert answer.status_code < 400, f"{path}: {answer.status_code}"
    is_html = answer.headers.get("content-type", "").startswith("text/html")
    return is_html and answer.status_code == 200 and "<html" in answer.text


@pytest.mark.parametrize("part", range(PARTS))
@each_language
def test_no_page_keeps_anybody_out_in_any_look_with_large_text_by_motion_or_a_keyboard(
    visits: Visits, owner: ConsoleUser, paths: list[str], states: list[str], language: str, part: int
) -> None:
    page = open_signed_in(visits, owner, DESKTOP, language=language)
    device = page.context.new_cdp_session(page)

    def judge(page: Page) -> list[str]:
        moving = [f"moves: {one}" for one in page.evaluate(MOVING)]
        looks = list_faults(page, NARROW, ZOOMED, colours=language == "en")
        return moving + looks + list_faults_of_large_text(page, device)

    def judge_and_walk(page: Page) -> list[str]:
        return judge(page) + walk_by_keyboard(page, whole=page.url.endswith(mine[0]))

    # The keys find the same things in both languages, and in every state of a page.
    mine = paths[part::PARTS]
    require_no_fault(page, mine, judge_and_walk if language == "zh-CN" else judge)
    require_no_fault(page, states[part::PARTS], judge)


def test_chinese_pages_have_no_english_words_but_names(
    owner: ConsoleUser, paths: list[str], states: list[str]
) -> None:
    found: dict[str, str] = {}
    for path in (*paths, *states):
        page = owner.page(path, headers={"accept-language": "zh-CN"})
        for word in find_words(read_text(drop_code(page))):
            found.setdefault(word, path)
    assert "Ethereum" in found
    left = [f"{path}: {word}" for word, path in found.items() if word not in NAMES]
    assert not left, "\n".join(left)


def list_faults_of_large_text(page: Page, device: CDPSession) -> list[str]:
    """Whether the page is wider than a desktop if its text is twice as large. Afterwards, what is drawn next
    has the usual text.
    """
    device.send("Page.setFontSizes", {"fontSizes": LARGE_TEXT})
    page.wait_for_function(IS_TEXT_OF, arg=LARGE_TEXT["standard"])
    found = list_excess(page, DESKTOP)
    device.send("Page.setFontSizes", {"fontSizes": USUAL_TEXT})
    return [f"with large text: {one}" for one in found]


def require_no_fault(page: Page, paths: list[str], judge: Callable[[Page], list[str]]) -> None:
    """Open each page and let it be judged. All faults are told together."""
    faults = []
    for path in paths:
        page.goto(path)
        faults += [f"{path}: {fault}" for fault in judge(page)]
    assert not faults, "\n".join(faults)


def walk_by_keyboard(page: Page, *, whole: bool) -> list[str]:
    """Press Tab until everything was reached. Returns what was not, or had the focus without showing it.

    A page may begin in its middle, and a field for a day has several stops. Without `whole`, it starts past
    the menu and the bar above, which all pages have.
    """
    if not whole:
        page.locator(".skip").focus()
        page.keyboard.press("Enter")
    left = pressed = page.evaluate(WATCH_FOCUS, "body" if whole else "main")
    most = 3 * left
    while left and pressed <= most:
        for _ in range(left):
            page.keyboard.press("Tab")
        left = page.evaluate(COUNT_LEFT)
        pressed += left
    faults: list[str] = page.evaluate(FAULTS_OF_FOCUS)
    return faults
