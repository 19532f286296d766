"""What else the hot wallet sends is known when a payout is signed, so that its coin is enough for all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.chains.protocol import Payout, SignedTransfer
from merchant_wallet.chains.signer import SignerAway

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


class Listening(EvmLikeFake):
    """It notes what each payout is signed beside. Its signer gives no answer for those in `lost`."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self.beside: dict[int, tuple[bytes | None, ...]] = {}
        self.lost: set[int] = set()

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        self.beside[payout.payout_id] = payout.pending
        if payout.payout_id in self.lost:
            raise SignerAway("no answer in 5 s")
        return await super().build(payout, earlier)


def test_a_payout_is_signed_beside_what_is_signed_or_reserved_before_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = Listening(shop.folder / "sequenced", "ERC20")
        payer = shop.payer(chains={"ERC20": chain})
        first = await shop.order()
        await shop.turn(payer)
        second = await shop.order()
        chain.lost.add(second.order_id)
        await shop.turn(payer)
        shop.clock.advance(1)
        third = await shop.order()
        chain.lost.add(third.order_id)
        await shop.turn(payer)
        [(raw,)] = await shop.rows(
            "select raw from payout_signed where order_id = (select min(order_id) from payout_signed)"
        )
        signed = bytes(raw)
        assert chain.beside[first.order_id] == ()
        assert chain.beside[second.order_id] == (signed,)
        assert sorted(chain.beside[third.order_id], key=lambda one: one is None) == [signed, None]
        # The second reserved before the third, so it does not wait for the third.
        shop.clock.advance(50_000)
        await shop.turn(payer)
        assert chain.beside[second.order_id] == (signed,)
        chain.lost.clear()
        shop.clock.advance(50_000)
        await shop.turn(payer)
        for _ in range(6):
            chain.mine()
            shop.clock.advance(5_000)
            await shop.turn(payer)
        fourth = await shop.order()
        await shop.turn(payer)
        assert chain.beside[fourth.order_id] == ()

    in_shop(scenario)
