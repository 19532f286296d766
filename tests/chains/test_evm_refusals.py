"""What other people's EVM nodes say to a broadcast, and what the product makes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import WALLET, EvmScene, payout, send
from tests.chains.node_proxy import Forward, NodeProxy, Raw, Refusal

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.fees import most_of
from merchant_wallet.chains.evm.transactions import EvmTransaction, parse_signed
from merchant_wallet.chains.protocol import Blocked, ChainAway, Pending, SignedTransfer
from merchant_wallet.chains.transport import NodeRefused

SEND = "eth_sendRawTransaction"
LOOKS = ["eth_getTransactionByHash", "eth_getTransactionCount"]
GWEI = 10**9
LOW_TIP = "transaction gas price below minimum: gas tip cap 100000000, minimum needed 3000000000"

KNOWN = [
    ("geth", -32000, "already known"),
    ("geth", -32000, "nonce too low: next nonce 5, tx nonce 4"),
    ("Nethermind", -32010, "AlreadyKnown"),
    ("Nethermind", -32010, "OldNonce, Current nonce: 5, nonce of rejected tx: 4"),
    ("Erigon", -32000, "existing tx with same hash"),
    ("Erigon", -32000, "nonce is too low"),
    ("Besu", -32000, "Known transaction"),
    ("Besu", -32001, "Nonce too low"),
    ("anvil", -32003, "transaction already imported"),
    ("anvil", -32003, "nonce too low"),
    ("hardhat", -32000, "Known transaction: 0x1"),
    (
        "hardhat",
        -32000,
        "Nonce too low. Expected nonce to be 5 but got 4. Note that transactions can't be queued",
    ),
    ("a provider", -32000, "ALREADY_EXISTS: already known"),
]
OTHER = [
    ("geth", -32000, "replacement transaction underpriced"),
    (
        "geth",
        -32000,
        "insufficient funds for gas * price + value: balance 1, queued cost 2, tx cost 3, overshot 4",
    ),
    ("geth", -32000, "in-flight transaction limit reached for delegated accounts"),
    ("geth", -32000, "txpool is full"),
    ("geth", -32000, LOW_TIP),
    ("Nethermind", -32010, "FeeTooLow, MaxFeePerGas too low"),
    ("Besu", -32009, "Gas price below configured minimum gas price"),
    ("nobody", -32603, "die Transaktion ist dem Knoten bekannt"),
    ("nobody", -32601, "unknown transaction type"),
]


async def is_refused(chain: EvmChain, signed: SignedTransfer) -> bool:
    try:
        await chain.broadcast(signed.raw)
    except NodeRefused:
        return True
    return False


def test_known_words_spare_a_question_and_no_words_decide_anything(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        [proxy] = proxies
        signed = await chain.build(payout(), [])

        async def say(texts: list[tuple[str, int, str]]) -> dict[str, bool]:
            said = {}
            for client, code, text in texts:
                proxy.fail(Refusal(code, text), SEND)
                proxy.asked.clear()
                said[f"{client}: {text}"] = await is_refused(chain, signed)
                assert (proxy.asked == [SEND]) is (texts is KNOWN), text
            return said

        assert not any((await say(KNOWN)).values())
        # No node has it: whatever the words are, it is refused.
        assert all((await say(OTHER)).values())
        evm.node.ask(SEND, "0x" + signed.raw.hex())
        assert not any((await say(OTHER)).values())
        evm.settle()
        # A block used the nonce, and the node has forgotten the transaction.
        proxy.always("eth_getTransactionByHash", None)
        assert not any((await say(OTHER)).values())
        # The plan lacks the questions, so the refusal stands.
        proxy.fail(Refusal(-32001, "not in your plan"), *LOOKS)
        assert all((await say(OTHER)).values())

    play(evm, 1, story)


def test_one_of_two_nodes_that_refuses_is_no_refusal(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(payout(), [])
        proxies[0].fail(Refusal(-32000, "txpool is full"), SEND)
        proxies[1].fail(Refusal(-32000, "txpool is full"), SEND)
        assert await is_refused(chain, signed)
        proxies[1].mend()
        assert not await is_refused(chain, signed)

    play(evm, 2, story)


def test_a_node_that_is_asked_too_much_neither_refuses_nor_hides_a_refusal(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(payout(), [])
        proxies[0].fail(Refusal(-32005, "daily request count exceeded"), SEND, *LOOKS)
        proxies[1].fail(Refusal(-32000, "txpool is full"), SEND)
        proxies[2].fail(Raw(b"no", 502), SEND)
        with pytest.raises(ChainAway, match="daily request count exceeded"):
            await chain.broadcast(signed.raw)
        proxies[2].fail(Refusal(-32000, "txpool is full"), SEND)
        with pytest.raises(NodeRefused, match="txpool is full"):
            await chain.broadcast(signed.raw)

    play(evm, 3, story)


def test_a_least_tip_is_learned_when_enough_nodes_name_it(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(payout(), [])
        first, _ = parse_signed(signed.raw)
        refused = msgspec.structs.replace(payout(), is_refused=True)
        for proxy in proxies:
            proxy.fail(Refusal(-32000, "txpool is full"), SEND)

        async def outbid() -> EvmTransaction:
            assert await is_refused(chain, signed)
            replaced, _ = parse_signed((await chain.build(payout(), [signed])).raw)
            return replaced

        # Without a number from enough nodes the tip of this transfer is doubled, and no other's.
        assert await is_refused(chain, signed)
        doubled, _ = parse_signed((await chain.build(refused, [signed])).raw)
        assert doubled.max_priority_fee == 2 * first.max_priority_fee
        assert doubled.max_fee >= first.max_fee + first.max_priority_fee
        # One node alone raises nothing above what every replacement pays more.
        proxies[0].fail(Refusal(-32000, LOW_TIP), SEND)
        assert (await outbid()).max_priority_fee < 2 * first.max_priority_fee < 3 * GWEI
        proxies[1].fail(Refusal(-32000, LOW_TIP.replace("3000000000", "9000000000")), SEND)
        replaced = await outbid()
        # The lowest is enough for one of the nodes.
        assert replaced.max_priority_fee == 3 * GWEI
        assert replaced.max_fee > 3 * GWEI
        proxies[0].fail(Refusal(-32000, LOW_TIP.replace("3000000000", "9000000000000")), SEND)
        proxies[1].fail(Refusal(-32000, LOW_TIP.replace("3000000000", "9000000000000")), SEND)
        with pytest.raises(Blocked, match="above the cap"):
            await outbid()

    play(evm, 2, story)


async def build_beside(chain: EvmChain, nonce: int, *pending: SignedTransfer | None) -> SignedTransfer:
    raws = tuple(None if one is None else one.raw for one in pending)
    return await chain.build(msgspec.structs.replace(payout(nonce=nonce), pending=raws), [])


async def kind_of(build: Awaitable[SignedTransfer]) -> str:
    with pytest.raises(Blocked) as blocked:
        await build
    return blocked.value.obstacle.kind


def test_the_wallet_needs_coin_for_all_that_is_on_its_way(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        first = await send(chain, payout())
        cost_wei = most_of(parse_signed(first.raw)[0])
        evm.node.fund(WALLET, 2 * cost_wei)
        await build_beside(chain, 1, first)
        await build_beside(chain, 1, None)
        evm.node.fund(WALLET, 2 * cost_wei - 1)
        assert await kind_of(build_beside(chain, 1, first)) == "fuel"
        assert await kind_of(build_beside(chain, 1, None)) == "fuel"
        # Coin that is gone only after signing shows when what is refused is to be replaced.
        evm.node.forget(first.tx_hash)
        evm.node.fund(WALLET, cost_wei - 1)
        assert await is_refused(chain, first)
        assert (
            await kind_of(chain.build(msgspec.structs.replace(payout(), is_refused=True), [first])) == "fuel"
        )
        evm.node.fund(WALLET, 2 * cost_wei)
        await chain.broadcast(first.raw)
        # Once it is in a block, the balance is without its cost.
        evm.node.mine()
        evm.node.fund(WALLET, cost_wei)
        await build_beside(chain, 1, first)

    play(evm, 1, story)


def test_a_wallet_with_delegated_code_has_one_payout_on_its_way(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        async def code(forward: Forward, params: list[Any]) -> Any:
            if params[0] == "0x" + WALLET.hex():
                return "0xef0100" + "22" * 20
            return await forward("eth_getCode", *params)

        proxies[0].behaviours["eth_getCode"] = code
        first = await send(chain, payout())
        assert await kind_of(build_beside(chain, 1, first)) == "node"
        assert await kind_of(build_beside(chain, 1, None)) == "node"
        # It may be replaced although a later one is signed.
        proxies[0].mend()
        second = await build_beside(chain, 1, first)
        proxies[0].behaviours["eth_getCode"] = code
        replaced = msgspec.structs.replace(payout(), pending=(second.raw,))
        await chain.build(replaced, [first])
        evm.node.mine()
        await build_beside(chain, 1, first)

    play(evm, 1, story)


def test_payouts_that_a_higher_base_fee_stopped_are_stuck_together(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        orders = [payout(nonce=nonce, payout_id=nonce + 1) for nonce in range(3)]
        signed = [await chain.build(order, []) for order in orders]

        async def judge() -> list[object]:
            return [await chain.judge(order, [one]) for order, one in zip(orders, signed, strict=True)]

        dear: dict[str, Any] = {"baseFeePerGas": [hex(500 * GWEI)], "reward": [[hex(GWEI)]]}
        for proxy in proxies:
            proxy.always("eth_feeHistory", dear)
        assert await judge() == [Pending()] * 3
        evm.node.mine(evm.rules.stuck_blocks)
        assert await judge() == [Pending(stuck=True)] * 3
        # One node alone can't ask for dearer replacements.
        proxies[1].mend()
        assert await judge() == [Pending(stuck=True), Pending(), Pending()]
        proxies[0].mend()
        assert await judge() == [Pending(stuck=True), Pending(), Pending()]

    play(evm, 2, story)


def test_payouts_wait_while_nodes_lack_the_state_of_the_final_block(evm: EvmScene) -> None:
    async def ask(chain: EvmChain) -> str:
        with pytest.raises((Blocked, ChainAway)) as found:
            await chain.funds()
        return str(found.value)

    async def story(chain_of: Callable[..., Any]) -> None:
        async with NodeProxy(evm.node.url) as proxy:
            proxy.fail(Refusal(-32000, "missing trie node"), "eth_call")
            async with chain_of(proxy.url, finality=129) as chain:
                text = await ask(chain)
                assert "state not available: the final block is 129 blocks below" in text
                assert "missing trie node" in text
            async with chain_of(proxy.url, finality=2) as chain:
                assert "state not available" not in await ask(chain)

    evm.node.mine(140)
    asyncio.run(story(evm.chain))
