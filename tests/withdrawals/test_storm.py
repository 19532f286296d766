"""Everything fails at once, at random: abandoned payers, nodes that fail after they acted, lost mempools,
reorganisations, jumping fees. At the end every order is paid once, or it is refunded and was never
paid.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.fake_chains import EvmLikeFake, FakeChain, TronLikeFake, open_fake

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.chains.protocol import Payout, SignedTransfer
from merchant_wallet.hot_wallet.store import list_wallets

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000
ADDRESSES = {
    "sequenced": ("0x742d35cc6634c0532925a3b844bc454e4438f44e", "0x00000000000000000000000000000000000000aa"),
    "expiring": ("TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
}


class Flaky(FakeChain):
    """Random faults of a fake chain's node: errors before and after it acted, and long waits."""

    dice: random.Random
    calm = False

    async def _stumble(self) -> None:
        if self.calm:
            return
        for _ in range(self.dice.choice((0, 0, 20, 200))):
            await asyncio.sleep(0)
        if self.dice.random() < 0.1:
            raise ConnectionError("the node is away")

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        await self._stumble()
        signed = await super().build(payout, earlier)
        await self._stumble()
        return signed

    async def broadcast(self, raw: bytes) -> None:
        await self._stumble()
        await super().broadcast(raw)
        await self._stumble()


class FlakyEvm(Flaky, EvmLikeFake):
    pass


class FlakyTron(Flaky, TronLikeFake):
    pass


def make_flaky(kind: str, path: Path, dice: random.Random) -> FlakyEvm | FlakyTron:
    chain = FlakyEvm(path, "ERC20") if kind == "sequenced" else FlakyTron(path, "TRC20")
    chain.dice = dice
    return chain


async def disturb(chain: FakeChain, dice: random.Random) -> None:
    """One random event on the chain."""
    what = dice.randrange(8)
    if what == 0:
        chain.drop_pool()
    elif what == 1 and chain.undoable():
        chain.reorganise(dice.randint(1, chain.undoable()), keep=dice.random() < 0.5)
    elif what == 2:
        chain.set(fee=dice.choice((1_000, 1_100, 1_300)))
    else:
        chain.mine(dice.randint(1, 3))


async def run_abandoned(payer: "Payer", dice: random.Random) -> None:
    """A turn that may be abandoned in the middle, as when its process dies. Nothing cleans up after it."""
    for _ in range(dice.choice((0, 0, 100, 400, 1_000))):
        await asyncio.sleep(0)
    await payer.start_due()
    for _ in range(dice.choice((1, 5, 20, 60, 200, 400))):
        await asyncio.sleep(0)
    if dice.random() < 0.5:
        for task in list(payer._running.values()):
            task.cancel()
    await payer.finish()


@pytest.mark.parametrize("kind", ["sequenced", "expiring"])
def test_even_two_reorganisations_in_a_row_undo_nothing_final(tmp_path: Path, kind: str) -> None:
    """Otherwise a settled payout could leave its nonce unused for ever."""
    chain = open_fake(kind, tmp_path / kind)
    chain.mine(8)
    assert chain.undoable() == 2
    chain.reorganise(1, keep=True)
    with pytest.raises(ValueError, match="6 blocks are final"):
        chain.reorganise(2, keep=True)
    chain.reorganise(1, keep=True)
    assert (chain.height(), chain.undoable()) == (6, 0)


@pytest.mark.parametrize("kind", ["sequenced", "expiring"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(1, 5))]
)
def test_in_any_storm_every_order_is_paid_once_or_refunded(in_shop: "InShop", kind: str, seed: int) -> None:
    async def scenario(shop: "Shop") -> None:
        dice = random.Random(f"{kind} {seed}")
        chain = make_flaky(kind, shop.folder / kind, dice)
        chains = {chain.name: chain}
        good, bad = ADDRESSES[kind]
        chain.set(reverting=[parse_address(chain.name, bad).hex()])
        orders = [
            await shop.order(2 * COIN + number * 10_000, dice.choice((good, good, bad)))
            for number in range(10)
        ]
        payers = [
            shop.payer(chains=chains, claim_ms=0, name=str(number), max_concurrent=4, max_builds=50)
            for number in range(2)
        ]
        for payer in payers:
            # Open the connections now. A connection that is being opened when its task is cancelled would
            # never be closed.
            await payer._queue.home.get()
            async with AsyncExitStack() as stack:
                for _ in range(4):
                    line = await stack.enter_async_context(payer._connections.acquire())
                    await line.home.get()
        gaps = shop.gaps(chains, grace_ms=20_000)
        for _ in range(40):
            await asyncio.gather(*(run_abandoned(payer, dice) for payer in payers), return_exceptions=True)
            await disturb(chain, dice)
            shop.clock.advance(dice.choice((100, 5_000, 60_000)))
        chain.calm = True
        chain.set(fee=1_000)
        for _ in range(60):
            await shop.turn(payers[0])
            await gaps.cancel_gaps()
            chain.mine()
            shop.clock.advance(60_000)
            if await shop.rows("select count(*) from withdrawal where status in (2, 6)") == [(10,)]:
                break
        chain.mine(6)
        wanted = {order.order_id: [order.arrival_units] for order in orders if order.address == good}
        assert chain.paid() == wanted
        assert [await shop.status(order) for order in orders] == [
            2 if order.address == good else 6 for order in orders
        ]
        assert [wallet.frozen_cause for wallet in await list_wallets(shop.connection)] == [None]
        assert (await shop.balances()).get("hold:USDT", 0) == 0

    in_shop(scenario)
