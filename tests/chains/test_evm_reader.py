"""What a watcher reads from a real EVM node: blocks, finality, Transfer logs; and what it must not
believe.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from devnet.evm_node import CHAIN_ID, COIN, ISSUER
from tests.chains.evm_scene import HELD, USDT, WALLET, EvmScene
from tests.chains.node_proxy import Behaviour, Forward, NodeProxy, Raw, Refusal

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.transport import NodeRefused

ALICE = b"\xa1" * 20
BOB = b"\xb0" * 20
RECEIPTS = "eth_getBlockReceipts"
BLOCK = "eth_getBlockByNumber"


@asynccontextmanager
async def two_nodes(evm: EvmScene) -> AsyncIterator[tuple[EvmChain, NodeProxy, NodeProxy]]:
    async with (
        NodeProxy(evm.node.url) as one,
        NodeProxy(evm.node.url) as two,
        evm.chain(one.url, two.url) as chain,
    ):
        yield chain, one, two


def play(evm: EvmScene, story: Callable[[EvmChain, NodeProxy, NodeProxy], Awaitable[None]]) -> None:
    async def run() -> None:
        async with two_nodes(evm) as (chain, one, two):
            await story(chain, one, two)

    asyncio.run(run())


def change_logs(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Behaviour:
    """Change every log in a block's receipts."""

    async def answer(forward: Forward, params: list[Any]) -> Any:
        found = await forward(RECEIPTS, *params)
        return [{**receipt, "logs": [change(log) for log in receipt["logs"]]} for receipt in found]

    return answer


