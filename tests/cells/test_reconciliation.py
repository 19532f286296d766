"""Reconciliation with a book in an apart cell: the same sums as in one database."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.cells.layout import Layout, open_near_layout
from tests.deposits.conftest import in_scene
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    PAID_TO,
    SHOP,
    STRANGER,
    ReconciliationScene,
    address,
    in_reconciliation,
)

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import connect
from merchant_wallet.custody import still_snapshots
from merchant_wallet.custody.balances import CustodyReader
from merchant_wallet.custody.sweeps.unswept import list_unswept
from merchant_wallet.hot_wallet.stops import list_stops
from merchant_wallet.processes.reconciliation import Reconciler

if TYPE_CHECKING:
    from tests.reconciliation.conftest import InReconciliation

__all__ = ["in_reconciliation", "in_scene"]

MONEY = ("books", "chain", "hotWallets", "unswept", "explained", "unexplained", "sound", "lines")


@pytest.fixture
def database_url(url_with_cell: str) -> str:
    """The scene's database has the tables of an apart cell."""
    return url_with_cell


async def trade(scene: ReconciliationScene) -> None:
    """Money comes in, one order is paid, one is under way, and one deposit is not taken in yet."""
    await scene.fund(900 * COIN)
    scene.chain.put((STRANGER, address("ulla"), 70 * COIN))
    await scene.watch()
    for order_units, is_settled in ((30 * COIN, True), (40 * COIN, False)):
        order_id, tx_hash = await scene.sign(order_units)
        scene.chain.put((HOT, PAID_TO, order_units), tx_hash=tx_hash)
        if is_settled:
            await scene.settle(order_id, tx_hash)
    scene.chain.put((STRANGER, address("ulla"), 5 * COIN))


async def reconcile(scene: ReconciliationScene, layout: Layout) -> dict[str, Any]:
    custody_readers = {name: CustodyReader(chain, chain.keeps_past) for name, chain in scene.chains.items()}
    reconciler = Reconciler(
        scene.deposits.connect,
        lambda _: custody_readers,
        cells=layout.make_directory(),
        clock=scene.deposits.clock,
        wait_s=0.02,
    )
    try:
        return await reconciler.reconcile()
    finally:
        await reconciler.close()


def test_a_book_that_goes_to_a_cell_changes_no_sum(in_reconciliation: "InReconciliation") -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await trade(scene)
        layout = open_near_layout(scene.deposits.url)
        before = await reconcile(scene, layout)
        assert before["sound"]
        layout.move_book(SHOP)
        after = await reconcile(scene, layout)
        for one, other in zip(before["chains"], after["chains"], strict=True):
            assert {name: one[name] for name in MONEY} == {name: other[name] for name in MONEY}
        assert before["custody"] == after["custody"]

    in_reconciliation(scenario)


def test_money_that_leaves_an_address_in_a_cell_unseen_is_noticed(
    in_reconciliation: "InReconciliation",
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await trade(scene)
        layout = open_near_layout(scene.deposits.url)
        layout.move_book(SHOP)
        scene.chain.put((address("ulla"), STRANGER, 70 * COIN))
        assert not (await reconcile(scene, layout))["sound"]

    in_reconciliation(scenario)


def test_while_a_cell_is_away_the_results_say_so_and_no_payout_is_stopped(
    in_reconciliation: "InReconciliation",
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await trade(scene)
        layout = open_near_layout(scene.deposits.url)
        layout.move_book(SHOP)
        with layout.both() as (_, far):
            far.execute("update cell_state set is_open = false")
        document = await reconcile(scene, layout)
        assert not document["sound"]
        assert {each["cause"] for each in document["chains"]} == {
            "cell far is away: cell far is closed or has moved"
        }
        assert await list_stops(scene.deposits.connection) == []

    in_reconciliation(scenario)


@pytest.mark.parametrize("min_coins", [1, 71])
def test_what_is_to_be_swept_is_listed_over_all_cells(
    in_reconciliation: "InReconciliation", min_coins: int
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 70 * COIN))
        scene.chain.put((STRANGER, address("shop"), 80 * COIN))
        await scene.watch()
        await scene.deposits.rows(
            "insert into xpub_pool (account_no, xpubs, merchant_id) select merchant_id,"
            ' \'{"ERC20": "x", "TRC20": "x"}\', merchant_id from merchant on conflict do nothing'
        )
        home = scene.deposits.connection
        before = await list_unswept(Databases(home), "ERC20", min_coins * COIN)
        layout = open_near_layout(scene.deposits.url)
        layout.move_book(SHOP)
        async with await connect(layout.far_url) as far:
            after = await list_unswept(Databases(home, {1: far}), "ERC20", min_coins * COIN)
        assert after == before
        assert len(after) == (2 if min_coins == 1 else 1)

    in_reconciliation(scenario)


@pytest.mark.parametrize("is_opened", [True, False])
def test_while_a_book_is_between_two_cells_nothing_is_compared_and_no_payout_is_stopped(
    in_reconciliation: "InReconciliation", is_opened: bool
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await trade(scene)
        layout = open_near_layout(scene.deposits.url)
        before = await reconcile(scene, layout)
        rows = scene.deposits.rows
        await rows("update book set is_open = false")
        await rows(
            "insert into merchant_move"
            " (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)"
            " values (1001, gen_random_uuid(), 'switching', 0, 1, 0, 0)"
        )
        comparing = asyncio.create_task(reconcile(scene, layout))
        if is_opened:
            await asyncio.sleep(0.1)
            # What a worker does whose mover has died.
            await rows("update book set is_open = true")
            await rows("update merchant_move set state = 'copying'")
        document = await comparing
        assert document["sound"] == is_opened
        if is_opened:
            assert document["custody"] == before["custody"]
        else:
            causes = {each["cause"] for each in document["chains"]}
            assert causes == {"a book is closed between two cells: see `merchant-wallet doctor`"}
        assert await list_stops(scene.deposits.connection) == []

    in_reconciliation(scenario)


def test_a_snapshot_over_a_move_is_not_used(in_reconciliation: "InReconciliation") -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        layout = open_near_layout(scene.deposits.url)
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            databases = Databases(home, {1: far})
            moves = await still_snapshots.read_moves(home)
            await scene.deposits.rows(
                "update merchant set move_version = move_version + 1 where merchant_id = 1001"
            )
            async with home.transaction(), far.transaction():
                with pytest.raises(still_snapshots.BooksMoved):
                    await still_snapshots.begin_still_snapshot(databases, moves)

    in_reconciliation(scenario)
