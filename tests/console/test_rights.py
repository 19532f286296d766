"""Who may use which route: every route of the console against every role.

Rules: a new route without a row fails. Staff without the right get 403. A merchant's user gets 404 for
everything outside its own book, and 403 for changes that it may not make.
"""

import json
import re

import pytest
from tests.console import money_scene
from tests.console.conftest import SIGN_IN, ConsoleUser, People
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.console.request import Page, PublicPage
from merchant_wallet.console.routes import list_pages

ALL = "owner operator auditor merchant"
STAFF = "owner operator auditor"
HANDS = "owner operator"

ROWS = {
    "GET /console": ALL,
    "GET /console/state": ALL,
    "GET /console/band": ALL,
    "GET /console/inbox": ALL,
    "POST /console/inbox/sign-ins/seen": "owner",
    "GET /console/inbox/messages/{message_no:int}/{line_no:int}": ALL,
    "GET /console/account/notifications": ALL,
    "POST /console/account/notifications": ALL,
    "GET /console/account/notifications/recent": ALL,
    "POST /console/account/notifications/code": ALL,
    "POST /console/account/notifications/test": ALL,
    "GET /console/operators/escalation": STAFF,
    "POST /console/operators/escalation": "owner",
    "GET /console/inbox/state": ALL,
    "GET /console/merchants": STAFF,
    "GET /console/merchants/new": HANDS,
    "POST /console/merchants/new": HANDS,
    "GET /console/merchants/{merchant_id:int}": ALL,
    "POST /console/merchants/{merchant_id:int}/secrets/rotate": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/secrets/retire": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/status": HANDS,
    "GET /console/merchants/{merchant_id:int}/settings": ALL,
    "POST /console/merchants/{merchant_id:int}/settings": HANDS,
    "GET /console/merchants/{merchant_id:int}/look": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/look": "owner operator merchant",
    "GET /console/merchants/{merchant_id:int}/rates": ALL,
    "POST /console/merchants/{merchant_id:int}/rates": HANDS,
    "POST /console/merchants/{merchant_id:int}/fees": HANDS,
    "GET /console/merchants/{merchant_id:int}/preview": ALL,
    "GET /console/merchants/{merchant_id:int}/refusals": ALL,
    "GET /console/merchants/{merchant_id:int}/endpoints": ALL,
    "GET /console/merchants/{merchant_id:int}/endpoints/tests": ALL,
    "POST /console/merchants/{merchant_id:int}/endpoints/test": "owner operator merchant",
    "GET /console/merchants/{merchant_id:int}/requests": ALL,
    "GET /console/merchants/{merchant_id:int}/usage": ALL,
    "GET /console/merchants/{merchant_id:int}/sandbox": ALL,
    "POST /console/merchants/{merchant_id:int}/sandbox": "owner operator merchant",
    "GET /console/merchants/{merchant_id:int}/keys": ALL,
    "GET /console/merchants/{merchant_id:int}/keys/new": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/keys/new": "owner operator merchant",
    "GET /console/merchants/{merchant_id:int}/keys/{key_no:int}": ALL,
    "POST /console/merchants/{merchant_id:int}/keys/{key_no:int}": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/keys/{key_no:int}/roll": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/keys/{key_no:int}/end-old": "owner operator merchant",
    "POST /console/merchants/{merchant_id:int}/keys/{key_no:int}/revoke": "owner operator merchant",
    "GET /console/sub-users": ALL,
    "GET /console/merchants/{merchant_id:int}/users/{user_id:int}": ALL,
    "POST /console/merchants/{merchant_id:int}/users/{user_id:int}": HANDS,
    "POST /console/merchants/{merchant_id:int}/users/{user_id:int}/pin": "owner operator merchant",
    "GET /console/operators": STAFF,
    "GET /console/operators/new": "owner",
    "POST /console/operators/new": "owner",
    "GET /console/operators/{operator_id:int}": "owner",
    "POST /console/operators/{operator_id:int}/role": "owner",
    "POST /console/operators/{operator_id:int}/status": "owner",
    "POST /console/operators/{operator_id:int}/reset": "owner",
    "POST /console/operators/{operator_id:int}/end-sessions": "owner",
    "GET /console/audit": STAFF,
    "GET /console/audit/verify": STAFF,
    "GET /console/audit/{audit_no:int}": STAFF,
    "GET /console/debugger": ALL,
    "POST /console/debugger": ALL,
    "GET /console/account": ALL,
    "GET /console/account/password": ALL,
    "POST /console/account/password": ALL,
    "POST /console/account/sessions/end": ALL,
    "POST /console/account/sessions/end-others": ALL,
    "GET /console/account/recovery-codes": ALL,
    "POST /console/account/recovery-codes": ALL,
    "POST /console/account/look": ALL,
    "POST /console/sign-out": ALL,
    **money_scene.ROWS,
}
OPEN = {
    f"GET {SIGN_IN}",
    f"POST {SIGN_IN}",
    f"GET {SIGN_IN}/code",
    f"POST {SIGN_IN}/code",
    f"GET {SIGN_IN}/enrol",
    f"POST {SIGN_IN}/enrol",
}
REFUSED_STATUSES = (403, 404)
FORMS = {"POST /console/account/sessions/end": "session"}
"""The field that a form needs to name an existing record. `ask` finds its value."""