@pytest.mark.each_node
def test_blocks_hang_together_and_final_ones_lie_below_the_head(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        head, final = await chain.head(), await chain.final()
        assert final.number == head.number - 2
        parent = await chain.block(head.number - 1)
        assert parent is not None
        assert head.parent_hash == parent.hash
        assert await chain.block(head.number + 1) is None
        async with evm.chain(finality=1) as by_depth:
            assert (await by_depth.final()).number == head.number - 1
        async with evm.chain(finality=10_000) as deep:
            assert (await deep.final()).number == 0

    play(evm, story)


def test_every_transfer_is_seen_once_in_the_chains_order(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        first = evm.node.height() + 1
        receipts = [
            evm.token.give(ALICE, 5 * USDT),
            evm.token.give(BOB, 3 * USDT, sender=ALICE),
            evm.token.give(ALICE, 0),
        ]
        last = evm.node.height()
        seen = await chain.transfers(first, last)
        assert [(a.sender, a.recipient, a.amount_units) for a in seen] == [
            (ISSUER, ALICE, 5 * USDT),
            (ALICE, BOB, 3 * USDT),
            (ISSUER, ALICE, 0),
        ]
        assert [a.tx_hash for a in seen] == [receipt["transactionHash"] for receipt in receipts]
        assert [a.block_hash for a in seen] == [receipt["blockHash"] for receipt in receipts]
        assert await chain.transfers(last + 1, last) == []
        evm.settle()
        assert await chain.transfers(first, last) == seen
        # Three blocks with transfers, each once from each node: from the first while they were not final.
        assert one.asked.count(RECEIPTS) == 3
        assert two.asked.count(RECEIPTS) == 3

    play(evm, story)


@pytest.mark.each_node
def test_another_tokens_transfers_are_none_of_ours(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        first = evm.node.height() + 1
        evm.node.deploy().give(ALICE, 5 * USDT)
        evm.settle()
        assert await chain.transfers(first, evm.node.height() - 2) == []

    play(evm, story)


def test_a_fee_is_one_log_and_what_arrives_another(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        evm.token.give(ALICE, 100 * USDT)
        evm.token.do("setParams(uint256,uint256)", 10, 49)
        first = evm.node.height() + 1
        evm.token.give(BOB, 100 * USDT, sender=ALICE)
        seen = await chain.transfers(first, first)
        assert [(a.recipient, a.amount_units) for a in seen] == [
            (ISSUER, 100_000),
            (BOB, 100 * USDT - 100_000),
        ]
        assert [a.log_index for a in seen] == [0, 1]
        assert await chain.balance(BOB) == 100 * USDT - 100_000

    play(evm, story)


def test_a_range_that_no_node_answers_is_an_error_and_not_empty(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        for node in (one, two):
            node.fail(Refusal(-32005, "limit exceeded"), RECEIPTS)
        evm.token.give(ALICE, 1)
        height = evm.node.mine(2) - 2
        with pytest.raises(NodeRefused, match="limit exceeded"):
            await chain.transfers(height, height + 1)
        with pytest.raises(ChainAway, match="limit exceeded"):
            await chain.transfers(0, height)

    play(evm, story)


def test_final_transfers_need_two_nodes_that_say_the_same(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        first = evm.node.height() + 1
        evm.token.give(ALICE, 1)
        evm.token.give(BOB, 2)
        evm.settle()
        last = first + 1

        two.behaviours[RECEIPTS] = change_logs(lambda log: {**log, "data": f"0x{7:064x}"})
        with pytest.raises(ChainDisagrees, match=r"^ERC20: nodes show different transfers"):
            await chain.transfers(first, last)
        two.fail(Raw(b"garbage"), RECEIPTS)
        with pytest.raises(ChainAway, match="not a JSON-RPC answer"):
            await chain.transfers(first, last)
        two.mend()
        assert len(await chain.transfers(first, last)) == 2

    play(evm, story)


def test_a_node_that_has_not_got_so_far_does_not_say_that_nothing_came(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        first = evm.node.height() + 1
        evm.token.give(ALICE, 1)

        async def behind(forward: Forward, params: list[Any]) -> Any:
            if params[0] in ("latest", "finalized"):
                return await forward(BLOCK, hex(first - 1), *params[1:])
            return await forward(BLOCK, *params)

        one.behaviours[BLOCK] = behind
        one.always(RECEIPTS, [])
        # The block is not final yet: the node that has it is asked.
        assert len(await chain.transfers(first, first)) == 1
        two.behaviours[BLOCK] = behind
        with pytest.raises(NodeRefused, match="has no block"):
            await chain.transfers(first, first)
        two.mend()
        evm.settle()
        # Final on one of two nodes is not enough.
        with pytest.raises(ChainAway, match="has not reached them"):
            await chain.transfers(first, first)

    play(evm, story)


@pytest.mark.parametrize(
    "falsified",
    [
        {"blockHash": "0x" + "1" * 64},
        {"address": "0x" + "1" * 40},
        {"blockNumber": "0x0"},
        {"topics": []},
        {"data": None},
        {"logIndex": None},
        {"logIndex": "0x1"},
        {"removed": True},
        {"transactionHash": "0x" + "1" * 64},
    ],
    ids=str,
)
def test_a_falsified_log_is_not_taken(evm: EvmScene, falsified: dict[str, object]) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        evm.token.give(ALICE, 1)
        first = evm.node.height()

        lie = change_logs(lambda log: {**log, **falsified})
        one.behaviours[RECEIPTS] = lie
        # The second node is asked instead.
        assert [a.amount_units for a in await chain.transfers(first, first)] == [1]
        two.behaviours[RECEIPTS] = lie
        # This reader has read the block already.
        async with evm.chain(one.url, two.url) as other:
            with pytest.raises(ChainAway):
                await other.transfers(first, first)

    play(evm, story)


@pytest.mark.each_node
def test_a_reorganisation_is_seen_by_the_parents_hash_and_the_logs_are_gone(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        evm.node.mine(5)
        evm.token.give(ALICE, 1)
        before = await chain.head()
        evm.node.reorganise(4)
        after = await chain.block(before.number)
        assert after is not None
        assert after.hash != before.hash
        assert after.parent_hash != before.parent_hash
        assert await chain.transfers(before.number, before.number) == []
        assert await chain.balance(ALICE) == 0

    play(evm, story)


def test_two_nodes_with_different_final_blocks_are_not_believed(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        async def forked(forward: Forward, params: list[Any]) -> Any:
            return {**await forward(BLOCK, *params), "hash": "0x" + "1" * 64}

        final = await chain.final()
        two.behaviours[BLOCK] = forked
        with pytest.raises(ChainDisagrees):
            await chain.final()
        two.mend()
        two.fail(Raw(b"away", 503))
        with pytest.raises(ChainAway):
            await chain.final()
        two.mend()
        assert await chain.final() == final

    play(evm, story)


def test_a_node_that_calls_too_much_final_is_not_believed_alone(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        async def hasty(forward: Forward, params: list[Any]) -> Any:
            tag = "latest" if params[0] == "finalized" else params[0]
            return await forward(BLOCK, tag, *params[1:])

        final = await chain.final()
        two.behaviours[BLOCK] = hasty
        assert await chain.final() == final

    play(evm, story)


@pytest.mark.each_node
def test_balances_are_of_a_final_block_where_a_node_still_has_it(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        final = await chain.final()
        evm.token.give(ALICE, 5)
        assert await chain.balance(ALICE, final) == 0
        assert await chain.balance(ALICE) == 5
        assert await chain.balance(WALLET, final) == HELD
        assert await chain.coin_balance(WALLET) == 10 * COIN

        async def pruned(forward: Forward, params: list[Any]) -> Any:
            if params[1] != "latest":
                raise Refusal(-32000, "missing trie node")
            return await forward("eth_call", *params)

        one.behaviours["eth_call"] = pruned
        assert await chain.balance(ALICE, final) == 0
        two.behaviours["eth_call"] = pruned
        assert await chain.balance(ALICE, final) == 5

    play(evm, story)


def test_a_node_that_is_asked_too_much_says_nothing_about_another_moment(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        final = await chain.final()
        error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"too many requests"}}'

        async def busy(forward: Forward, params: list[Any]) -> Any:
            if params[1] != "latest":
                raise Raw(error, 429)
            return await forward("eth_call", *params)

        for node in (one, two):
            node.behaviours["eth_call"] = busy
        with pytest.raises(NodeRefused, match="too many requests"):
            await chain.balance(ALICE, final)

    play(evm, story)


def test_a_setup_that_fits_has_nothing_to_say(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        assert await chain.check_setup(lambda: time_ms) == []

    play(evm, story)


def test_one_dead_node_of_three_keeps_nobody_from_being_paid(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        async with evm.chain(one.url, two.url, "http://127.0.0.1:9") as three:
            assert await three.check_setup(lambda: time_ms) == []
            two.fail(Raw(b"no"))
            assert len(await three.check_setup(lambda: time_ms)) == 2

    play(evm, story)


def test_a_setup_that_does_not_fit_is_reported_in_sentences(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        skewed = await chain.check_setup(lambda: time_ms + 3_600_000)
        assert [sentence.partition(": ")[2] for sentence in skewed] == [
            "the newest block is 3600 s behind this machine's clock"
        ] * 2
        one.always("eth_chainId", "0x1")
        two.always("eth_call", "0x" + hex(18)[2:].rjust(64, "0"))
        wrong = await chain.check_setup(lambda: time_ms)
        assert f"the chain id is 1, the setting says {CHAIN_ID}" in wrong[0]
        assert "the token has 18 decimals and must have 6" in wrong[1]
        two.fail(Raw(b"no"))
        assert "not a JSON-RPC answer" in (await chain.check_setup(lambda: time_ms))[1]
        async with evm.chain(token=ALICE) as elsewhere:
            assert "no contract at the token's address" in (await elsewhere.check_setup(lambda: time_ms))[0]

    play(evm, story)
