"""What geth does and anvil does not: orphaned transactions wait again, and the mempool has real rules."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from devnet.geth_node import GethNode
from tests.chains.evm_scene import HELD, RECIPIENT, USDT, EvmScene, open_scene, payout, send, sign
from tests.evm_nodes import use_geth

from merchant_wallet.chains.evm.transactions import encode_unsigned, join, parse_signed
from merchant_wallet.chains.protocol import FinalRecord, Pending, SignedTransfer
from merchant_wallet.chains.transport import NodeRefused


@pytest.fixture
def geth() -> Iterator[GethNode]:
    with use_geth() as node:
        yield node


@pytest.fixture
def evm(geth: GethNode) -> EvmScene:
    """geth with the token and a funded hot wallet."""
    return open_scene(geth)


def offer(signed: SignedTransfer, percent: int) -> bytes:
    """The same transaction with these percents of its fees."""
    transaction, _ = parse_signed(signed.raw)
    fees = (transaction.max_priority_fee * percent // 100, transaction.max_fee * percent // 100)
    unsigned = encode_unsigned(
        msgspec.structs.replace(transaction, max_priority_fee=fees[0], max_fee=fees[1])
    )
    return join(unsigned, sign(unsigned))


def test_a_payout_whose_block_is_orphaned_waits_again_and_is_paid_once(evm: EvmScene, geth: GethNode) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            signed = await send(chain, ordered)
            evm.node.mine(2)
            geth.reorganise(2, is_repooled=True)
            assert await chain.balance(RECIPIENT) == 0
            # It is not stuck: a node has it.
            assert await chain.judge(ordered, [signed]) == Pending()
            await chain.broadcast(signed.raw)
            evm.settle()
            assert await chain.judge(ordered, [signed]) == FinalRecord(ordered.transfer, signed.tx_hash)
            assert await chain.balance(RECIPIENT) == 25 * USDT
            assert await chain.funds() == HELD - 25 * USDT

    asyncio.run(story())


def test_a_replacement_needs_a_tenth_more_and_an_eighth_is_enough(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            signed = await send(chain, payout())
            with pytest.raises(NodeRefused, match="replacement transaction underpriced"):
                await chain.broadcast(offer(signed, 109))
            second = await send(chain, payout(), [signed])
            evm.settle()
            verdict = await chain.judge(payout(), [signed, second])
            assert verdict == FinalRecord(payout().transfer, second.tx_hash)

    asyncio.run(story())


def test_a_base_fee_that_nobody_pays_leaves_the_payout_waiting(evm: EvmScene) -> None:
    """Anvil refuses such bytes."""

    async def story() -> None:
        async with evm.chain() as chain:
            signed = await chain.build(payout(), [])
            low = offer(signed, 1)
            await chain.broadcast(low)
            evm.settle()
            assert await chain.balance(RECIPIENT) == 0
            await chain.broadcast(signed.raw)
            evm.settle()
            assert await chain.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())
