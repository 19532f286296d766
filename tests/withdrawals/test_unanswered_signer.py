"""A signer that gave no answer may have signed: its order keeps the nonce, the next order gets another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.chains.protocol import Payout, SignedTransfer
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.withdrawals.payouts import list_blocked

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


class Unanswered(EvmLikeFake):
    """Its signer signs for one order, but the answer is lost."""

    error: Exception | None = None
    lost_id = 0

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        signed = await super().build(payout, earlier)
        if self.error is not None and payout.payout_id == self.lost_id:
            raise self.error
        return signed


@pytest.mark.parametrize("error", [SignerAway("no answer in 5 s"), TimeoutError()])
def test_an_order_keeps_the_nonce_that_its_signer_may_have_signed_for(
    in_shop: "InShop", error: Exception
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, first = Unanswered(shop.folder / "sequenced", "ERC20"), await shop.order()
        chain.error, chain.lost_id = error, first.order_id
        payer = shop.payer(chains={"ERC20": chain})
        await shop.turn(payer)
        second = await shop.order()
        await shop.turn(payer)
        nonces = "select order_id, nonce from payout_reservation order by nonce"
        assert await shop.rows(nonces) == [(first.order_id, 0), (second.order_id, 1)]
        assert [waiting.order_id for waiting in await list_blocked(shop.connection)] == [first.order_id]
        chain.error = None
        shop.clock.advance(50_000)
        await shop.turn(payer)
        assert await shop.rows("select order_id from payout_signed order by order_id") == [
            (first.order_id,),
            (second.order_id,),
        ]
        for _ in range(6):
            chain.mine()
            shop.clock.advance(5_000)
            await shop.turn(payer)
        assert [await shop.status(order) for order in (first, second)] == [2, 2]

    in_shop(scenario)
