"""Names, ids, notes and typed texts that are markup stay texts, on every page of the console and the wallet.

Rules:
- Each answer has the content policy. No page has a script, a style or a handler of its own.
- A new route is tried without a line here: the routes come from the console's own list.
"""

from html.parser import HTMLParser

import httpx
import pytest
from tests.console.conftest import ConsoleUser, People
from tests.console.test_callbacks import try_once
from tests.console.test_rights import PAGES, ROWS, Scene, ends_sessions, name
from tests.console.watched_query import WatchedQuery, watched_query
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.sub_users.links import LINK_KEY, make_link_token
from merchant_wallet.wallet_site.routes import PAGES as WALLET_PAGES

__all__ = ["watched_query"]

MARK = "pwned"
IMAGE = f'"><img src={MARK} onerror={MARK}()>'
SCRIPT = f"<script>{MARK}()</script>"
USER = '"><p onblur=pwned>'
ATTRIBUTE = f"' onmouseover='{MARK}()' x='"
LINK = f"javascript:{MARK}()"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
QUERY = ("q", "id", "address", "merchant", "actor", "action", "period", "zone", "from", "tx", "back")
URLS = ("href", "src", "action", "formaction", "data-href", "hx-get", "hx-post")


class Strict(HTMLParser):
    """Collects what no page of ours has."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.found.append("a script of its own")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        self.found += [f"{tag} {key}" for key in given if key.startswith("on") or key == "style"]
        for key in URLS:
            url = (given.get(key) or "").strip().lower()
            # A file that the page itself hands over: text, percent-encoded, and saved, not opened.
            is_file = url.startswith("data:text/plain;charset=utf-8,") and "download" in given
            if url.startswith(("javascript:", "vbscript:", "data:")) and not is_file:
                self.found.append(f"{tag} {key}={url[:30]}")


def check(answer: httpx.Response, where: str) -> None:
    """Check one answer, whatever it is."""
    assert answer.status_code < 500, f"{where}: {answer.status_code}"
    policy = answer.headers.get("content-security-policy", "")
    assert policy.startswith(POLICY), f"{where}: {policy}"
    assert "unsafe" not in policy, where
    assert answer.headers["x-content-type-options"] == "nosniff", where
    assert answer.headers["cache-control"] == "no-store", where
    if answer.headers.get("content-type", "").startswith("text/html"):
        strict = Strict()
        strict.feed(answer.text)
        assert not strict.found, f"{where}: {strict.found[:3]}"


@pytest.fixture(scope="module")
def hostile(platform: Platform) -> Scene:
    """A merchant whose every text is an attack."""
    people = People(platform)
    found = Scene(platform, people)
    people.leave()
    shop, rows = found.shop, platform.rows
    shop.change(name=f"{SCRIPT}{IMAGE}", approval_limit="0")
    shop.client.do("getMerchantCustomer", extUserId=ATTRIBUTE[:18])
    user = shop.user(USER, "5")
    found.user = user
    rows("update sub_user set username = %s where merchant_id = %s", SCRIPT + IMAGE, shop.merchant_id)
    order = shop.client.do("createMerchantWithdrawOrder", **withdrawal(USER, "6", "ERC20"))
    found.money |= {"order_id:int": int(order["orderId"]), "entry_id:int": int(order["orderId"])}
    shop.client.do("transferFromUserToMerchant", mcOrderId=SCRIPT, amount="1", extUserId=USER, currency="KFB")
    event = str(found.money["event"])
    rows("update callback set state = 'dead_letter' where event_id = %s", event)
    try_once(shop, event, 500, f"{SCRIPT}{IMAGE}".encode(), f"{SCRIPT}{ATTRIBUTE}")
    rows("update proposal set reason = %s, proposed_by = %s", IMAGE, f"cli:{SCRIPT}")
    return found


def sign_in(people: People, role: str, shop: Shop) -> ConsoleUser:
    return people.signed_in(role, shop.merchant_id if role == "merchant" else None)


@pytest.mark.parametrize("role", ["owner", "merchant"])
def test_a_text_that_is_markup_is_a_text_on_every_page(
    people: People, hostile: Scene, watched_query: type[WatchedQuery], role: str
) -> None:
    person = sign_in(people, role, hostile.shop)
    assert f"&lt;script&gt;{MARK}" in person.page(f"/console/merchants/{hostile.shop.merchant_id}")
    person.post("/console/payouts/ERC20/stop", {"reason": f"{SCRIPT}{ATTRIBUTE}"})
    asking = 0
    for page in PAGES:
        if page.method == "GET" and role in ROWS[name(page)].split():
            path = hostile.fill(page.path, hostile.shop)
            watched_query.asked.clear()
            check(person.get(path), name(page))
            if watched_query.asked:
                asking += 1
                check(person.get(path, params=dict.fromkeys(QUERY, IMAGE)), f"{name(page)} with a query")
    assert asking > 20


def test_what_is_typed_into_a_form_comes_back_as_a_text(people: People, hostile: Scene) -> None:
    owner = sign_in(people, "owner", hostile.shop)
    fields = (
        "reason",
        "name",
        "email",
        "url",
        "zone",
        "from",
        "amount",
        "address",
        "customer-url",
        "brand-colour",
    )
    more = (
        "body",
        "string",
        "sign",
        "merchant",
        "signed",
        "networks",
        "least",
        "role",
        "daily-limit",
        "path",
    )
    person = people.again(owner)
    for page in PAGES:
        if page.method == "POST" and "sign-out" not in page.path:
            path = hostile.fill(page.path, hostile.shop)
            for text in (IMAGE, LINK):
                check(person.post(path, dict.fromkeys((*fields, *more), text)), name(page))
            if ends_sessions(page):
                person = people.again(owner)
    for path in (f"/console/{SCRIPT}", f"/console/merchants/{IMAGE}", "/console/sign-in?back=//x.example"):
        check(owner.get(path), path)
    check(owner.http.post("/console/sign-out", data={"csrf": SCRIPT}), "a forged form")
    check(owner.http.put("/console"), "another method")
    check(people.stranger().get(f"/console/sign-in?back={IMAGE}&ended={SCRIPT}"), "signing in")


def test_in_a_wallet_too_a_text_that_is_markup_is_a_text(platform: Platform, hostile: Scene) -> None:
    with httpx.Client(base_url=platform.address, verify=False, trust_env=False) as browser:
        key, user_id = platform.base.keyring.derive(LINK_KEY), int(hostile.user["userId"])
        link = make_link_token(key, hostile.shop.merchant_id, user_id, platform.clock() + 1)
        check(browser.get(f"/w/{link}"), "the link")
        assert f"&lt;script&gt;{MARK}" in browser.get("/wallet").text
        [(paid,)] = platform.rows("select max(entry_id) from entry where mc_order_id = %s", SCRIPT)
        for page in WALLET_PAGES:
            path = page.path.replace("{entry_id:int}", str(paid)).replace("{month}", "2026-13")
            if page.method == "GET":
                check(browser.get(path), path)
            else:
                check(
                    browser.post(path, data=dict.fromkeys(("pin", "username", "csrf", "language"), SCRIPT)),
                    path,
                )
        for path in (
            f"/w/{SCRIPT}",
            f"/w/receipt/{IMAGE}",
            f"/wallet/start/{IMAGE}",
            f"/wallet/{SCRIPT}",
            "/wallet/left",
        ):
            check(browser.get(path), path)
