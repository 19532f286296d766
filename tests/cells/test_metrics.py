"""The metrics of all cells together, and what they say of a cell that is away."""

import asyncio
from functools import partial

from tests.cells.layout import Layout, far_cluster
from tests.crash.shop import open_shop, run
from tests.observability.test_metrics import LABELS, Shown, read_page
from tests.roles import as_web

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.base.settings import Settings
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.observability.metrics import Metrics
from merchant_wallet.processes.cell_connections import CellConnections


def show(url: str) -> Shown:
    async def look() -> bytes:
        home = partial(connect, as_web(url))
        cells = Directory(as_web(url))
        apart = CellConnections(home, cells)
        metrics = Metrics(
            home,
            process="web",
            clock=now_ms,
            settings=Settings(),
            cells=cells,
            reach_apart=apart.reach_apart,
        )
        try:
            return await metrics.render()
        finally:
            await metrics.close()
            await apart.close()

    return read_page(asyncio.run(look()))


def choose(shown: Shown, prefix: str) -> Shown:
    """The metrics of money, orders and supplies, without their ages."""
    return {
        key: value for key, value in shown.items() if key[0].startswith(prefix) and "seconds" not in key[0]
    }


def _mirror(layout: Layout) -> None:
    async def act() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await mirror(home, far)

    asyncio.run(act())


def test_a_book_counts_the_same_in_an_apart_cell(layout: Layout) -> None:
    shops = [run(open_shop(layout.url, name)) for name in ("First", "Second")]
    before = show(layout.url)
    assert before["wallet_money_coins", ("merchant", "KFB")] > 0
    layout.send_away(shops[1])
    _mirror(layout)
    after = show(layout.url)
    for prefix in ("wallet_money_coins", "wallet_orders", "wallet_callbacks", "wallet_book_ids_left"):
        assert choose(after, prefix) == choose(before, prefix)
    assert after["wallet_cell_up", ("far",)] == 1
    assert 0 <= after["wallet_cell_rates_age_seconds", ("far",)] < 60
    assert LABELS["wallet_cell_up"] == ("cell",)


def test_a_cell_that_is_away_is_named_and_the_others_are_shown(database_url: str) -> None:
    with far_cluster(database_url) as (layout, cluster):
        shops = [run(open_shop(layout.url, name)) for name in ("First", "Second")]
        whole = show(layout.url)["wallet_money_coins", ("merchant", "KFB")]
        layout.send_away(shops[1])
        assert show(layout.url)["wallet_money_coins", ("merchant", "KFB")] == whole
        cluster.kill()
        shown = show(layout.url)
        assert shown["wallet_database_up", ("web",)] == 1
        assert shown["wallet_cell_up", ("far",)] == 0
        assert shown["wallet_money_coins", ("merchant", "KFB")] == whole / 2
        assert ("wallet_cell_rates_age_seconds", ("far",)) not in shown