PAGES = [page for page in list_pages() if isinstance(page, Page)]


def name(page: Page | PublicPage) -> str:
    """A route, as the table writes it."""
    return f"{page.method} {page.path}"


class Scene:
    """A merchant, a sub-user, an operator and records about money: what the routes' paths name."""

    def __init__(self, platform: Platform, people: People) -> None:
        self.shop = platform.open_merchant()
        self.user = self.shop.client.do("getMerchantCustomer", extUserId="player-7")
        self.other = people.newcomer("auditor")
        self.money = money_scene.make_records(self.shop)

    def fill(self, path: str, shop: Shop) -> str:
        """A route's path with its parameters filled in."""
        assert self.other.operator is not None
        places = {
            "merchant_id:int": shop.merchant_id,
            "ext:path": "player-7",
            "user_id:int": self.user["userId"],
            "operator_id:int": self.other.operator.operator_id,
            "audit_no:int": 1,
            "key_no:int": 1,
            "message_no:int": 1,
            "line_no:int": 0,
            **self.money,
        }
        return re.sub(r"\{([^}]+)\}", lambda place: str(places[place[1]]), path)


def make_scene(platform: Platform, people: People) -> Scene:
    """The records, and an entry of the audit log."""
    found = Scene(platform, people)
    answer = people.signed_in("operator").post(
        f"/console/merchants/{found.shop.merchant_id}/status", {"status": "active"}
    )
    assert answer.status_code == 303
    return found


@pytest.fixture
def scene(platform: Platform, people: People) -> Scene:
    """The records that the routes name."""
    return make_scene(platform, people)


@pytest.fixture(scope="module")
def unchanged(platform: Platform) -> Scene:
    """The same for all tests that change nothing."""
    people = People(platform)
    found = make_scene(platform, people)
    people.leave()
    return found


def ends_sessions(page: Page) -> bool:
    """Whether a form may end the session that sends it, or another one of the same person."""
    return page.method == "POST" and page.path.startswith(("/console/account/", "/console/sign-out"))


def ask(person: ConsoleUser, page: Page, path: str) -> int:
    """The status that a visitor's request gets."""
    if page.method == "GET":
        return person.get(path).status_code
    session = person.get("/console/account").text if name(page) in FORMS else ""
    found = re.search(r'name="session" value="([0-9a-f]{64})"', session)
    form = {FORMS[name(page)]: found[1]} if found else {}
    return person.post(path, form).status_code


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert {name(page) for page in PAGES} == set(ROWS)
    assert {name(page) for page in list_pages() if isinstance(page, PublicPage)} == OPEN


def is_like_owners(page: Page) -> bool:
    """Whether owners, operators and auditors all open a page."""
    return page.method == "GET" and set(STAFF.split()) <= set(ROWS[name(page)].split())


