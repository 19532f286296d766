"""Nine payouts that a higher base fee has stopped, on a real EVM node: all are replaced at once."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from devnet.evm_node import EvmNode
from tests.chains.evm_scene import RECIPIENT, EvmScene, open_scene

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
GWEI = 10**9
ORDERS = 9
LATER_MS = 60_000


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    return open_scene(evm_node)


def test_nine_payouts_that_a_higher_base_fee_stopped_are_in_one_block_after_one_look(
    in_shop: "InShop", evm: EvmScene
) -> None:
    async def scenario(shop: "Shop") -> None:
        recipient = format_address(ERC20, RECIPIENT)
        orders = [await shop.order(2 * COIN + number * 10_000, recipient) for number in range(ORDERS)]
        async with evm.chain() as chain:
            payer = shop.payer(chains={ERC20: chain}, max_concurrent=16)
            await shop.turn(payer)
            attempts = "select attempt_no, count(*)::int from payout_signed group by 1 order by 1"
            assert await shop.rows(attempts) == [(1, ORDERS)]
            evm.node.set_base_fee(20 * GWEI)
            evm.node.mine(evm.rules.stuck_blocks)
            shop.clock.advance(LATER_MS)
            await shop.turn(payer)
            assert await shop.rows(attempts) == [(1, ORDERS), (2, ORDERS)]
            height = evm.node.mine()
            paid = Counter(one.amount_units for one in await chain.transfers(height, height))
            assert paid == Counter(order.arrival_units for order in orders)
            evm.settle()
            shop.clock.advance(LATER_MS)
            await shop.turn(payer)
            assert {await shop.status(order) for order in orders} == {2}

    in_shop(scenario)
