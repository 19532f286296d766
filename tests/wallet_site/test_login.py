"""The link opens the wallet for a limited time, and nothing that it leaves opens another wallet."""

import re

import pytest
from tests.journeys.conftest import Clock, Platform, RunPlatform, Shop
from tests.wallet_site.conftest import Browser, NewBrowser, path_of, read_csrf, texts

from merchant_wallet.sub_users import pins
from merchant_wallet.sub_users.links import LINK_KEY, LINK_LIFETIME_MS, make_link_token
from merchant_wallet.sub_users.sessions import IDLE_MS, MAX_LIFETIME_MS, SEEN_EVERY_MS

CLOCK_MS = 1_763_712_000_000
COOKIE_OF_HTTP = re.compile(
    r"wallet_session=[1-9][0-9]*\.[A-Za-z0-9_-]{43}; HttpOnly; Path=/wallet; SameSite=Lax"
)


def session_count(platform: Platform) -> int:
    """The number of sessions."""
    return int(platform.rows("select count(*) from wallet_session")[0][0])


def test_the_link_opens_the_wallet_and_leaves_the_address_bar(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "12.5")
    answer = browser.get(path_of(alice["url"]))
    assert (answer.status_code, answer.headers["location"]) == (303, "/wallet")
    assert COOKIE_OF_HTTP.fullmatch(answer.headers.get_list("set-cookie")[0])
    page = browser.get("/wallet")
    assert page.status_code == 200
    assert "12.50" in texts(page)
    assert path_of(alice["url"]).removeprefix("/w/") not in page.text


def test_a_chat_preview_before_does_not_use_the_link_up(
    shop: Shop, browser: Browser, other_browser: Browser
) -> None:
    url = shop.user("alice")["url"]
    assert other_browser.open(url).status_code == 200
    assert browser.open(url).status_code == 200


def test_asking_for_the_links_head_opens_nothing(shop: Shop, platform: Platform, browser: Browser) -> None:
    url, before = shop.user("alice")["url"], session_count(platform)
    answer = browser.client.head(path_of(url))
    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers
    assert session_count(platform) == before


def test_a_reset_of_the_pin_voids_links_and_pages_from_before_it(
    shop: Shop, clock: Clock, browser: Browser, other_browser: Browser
) -> None:
    old = shop.user("alice")["url"]
    assert browser.open(old).status_code == 200
    shop.platform.operate(lambda conn: pins.reset(conn, shop.merchant_id, "alice", clock))
    assert browser.get("/wallet").status_code == 403
    sessions_before = session_count(shop.platform)
    answer = other_browser.get(path_of(old))
    assert (answer.status_code, "set-cookie" in answer.headers) == (410, False)
    assert session_count(shop.platform) == sessions_before
    clock.advance(1)
    assert other_browser.open(shop.user("alice")["url"]).status_code == 200


def test_a_reset_voids_no_other_sub_users_link(shop: Shop, clock: Clock, browser: Browser) -> None:
    url = shop.user("bob")["url"]
    shop.user("alice")
    shop.platform.operate(lambda conn: pins.reset(conn, shop.merchant_id, "alice", clock))
    assert browser.open(url).status_code == 200


def test_after_15_minutes_the_link_says_how_to_get_another(
    shop: Shop, clock: Clock, browser: Browser
) -> None:
    url = shop.user("alice")["url"]
    clock.advance(LINK_LIFETIME_MS - 1)
    assert browser.get(path_of(url)).status_code == 303
    clock.advance(1)
    answer = browser.get(path_of(url))
    assert answer.status_code == 410
    assert "Ask for a new one in your app" in texts(answer)
    chinese = browser.get(path_of(url), accept_language="zh-CN")
    assert '<html lang="zh-CN"' in chinese.text
    assert "链接" in texts(chinese)


