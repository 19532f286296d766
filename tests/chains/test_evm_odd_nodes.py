"""Nodes that hang after accepting a transaction, refuse it, or lie before a signature is made."""

import asyncio
import re
from typing import Any

import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import HELD, RECIPIENT, USDT, WALLET, EvmScene, payout
from tests.chains.node_proxy import Forward, NodeProxy, Raw, Refusal, Silence

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.transactions import parse_signed
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    FinalRecord,
    Payout,
    Pending,
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
            # The node accepts the transaction after the timeout. Wait until it is there.
            while await chain.next_nonce(1, is_first=False) == 0:
                evm.node.height()
            proxy.mend()
            await chain.broadcast(signed.raw)
            evm.settle()
            await chain.broadcast(signed.raw)
            assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)
            assert evm.token.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


def test_one_node_that_calls_everything_a_revert_stops_no_other(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        proxies[0].refuses_batches = Raw(b'{"error": {"code": 3, "message": "execution reverted"}}')
        await chain.build(ORDERED, [])
        proxies[0].fail(Refusal(3, "execution reverted"))
        assert await chain.next_nonce(0, is_first=False) == 0
        assert await chain.funds() == HELD
        await chain.broadcast(signed.raw)
        evm.settle()
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)
        assert await chain.balance(RECIPIENT, await chain.final()) == 25 * USDT

    play(evm, 3, story)


def test_a_node_without_a_final_block_says_so_and_stops_nothing_else(evm: EvmScene) -> None:
    async def refuse(forward: Forward, params: list[Any]) -> Any:
        if params[0] == "finalized":
            raise Refusal(-32000, "finalized block not found")
        return await forward("eth_getBlockByNumber", *params)

    async def lack(forward: Forward, params: list[Any]) -> Any:
        return None if params[0] == "finalized" else await forward("eth_getBlockByNumber", *params)

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        head = await chain.head()
        assert await chain.check_setup(lambda: head.time_ms) == []
        rows = {
            refuse: r"has no finalized block: .*not found \(-32000\)",
            lack: r"has no finalized block \(0\)",
        }
        for behaviour, text in rows.items():
            proxies[0].behaviours["eth_getBlockByNumber"] = behaviour
            [status, other] = await chain.look_at_nodes()
            assert (status.head, status.final) == (head, None)
            assert status.failure is not None
            assert re.search(text, status.failure)
            assert (other.head, other.failure) == (head, None)
            assert await chain.check_setup(lambda: head.time_ms) == []
            with pytest.raises(
                ChainAway, match=r"only one node says which block is final: .*: has no finalized block"
            ):
                await chain.final()

    play(evm, 2, story)


def test_one_node_that_takes_the_bytes_is_enough(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        proxies[0].fail(Refusal(-32000, "txpool is full"), "eth_sendRawTransaction")
        await chain.broadcast(signed.raw)
        evm.settle()
        proxies[0].mend()
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)

    play(evm, 2, story)


