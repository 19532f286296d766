"""The worker side with a cell apart: everything that it does for the default cell it does for this one."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.cells.layout import Layout, far_cluster, open_near_layout
from tests.cells.test_http import open_shop as open_kfb_shop
from tests.journeys.client import Answer
from tests.journeys.conftest import Platform, Shop, running
from tests.journeys.endpoint import open_endpoint
from tests.journeys.orders import withdrawal
from tests.roles import as_worker
from tests.waits import wait_until

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.deposits.sandbox_deposits import add_deposit
from merchant_wallet.processes import worker
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.maintenance import Maintenance
from merchant_wallet.reporting import rollup

CREATE = "createMerchantWithdrawOrder"
PAID, APPROVED = "2", "0"


def open_shop(platform: Platform, layout: Layout, *, away: bool) -> Shop:
    """A merchant with 100 USDT."""
    shop = open_kfb_shop(platform, layout, away=away)
    shop.fund("USDT", "100")
    return shop


def order(shop: Shop, **fields: str) -> Answer:
    return shop.client.do(CREATE, **withdrawal(shop.next_order(), "3", **fields))


def status(shop: Shop, made: Answer) -> str:
    found = shop.client.do("queryOrder", orderId=made["orderId"], mcOrderId=str(made["mcOrderId"]))
    return str(found["txnStatus"])


def wait_until_paid(shop: Shop, made: Answer) -> None:
    wait_until(lambda: status(shop, made) == PAID, "the order is paid")


def test_orders_callbacks_and_figures_of_an_apart_cell_are_worked_on(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Checkpoints come once a minute otherwise, figures every five seconds.
    monkeypatch.setattr(Maintenance.run, "__kwdefaults__", {"interval_s": 0.2})
    monkeypatch.setattr(rollup, "INTERVAL_S", 0.2)
    with running(layout.url, tmp_path, working=True) as platform, open_endpoint() as endpoint:
        near, away = (open_shop(platform, layout, away=away) for away in (False, True))
        orders = {shop.merchant_id: order(shop, notifyUrl=endpoint.url) for shop in (near, away)}
        for shop in (near, away):
            made = orders[shop.merchant_id]
            wait_until_paid(shop, made)
            wait_until(partial(lambda made: endpoint.statuses(made) == [PAID], made), "the callback came")
        with layout.both() as (_, far):
            figures = "select count(*) from daily_figure where merchant_id = %s"
            wait_until(lambda: far.execute(figures, (away.merchant_id,)).fetchone() != (0,), "it is counted")
        checkpoint = platform.base.checkpoint_dir / f"{away.merchant_id}.jsonl"
        wait_until(checkpoint.exists, "its book has a checkpoint")


@pytest.mark.parametrize("confirm_ms", [pytest.param(0, marks=pytest.mark.extended), 500])
def test_a_deposit_of_an_apart_cell_is_shown_and_credited(
    layout: Layout, tmp_path: Path, confirm_ms: int
) -> None:
    with running(layout.url, tmp_path, working=True, sandbox_confirm_ms=confirm_ms) as platform:
        away = open_shop(platform, layout, away=True)
        _, recipient = parse_wallet_address(away.user("carol")["tronAddress"])
        platform.operate(lambda conn: add_deposit(conn, "TRC20", bytes(20), recipient, 7_000_000, now_ms()))

        def read_states() -> list[tuple[str]]:
            with layout.both() as (_, far):
                return far.execute("select status::text from deposit").fetchall()

        if confirm_ms:
            wait_until(lambda: read_states() != [], "it is shown before it is final")
        wait_until(lambda: away.user("carol")["balance"] != "0", "it is credited")
        assert len(read_states()) == 1


def test_a_cell_that_is_added_meanwhile_is_worked_for(url_with_cell: str, tmp_path: Path) -> None:
    with running(url_with_cell, tmp_path, working=True) as platform:
        layout = open_near_layout(url_with_cell)
        away = platform.open_merchant(cell_id=layout.far_id)
        # A process reads the table of cells once a second.
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the web side knows it")
        away.fund("USDT", "100")
        wait_until_paid(away, order(away))


def test_a_cell_whose_server_dies_stops_nobody_else_and_goes_on_when_it_is_back(
    database_url: str, tmp_path: Path
) -> None:
    with (
        far_cluster(database_url) as (layout, cluster),
        running(layout.url, tmp_path, working=True) as platform,
    ):
        near, away = (open_shop(platform, layout, away=away) for away in (False, True))
        wait_until_paid(away, order(away))
        made = order(away)
        cluster.kill()
        for _ in range(3):
            wait_until_paid(near, order(near))
        cluster.start()
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the cell is back")
        wait_until_paid(away, made)
        wait_until_paid(away, order(away))


def work_for(layout: Layout, platform: Platform, name: str, check: Callable[[], None]) -> None:
    """Work for one cell alone, as `work --cell` does, while `check` runs."""

    async def live() -> None:
        base, stop = make_base(platform.base.settings, as_worker(layout.url)), asyncio.Event()
        working = asyncio.create_task(worker.work(base, lambda: None, stop, only=name))
        try:
            await asyncio.to_thread(check)
        finally:
            stop.set()
            await working

    asyncio.run(live())


def test_a_worker_of_one_cell_pays_its_orders_once_its_books_were_compared(
    layout: Layout, tmp_path: Path
) -> None:
    with running(layout.url, tmp_path) as platform:
        near, away = (open_shop(platform, layout, away=away) for away in (False, True))
        others, made = order(near), order(away)

        def check() -> None:
            with layout.both() as (home, far):
                queued = "select count(*) from callback where merchant_id = %s"
                assert far.execute(queued, (away.merchant_id,)).fetchone() == (0,)
                assert home.execute("select compared_ms from cell where name = 'far'").fetchone() == (0,)
                assert status(away, made) == APPROVED
                home.execute("update cell set compared_ms = %s where name = 'far'", (now_ms() + 60_000,))
            wait_until_paid(away, made)

        work_for(layout, platform, "far", check)
        assert status(near, others) == APPROVED


def test_a_cell_that_does_not_exist_is_named(layout: Layout, tmp_path: Path) -> None:
    with running(layout.url, tmp_path) as platform:
        base = make_base(platform.base.settings, as_worker(layout.url))
        with pytest.raises(ConfigError, match="there is no apart cell west; there are: far"):
            asyncio.run(worker.require_cell(base, "west"))
        assert isinstance(base.cells.list()[1], Cell)
