"""The payer on a real EVM node and on the fake TRON network, killed everywhere: each order is paid exactly
once.

Each chain has many orders. Payers in their own processes are killed one after another, each at another point
and another order, while blocks are mined. At the end the test reads the chains: one transfer for each order,
with its exact amount, and nothing else. The books must agree.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from devnet.evm_node import EvmNode
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.node_kinds import NAMED
from tests.withdrawals.killed_payer import kill_process
from tests.withdrawals.real_chains import open_real, write_down

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.tron.chain import TronChain

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000
ORDERS = 14
RECIPIENT = bytes(range(1, 21))
POINTS = {
    "after TakeUp": 2,
    "after check_payable": 1,
    "after funds": 1,
    "before build": 2,
    "after build": 3,
    "before broadcast": 2,
    "after broadcast": 4,
    "after judge": 7,
    "before Settle": 1,
    "after Settle": 1,
}
"""Where payers die, and at which time that they come there."""


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    return open_scene(evm_node)


@pytest.fixture
def tron(tron_kind: str) -> Iterator[TronScene]:
    with open_tron(named=tron_kind == NAMED) as scene:
        yield scene


@pytest.fixture
def folder(tmp_path: Path, evm: EvmScene, tron: TronScene) -> Path:
    """Where payers find the chains."""
    write_down(tmp_path, evm, tron)
    return tmp_path


async def count_transfers(chain: EvmChain | TronChain, first: int) -> Counter[tuple[bytes, int]]:
    """How often the wallet paid each recipient each amount, in all blocks since the first."""
    transfers = await chain.transfers(first, (await chain.head()).number)
    return Counter((one.recipient, one.amount_units) for one in transfers if one.sender == chain.wallet)


async def mine(evm: EvmScene, tron: TronScene, blocks: int = 1) -> None:
    await asyncio.to_thread(evm.node.mine, blocks)
    await asyncio.to_thread(tron.network.mine, blocks)


async def finish(
    shop: "Shop", payer: "Payer", evm: EvmScene, tron: TronScene, orders: "list[Withdrawal]"
) -> None:
    for _ in range(60):
        await shop.turn(payer)
        await mine(evm, tron)
        shop.clock.advance(5_000)
        rows = await shop.rows("select count(*) from withdrawal where status in (2, 6)")
        if rows == [(len(orders),)]:
            break


@pytest.mark.each_node
def test_many_orders_on_each_chain_are_paid_exactly_once_by_payers_that_keep_dying(
    in_shop: "InShop", folder: Path, evm: EvmScene, tron: TronScene
) -> None:
    async def scenario(shop: "Shop") -> None:
        # No two orders have the same amount, so each can be recognised on its chain.
        orders = [
            await shop.order(2 * COIN + number * 10_000, format_address(chain, RECIPIENT))
            for number in range(ORDERS)
            for chain in ("ERC20", "TRC20")
        ]
        for point, times in POINTS.items():
            # The first time has no number.
            number = f" {times}" if times > 1 else ""
            await kill_process(shop, point + number, str(folder))
            await mine(evm, tron, 4)
        chains = open_real(folder)
        await finish(shop, shop.payer(chains=chains, max_concurrent=16), evm, tron, orders)
        await mine(evm, tron, 10)
        assert await shop.rows("select status, count(*) from withdrawal group by 1") == [(2, 2 * ORDERS)]
        wanted = Counter((RECIPIENT, order.arrival_units) for order in orders[::2])
        for name, chain in chains.items():
            first = tron.first if name == "TRC20" else 0
            assert await count_transfers(chain, first) == wanted, name
        balances = await shop.balances()
        paid = sum(order.arrival_units for order in orders)
        on_chains = balances.get("chain:ERC20:USDT", 0) + balances.get("chain:TRC20:USDT", 0)
        assert (balances.get("hold:USDT", 0), on_chains) == (0, paid)
        assert await shop.rows("select count(distinct tx_hash) from withdrawal") == [(2 * ORDERS,)]
        for chain in chains.values():
            await chain.close()

    in_shop(scenario)
