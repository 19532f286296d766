"""A payer that is killed at any point of an attempt: the next one ends the order, and money moves once."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from merchant_wallet.chains.addresses import SANDBOX_FAILING, format_address

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
CHILD = Path(__file__).with_name("dying_payer.py")
PAID_POINTS = [
    "before TakeUp",
    "after TakeUp",
    "before build",
    "after build",
    "before broadcast",
    "after broadcast",
    "after judge",
    "before Settle",
    "after Settle",
]
FAILED_POINTS = ["before Fail", "after Fail", "before Refund", "after Refund"]


async def die_paying(shop: "Shop", point: str) -> None:
    """Let a payer in its own process begin, and see it killed at the point."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, shop.url, str(shop.clock.now_ms), point
    )
    assert await child.wait() == -signal.SIGKILL
    # Past every moment that the dead payer can have written down.
    shop.clock.advance(60_000)


@pytest.mark.parametrize("point", PAID_POINTS)
def test_a_payer_killed_at_any_point_pays_no_order_twice_and_loses_none(
    in_shop: "InShop", point: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(10 * COIN, fee=COIN)
        await die_paying(shop, point)
        before = await shop.rows("select raw from payout where raw is not null")
        assert await shop.pay(shop.payer(), order) == 2
        assert [row[2] for row in await shop.transfers()] == [9 * COIN]
        after = await shop.rows("select raw from payout where raw is not null")
        assert len(after) == 1
        assert before in ([], after)
        assert await shop.rows("select count(*) from entry where kind = 'settle'") == [(1,)]
        assert (await shop.balances()).get("hold:USDT", 0) == 0

    in_shop(scenario)


@pytest.mark.parametrize("point", FAILED_POINTS)
def test_a_payer_killed_while_it_gives_an_order_up_refunds_it_once(in_shop: "InShop", point: str) -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(10 * COIN, format_address("TRC20", SANDBOX_FAILING))
        await die_paying(shop, point)
        assert await shop.pay(shop.payer(), order) == 6
        assert await shop.rows("select count(*) from entry where kind = 'refund'") == [(1,)]
        assert await shop.balances() == {"merchant:USDT": 1000 * COIN, "adjustment:USDT": -1000 * COIN}

    in_shop(scenario)
