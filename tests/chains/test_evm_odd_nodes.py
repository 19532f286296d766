"""Nodes that fall silent after accepting, refuse, or lie about what comes before a signature."""

import asyncio
from typing import Any

import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import RECIPIENT, USDT, WALLET, EvmScene, payout, send
from tests.chains.node_proxy import Forward, NodeProxy, Refusal, Silence

from merchant_wallet.chains.evm import EvmChain
from merchant_wallet.chains.protocol import (
    ChainAway,
    Final,
    Hindered,
    Payout,
    SignedTransfer,
    Unpayable,
)

ORDERED = payout()
COUNT = "eth_getTransactionCount"


async def verdict(chain: EvmChain, signed: SignedTransfer) -> object:
    return await chain.judge(ORDERED, [signed])


def test_a_node_that_accepts_and_then_falls_silent_takes_the_transfer_once(evm: EvmScene) -> None:
    async def swallow(forward: Forward, params: list[Any]) -> Any:
        await forward("eth_sendRawTransaction", *params)
        raise Silence

    async def story() -> None:
        async with (
            NodeProxy(evm.node.url) as proxy,
            evm.chain(proxy.url) as chain,
            evm.chain(proxy.url, timeout_s=1) as impatient,
        ):
            signed = await chain.build(ORDERED, [])
            proxy.behaviours["eth_sendRawTransaction"] = swallow
            with pytest.raises(ChainAway, match="no answer within 1 s"):
                await impatient.broadcast(signed.raw)
            # However long the node took to accept them: they are there by now.
            while await chain.next_sequence() == 0:
                evm.node.height()
            proxy.mend()
            await chain.broadcast(signed.raw)
            evm.settle()
            await chain.broadcast(signed.raw)
            assert await verdict(chain, signed) == Final(ORDERED.transfer, signed.tx_hash)
            assert evm.token.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


@pytest.mark.parametrize(
    "text", ["already known", "ALREADY_EXISTS: already known", "Known transaction: 0x1", "nonce too low"]
)
def test_what_nodes_say_of_known_bytes_is_no_error(evm: EvmScene, text: str) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        proxies[0].fail(Refusal(-32000, text), "eth_sendRawTransaction")
        await chain.broadcast(signed.raw)

    play(evm, 1, story)


def test_one_node_that_takes_the_bytes_is_enough(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        proxies[0].fail(Refusal(-32000, "txpool is full"), "eth_sendRawTransaction")
        await chain.broadcast(signed.raw)
        evm.settle()
        proxies[0].mend()
        assert await verdict(chain, signed) == Final(ORDERED.transfer, signed.tx_hash)

    play(evm, 2, story)


def test_a_lie_about_a_blacklist_makes_an_order_wait_and_not_fail(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        async def call(forward: Forward, params: list[Any]) -> Any:
            if params[0]["data"] == "0xe47d6060" + RECIPIENT.hex().rjust(64, "0"):
                return "0x" + "1".rjust(64, "0")
            return await forward("eth_call", *params)

        proxies[0].behaviours["eth_call"] = call
        for attempt in (chain.examine(ORDERED.transfer), chain.build(ORDERED, [])):
            with pytest.raises(Hindered) as hindered:
                await attempt
            assert hindered.value.obstacle.kind == "node"
        proxies[1].behaviours["eth_call"] = call
        with pytest.raises(Unpayable):
            await chain.examine(ORDERED.transfer)

    play(evm, 2, story)


def test_the_higher_nonce_and_the_lower_funds_of_two_nodes_count(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await send(chain, ORDERED)
        proxies[0].always(COUNT, "0x0")
        assert await chain.next_sequence() == 1
        proxies[1].always("eth_call", "0x" + hex(7)[2:].rjust(64, "0"))
        assert await chain.funds() == 7

    play(evm, 2, story)


def test_a_lie_about_fees_is_bounded_by_the_cap(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[0].always("eth_feeHistory", {"baseFeePerGas": ["0xffffffffffffff"], "reward": [["0x1"]]})
        evm.node.fund(WALLET, 10**30)
        with pytest.raises(Hindered, match="above the cap"):
            await chain.build(ORDERED, [])

    play(evm, 1, story)


def test_a_verdict_needs_a_place(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        with pytest.raises(ValueError, match="has a place"):
            await chain.judge(Payout(1, ORDERED.transfer), [])

    play(evm, 1, story)
