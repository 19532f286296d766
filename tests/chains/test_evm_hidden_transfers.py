"""Nodes that hide a transfer: an incomplete list of receipts never counts as "no transfers"."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from devnet.evm_node import COIN
from tests.chains.evm_liars import play
from tests.chains.evm_scene import WALLET, EvmScene
from tests.chains.node_proxy import NO_BATCHES, Behaviour, Forward, NodeProxy, Raw, Refusal

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.evm import node as evm_node
from merchant_wallet.chains.evm.bloom import bloom_of, may_contain
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.transport import NodeRefused

ALICE = b"\xa1" * 20
BOB = b"\xb0" * 20
LOGS = "eth_getLogs"
RECEIPTS = "eth_getBlockReceipts"
RECEIPT = "eth_getTransactionReceipt"
BLOCK = "eth_getBlockByNumber"

Receipts = list[dict[str, Any]]


def leave_out(hide: Callable[[Receipts], Receipts]) -> Behaviour:
    """A node that leaves receipts of a block out."""

    async def answer(forward: Forward, params: list[Any]) -> Any:
        return hide(await forward(RECEIPTS, *params))

    return answer


def without_logs_of(recipient: bytes) -> Callable[[Receipts], Receipts]:
    def hide(receipts: Receipts) -> Receipts:
        return [
            {**each, "logs": [log for log in each["logs"] if recipient.hex() not in log["topics"][2]]}
            for each in receipts
        ]

    return hide


def give_two(evm: EvmScene) -> int:
    """Transfers to Alice and Bob in one final block. Returns the block's number."""
    call = "transfer(address,uint256)"
    for nonce, recipient in enumerate((ALICE, BOB)):
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(nonce, to=recipient, units=5).hex())
    assert evm.token.call_data(call, ALICE, 5)
    number = evm.node.mine()
    evm.settle()
    return number


@pytest.mark.parametrize("count", [1, 2])
def test_a_log_index_that_lags_hides_no_transfer(evm: EvmScene, count: int) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        for proxy in proxies:
            proxy.always(LOGS, [])
        assert [each.recipient for each in await chain.transfers(number, number)] == [ALICE, BOB]

    play(evm, count, story)


