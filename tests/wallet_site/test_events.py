"""An open page gets changes at once, and nothing about other wallets."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from tests.journeys.conftest import RunPlatform, Shop
from tests.waits import wait_until
from tests.wallet_site.conftest import Browser, NewBrowser, let_arrive

from merchant_wallet.sub_users import pins
from merchant_wallet.sub_users.sessions import IDLE_MS
from merchant_wallet.wallet_site import events as wallet_events
from merchant_wallet.wallet_site.events import State, list_events
from merchant_wallet.web import live
from merchant_wallet.web.live import MAX_OF_ONE

TOP_UP = "transferFromMerchantToUser"


@pytest.fixture(scope="module", autouse=True)
def _pages_are_looked_at_often() -> Iterator[None]:
    """The service asks for the state of open pages every 20 ms, not every second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wallet_events, "Hub", partial(live.Hub, interval_s=0.02))
        yield


def live_url(page: httpx.Response) -> str:
    """The URL of a page's event stream."""
    found = re.search(r'data-live-url="([^"]+)"', page.text)
    assert found is not None
    return found[1].replace("&amp;", "&")


def events(stream: httpx.Response, *, with_beats: bool = False) -> Iterator[tuple[str, str]]:
    """The events of a stream: name and text."""
    name = ""
    for line in stream.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: ") and (with_beats or name != "beat"):
            yield name, line.removeprefix("data: ")


def test_money_that_arrives_is_shown_without_a_reload(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100")
    page = browser.open(alice["url"])
    with browser.client.stream("GET", live_url(page)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        told = events(stream)
        assert next(told) == ("balance", '{"balance":"100.00"}')
        shop.client.do(TOP_UP, mcOrderId="t", amount="12.5", address=alice["address"], currency="KFB")
        assert next(told) == ("balance", '{"balance":"112.50"}')
        assert next(told) == ("activity", "{}")


def test_a_page_hears_a_beat_at_once_and_then_as_often_as_it_was_told(
    shop: Shop, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = shop.user("alice", "100")
    page = browser.open(alice["url"])
    assert f'data-live-beat-s="{live.BEAT_S:g}"' in page.text
    monkeypatch.setattr(live, "BEAT_S", 0.05)
    with browser.client.stream("GET", live_url(page)) as stream:
        told = events(stream, with_beats=True)
        assert [next(told)[0] for _ in range(4)] == ["balance", "beat", "beat", "beat"]


def test_an_unconfirmed_deposit_is_shown(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice")
    page = browser.open(alice["url"])
    with browser.client.stream("GET", live_url(page)) as stream:
        told = events(stream)
        assert next(told)[0] == "balance"
        let_arrive(shop, alice["address"], 5_000_000)
        assert next(told) == ("deposits", "{}")
        shop.platform.rows("update chain_cursor set head_number = head_number + 1")
        assert next(told) == ("deposits", "{}")


def test_changes_between_page_and_stream_come_first(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100")
    page = browser.open(alice["url"])
    shop.client.do(TOP_UP, mcOrderId="t", amount="12.5", address=alice["address"], currency="KFB")
    let_arrive(shop, alice["address"], 5_000_000)
    with browser.client.stream("GET", live_url(page)) as stream:
        told = events(stream)
        assert [next(told)[0] for _ in range(3)] == ["balance", "activity", "deposits"]


def test_what_happens_to_others_is_not_told(shop: Shop, browser: Browser) -> None:
    alice, bob = shop.user("alice", "100"), shop.user("bob")
    page = browser.open(alice["url"])
    with browser.client.stream("GET", live_url(page)) as stream:
        told = events(stream)
        next(told)
        shop.client.do(TOP_UP, mcOrderId="b", amount="5", address=bob["address"], currency="KFB")
        shop.client.do(TOP_UP, mcOrderId="a", amount="1", address=alice["address"], currency="KFB")
        assert next(told) == ("balance", '{"balance":"101.00"}')


def test_without_a_session_the_stream_says_so_and_ends(browser: Browser) -> None:
    with browser.client.stream("GET", "/wallet/events") as stream:
        assert list(events(stream)) == [("ended", "{}")]


def test_one_wallet_has_so_many_streams_and_those_left_count_no_more(
    shop: Shop, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without beats nothing is written. A failed write to a closed browser would also end its stream.
    monkeypatch.setattr(live, "BEAT_S", 600.0)
    url = live_url(browser.open(shop.user("alice", "1")["url"]))
    with ExitStack() as stack:
        streams = [stack.enter_context(browser.client.stream("GET", url)) for _ in range(MAX_OF_ONE)]
        told = [events(stream) for stream in streams]
        assert {next(each) for each in told} == {("balance", '{"balance":"1.00"}')}
        refused = browser.get(url)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
    wait_until(lambda: can_follow(browser, url), "a stream after the others were left")


@pytest.mark.parametrize("how", ["signed out elsewhere", "PIN reset", "idle"])
def test_an_open_page_gets_nothing_more_once_its_session_is_over(
    how: str, shop: Shop, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "CHECK_S", 0.0)
    alice = shop.user("alice", "100")
    url = live_url(browser.open(alice["url"]))
    with browser.client.stream("GET", url) as stream:
        told = events(stream)
        assert next(told)[0] == "balance"
        if how == "signed out elsewhere":
            assert browser.send("/wallet/leave").status_code == 303
        elif how == "PIN reset":
            shop.platform.operate(
                lambda conn: pins.reset(conn, shop.merchant_id, "alice", shop.platform.clock)
            )
        else:
            shop.platform.rows(
                "update wallet_session set created_ms = created_ms - %s, seen_ms = created_ms - %s",
                IDLE_MS,
                IDLE_MS,
            )
        assert list(told) == [("ended", "{}")]


def can_follow(browser: Browser, url: str) -> bool:
    """Whether the stream is accepted."""
    with browser.client.stream("GET", url) as stream:
        return stream.status_code == 200


def test_an_open_page_keeps_no_server_from_stopping(
    own_platform: RunPlatform, new_browser: NewBrowser
) -> None:
    with own_platform() as platform:
        browser = new_browser(platform)
        page = browser.open(platform.open_merchant().user("alice", "1")["url"])
        with browser.client.stream("GET", live_url(page)) as stream:
            told = events(stream)
            next(told)
            platform.ask_to_stop()
            assert list(told) == []


@pytest.mark.parametrize("query", ["", "?entry=x&deposits=x", f"?entry={'9' * 50}", "?entry=-1"])
def test_a_page_may_name_any_nonsense_as_what_it_shows(query: str, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice", "1")["url"])
    with browser.client.stream("GET", f"/wallet/events{query}") as stream:
        assert next(events(stream))[0] == "balance"


def test_only_what_differs_is_an_event() -> None:
    shown = State(1_000_000, 7, "")
    assert list_events(shown, shown) == []
    assert list_events(shown, shown._replace(deposits="a")) == ["event: deposits\ndata: {}\n\n"]
    assert list_events(shown, State(2_000_000, 8, "")) == [
        'event: balance\ndata: {"balance":"2.00"}\n\n',
        "event: activity\ndata: {}\n\n",
    ]
