"""Odd texts in every path, query and form of the console: no fault, always an answer, no redirect to
another site.

Among them are digits that Python's `int` reads and SQL does not, and characters that a header can't hold.
"""

import http.client
import re
from urllib.parse import quote, urlencode, urlsplit

import pytest
from starlette import requests
from tests.console.conftest import ConsoleUser, People
from tests.console.test_rights import PAGES, Scene, ends_sessions, name
from tests.console.watched_query import WatchedQuery
from tests.journeys.conftest import Platform

from merchant_wallet.console.session_cookie import COOKIE

TEXTS = {
    "a full-width digit": "１",
    "a superscript digit": "²",
    "more digits than int() reads": "9" * 5000,
    "a null": "x\0",
    "a line feed": "x\r\nSet-Cookie: a=b",
    "nothing": "",
    "more than a column holds": "é" * 400,
    "a negative number": "-1",
    "a number that no column holds": "9" * 40,
    "what SQL, HTML and formats read": "100%' or 1=1 -- {0}<script>\\",
    "an override of the direction": "\u202e",
    "the folder above": "..",
    "an exponent": "1e9",
}
GETS = [page for page in PAGES if page.method == "GET"]


@pytest.fixture(scope="module")
def scene(platform: Platform) -> Scene:
    """The records that the routes name."""
    people = People(platform)
    found = Scene(platform, people)
    people.leave()
    return found


def fetch(person: ConsoleUser, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
    """Request exactly this path, which no library rewrites. Returns the status and the `Location` header."""
    connection = http.client.HTTPConnection("127.0.0.1", person.platform.port, timeout=30)
    headers = {"Cookie": f"{COOKIE}={person.http.cookies.get(COOKIE)}"}
    sent = None
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        sent = urlencode(form)
    try:
        connection.request(method, path, sent, headers)
        answer = connection.getresponse()
        body = answer.read()
        assert b"<script>" not in body or "html" not in answer.getheader("content-type", ""), path
        assert answer.getheader("set-cookie", "").find("a=b") < 0
        return answer.status, answer.getheader("location") or ""
    finally:
        connection.close()


def check(person: ConsoleUser, method: str, path: str, form: dict[str, str] | None = None) -> None:
    """Check that a request is answered without a fault and redirects only within the console."""
    status, location = fetch(person, method, path, form)
    assert 200 <= status < 500, f"{method} {path[:200]}: {status}"
    assert location.isascii(), path
    assert location.isprintable(), path
    assert not location or (location.startswith("/console") and not urlsplit(location).netloc), path


@pytest.mark.parametrize("what", TEXTS)
def test_an_odd_text_in_a_path_is_a_page_that_is_not_there(what: str, people: People, scene: Scene) -> None:
    person = people.signed_in("owner")
    for page in PAGES:
        places = re.findall(r"\{[^}]+\}", page.path)
        for place in places:
            around = page.path.split(place)
            path = quote(TEXTS[what], safe="").join(scene.fill(part, scene.shop) for part in around)
            form = {"csrf": person.token()} if page.method == "POST" else None
            check(person, page.method, path[:8000], form)


@pytest.fixture(scope="module")
def queries(platform: Platform) -> dict[str, set[str]]:
    """The names that each page asks its query for. What a name leads to is asked for, too."""
    people = People(platform)
    scene, person = Scene(platform, people), people.signed_in("owner")
    found: dict[str, set[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "QueryParams", WatchedQuery)
        for page in GETS:
            path = scene.fill(page.path, scene.shop)
            WatchedQuery.asked.clear()
            person.get(path)
            names: set[str] = set()
            while WatchedQuery.asked > names:
                names = set(WatchedQuery.asked)
                person.get(path, params=dict.fromkeys(names, "1"))
            found[page.path] = names
    people.leave()
    return found


@pytest.mark.parametrize("what", TEXTS)
def test_an_odd_text_in_a_query_is_no_fault(
    what: str, people: People, scene: Scene, queries: dict[str, set[str]]
) -> None:
    person = people.signed_in("owner")
    text = quote(TEXTS[what][:500])
    asking = {path: names for path, names in queries.items() if names}
    assert len(asking) > 30
    for path, names in asking.items():
        check(person, "GET", f"{scene.fill(path, scene.shop)}?{'&'.join(f'{name}={text}' for name in names)}")


def test_a_null_in_any_single_query_is_no_fault(
    people: People, scene: Scene, queries: dict[str, set[str]]
) -> None:
    person = people.signed_in("owner")
    assert {"from", "to", "after", "merchant", "period", "zone"} <= set().union(*queries.values())
    for path, names in queries.items():
        for query in names:
            check(person, "GET", f"{scene.fill(path, scene.shop)}?{query}=%00")


@pytest.fixture(scope="module")
def field_names(platform: Platform) -> list[str]:
    """The names of all fields in all forms."""
    people = People(platform)
    scene, person = Scene(platform, people), people.signed_in("owner")
    pages = [person.get(scene.fill(page.path, scene.shop)).text for page in GETS]
    people.leave()
    return sorted({name for text in pages for name in re.findall(r'name="([a-z_-]+)"', text)} - {"csrf"})


@pytest.mark.parametrize("what", TEXTS)
def test_an_odd_text_in_a_form_is_no_fault(
    what: str, people: People, scene: Scene, field_names: list[str]
) -> None:
    person = people.signed_in("owner")
    assert len(field_names) > 20
    again = people.again(person)
    for page in PAGES:
        if page.method == "POST" and "sign-out" not in page.path:
            form = {"csrf": again.token(), **dict.fromkeys(field_names, TEXTS[what])}
            check(again, "POST", scene.fill(page.path, scene.shop), form)
            if ends_sessions(page):
                again = people.again(person)


def test_the_table_of_pages_is_what_is_tried() -> None:
    assert {name(page) for page in PAGES} >= {"GET /console", "POST /console/callbacks/{event}/resend"}