def test_a_lie_about_a_blacklist_makes_an_order_wait_and_not_fail(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        async def call(forward: Forward, params: list[Any]) -> Any:
            if params[0]["data"] == "0xe47d6060" + RECIPIENT.hex().rjust(64, "0"):
                return "0x" + "1".rjust(64, "0")
            return await forward("eth_call", *params)

        proxies[0].behaviours["eth_call"] = call
        for attempt in (chain.check_payable(ORDERED.transfer), chain.build(ORDERED, [])):
            with pytest.raises(Blocked) as blocked:
                await attempt
            assert blocked.value.obstacle.kind == "node"
        proxies[1].behaviours["eth_call"] = call
        with pytest.raises(Unpayable):
            await chain.check_payable(ORDERED.transfer)

    play(evm, 2, story)


def balance(units: int) -> str:
    return "0x" + hex(units)[2:].rjust(64, "0")


def test_the_lower_funds_of_two_nodes_count_and_one_of_three_moves_nothing(evm: EvmScene) -> None:
    async def two(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[1].always("eth_call", balance(7))
        assert await chain.funds() == 7
        proxies[1].always("eth_call", balance(10**30))
        assert await chain.funds() == HELD

    async def three(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        for lie in (0, 10**30):
            proxies[2].always("eth_call", balance(lie))
            assert await chain.funds() == HELD

    play(evm, 2, two)
    play(evm, 3, three)


def fees(base_fee: int, tip: int) -> dict[str, Any]:
    return {"baseFeePerGas": [hex(base_fee)], "reward": [[hex(tip)]] * 10}


def test_a_lie_about_fees_is_bounded_by_the_cap(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        evm.node.fund(WALLET, 10**30)
        for lie in (fees(0xFFFFFFFFFFFFFF, 1), fees(1, 0xFFFFFFFFFFFFFF)):
            proxies[0].always("eth_feeHistory", lie)
            with pytest.raises(Blocked, match="above the cap"):
                await chain.build(ORDERED, [])

    play(evm, 1, story)


def test_a_tip_that_one_of_two_nodes_invents_is_not_paid(evm: EvmScene) -> None:
    """The chain takes the whole tip, also below the cap. Of the base fee it takes only the actual one."""

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[1].always("eth_feeHistory", fees(10**9, 2 * 10**9))
        proxies[0].always("eth_feeHistory", fees(3 * 10**9, 10**11))
        signed, _ = parse_signed((await chain.build(ORDERED, [])).raw)
        assert (signed.max_priority_fee, signed.max_fee) == (2 * 10**9, 8 * 10**9)

    play(evm, 2, story)


def test_one_of_three_nodes_moves_neither_fee(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        for proxy in proxies:
            proxy.always("eth_feeHistory", fees(10**9, 2 * 10**9))
        for lie in (fees(1, 1), fees(10**15, 10**15)):
            proxies[2].always("eth_feeHistory", lie)
            signed, _ = parse_signed((await chain.build(ORDERED, [])).raw)
            assert (signed.max_priority_fee, signed.max_fee) == (2 * 10**9, 4 * 10**9)

    play(evm, 3, story)


@pytest.mark.parametrize("height", [0, 10**6])
def test_one_of_two_nodes_that_names_a_height_far_away_gets_nothing_signed(
    evm: EvmScene, height: int
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        evm.node.mine(20)

        async def block(forward: Forward, params: list[Any]) -> Any:
            return {**await forward("eth_getBlockByNumber", *params), "number": hex(height)}

        proxies[1].behaviours["eth_getBlockByNumber"] = block
        with pytest.raises(Blocked, match="one is behind, or ahead"):
            await chain.build(ORDERED, [])
        assert evm.signer.asked == []

    play(evm, 2, story)


def test_one_of_two_nodes_can_not_ask_for_a_dearer_replacement(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        height = evm.node.height() + 10**6

        async def block(forward: Forward, params: list[Any]) -> Any:
            found = await forward("eth_getBlockByNumber", *params)
            return {**found, "number": hex(height)} if params[0] == "latest" else found

        proxies[0].behaviours["eth_getBlockByNumber"] = block
        assert await verdict(chain, signed) == Pending()
        proxies[1].behaviours["eth_getBlockByNumber"] = block
        assert await verdict(chain, signed) == Pending(stuck=True)

    play(evm, 2, story)


def test_one_of_two_nodes_can_not_freeze_the_wallet_with_a_blacklist(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        async def call(forward: Forward, params: list[Any]) -> Any:
            if params[0]["data"] == "0xe47d6060" + WALLET.hex().rjust(64, "0"):
                return balance(1)
            return await forward("eth_call", *params)

        proxies[0].behaviours["eth_call"] = call
        for kind in ("node", "wallet"):
            with pytest.raises(Blocked) as blocked:
                await chain.build(ORDERED, [])
            assert blocked.value.obstacle.kind == kind
            proxies[1].behaviours["eth_call"] = call

    play(evm, 2, story)


def test_a_verdict_needs_a_nonce(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        with pytest.raises(ValueError, match="has a nonce"):
            await chain.judge(Payout(1, ORDERED.transfer), [])

    play(evm, 1, story)


def test_a_chain_shorter_than_its_finality_has_its_first_block_final(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain(finality=10**6) as chain:
            assert (await chain.final()).number == 0
        async with evm.chain(finality=2) as chain:
            assert (await chain.final()).number == evm.node.height() - 2

    asyncio.run(story())
