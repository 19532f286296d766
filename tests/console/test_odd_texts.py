"""Odd texts in every path, query and form of the console: no fault, always an answer, no redirect to
another site.

Among them are digits that Python's `int` reads and SQL does not, and characters that a header can't hold.
"""

import http.client
import re
from urllib.parse import quote, urlencode, urlsplit

import pytest
from tests.console.conftest import ConsoleUser, People
from tests.console.test_rights import PAGES, Scene, name, scene
from tests.journeys.conftest import Platform

from merchant_wallet.console.session_cookie import COOKIE

__all__ = ["scene"]

TEXTS = {
    "a full-width digit": "１",
    "a superscript digit": "²",
    "more digits than int() reads": "9" * 5000,
    "a null": "x\0",
    "a line feed": "x\r\nSet-Cookie: a=b",
    "a percent sign": "100%",
    "nothing": "",
}
QUERIES = (
    *(
        "account",
        "action",
        "actor",
        "address",
        "after",
        "answer",
        "back",
        "before",
        "by",
        "chain",
        "currency",
    ),
    *(
        "days",
        "direction",
        "event",
        "form",
        "from",
        "id",
        "kind",
        "least",
        "merchant",
        "network",
        "q",
        "refused",
    ),
    *("said", "seen", "state", "status", "to", "tx"),
)


def fetch(person: ConsoleUser, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
    """Request exactly this path, which no library rewrites. Returns the status and the `Location` header."""
    connection = http.client.HTTPConnection("127.0.0.1", person.platform.port, timeout=30)
    headers = {"Cookie": f"{COOKIE}={person.http.cookies.get(COOKIE)}"}
    body = None
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode(form)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
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
            check(person, "GET", path[:8000])
            check(person, "POST", path[:8000], {"csrf": person.token()})


@pytest.mark.parametrize("what", TEXTS)
def test_an_odd_text_in_a_query_is_no_fault(what: str, people: People, scene: Scene) -> None:
    person = people.signed_in("owner")
    text = quote(TEXTS[what][:500])
    for page in PAGES:
        if page.method == "GET":
            path = scene.fill(page.path, scene.shop)
            check(person, "GET", f"{path}?{'&'.join(f'{query}={text}' for query in QUERIES)}")


def test_a_null_in_any_single_query_is_no_fault(people: People, scene: Scene) -> None:
    person = people.signed_in("owner")
    for page in PAGES:
        if page.method == "GET" and "{" not in page.path:
            for query in QUERIES:
                check(person, "GET", f"{page.path}?{query}=%00")


@pytest.fixture(scope="module")
def field_names(platform: Platform) -> list[str]:
    """The names of all fields in all forms."""
    people = People(platform)
    scene, person = Scene(platform, people), people.signed_in("owner")
    pages = [person.get(scene.fill(page.path, scene.shop)).text for page in PAGES if page.method == "GET"]
    people.leave()
    return sorted({name for text in pages for name in re.findall(r'name="([a-z_-]+)"', text)} - {"csrf"})


@pytest.mark.parametrize("what", TEXTS)
def test_an_odd_text_in_a_form_is_no_fault(
    what: str, people: People, scene: Scene, field_names: list[str]
) -> None:
    person = people.signed_in("owner")
    assert len(field_names) > 20
    for page in PAGES:
        if page.method == "POST" and "sign-out" not in page.path:
            again = people.again(person)
            form = {"csrf": again.token(), **dict.fromkeys(field_names, TEXTS[what])}
            check(again, "POST", scene.fill(page.path, scene.shop), form)


def test_the_table_of_pages_is_what_is_tried() -> None:
    assert {name(page) for page in PAGES} >= {"GET /console", "POST /console/callbacks/{event}/resend"}
