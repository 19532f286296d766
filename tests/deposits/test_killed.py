"""Watcher and crediting worker killed at any point: each deposit is still credited, and once."""

import asyncio
import signal

import pytest
from tests.deposits.conftest import COIN, SENDER, START_MS, DepositScene, InScene, address
from tests.fork_server import fork_program

from merchant_wallet.deposits.sandbox_deposits import add_deposit

POINTS = [
    "before final 1",
    "after final 2",
    "before transfers 1",
    "after transfers 1",
    "after transfers 2",
    # The cursor and its transfers are home's, and no cell has them.
    "after move_final 1",
    "after move_final 3",
    # The cell has them as deposits, and home does not know it.
    "after settle 1",
    "before mark_taken 2",
    "after mark_taken 1",
    # Home has the block of the credit, and the book has no credit.
    "before record_credits 1",
    "after record_credits 1",
    "after record_credits 2",
    "before credit 1",
    "after credit 1",
    "after credit 3",
]
TRANSFERS = 5


def work(scene: DepositScene, point: str) -> int | str:
    """Run a process until it dies at the point or has done everything. Returns its exit status."""
    child = fork_program("tests.deposits.killable_watcher", scene.home_url, scene.url, point)
    try:
        return child.wait_for_state()
    finally:
        child.end()


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_any_point_loses_and_doubles_nothing(in_each_layout: InScene, point: str) -> None:
    async def scenario(scene: DepositScene) -> None:
        for number in range(TRANSFERS):
            await add_deposit(scene.home, "ERC20", SENDER, address("ulla"), COIN + number, START_MS)
        assert await asyncio.to_thread(work, scene, point) == -signal.SIGKILL
        assert await asyncio.to_thread(work, scene, "never") == 0
        total = TRANSFERS * COIN + sum(range(TRANSFERS))
        assert await scene.balances() == {"chain:ERC20:USDT": -total, "ulla": total}
        assert await scene.rows("select count(*), count(distinct entry_id) from deposit_credit") == [
            (TRANSFERS, TRANSFERS)
        ]
        # Home and the cell have the same transfers, and home knows it.
        transfers = await scene.home_rows(
            "select tx_hash, block_hash, amount from chain_transfer order by tx_hash"
        )
        assert (
            await scene.rows("select tx_hash, block_hash, amount from deposit order by tx_hash") == transfers
        )
        assert await scene.home_rows("select count(*) from chain_transfer where taken_ms is null") == [(0,)]
        assert await scene.home_rows(
            "select tx_hash, block_hash from credited_transaction order by tx_hash"
        ) == [row[:2] for row in transfers]
        await scene.expect_sound()

    in_each_layout(scenario)
