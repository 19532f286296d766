"""Signed bytes that nodes refuse because their fee is too low by now: they are replaced."""

import json
from typing import TYPE_CHECKING

from tests.withdrawals.fake_chains import STUCK_BLOCKS, EvmLikeFake

from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.withdrawals.payouts import list_blocked, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


class PriceFloorChain(EvmLikeFake):
    """Like nodes with a full mempool: it refuses what pays less than the current price."""

    async def broadcast(self, raw: bytes) -> None:
        with self.state() as state:
            price = state["fee"]
        if json.loads(raw)["fee"] < price:
            raise NodeRefused("a node", -32000, "transaction underpriced")
        await super().broadcast(raw)


def test_what_nodes_refuse_for_its_fee_is_replaced_when_it_is_stuck(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = PriceFloorChain(shop.folder / "sequenced", "ERC20"), await shop.order()
        payer = shop.payer(chains={"ERC20": chain})
        await shop.turn(payer)
        chain.drop_pool()
        chain.set(fee=1_100)
        shop.clock.advance(5_000)
        await shop.turn(payer)
        # It is not stuck yet: the order waits and its cause is shown.
        assert [waiting.kind for waiting in await list_blocked(shop.connection)] == ["fault"]
        chain.mine(STUCK_BLOCKS)
        shop.clock.advance(30_000)
        await shop.turn(payer)
        chain.mine(3)
        shop.clock.advance(5_000)
        await shop.turn(payer)
        assert await shop.status(order) == 2
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)
