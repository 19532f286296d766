"""Watcher and creditor killed at any point: what arrived is credited all the same, and once."""

import asyncio
import signal

import pytest
from tests.deposits.conftest import (
    COIN,
    SENDER,
    START_MS,
    InTown,
    Town,
    address,
)
from tests.fork_server import fork_program

from merchant_wallet.deposits.sandbox_deposits import add_deposit

POINTS = [
    "before final 1",
    "after final 2",
    "before arrivals 1",
    "after arrivals 1",
    "after arrivals 2",
    "before credit 1",
    "after credit 1",
    "after credit 3",
]
TRANSFERS = 5


def work(url: str, point: str) -> int | str:
    """Let a process work until it dies at the point, or has done all; its exit status."""
    child = fork_program("tests.deposits.dying_watcher", url, point)
    try:
        return child.wait_for_state()
    finally:
        child.end()


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_any_point_loses_and_doubles_nothing(in_town: InTown, point: str) -> None:
    async def scenario(town: Town) -> None:
        for number in range(TRANSFERS):
            await add_deposit(town.connection, "ERC20", SENDER, address("ulla"), COIN + number, START_MS)
        assert await asyncio.to_thread(work, town.url, point) == -signal.SIGKILL
        assert await asyncio.to_thread(work, town.url, "never") == 0
        total = TRANSFERS * COIN + sum(range(TRANSFERS))
        assert await town.balances() == {"chain:ERC20:USDT": -total, "ulla": total}
        assert await town.rows("select count(*), count(distinct entry_id) from deposit_credit") == [
            (TRANSFERS, TRANSFERS)
        ]
        await town.expect_sound()

    in_town(scenario)
