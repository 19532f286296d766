"""A cell that is slow, and one whose server stands still: nobody waits for it longer than the limits.

A slow cell answers a ping, and stays on all pages that it answers in time. A silent one does not: it is away.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cells.layout import Layout, far_cluster
from tests.cells.test_console import AWAY
from tests.cells.two_shops import open_shops
from tests.console.conftest import People
from tests.journeys.conftest import running
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync
from merchant_wallet.web import cells

SLOW = "Slow now: cell far"
NAMED = {True: (SLOW, AWAY), False: ("Cell far is slow", "Cell far is away")}
"""What a list says, and what a page about a merchant of the cell says."""


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPEN_S", "ANSWER_S", "HOLD_S", "PING_S"):
        monkeypatch.setattr(cells, name, 0.5)


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("first", ["list", "order"])
def test_a_silent_cell_is_slow_for_the_first_pages_and_away_for_all_once_a_ping_has_found_out(
    first: str, database_url: str, tmp_path: Path
) -> None:
    with far_cluster(database_url) as (layout, cluster), running(layout.url, tmp_path) as platform:
        near, far = open_shops(platform, layout)
        people = People(platform)
        owner = people.signed_in("owner")
        lists = "/console/withdrawals/all"
        order = f"/console/withdrawals/{far.order_id}"
        assert AWAY not in owner.page(lists)
        # The page has a connection of the pool now, and it stays open.
        with cluster.silent():
            for path in (lists, order) if first == "list" else (order, lists):
                answer = owner.get(path)
                assert answer.status_code == (503 if path == order else 200)
                assert any(text in answer.text for text in NAMED[path == lists])
            wait_until(lambda: AWAY in owner.page(lists), "the ping has failed")
            assert "Cell far is away" in owner.get(order).text
            for _ in range(20):
                assert AWAY in owner.page(lists)
                assert owner.get(order).status_code == 503
                assert owner.get(f"/console/withdrawals/{near.order_id}").status_code == 200
        wait_until(lambda: AWAY not in owner.page(lists), "the cell is back")
        assert owner.get(order).status_code == 200
        people.leave()


@pytest.mark.usefixtures("short_limits")
def test_a_slow_list_says_so_and_its_cell_stays_on_all_other_pages(layout: Layout, tmp_path: Path) -> None:
    with running(layout.url, tmp_path) as platform, connect_sync(layout.far_url) as far:
        near, shop = open_shops(platform, layout)
        people = People(platform)
        owner = people.signed_in("owner")
        with far.transaction():
            far.execute(b"lock table sub_user")
            for _ in range(3):
                page = owner.page("/console/sub-users")
                assert SLOW in page
                assert (f"/users/{near.user_id}" in page, f"/users/{shop.user_id}" in page) == (True, False)
                orders = owner.page("/console/withdrawals/all")
                assert (AWAY in orders, SLOW in orders) == (False, False)
                assert f"/console/withdrawals/{shop.order_id}" in orders
            profile = owner.get(f"/console/merchants/{shop.merchant_id}/users/{shop.user_id}")
            assert (profile.status_code, "Cell far is slow" in profile.text) == (503, True)
        whole = owner.page("/console/sub-users")
        assert (SLOW in whole, f"/users/{shop.user_id}" in whole) == (False, True)
        people.leave()


@pytest.mark.usefixtures("short_limits")
def test_a_cell_whose_connections_are_all_in_use_is_slow_and_not_away(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "HOLD_S", 2.0)
    with running(layout.url, tmp_path) as platform, connect_sync(layout.far_url) as far:
        _, shop = open_shops(platform, layout)
        people = People(platform)
        owner, *crowd = [people.signed_in(role) for role in ("owner", "operator", "operator", "operator")]
        profile = f"/console/merchants/{shop.merchant_id}/users/{shop.user_id}"
        with ThreadPoolExecutor(len(crowd)) as threads, far.transaction():
            far.execute(b"lock table sub_user")
            waiting = [threads.submit(one.get, profile) for one in crowd]
            seen = set()
            while not all(one.done() for one in waiting):
                seen.add(AWAY in owner.page("/console/withdrawals/all"))
            assert {"Cell far is slow" in one.result().text for one in waiting} == {True}
        assert seen == {False}
        people.leave()


def test_pages_that_wait_for_a_silent_cell_keep_nobody_else_waiting(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "HOLD_S", 3.0)
    with far_cluster(database_url) as (layout, cluster), running(layout.url, tmp_path) as platform:
        near, far = open_shops(platform, layout)
        people = People(platform)
        owner = people.signed_in("owner")
        crowd = [people.signed_in("operator") for _ in range(6)]
        path = f"/console/withdrawals/{far.order_id}"
        with ThreadPoolExecutor(len(crowd)) as threads:
            assert {answer.status_code for answer in threads.map(lambda one: one.get(path), crowd)} == {200}
            with cluster.silent():
                waiting = [threads.submit(one.get, path) for one in crowd]
                for _ in range(10):
                    assert owner.get(f"/console/withdrawals/{near.order_id}").status_code == 200
                assert {one.result().status_code for one in waiting} == {503}
        people.leave()