@pytest.mark.parametrize(
    "hide",
    [
        lambda receipts: [],
        lambda receipts: receipts[:1],
        lambda receipts: receipts[::-1],
        without_logs_of(ALICE),
        without_logs_of(BOB),
        lambda receipts: [{**each, "logs": []} for each in receipts],
    ],
    ids=["all", "the last", "the order", "the first log", "the last log", "all logs"],
)
def test_a_single_node_that_leaves_out_receipts_or_logs_is_no_source(
    evm: EvmScene, hide: Callable[[Receipts], Receipts]
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        proxies[0].behaviours[RECEIPTS] = leave_out(hide)
        with pytest.raises(ChainAway, match="receipts of block"):
            await chain.transfers(0, number)
        proxies[0].mend()
        seen = await chain.transfers(0, number)
        assert [each.recipient for each in seen] == [WALLET, ALICE, BOB]

    play(evm, 1, story)


def test_a_node_that_hides_a_transfer_and_forges_its_header_needs_a_second_like_it(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)

        async def header(forward: Forward, params: list[Any]) -> Any:
            found = await forward(BLOCK, *params)
            is_it = found is not None and int(found["number"], 16) == number
            return {**found, "logsBloom": "0x" + "0" * 512} if is_it else found

        proxies[1].behaviours[BLOCK] = header
        with pytest.raises(ChainDisagrees, match="different transfers"):
            await chain.transfers(number, number)
        proxies[1].mend()
        assert len(await chain.transfers(number, number)) == 2

    play(evm, 2, story)


def test_of_two_nodes_one_that_is_away_settles_nothing(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        proxies[0].fail(Refusal(-32000, "internal error"), RECEIPTS)
        with pytest.raises(ChainAway, match="internal error"):
            await chain.transfers(number, number)

    play(evm, 2, story)


NO_BLOCK_RECEIPTS: list[Raw | Refusal] = [
    *[Refusal(code, "the method is not available") for code in (-32601, -32600, -32004, -32001, -32603)],
    Raw(b"<h1>Forbidden</h1>", 403),
    Raw(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not in your plan"}}', 403),
]


def test_a_node_without_receipts_of_whole_blocks_is_asked_for_each(evm: EvmScene) -> None:
    number = give_two(evm)
    later = [int(evm.token.give(ALICE, units)["blockNumber"], 16) for units in (7, 8)]
    evm.settle()

    async def story(refusal: Raw | Refusal, chain: EvmChain, proxies: list[NodeProxy]) -> None:
        [proxy] = proxies
        proxy.mend()
        await chain.head()
        proxy.fail(refusal, RECEIPTS)
        proxy.asked.clear()
        assert [each.recipient for each in await chain.transfers(number, number)] == [ALICE, BOB]
        assert [each.amount_units for each in await chain.transfers(later[0], later[0])] == [7]
        # Within five minutes the node is not asked for whole blocks again.
        assert proxy.asked.count(RECEIPTS) == 1
        assert proxy.asked.count(RECEIPT) == 3
        proxy.always(RECEIPT, None)
        with pytest.raises(NodeRefused, match="has no receipts of block"):
            await chain.transfers(later[1], later[1])

    for refusal in NO_BLOCK_RECEIPTS:
        play(evm, 1, partial(story, refusal))


def test_after_a_while_receipts_of_whole_blocks_are_tried_again(
    evm: EvmScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evm_node, "SINGLE_S", 0.0)

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        later = int(evm.token.give(ALICE, 7)["blockNumber"], 16)
        evm.settle()
        proxies[0].fail(Refusal(-32001, "not in your plan"), RECEIPTS)
        assert [each.recipient for each in await chain.transfers(number, number)] == [ALICE, BOB]
        proxies[0].mend()
        proxies[0].asked.clear()
        assert [each.amount_units for each in await chain.transfers(later, later)] == [7]
        assert proxies[0].asked.count(RECEIPTS) == 1
        assert RECEIPT not in proxies[0].asked

    play(evm, 1, story)


@pytest.mark.parametrize("error", [Refusal(-32005, "too many requests"), Raw(b"too many requests", 429)])
def test_a_node_that_is_asked_too_much_is_not_asked_for_single_receipts(
    evm: EvmScene, error: Raw | Refusal
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        proxies[0].fail(error, RECEIPTS)
        with pytest.raises((ChainAway, NodeRefused), match="too many requests"):
            await chain.transfers(number, number)
        assert RECEIPT not in proxies[0].asked

    play(evm, 1, story)


@pytest.mark.parametrize("refusal", NO_BATCHES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_node_that_takes_no_batches_is_asked_for_each_block(
    evm: EvmScene, refusal: Raw | Refusal, count: int
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        evm.settle()
        truth = await chain.transfers(0, number)
        proxies[0].refuses_batches = refusal
        assert await chain.transfers(0, number) == truth
        # The chain remembers this and does not try batches again.
        batches_before = len(proxies[0].batches)
        assert await chain.transfers(0, number) == truth
        assert len(proxies[0].batches) == batches_before

    play(evm, count, story)


@pytest.mark.parametrize("refusal", NO_BATCHES)
def test_a_node_without_batches_or_receipts_of_whole_blocks_is_asked_for_each_receipt(
    evm: EvmScene, refusal: Raw | Refusal
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        proxies[0].fail(Refusal(-32601, "the method does not exist"), RECEIPTS)
        proxies[0].refuses_batches = refusal
        seen = await chain.transfers(number, number)
        assert [each.recipient for each in seen] == [ALICE, BOB]

    play(evm, 1, story)


def test_a_branch_that_changes_between_header_and_receipts_is_no_source(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)

        async def of_another_branch(forward: Forward, params: list[Any]) -> Any:
            other = "0x" + "1" * 64
            found = await forward(RECEIPTS, *params)
            return [
                {**each, "blockHash": other, "logs": [{**log, "blockHash": other} for log in each["logs"]]}
                for each in found
            ]

        proxies[0].behaviours[RECEIPTS] = of_another_branch
        with pytest.raises(ChainAway, match="of another block"):
            await chain.transfers(number, number)
        proxies[0].mend()
        assert len(await chain.transfers(number, number)) == 2

    play(evm, 1, story)


def test_one_log_index_counts_in_the_transaction_and_the_other_in_the_block(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        number = give_two(evm)
        seen = await chain.transfers(number, number)
        assert [(each.log_index, each.block_log_index) for each in seen] == [(0, 0), (0, 1)]
        evm.token.do("setParams(uint256,uint256)", 10, 49)
        evm.token.give(BOB, COIN // 10**12 * 10, sender=WALLET)
        evm.settle()
        fee, rest = await chain.transfers(number + 1, evm.node.height() - 2)
        assert (fee.log_index, rest.log_index, rest.recipient) == (0, 1, BOB)

    play(evm, 1, story)


def test_a_node_without_receipts_is_reported_before_anything_is_read(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        evm.token.give(ALICE, 5)
        time_ms = (await chain.head()).time_ms
        assert await chain.check_setup(lambda: time_ms) == []
        proxies[0].fail(Refusal(-32601, "the method does not exist"), RECEIPTS, RECEIPT)
        (wrong,) = await chain.check_setup(lambda: time_ms)
        assert "deposits can't be read from its receipts" in wrong

    play(evm, 1, story)


def test_receipts_that_come_some_seconds_after_their_block_are_no_fault_of_the_node(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        evm.token.give(ALICE, 5)
        evm.node.mine(7)
        head = evm.node.height() + 1
        evm.token.give(ALICE, 5)
        time_ms = (await chain.head()).time_ms

        async def late(forward: Forward, params: list[Any]) -> Any:
            return None if int(params[0], 16) >= head else await forward(RECEIPTS, *params)

        proxies[0].behaviours[RECEIPTS] = late
        assert await chain.check_setup(lambda: time_ms) == []
        with pytest.raises(NodeRefused, match="has no receipts of block"):
            await chain.transfers(head, head)
        proxies[0].always(RECEIPTS, None)
        (wrong,) = await chain.check_setup(lambda: time_ms)
        assert "has no receipts of block" in wrong

    play(evm, 1, story)


def test_blocks_without_the_token_cost_no_receipts(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        first = evm.node.height() + 1
        evm.node.fund(ALICE)
        evm.node.mine(20)
        evm.settle()
        proxies[0].asked.clear()
        assert await chain.transfers(first, first + 10) == []
        assert RECEIPTS not in proxies[0].asked

    play(evm, 1, story)


def test_the_filter_is_that_of_the_chain(evm: EvmScene) -> None:
    receipt = evm.token.give(ALICE, 5)
    (log,) = receipt["logs"]
    items = [bytes.fromhex(text[2:]) for text in (log["address"], *log["topics"])]
    assert bloom_of(items) == int(receipt["logsBloom"], 16)
    assert may_contain(bloom_of(items), *items)
    assert not may_contain(bloom_of(items), keccak256(b"something else"))