def test_an_invented_link_and_a_link_to_nobody_get_the_same_page(
    platform: Platform, shop: Shop, browser: Browser
) -> None:
    key = platform.base.keyring.derive(LINK_KEY)
    to_nobody = make_link_token(key, shop.merchant_id, 999_999, platform.clock())
    no_merchant = make_link_token(key, 999_999, 1, platform.clock())
    right = path_of(shop.user("alice")["url"]).removeprefix("/w/")
    changed = right[:-1] + ("A" if right[-1] != "A" else "B")
    said = set()
    for token in (to_nobody, no_merchant, changed, "x", right + "A", "a" * 5000):
        answer = browser.get(f"/w/{token}")
        assert answer.status_code == 404, token
        assert "set-cookie" not in answer.headers
        said.add(texts(answer))
    assert len(said) == 1
    escaped = browser.get("/w/%00")
    assert (escaped.status_code, "set-cookie" in escaped.headers) == (404, False)


def test_without_a_session_every_page_tells_how_to_come_back(platform: Platform, browser: Browser) -> None:
    for path in ("/wallet", "/wallet/activity", "/wallet/receive", "/wallet/security", "/wallet/profile"):
        answer = browser.get(path)
        assert answer.status_code == 403
        assert "Your session has ended" in texts(answer)
    assert browser.post("/wallet/security/pin", {"pin": "482913"}).status_code == 403
    part = browser.part("/wallet/activity")
    assert (part.status_code, part.headers["hx-redirect"]) == (403, "/wallet")


@pytest.mark.parametrize("token", ["", "x", "1.x", "1." + "A" * 43, "' or 1=1 --", "é"])
def test_a_cookie_that_is_none_opens_nothing(browser: Browser, token: str) -> None:
    answer = browser.client.get("/wallet", headers={b"cookie": f"wallet_session={token}".encode()})
    assert answer.status_code == 403


