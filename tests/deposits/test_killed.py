"""Watcher and crediting worker killed at any point: each deposit is still credited, and once."""

import asyncio
import signal

import pytest
from tests.crash_points import run_killed
from tests.deposits.conftest import COIN, SENDER, START_MS, DepositScene, InScene, address
from tests.deposits.killable_watcher import at, work
from tests.fork_server import fork_program

from merchant_wallet.deposits.sandbox_deposits import add_deposit

POINTS = {
    "while it reads": [
        "before final 1",
        "after final 2",
        "before transfers 1",
        "after transfers 1",
        "after transfers 2",
    ],
    # The cursor and its transfers are home's, and no cell has them.
    "before the cell has it": ["after move_final 1", "after move_final 3"],
    # The cell has them as deposits, and home does not know it.
    "before home knows that": ["after settle 1", "before mark_taken 2", "after mark_taken 1"],
    # Home has the block of the credit, and the book has no credit.
    "before the book has it": ["before record_credits 1", "after record_credits 1", "after record_credits 2"],
    "around the credit": ["before credit 1", "after credit 1", "after credit 3"],
}
"""Each is passed with transfers of its own."""
TRANSFERS = 5


WITH_SIGNAL = "after settle 1"
"""Here the program is a process of its own, which is killed by a signal."""


async def kill_at(scene: DepositScene, point: str) -> None:
    """Run the program until it dies at the point."""
    if point != WITH_SIGNAL:
        assert await run_killed(work(scene.home_url, scene.url), at(point))
        return
    child = fork_program("tests.deposits.killable_watcher", scene.home_url, scene.url, point)
    try:
        assert await asyncio.to_thread(child.wait_for_state) == -signal.SIGKILL
    finally:
        child.end()


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
def test_a_process_killed_at_any_point_loses_and_doubles_nothing(
    in_each_layout: InScene, points: list[str]
) -> None:
    async def scenario(scene: DepositScene) -> None:
        for killed, point in enumerate(points):
            for number in range(TRANSFERS):
                units = COIN + TRANSFERS * killed + number
                await add_deposit(scene.home, "ERC20", SENDER, address("ulla"), units, START_MS)
            await kill_at(scene, point)
            assert not await run_killed(work(scene.home_url, scene.url), at("never"))
            await see_each_credited_once(scene, (killed + 1) * TRANSFERS)
        await scene.expect_sound()

    in_each_layout(scenario)


async def see_each_credited_once(scene: DepositScene, count: int) -> None:
    """So many transfers, in home, in the cell and in the book."""
    total = count * COIN + sum(range(count))
    assert await scene.balances() == {"chain:ERC20:USDT": -total, "ulla": total}
    assert await scene.rows("select count(*), count(distinct entry_id) from deposit_credit") == [
        (count, count)
    ]
    # Home and the cell have the same transfers, and home knows it.
    transfers = await scene.home_rows(
        "select tx_hash, block_hash, amount from chain_transfer order by tx_hash"
    )
    assert await scene.rows("select tx_hash, block_hash, amount from deposit order by tx_hash") == transfers
    assert await scene.home_rows("select count(*) from chain_transfer where taken_ms is null") == [(0,)]
    assert await scene.home_rows("select tx_hash, block_hash from credited_transaction order by tx_hash") == [
        row[:2] for row in transfers
    ]
