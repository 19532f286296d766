"""A token fee that starts between the last check and the block: the order is frozen, and every transfer is
named.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.chains.evm_scene import RECIPIENT, WALLET, EvmScene, open_scene
from tests.evm_nodes import use_node

from merchant_wallet.base.addresses import format_address
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.withdrawals.payouts import list_blocked, list_frozen

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
SET_FEE = "setParams(uint256,uint256)"


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    with use_node() as node:
        yield open_scene(node)


def test_payouts_that_arrive_short_freeze_with_every_transfer_named_and_no_other_is_signed(
    in_shop: "InShop", evm: EvmScene
) -> None:
    async def scenario(shop: "Shop") -> None:
        async with evm.chain() as chain:
            payer = shop.payer(chains={"ERC20": chain})
            recipient = format_address("ERC20", RECIPIENT)
            short = await shop.order(11 * COIN, recipient)
            await shop.turn(payer)
            # In the same block, before the payout: the issuer pays more for gas.
            switch = evm.token.call_data(SET_FEE, 10, 49)
            evm.node.send_as(evm.token.issuer, evm.token.address, switch)
            evm.node.mine(4)
            waits = await shop.order(11 * COIN, recipient)
            shop.clock.advance(5_000)
            await shop.turn(payer)
            [frozen] = await list_frozen(shop.connection)
            assert frozen.order_id == short.order_id
            wallet, issuer = (format_address("ERC20", one) for one in (WALLET, evm.token.issuer))
            assert f"0.01 USDT from {wallet} to {issuer} and 9.99 USDT from {wallet} to" in frozen.cause
            assert frozen.cause.endswith(f"instead of 10 USDT on ERC20 to {recipient}")
            [hot] = await list_wallets(shop.connection)
            assert hot.frozen_cause == frozen.cause
            # The new order is blocked by the fee or by the frozen wallet, whichever is read first.
            shop.clock.advance(50_000)
            await shop.turn(payer)
            kinds = {row.order_id: row.kind for row in await list_blocked(shop.connection)}
            assert kinds.get(waits.order_id) in (None, "token_fee", "stopped")
            assert len(evm.signer.asked) == 1
            assert (await shop.status(short), await shop.status(waits)) in ((1, 0), (1, 1))

    in_shop(scenario)