def test_a_session_ends_after_half_an_hour_without_use(shop: Shop, clock: Clock, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    for _ in range(3):
        clock.advance(IDLE_MS - SEEN_EVERY_MS)
        assert browser.get("/wallet").status_code == 200
    clock.advance(IDLE_MS)
    assert browser.get("/wallet").status_code == 403


def test_a_session_ends_after_twelve_hours_however_much_it_is_used(
    shop: Shop, clock: Clock, browser: Browser
) -> None:
    browser.open(shop.user("alice")["url"])
    step_ms = IDLE_MS - SEEN_EVERY_MS
    for _ in range(MAX_LIFETIME_MS // step_ms):
        clock.advance(step_ms)
        assert browser.get("/wallet").status_code == 200
    clock.advance(step_ms)
    assert browser.get("/wallet").status_code == 403


def test_a_page_that_only_lies_open_does_not_keep_its_session(
    shop: Shop, clock: Clock, browser: Browser
) -> None:
    browser.open(shop.user("alice")["url"])
    clock.advance(IDLE_MS - SEEN_EVERY_MS)
    with browser.client.stream("GET", "/wallet/events") as stream:
        assert "event: balance" in next(stream.iter_text())
    clock.advance(2 * SEEN_EVERY_MS)
    with browser.client.stream("GET", "/wallet/events") as stream:
        assert "".join(stream.iter_text()).startswith("event: ended")
    assert browser.get("/wallet").status_code == 403


@pytest.mark.parametrize("path", ["/wallet/deposits", "/wallet/activity?newest"])
def test_what_an_open_page_asks_for_by_itself_does_not_keep_its_session(
    path: str, shop: Shop, clock: Clock, browser: Browser
) -> None:
    browser.open(shop.user("alice")["url"])
    clock.advance(IDLE_MS - SEEN_EVERY_MS)
    assert browser.part(path).status_code == 200
    clock.advance(SEEN_EVERY_MS)
    over = browser.part(path)
    assert (over.status_code, over.headers["hx-redirect"]) == (403, "/wallet")


def test_looking_for_older_movements_does_keep_it(shop: Shop, clock: Clock, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    clock.advance(IDLE_MS - SEEN_EVERY_MS)
    assert browser.part("/wallet/activity?before=1").status_code == 200
    clock.advance(SEEN_EVERY_MS)
    assert browser.get("/wallet").status_code == 200


def test_signing_out_ends_the_session_for_good(shop: Shop, browser: Browser, other_browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    token = browser.client.cookies["wallet_session"]
    answer = browser.send("/wallet/leave")
    assert (answer.status_code, answer.headers["location"]) == (303, "/wallet/left")
    assert "wallet_session" not in browser.client.cookies
    assert "You are signed out" in texts(browser.get("/wallet/left"))
    other_browser.client.cookies.set("wallet_session", token)
    assert other_browser.get("/wallet").status_code == 403


def test_each_browser_sees_the_wallet_it_was_let_into(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    one, other = platform.open_merchant(), platform.open_merchant()
    browser.open(one.user("alice", "11")["url"])
    other_browser.open(other.user("alice", "22")["url"])
    assert "11.00" in texts(browser.get("/wallet"))
    assert "22.00" in texts(other_browser.get("/wallet"))
    assert "22.00" not in browser.get("/wallet").text


def test_over_https_the_cookie_goes_over_https_alone(
    own_platform: RunPlatform, new_browser: NewBrowser
) -> None:
    with own_platform(public_url="https://wallet.example") as platform:
        shop = platform.open_merchant()
        answer = new_browser(platform).get(path_of(shop.user("alice")["url"]))
        assert answer.headers.get_list("set-cookie")[0].endswith("; Path=/wallet; SameSite=Lax; Secure")
        assert answer.headers["strict-transport-security"]
        framing = platform.open_merchant(frame_origins="https://shop.example")
        answer = new_browser(platform).get(path_of(framing.user("alice")["url"]))
        assert answer.headers["set-cookie"].endswith("; SameSite=None; Secure; Partitioned")


def test_only_the_merchants_own_pages_may_frame_the_wallet(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    framing = platform.open_merchant(frame_origins="https://shop.example https://m.shop.example")
    page = browser.open(framing.user("alice")["url"])
    assert page.headers["content-security-policy"].endswith(
        "frame-ancestors https://m.shop.example https://shop.example"
    )
    assert "x-frame-options" not in page.headers
    page = other_browser.open(platform.open_merchant().user("alice")["url"])
    assert page.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    assert page.headers["x-frame-options"] == "DENY"


def test_an_error_is_shown_inside_a_frame_too(browser: Browser) -> None:
    for page in (browser.get("/wallet/none"), browser.post("/wallet", {}), browser.get("/wallet/receive")):
        assert page.headers["content-security-policy"].endswith("frame-ancestors *")
        assert "x-frame-options" not in page.headers
    console = browser.get("/console/none")
    assert console.headers["content-security-policy"].endswith("frame-ancestors 'none'")


def test_each_page_has_the_headers_that_keep_it_safe(shop: Shop, browser: Browser) -> None:
    url = shop.user("alice")["url"]
    pages = [browser.get(path_of(url)), browser.open(url)]
    pages += [
        browser.get(f"/wallet/{name}") for name in ("activity", "receive", "security", "profile", "none")
    ]
    for page in pages:
        assert page.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            "connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; "
            "base-uri 'none'; frame-ancestors "
        )
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "same-origin"
        assert page.headers["x-request-id"]


@pytest.mark.parametrize(
    "path",
    [
        "/wallet/security/pin",
        "/wallet/security/debits",
        "/wallet/security/limits",
        "/wallet/profile/name",
        "/wallet/profile/language",
        "/wallet/leave",
    ],
)
def test_no_form_is_taken_that_is_not_of_this_sessions_own_page(
    path: str, shop: Shop, browser: Browser, other_browser: Browser
) -> None:
    browser.open(shop.user("alice")["url"])
    other_browser.open(shop.user("bob")["url"])
    mine, others = read_csrf(browser.get("/wallet")), read_csrf(other_browser.get("/wallet"))
    for token in ("", "x", others):
        assert browser.post(path, {"csrf": token}).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}):
        assert browser.post(path, {"csrf": mine}, **headers).status_code == 403
    assert browser.get("/wallet").status_code == 200
    # A GET of a form's URL changes nothing and redirects to the form's page.
    assert browser.get(path).headers["location"] == path.rpartition("/")[0]
    assert browser.get("/wallet").status_code == 200
