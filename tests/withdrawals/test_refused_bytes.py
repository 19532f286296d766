"""Signed bytes that nodes refuse, usually because their fee is too low by now: they are replaced."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.testing import capture_logs
from tests.withdrawals.fake_chains import STUCK_BLOCKS, EvmLikeFake

from merchant_wallet.chains.protocol import Payout, SignedTransfer
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.withdrawals.payouts import list_blocked, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


class PriceFloorChain(EvmLikeFake):
    """Like nodes with a full mempool: it refuses what pays less than the current price.

    `refused` says of each signature whether it was asked for after a refusal.
    """

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self.refused: list[bool] = []

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        self.refused.append(payout.is_refused)
        return await super().build(payout, earlier)

    async def broadcast(self, raw: bytes) -> None:
        with self.state() as state:
            price = state["fee"]
        if json.loads(raw)["fee"] < price:
            raise NodeRefused("a node", -32000, "transaction underpriced")
        await super().broadcast(raw)


def test_what_nodes_refuse_for_its_fee_is_replaced_at_once_and_paid_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = PriceFloorChain(shop.folder / "sequenced", "ERC20"), await shop.order()
        payer = shop.payer(chains={"ERC20": chain})
        await shop.turn(payer)
        chain.drop_pool()
        chain.set(fee=1_100)
        shop.clock.advance(5_000)
        await shop.turn(payer)
        assert chain.refused == [False, True]
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 2
        chain.mine(3)
        shop.clock.advance(5_000)
        await shop.turn(payer)
        assert await shop.status(order) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


class DeafChain(PriceFloorChain):
    """Like nodes whose price rises faster than any replacement."""

    is_deaf = False

    async def broadcast(self, raw: bytes) -> None:
        if self.is_deaf:
            raise NodeRefused("a node", -32000, "transaction underpriced")
        await super().broadcast(raw)


def test_refused_bytes_are_logged_once_where_a_replacement_follows(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = DeafChain(shop.folder / "sequenced", "ERC20"), await shop.order()
        payer = shop.payer(chains={"ERC20": chain})
        await shop.turn(payer)
        chain.drop_pool()
        chain.mine(STUCK_BLOCKS)
        chain.is_deaf = True
        shop.clock.advance(30_000)
        with capture_logs() as lines:
            await shop.turn(payer)
        # The stuck bytes are refused, and so is their replacement, which nothing follows.
        events = [line["event"] for line in lines]
        assert events == ["signed transfer refused", "payout signed", "payout attempt failed"]
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 2
        # It is the nodes' refusal, and no fault of this program.
        assert [waiting.kind for waiting in await list_blocked(shop.connection)] == ["node"]

    in_shop(scenario)


def test_what_is_refused_whatever_it_pays_is_not_signed_again_and_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = DeafChain(shop.folder / "sequenced", "ERC20"), await shop.order()
        chain.is_deaf = True
        payer = shop.payer(chains={"ERC20": chain}, max_builds=3)
        for _ in range(4):
            await shop.turn(payer)
            shop.clock.advance(60_000)
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 3
        [waiting] = await list_blocked(shop.connection)
        assert waiting.kind == "lapsed"
        assert "underpriced" in waiting.cause
        chain.is_deaf = False
        await shop.turn(payer)
        chain.mine(3)
        shop.clock.advance(60_000)
        await shop.turn(payer)
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)
