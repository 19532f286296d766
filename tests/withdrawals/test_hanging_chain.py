"""A chain whose nodes hang delays its own orders, never those of another chain."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tests.withdrawals.conftest import TRC20_ADDRESS
from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.chains.protocol import Transfer

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

MAX_CONCURRENT = 4


class Hanging(EvmLikeFake):
    """Its nodes accept every request and answer none until they are mended."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ERC20")
        self.mended = asyncio.Event()

    async def check_payable(self, transfer: Transfer) -> None:
        await self.mended.wait()
        await super().check_payable(transfer)


def test_orders_of_a_hanging_chain_leave_room_for_the_others(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        hanging, other = Hanging(shop.folder / "sequenced"), shop.fake("expiring")
        payer = shop.payer(chains={"ERC20": hanging, "TRC20": other}, max_concurrent=MAX_CONCURRENT)
        waiting = [await shop.order() for _ in range(MAX_CONCURRENT + 1)]
        order = await shop.order(address=TRC20_ADDRESS)
        for _ in range(40):
            await payer.start_due()
            await asyncio.sleep(0.05)
            if await shop.status(order) == 2:
                break
            other.mine()
            shop.clock.advance(500)
        assert await shop.status(order) == 2
        assert [await shop.status(one) for one in waiting].count(2) == 0
        hanging.mended.set()
        await payer.finish()

    in_shop(scenario)
