"""Obstacles that appear after a transfer is signed: the order waits, and keeps its nonce and its bytes."""

from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.chains.protocol import Blocked, Obstacle, Payout, SignedTransfer, Unpayable, Verdict
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.withdrawals.payouts import list_blocked, read_signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.withdrawals.conftest import InShop, Shop

APART = "the nodes are too far apart in time"
BLOCKED = Blocked(Obstacle("node", APART))
NO_FINAL = NodeRefused("n.example", -32000, "finalized block not found")
UNPAYABLE = Unpayable("the token has blacklisted the recipient")


class FailingChain(EvmLikeFake):
    """Its `action`, `judge` or `broadcast`, raises the error."""

    action = ""
    error: Exception = BLOCKED

    async def broadcast(self, raw: bytes) -> None:
        if self.action == "broadcast":
            raise self.error
        await super().broadcast(raw)

    async def judge(self, payout: Payout, signed: "Sequence[SignedTransfer]") -> Verdict:
        if self.action == "judge":
            raise self.error
        return await super().judge(payout, signed)


@pytest.mark.parametrize(
    ("action", "error", "obstacle"),
    [
        ("judge", BLOCKED, ("node", APART)),
        ("broadcast", BLOCKED, ("node", APART)),
        ("judge", UNPAYABLE, ("fault", str(UNPAYABLE))),
        ("broadcast", UNPAYABLE, ("fault", str(UNPAYABLE))),
        ("judge", NO_FINAL, ("node", "n.example: finalized block not found (-32000)")),
    ],
)
def test_an_order_waits_with_its_late_obstacle_and_is_paid_once_it_is_gone(
    in_shop: "InShop", action: str, error: Exception, obstacle: tuple[str, str]
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = FailingChain(shop.folder / "sequenced", "ERC20"), await shop.order()
        payer = shop.payer(chains={"ERC20": chain})
        chain.action, chain.error = action, error
        await shop.turn(payer)
        assert [(one.kind, one.cause) for one in await list_blocked(shop.connection)] == [obstacle]
        [signed] = await read_signed(shop.connection, 1001, order.order_id)
        chain.action = ""
        shop.clock.advance(60_000)
        await shop.turn(payer)
        chain.mine(3)
        shop.clock.advance(60_000)
        await shop.turn(payer)
        assert await shop.status(order) == 2
        assert [one.signed for one in await read_signed(shop.connection, 1001, order.order_id)] == [
            signed.signed
        ]
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)
