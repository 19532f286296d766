"""The wallet site of a merchant whose book is in an apart cell, and what it shows while the cell is away."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.cells.layout import Layout, far_cluster
from tests.cells.two_shops import CREDIT, CellShop, open_shops, read_text
from tests.clusters import Cluster
from tests.journeys.conftest import Platform, running
from tests.journeys.orders import credit
from tests.waits import wait_until
from tests.wallet_site.conftest import Browser
from tests.wallet_site.test_events import events, live_url

from merchant_wallet.web import live

PIN, OTHER_PIN = "274961", "813527"
PAGES = (
    "/wallet",
    "/wallet/activity",
    "/wallet/deposits",
    "/wallet/receive",
    "/wallet/security",
    "/wallet/profile",
)


@pytest.fixture
def cells(database_url: str) -> Iterator[tuple[Layout, Cluster]]:
    with far_cluster(database_url) as found:
        yield found


@pytest.fixture
def platform(layout: Layout, tmp_path: Path) -> Iterator[Platform]:
    with running(layout.url, tmp_path) as found:
        yield found


@pytest.fixture
def clients() -> Iterator[list[httpx.Client]]:
    made: list[httpx.Client] = []
    yield made
    for client in made:
        client.close()


def _open_wallet(one: CellShop, clients: list[httpx.Client], language: str = "en") -> Browser:
    """A browser with a session in alice's wallet."""
    heads, url = {"accept-language": language}, one.shop.platform.address
    clients.append(httpx.Client(base_url=url, headers=heads, verify=False, timeout=60))
    browser = Browser(clients[-1])
    link = one.shop.client.do("getMerchantCustomer", extUserId="alice")["url"]
    assert browser.open(link).status_code == 200
    return browser


def _list_audit(one: CellShop) -> list[tuple[str, str, str]]:
    return [
        (actor, action, read_text(f"{before} {after}"))
        for actor, action, before, after in one.shop.platform.rows(
            "select actor, action, before, after from audit_entry where merchant_id = %s order by audit_no",
            one.merchant_id,
        )
    ]


def test_a_wallet_in_an_apart_cell_is_the_same(
    platform: Platform, layout: Layout, clients: list[httpx.Client]
) -> None:
    near, far = open_shops(platform, layout)
    here, there = (_open_wallet(one, clients) for one in (near, far))
    for path in PAGES:
        pages = [browser.get(path) for browser in (here, there)]
        assert [page.status_code for page in pages] == [200, 200], path
        if path != "/wallet/receive":
            # That page shows addresses, in groups.
            assert read_text(pages[0].text) == read_text(pages[1].text), path
    assert "480" in there.get("/wallet").text


def test_changes_by_a_sub_user_reach_its_cell_and_the_audit_log(
    platform: Platform, layout: Layout, clients: list[httpx.Client]
) -> None:
    near, far = open_shops(platform, layout)
    logs = []
    for one in (near, far):
        browser = _open_wallet(one, clients)
        forms: list[tuple[str, dict[str, str]]] = [
            ("pin", {"old_pin": "", "pin": PIN, "pin_again": PIN}),
            ("pin", {"old_pin": PIN, "pin": OTHER_PIN, "pin_again": OTHER_PIN}),
            ("debits", {"pin": OTHER_PIN, "debits": "pause"}),
            ("debits", {"pin": OTHER_PIN, "debits": "pause"}),
            ("limits", {"pin": OTHER_PIN, "limit_debit": "5", "limit_day": "50"}),
        ]
        for name, fields in forms:
            answer = browser.send(f"/wallet/security/{name}", "/wallet/security", **fields)
            assert answer.status_code == 303, answer.text
        wrong = browser.send("/wallet/security/debits", "/wallet/security", pin=PIN, debits="resume")
        assert wrong.status_code == 422
        assert browser.send("/wallet/profile/name", "/wallet/profile", username="Alice A").status_code == 303
        rows = one.rows(
            "select username, paused, limit_debit_units, pin_failures from sub_user where user_id = %s",
            one.user_id,
        )
        assert rows == [("Alice A", True, 5_000_000, 1)]
        logs.append(_list_audit(one))
        failures = platform.rows(
            "select count(*) from failed_sign_in where merchant_id = %s", one.merchant_id
        )
        assert failures == [(1,)]
    here, there = logs
    done = [entry for entry in there if not entry[1].endswith((".asked", ".refused"))]
    assert done == here
    assert [entry[1] for entry in here] == [
        "sub_user.set_pin",
        "sub_user.change_pin",
        "sub_user.set",
        "sub_user.set",
    ]
    assert [entry[1] for entry in there] == [
        "sub_user.set_pin.asked",
        "sub_user.set_pin",
        "sub_user.change_pin.asked",
        "sub_user.change_pin",
        "sub_user.set.asked",
        "sub_user.set",
        "sub_user.set.asked",
        "sub_user.set.refused",
        "sub_user.set.asked",
        "sub_user.set",
    ]


def test_a_wallet_whose_cell_is_away_says_to_try_again(
    cells: tuple[Layout, Cluster], tmp_path: Path, clients: list[httpx.Client]
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        near, far = open_shops(platform, layout)
        here, there = (_open_wallet(one, clients) for one in (near, far))
        chinese = _open_wallet(far, clients, "zh-CN")
        link = far.shop.client.do("getMerchantCustomer", extUserId="alice")["url"]
        cluster.kill()
        for path in PAGES:
            assert here.get(path).status_code == 200, path
            answer = there.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2"), path
            assert "try again" in answer.text, path
            assert "far" not in read_text(answer.text), path
        assert "请稍后再试" in chinese.get("/wallet").text
        assert there.get(httpx.URL(link).path).status_code == 503
        cluster.start()
        wait_until(lambda: there.get("/wallet").status_code == 200, "the cell is back")


def test_open_pages_of_other_cells_hear_of_changes_while_one_is_away(
    cells: tuple[Layout, Cluster],
    tmp_path: Path,
    clients: list[httpx.Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "CHECK_S", 0.0)
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform, ExitStack() as stack:
        shops = open_shops(platform, layout)
        told = []
        for one in shops:
            browser = _open_wallet(one, clients)
            url = live_url(browser.get("/wallet"))
            told.append(events(stack.enter_context(browser.client.stream("GET", url))))
        assert [next(each) for each in told] == [("balance", '{"balance":"480.00"}')] * 2
        cluster.kill()
        near, far = shops
        for number, balance in enumerate(("481.00", "482.00")):
            near.shop.client.do(CREDIT, **credit(f"more{number}", near.address, "1"))
            assert next(told[0]) == ("balance", f'{{"balance":"{balance}"}}')
            assert next(told[0]) == ("activity", "{}")
        cluster.start()
        wait_until(lambda: far.shop.client.call("getMerchantBalance").code == 200, "the cell is back")
        far.shop.client.do(CREDIT, **credit("more", far.address, "1"))
        assert next(told[1]) == ("balance", '{"balance":"481.00"}')
