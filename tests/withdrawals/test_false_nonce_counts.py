"""A node that lies about the wallet's nonces freezes nothing and changes no nonce. A real theft does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.chains.evm_liars import nodes
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.node_proxy import NodeProxy
from tests.evm_nodes import use_node

from merchant_wallet.base.addresses import format_address
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.withdrawals.payouts import list_blocked

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

RECIPIENT = format_address("ERC20", bytes(range(1, 21)))
COUNT = "eth_getTransactionCount"


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    with use_node() as node:
        yield open_scene(node)


async def finish(shop: "Shop", payer: "Payer", evm: EvmScene, order: "Withdrawal") -> int:
    """Run the payer and mine blocks until the order ends. Returns its status."""
    for _ in range(8):
        await shop.turn(payer)
        if await shop.status(order) in (2, 6):
            break
        evm.settle()
        # Long enough that the payer reads the wallet's funds and nonces again.
        shop.clock.advance(50_000)
    return await shop.status(order)


async def frozen_cause(shop: "Shop") -> str | None:
    [wallet] = await list_wallets(shop.connection)
    return wallet.frozen_cause


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_node_that_counts_too_many_freezes_nothing_and_payouts_go_on(
    in_shop: "InShop", evm: EvmScene, count: int
) -> None:
    async def scenario(shop: "Shop") -> None:
        async with nodes(evm, count) as (chain, proxies):
            payer = shop.payer(chains={"ERC20": chain})
            assert await finish(shop, payer, evm, await shop.order(address=RECIPIENT)) == 2
            await lie(proxies[0])
            assert await finish(shop, payer, evm, await shop.order(address=RECIPIENT)) == 2
            assert await frozen_cause(shop) is None
            assert await shop.rows("select nonce from wallet_nonce order by 1") == [(0,), (1,)]

    in_shop(scenario)


async def lie(proxy: NodeProxy) -> None:
    """Claim a far too high count for now, where a payer reads it, and tell the truth for every block."""

    async def answer(forward: Any, params: list[Any]) -> Any:
        return "0x3e8" if params[1] == "pending" else await forward(COUNT, *params)

    proxy.behaviours[COUNT] = answer


@pytest.mark.parametrize("count", [1, 2])
def test_a_lie_up_to_the_next_nonce_does_not_take_a_nonce_that_was_given_back(
    in_shop: "InShop", evm: EvmScene, count: int
) -> None:
    """A count beyond a free nonce looks as if a stranger had used that nonce."""

    async def scenario(shop: "Shop") -> None:
        async with nodes(evm, count) as (chain, proxies):
            payer = shop.payer(chains={"ERC20": chain})
            assert await finish(shop, payer, evm, await shop.order(address=RECIPIENT)) == 2
            await shop.rows("update hot_wallet set next_nonce = 3")
            await shop.rows(
                "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
                " values ('ERC20', %s, 1, 'free', 1), ('ERC20', %s, 2, 'free', 1)",
                chain.wallet,
                chain.wallet,
            )
            proxies[0].always(COUNT, "0x3")
            shop.clock.advance(50_000)
            order = await shop.order(address=RECIPIENT)
            await shop.turn(payer)
            assert await frozen_cause(shop) is None
            assert await shop.rows("select nonce from wallet_nonce where purpose = 'lost'") == []
            proxies[0].mend()
            assert await finish(shop, payer, evm, order) == 2

    in_shop(scenario)


@pytest.mark.parametrize("count", [1, 2])
def test_a_strangers_transaction_that_the_chain_shows_freezes_the_wallet(
    in_shop: "InShop", evm: EvmScene, count: int
) -> None:
    async def scenario(shop: "Shop") -> None:
        async with nodes(evm, count) as (chain, proxies):
            payer = shop.payer(chains={"ERC20": chain})
            assert await finish(shop, payer, evm, await shop.order(address=RECIPIENT)) == 2
            evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(1).hex())
            evm.settle()
            if count == 2:
                # The other node hides it. One node that proves it is enough.
                proxies[1].always(COUNT, "0x1")
            order = await shop.order(address=RECIPIENT)
            assert await finish(shop, payer, evm, order) in (0, 1)
            assert "2 transactions of the hot wallet" in (await frozen_cause(shop) or "")
            assert len(evm.signer.asked) == 1

    in_shop(scenario)


def test_the_first_order_waits_while_only_one_node_says_where_nonces_begin(
    in_shop: "InShop", evm: EvmScene
) -> None:
    async def scenario(shop: "Shop") -> None:
        async with nodes(evm, 2) as (chain, proxies):
            payer = shop.payer(chains={"ERC20": chain})
            proxies[0].always(COUNT, "0x3e8")
            order = await shop.order(address=RECIPIENT)
            await shop.turn(payer)
            [waiting] = await list_blocked(shop.connection)
            assert (waiting.order_id, waiting.kind) == (order.order_id, "node")
            assert "has sent 1000 and 0 transactions" in waiting.cause
            assert (await shop.rows("select * from wallet_nonce"), evm.signer.asked) == ([], [])
            proxies[0].mend()
            assert await finish(shop, payer, evm, order) == 2
            assert await shop.rows("select nonce from wallet_nonce") == [(0,)]

    in_shop(scenario)
