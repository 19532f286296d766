"""A cell whose server stands still: nobody waits for it longer than the limits, and then nobody at all."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cells.layout import far_cluster
from tests.cells.test_console import AWAY
from tests.cells.two_shops import open_shops
from tests.console.conftest import People
from tests.journeys.conftest import running
from tests.waits import wait_until

from merchant_wallet.web import cells


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPEN_S", "ANSWER_S", "HOLD_S"):
        monkeypatch.setattr(cells, name, 0.5)


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("first", ["list", "order"])
def test_a_silent_cell_is_away_for_all_pages_once_one_has_found_out(
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
                assert (AWAY if path == lists else "Cell far is away") in answer.text
            for _ in range(20):
                assert AWAY in owner.page(lists)
                assert owner.get(order).status_code == 503
                assert owner.get(f"/console/withdrawals/{near.order_id}").status_code == 200
        wait_until(lambda: AWAY not in owner.page(lists), "the cell is back")
        assert owner.get(order).status_code == 200
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
