"""The logs with which an order counts as paid: exactly one log of our transfer, from the token."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.chains.evm_scene import EvmScene, payout, send
from tests.chains.node_proxy import Forward, NodeProxy

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import FinalRecord, SignedTransfer

ORDERED = payout()
RECEIPT = "eth_getTransactionReceipt"


def play(evm: EvmScene, story: Callable[[EvmChain, NodeProxy], Awaitable[None]]) -> None:
    async def run() -> None:
        async with NodeProxy(evm.node.url) as proxy, evm.chain(proxy.url) as chain:
            await story(chain, proxy)

    asyncio.run(run())


def show(proxy: NodeProxy, logs: list[Any]) -> None:
    """Show these logs in every receipt."""

    async def answer(forward: Forward, params: list[Any]) -> Any:
        return {**await forward(RECEIPT, *params), "logs": logs}

    proxy.behaviours[RECEIPT] = answer


async def pay(evm: EvmScene, chain: EvmChain) -> SignedTransfer:
    """A payout that is paid and final."""
    signed = await send(chain, ORDERED)
    evm.settle()
    return signed


@pytest.mark.parametrize("copies", [0, 2])
def test_more_or_fewer_logs_of_ours_than_one_are_never_the_order(evm: EvmScene, copies: int) -> None:
    async def story(chain: EvmChain, proxy: NodeProxy) -> None:
        signed = await pay(evm, chain)
        logs = (await proxy.ask(RECEIPT, signed.tx_hash))["logs"]
        show(proxy, logs * copies)
        seen = await chain.judge(ORDERED, [signed])
        assert isinstance(seen, FinalRecord)
        assert seen.transfer != ORDERED.transfer
        assert seen.transfer.amount_units == copies * ORDERED.transfer.amount_units

    play(evm, story)


def test_an_exact_log_beside_another_of_ours_is_not_the_order(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxy: NodeProxy) -> None:
        signed = await pay(evm, chain)
        exact = (await proxy.ask(RECEIPT, signed.tx_hash))["logs"][0]
        other = {**exact, "data": "0x" + hex(7)[2:].rjust(64, "0")}
        show(proxy, [exact, other])
        seen = await chain.judge(ORDERED, [signed])
        assert isinstance(seen, FinalRecord)
        # The recipient got the ordered amount, but the verdict names both transfers.
        assert not seen.is_exactly(ORDERED.transfer)
        assert [transfer_log.amount_units for transfer_log in seen.transfer_logs] == [
            ORDERED.transfer.amount_units,
            7,
        ]

    play(evm, story)


@pytest.mark.parametrize("field", ["address", "topics"])
def test_a_log_of_another_token_or_sender_pays_nothing(evm: EvmScene, field: str) -> None:
    async def story(chain: EvmChain, proxy: NodeProxy) -> None:
        signed = await pay(evm, chain)
        log = (await proxy.ask(RECEIPT, signed.tx_hash))["logs"][0]
        topics = [log["topics"][0], log["topics"][2], log["topics"][2]]
        falsified = {"address": "0x" + "5" * 40, "topics": topics}[field]
        show(proxy, [{**log, field: falsified}])
        seen = await chain.judge(ORDERED, [signed])
        assert isinstance(seen, FinalRecord)
        assert seen.transfer.amount_units == 0

    play(evm, story)