@pytest.mark.parametrize(
    ("role", "pages"),
    [
        ("owner", PAGES),
        ("auditor", PAGES),
        ("merchant", PAGES),
        pytest.param("operator", PAGES, marks=pytest.mark.extended),
        ("operator", [page for page in PAGES if not is_like_owners(page)]),
    ],
    ids=["owner", "auditor", "merchant", "operator", "operator where staff differs"],
)
def test_each_role_is_let_in_where_its_rights_reach(
    platform: Platform, people: People, scene: Scene, role: str, pages: list[Page]
) -> None:
    operator = people.signed_in(role, scene.shop.merchant_id if role == "merchant" else None)
    person = people.again(operator)
    for page in pages:
        if ends_sessions(page):
            person = people.again(operator)
            people.again(operator)
        status = ask(person, page, scene.fill(page.path, scene.shop))
        if ends_sessions(page):
            person = people.again(operator)
        if role in ROWS[name(page)].split():
            assert status not in REFUSED_STATUSES, f"{role} {name(page)}: {status}"
            assert status < 500, f"{role} {name(page)}: {status}"
        else:
            own = role == "merchant" and "merchant_id" in page.path
            expected = 404 if role == "merchant" and not own else 403
            assert status == expected, f"{role} {name(page)}: {status}"


def test_a_merchants_user_is_not_told_that_another_merchant_exists(
    platform: Platform, people: People, unchanged: Scene
) -> None:
    own = platform.open_merchant()
    person = people.signed_in("merchant", own.merchant_id)
    for page in PAGES:
        if "merchant_id" not in page.path:
            continue
        theirs = unchanged.fill(page.path, unchanged.shop)
        nobodys = re.sub(r"/(\d+)", "/987654321", theirs, count=1)
        for path in (theirs, nobodys):
            assert ask(person, page, path) == 404, f"{name(page)} {path}"


def test_who_is_not_signed_in_is_sent_to_sign_in_and_nothing_happens(
    platform: Platform, people: People, unchanged: Scene
) -> None:
    before = platform.rows("select count(*) from audit_entry")
    stranger = people.stranger()
    for page in PAGES:
        stranger.http.cookies.clear()
        path = unchanged.fill(page.path, unchanged.shop)
        answer = stranger.get(path) if page.method == "GET" else stranger.http.post(path, data={"csrf": ""})
        assert answer.status_code == 303, f"{name(page)}: {answer.status_code}"
        assert answer.headers["location"].startswith(SIGN_IN), name(page)
        part = stranger.get(path, headers={"hx-request": "true"})
        if page.method == "GET":
            told = {"sessionended": {"url": SIGN_IN}}
            assert (part.status_code, json.loads(part.headers["hx-trigger"])) == (
                204,
                told,
            )
    assert platform.rows("select count(*) from audit_entry") == before


def test_a_form_that_is_not_our_own_changes_nothing(
    platform: Platform, people: People, unchanged: Scene
) -> None:
    owner, thief = people.signed_in("owner"), people.signed_in("owner")
    before = platform.rows("select count(*) from audit_entry")
    tokens = ("", "0" * 64, "x" * 64, thief.token())
    origins = ({"sec-fetch-site": "cross-site"}, {"origin": "https://elsewhere.example"})
    for number, page in enumerate(page for page in PAGES if page.method == "POST"):
        path = unchanged.fill(page.path, unchanged.shop)
        # One form is sent in every wrong way, each other one in two of them.
        for token in tokens if number == 0 else [tokens[number % len(tokens)]]:
            answer = owner.http.post(path, data={"csrf": token})
            assert answer.status_code == 403, f"{name(page)} {token}: {answer.status_code}"
        for headers in origins if number == 0 else [origins[number % len(origins)]]:
            answer = owner.post(path, headers=headers)
            assert answer.status_code == 403, f"{name(page)} {headers}: {answer.status_code}"
    assert platform.rows("select count(*) from audit_entry") == before


def test_an_auditor_is_shown_no_form_that_changes_a_merchant(people: People, unchanged: Scene) -> None:
    auditor, operator = people.signed_in("auditor"), people.signed_in("operator")
    for path in ("", "/settings", "/rates", f"/users/{unchanged.user['userId']}"):
        url = f"/console/merchants/{unchanged.shop.merchant_id}{path}"
        forms = re.findall(r'<form[^>]* method="post" action="(/[^"]*)"', auditor.page(url))
        assert set(forms) == {"/console/sign-out", "/look"}, url
        assert _buttons(operator.page(url)) - _buttons(auditor.page(url)), url


def _buttons(page: str) -> set[str]:
    found = re.findall(r"(?s)<button[^>]*>(.*?)</button>", page)
    return {" ".join(re.sub(r"<[^>]+>", " ", text).split()) for text in found}
