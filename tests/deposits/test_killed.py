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
    "before credit 1",
    "after credit 1",
    "after credit 3",
]
TRANSFERS = 5


def work(url: str, point: str) -> int | str:
    """Run a process until it dies at the point or has done everything. Returns its exit status."""
    child = fork_program("tests.deposits.killable_watcher", url, point)
    try:
        return child.wait_for_state()
    finally:
        child.end()


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_any_point_loses_and_doubles_nothing(in_scene: InScene, point: str) -> None:
    async def scenario(scene: DepositScene) -> None:
        for number in range(TRANSFERS):
            await add_deposit(scene.connection, "ERC20", SENDER, address("ulla"), COIN + number, START_MS)
        assert await asyncio.to_thread(work, scene.url, point) == -signal.SIGKILL
        assert await asyncio.to_thread(work, scene.url, "never") == 0
        total = TRANSFERS * COIN + sum(range(TRANSFERS))
        assert await scene.balances() == {"chain:ERC20:USDT": -total, "ulla": total}
        assert await scene.rows("select count(*), count(distinct entry_id) from deposit_credit") == [
            (TRANSFERS, TRANSFERS)
        ]
        await scene.expect_sound()

    in_scene(scenario)
