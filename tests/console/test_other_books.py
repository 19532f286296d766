"""What a merchant's people learn of another merchant's book: nothing, whatever they send.

Every route that they may use is tried with the other's ids in its path, in its query and in its form.

Rules: `test_rights` says which routes there are. What is another's looks exactly like what does not exist.
"""

import re
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_deposits import own_address
from tests.console.test_rights import PAGES, ROWS, Scene, name
from tests.console.watched_query import WatchedQuery, watched_query
from tests.journeys.conftest import Platform
from tests.journeys.orders import withdrawal

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base.addresses import to_eip55

__all__ = ["watched_query"]

OPEN_TO_MERCHANTS = [page for page in PAGES if "merchant" in ROWS[name(page)].split()]
NOT_TRIED = ("sign-out", "account/", "/secrets/", "/keys")
"""Forms about the person itself, and about keys of the own merchant: no id of others is in them."""
NOTICE = re.compile(r"req_[0-9a-f_]+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


class OtherBook:
    """A merchant with a record of every kind, and the texts that would give each of them away."""

    def __init__(self, platform: Platform, people: People) -> None:
        self.scene = Scene(platform, people)
        self.shop = self.scene.shop
        self.shop.change(name="Zanzibar Spice", approval_limit="0")
        user = self.shop.user("zanzibar-7")
        order = withdrawal("zanzibar-order", "60", "ERC20", address="0x" + "5a" * 20)
        made = self.shop.client.do("createMerchantWithdrawOrder", **order)
        money = self.scene.money
        self.marks = {
            "name": "Zanzibar Spice",
            "app key": self.shop.client.app_key,
            "sub-user": "zanzibar-7",
            "user id": str(user["userId"]),
            "address of the sub-user": str(user["address"]),
            "own address": to_eip55(own_address(self.shop)),
            "order": str(made["orderId"]),
            "name of the order": "zanzibar-order",
            "payout address": "0x" + "5a" * 20,
            "deposit": str(money["tx_hash"]),
            "callback": str(money["event"]),
            "invoice": str(money["invoice"]),
        }

    def find(self, text: str, *, besides: str = "") -> list[str]:
        """What a page gives away of this merchant."""
        return [what for what, mark in self.marks.items() if mark in text and mark not in besides]


@pytest.fixture(scope="module")
def module_people(platform: Platform) -> Any:
    """Operators of all tests of this module."""
    made = People(platform)
    yield made
    made.leave()


@pytest.fixture(scope="module")
def other(platform: Platform, module_people: People) -> OtherBook:
    """The merchant of whom nothing may be learned."""
    return OtherBook(platform, module_people)


@pytest.fixture(scope="module")
def own(platform: Platform, module_people: People) -> Scene:
    """The merchant whose person asks, with records of the same kinds."""
    return Scene(platform, module_people)


@pytest.fixture
def person(people: People, own: Scene) -> ConsoleUser:
    return people.signed_in("merchant", own.shop.merchant_id)


def tell(answer: httpx.Response) -> tuple[int, str, str]:
    """An answer without what differs between any two answers."""
    return answer.status_code, answer.headers.get("location", ""), NOTICE.sub("", read_text(answer.text))


def swap(path: str, own: Scene, other: Scene) -> list[tuple[str, str]]:
    """A route's path in the own book with each id of the other, and with one that nobody has."""
    made = []
    for place in re.findall(r"\{([^}]+)\}", path):
        theirs = other.fill(f"{{{place}}}", other.shop)
        if theirs == own.fill(f"{{{place}}}", own.shop):
            continue
        nobodys = re.sub(r"\d{3,}", lambda found: "9" * len(found[0]), theirs)
        nobodys = nobodys if nobodys != theirs else f"9{theirs}"
        around = [own.fill(part, own.shop) for part in path.split(f"{{{place}}}")]
        made.append((quote(theirs, safe="").join(around), quote(nobodys, safe="").join(around)))
    return made


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_id_of_another_book_in_a_path_is_as_unknown_as_one_that_nobody_has(
    method: str, person: ConsoleUser, own: Scene, other: OtherBook, platform: Platform
) -> None:
    before = platform.rows("select count(*) from audit_entry where merchant_id = %s", other.shop.merchant_id)
    tried = 0
    for page in OPEN_TO_MERCHANTS:
        if page.method != method:
            continue
        for theirs, nobodys in swap(page.path, own, other.scene):
            ask = person.get if method == "GET" else person.post
            found, unknown = tell(ask(theirs)), tell(ask(nobodys))
            assert found == unknown, f"{name(page)}: {theirs} is told from {nobodys}"
            assert found[0] in (303, 404), f"{name(page)}: {found[0]}"
            assert not other.find(found[2], besides=theirs)
            tried += 1
    assert tried > 10
    after = platform.rows("select count(*) from audit_entry where merchant_id = %s", other.shop.merchant_id)
    assert after == before


def test_no_query_shows_anything_of_another_book(
    person: ConsoleUser, own: Scene, other: OtherBook, watched_query: type[WatchedQuery]
) -> None:
    typed = ("name", "sub-user", "order", "deposit", "address of the sub-user")
    marks = {what: other.marks[what] for what in typed}
    marks |= {"id": str(other.shop.merchant_id), "part": "anzibar"}
    asking = 0
    for page in OPEN_TO_MERCHANTS:
        if page.method != "GET":
            continue
        path = own.fill(page.path, own.shop)
        watched_query.asked.clear()
        person.get(path)
        for what, mark in marks.items() if watched_query.asked else ():
            names: set[str] = set()
            # What a name leads to is asked for, too.
            while watched_query.asked > names:
                names = set(watched_query.asked)
                answer = person.get(f"{path}?{urlencode(dict.fromkeys(names, mark))}")
                assert answer.status_code < 500, f"{name(page)} {what}"
                told = answer.text + answer.headers.get("location", "")
                assert not other.find(told, besides=mark), f"{name(page)} {what}"
        asking += bool(watched_query.asked)
    assert asking > 20


def test_search_tells_another_books_things_from_nothing_by_nothing(
    person: ConsoleUser, other: OtherBook
) -> None:
    def ask(path: str, word: str) -> tuple[int, str]:
        answer = person.get(path, params={"q": word})
        shown = read_text(re.sub(r'value="[^"]*"', "", answer.text)).replace(word, "…")
        return answer.status_code, NOTICE.sub("", shown)

    for path in ("/console/search", "/console/search/suggestions"):
        nothing = ask(path, "Quetzalcoatl")
        for what, mark in other.marks.items():
            for word in (mark, mark[:6], mark[:8] + "…" + mark[-4:], mark[2:8]):
                assert ask(path, word) == nothing, f"{path}: {what} {word}"


def test_a_merchant_finds_itself_however_many_others_are_called_like_it(
    platform: Platform, people: People
) -> None:
    for number in range(25):
        platform.open_merchant(name=f"Quince Market {number:02d}")
    last = platform.open_merchant(name="Quince Market of mine")
    user = people.signed_in("merchant", last.merchant_id)
    for path in ("/console/search", "/console/search/suggestions"):
        answer = user.get(path, params={"q": "uince mark"})
        assert f"/console/merchants/{last.merchant_id}" in answer.text + answer.headers.get("location", "")


def test_no_form_changes_anything_of_another_book(
    person: ConsoleUser, own: Scene, other: OtherBook, platform: Platform, people: People
) -> None:
    def look() -> list[tuple[Any, ...]]:
        number = other.shop.merchant_id
        return [
            *platform.rows("select version, entry_count from book where merchant_id = %s", number),
            *platform.rows("select count(*) from audit_entry where merchant_id = %s", number),
            *platform.rows("select settings_version, status from merchant where merchant_id = %s", number),
            *platform.rows("select count(*), max(attempt_no) from callback where merchant_id = %s", number),
        ]

    before = look()
    fields = ("order", "event", "session", "user", "merchant", "id", "order_id", "key", "message", "channel")
    for page in OPEN_TO_MERCHANTS:
        if page.method != "POST" or any(part in page.path for part in NOT_TRIED):
            continue
        for mark in (*other.marks.values(), str(other.shop.merchant_id)):
            form = {**dict.fromkeys(fields, mark), "confirmed": "1", "even_frozen": "1", "back": "order"}
            answer = person.post(own.fill(page.path, own.shop), form)
            assert answer.status_code < 500, f"{name(page)} {mark}"
            assert not other.find(answer.text, besides=mark), f"{name(page)} {mark}"
    assert look() == before


def test_a_message_and_a_session_of_somebody_else_are_as_unknown_as_none(
    person: ConsoleUser, other: OtherBook, people: People, platform: Platform
) -> None:
    theirs = people.signed_in("merchant", other.shop.merchant_id)
    people.again(theirs)
    form = {"email": "", "url": "https://hooks.example.com/in", "zone": "UTC", "webhook.callback": "1"}
    assert theirs.post("/console/account/notifications", form).status_code == 200
    assert theirs.post("/console/account/notifications/test", {"channel": "webhook"}).status_code == 303
    [(number,)] = platform.rows("select max(notification_no) from notification")
    messages = [tell(person.get(f"/console/inbox/messages/{one}/0")) for one in (number, 10**9)]
    assert messages[0] == messages[1]
    found = re.search(r'name="session" value="([0-9a-f]{64})"', theirs.page("/console/account"))
    assert found is not None
    ended = [person.post("/console/account/sessions/end", {"session": one}) for one in (found[1], "0" * 64)]
    assert [one.status_code for one in ended] == [404, 404]
    assert theirs.get("/console").status_code == 200


def test_a_merchants_person_learns_no_name_of_the_platforms_people(
    person: ConsoleUser, own: Scene, people: People
) -> None:
    staff = people.signed_in("operator", name="operator-nightingale")
    shop, user = own.shop, own.fill("{user_id:int}", own.shop)
    staff.post(f"/console/merchants/{shop.merchant_id}/users/{user}", {"do": "pause"})
    staff.post(f"/console/callbacks/merchants/{shop.merchant_id}/pause")
    orders = [
        int(
            shop.client.do("createMerchantWithdrawOrder", **withdrawal(f"n-{number}", "6", "ERC20"))[
                "orderId"
            ]
        )
        for number in range(2)
    ]
    staff.post("/console/withdrawals/cancel", {"order": str(orders[0]), "confirmed": "1"})
    staff.post("/console/withdrawals/approve", {"order": str(orders[1]), "confirmed": "1"})
    about = f"merchant {shop.merchant_id}"
    look = ({"brand-colour": "none"}, {"brand-colour": "#0a3a3f"})
    ben = Person("cli:somebody-else", "terminal")
    shop.platform.operate(
        lambda conn: changes.propose(
            conn, "merchant.set", about, *look, "as asked", person=ben, at_ms=1, lasts_ms=4 * 10**12
        )
    )
    staff.post("/console/payouts/ERC20/stop", {"reason": "a node lies, says nobody"})
    try:
        for page in OPEN_TO_MERCHANTS:
            named = "order_id" in page.path or "entry_id" in page.path
            for order in orders[: 1 + named] if page.method == "GET" else ():
                path = page.path.replace("{order_id:int}", str(order)).replace("{entry_id:int}", str(order))
                answer = person.get(own.fill(path, shop))
                assert "nightingale" not in answer.text, name(page)
                assert "somebody-else" not in answer.text, name(page)
    finally:
        staff.post("/console/payouts/ERC20/resume", {"reason": "the node is well again"})
