"""Nodes that lie, lag, prune, hang or disagree: a paid order never looks unpaid, and an unpaid
order never looks paid.
"""

import re
from typing import Any

import pytest
from coincurve import PrivateKey
from devnet.tron_network import address_of
from tests.chains.evm_liars import play
from tests.chains.evm_scene import WALLET, EvmScene, payout, send
from tests.chains.node_proxy import Behaviour, Forward, NodeProxy, Raw, Refusal

from merchant_wallet.chains.cold import read_moved
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import (
    ChainAway,
    ChainDisagrees,
    FinalRecord,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
)

ORDERED = payout()
RECEIPT = "eth_getTransactionReceipt"
COUNT = "eth_getTransactionCount"
BLOCK = "eth_getBlockByNumber"
PRUNED = Refusal(-32000, "missing trie node 0f00 (path ) state is not available")


async def pay(evm: EvmScene, chain: EvmChain) -> SignedTransfer:
    """A payout that is paid and final."""
    signed = await send(chain, ORDERED)
    evm.settle()
    return signed


async def verdict(chain: EvmChain, signed: SignedTransfer) -> object:
    return await chain.judge(ORDERED, [signed])


def changed(result: Any, **fields: Any) -> Any:
    """A receipt or block of the real node with some fields falsified."""
    return None if result is None else {**result, **fields}


def falsify(method: str, **fields: Any) -> Behaviour:
    async def answer(forward: Forward, params: list[Any]) -> Any:
        return changed(await forward(method, *params), **fields)

    return answer


def lag(height: int) -> dict[str, Behaviour]:
    """A node that lags at this height and says that later blocks do not exist."""

    async def block(forward: Forward, params: list[Any]) -> Any:
        tags = {"latest": height, "pending": height, "finalized": height - 2}
        number = tags[params[0]] if params[0] in tags else int(params[0], 16)
        return None if number > height else await forward(BLOCK, hex(number), *params[1:])

    async def receipt(forward: Forward, params: list[Any]) -> Any:
        found = await forward(RECEIPT, *params)
        return found if found and int(found["blockNumber"], 16) <= height else None

    async def count(forward: Forward, params: list[Any]) -> Any:
        at = params[1] if params[1].startswith("0x") else hex(height)
        return await forward(COUNT, params[0], at)

    return {BLOCK: block, RECEIPT: receipt, COUNT: count}


def test_two_honest_nodes_agree(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)

    play(evm, 2, story)


def test_a_node_that_hides_receipts_makes_no_paid_order_look_unpaid(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        for proxy in proxies:
            proxy.always(RECEIPT, None)
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert f"no receipt of {signed.tx_hash}" in seen.alert
        proxies[0].mend()
        half = await verdict(chain, signed)
        assert isinstance(half, Pending)
        assert half.alert is not None

    play(evm, 2, story)


def test_the_only_node_hiding_receipts_makes_no_paid_order_look_unpaid_either(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[0].always(RECEIPT, None)
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert

    play(evm, 1, story)


def test_a_node_that_hides_receipts_and_transactions_proves_nothing(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        for proxy in proxies:
            proxy.always(RECEIPT, None)
            proxy.behaviours[BLOCK] = falsify(BLOCK, transactions=[])
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert "nonce 0 is spent, but shows no transaction that spent it" in seen.alert

    play(evm, 2, story)


def test_an_invented_transaction_at_our_nonce_is_no_proof(evm: EvmScene) -> None:
    """Both nodes say that another transaction used the nonce, but they can't sign for our wallet."""

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)

        async def blocks(forward: Forward, params: list[Any]) -> Any:
            block = await forward(BLOCK, *params)
            for shown in block["transactions"] if params[1] else []:
                shown.update(hash="0x" + "ab" * 32, input="0x", to="0x" + "99" * 20)
            return block

        for proxy in proxies:
            proxy.always(RECEIPT, None)
            proxy.behaviours[BLOCK] = blocks
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert

    play(evm, 2, story)


@pytest.mark.parametrize("count", [1, 2])
def test_a_lagging_node_makes_nothing_look_unpaid(evm: EvmScene, count: int) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        height = evm.node.height()
        signed = await pay(evm, chain)
        proxies[0].behaviours = lag(height)
        assert await verdict(chain, signed) == Pending()
        proxies[0].mend()
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)

    play(evm, count, story)


def test_a_node_that_knows_counts_but_lags_with_receipts_proves_nothing(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        height = evm.node.height()
        signed = await pay(evm, chain)
        for proxy in proxies:
            proxy.behaviours = {RECEIPT: lag(height)[RECEIPT]}
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert

    play(evm, 2, story)


@pytest.mark.parametrize("count", [1, 2])
def test_pruned_nodes_find_what_spent_a_nonce_by_reading_blocks(evm: EvmScene, count: int) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(0).hex())
        evm.node.mine(6)

        async def pruned(forward: Forward, params: list[Any]) -> Any:
            if params[1] != "latest":
                raise PRUNED
            return await forward(COUNT, *params)

        for proxy in proxies:
            proxy.behaviours[COUNT] = pruned
        seen = await verdict(chain, signed)
        assert isinstance(seen, ProvenUnpaid)
        assert seen.wallet_fault

    play(evm, count, story)


def test_a_pruned_node_never_makes_a_paid_order_look_unpaid(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        evm.node.mine(20)

        async def pruned(forward: Forward, params: list[Any]) -> Any:
            if params[1] != "latest":
                raise PRUNED
            return await forward(COUNT, *params)

        for proxy in proxies:
            proxy.behaviours[COUNT] = pruned
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)
        for proxy in proxies:
            proxy.always(RECEIPT, None)
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert "no receipt" in seen.alert
        # The same if the nodes have also pruned the old blocks.
        for proxy in proxies:
            proxy.behaviours[BLOCK] = lose_old_blocks(evm.node.height() - 5)
        lost = await verdict(chain, signed)
        assert isinstance(lost, Pending)
        assert lost.alert

    play(evm, 2, story)


def lose_old_blocks(first: int) -> Behaviour:
    async def blocks(forward: Forward, params: list[Any]) -> Any:
        if params[0].startswith("0x") and int(params[0], 16) < first:
            return None
        return await forward(BLOCK, *params)

    return blocks


def test_one_node_alone_can_not_kill_with_a_false_revert(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[0].behaviours[RECEIPT] = falsify(RECEIPT, status="0x0", logs=[])
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert "nodes disagree" in seen.alert
        # People read it: no object of the program, no bytes.
        assert re.search(r"moved [0-9.]+ USDT to 0x[0-9a-fA-F]{40}", seen.alert), seen.alert
        assert "(" not in seen.alert

    play(evm, 2, story)


def test_a_node_whose_count_is_behind_its_blocks_causes_no_replacement(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[0].always(COUNT, "0x0")
        assert await verdict(chain, signed) == Pending()
        evm.node.mine(evm.rules.stuck_blocks)
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)

    play(evm, 1, story)


def test_one_node_alone_can_not_pay_with_a_false_receipt(evm: EvmScene) -> None:
    """Nothing was ever sent. One of two nodes shows a receipt and a block for it."""

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        paid = await pay(evm, chain)
        wanted = payout(nonce=1, payout_id=2)
        unsent = await chain.build(wanted, [])

        async def receipt(forward: Forward, params: list[Any]) -> Any:
            found = await forward(RECEIPT, paid.tx_hash)
            return changed(found, transactionHash=unsent.tx_hash)

        async def block(forward: Forward, params: list[Any]) -> Any:
            found = await forward(BLOCK, *params)
            return changed(found, transactions=[*found["transactions"], unsent.tx_hash])

        async def count(forward: Forward, params: list[Any]) -> Any:
            return hex(int(await forward(COUNT, *params), 16) + 1)

        proxies[1].behaviours = {RECEIPT: receipt, BLOCK: block, COUNT: count}
        seen = await chain.judge(wanted, [unsent])
        assert isinstance(seen, Pending)
        assert seen.alert

    play(evm, 2, story)


@pytest.mark.parametrize(
    "fields",
    [
        {"blockHash": "0x" + "1" * 64},
        {"transactionHash": "0x" + "1" * 64},
        {"from": "0x" + "1" * 40},
        {"blockNumber": "0x1"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_receipt_that_the_nodes_own_blocks_belie_is_none(evm: EvmScene, fields: dict[str, str]) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[0].behaviours[RECEIPT] = falsify(RECEIPT, **fields)
        try:
            seen = await verdict(chain, signed)
        except ChainAway as away:
            assert "another transaction" in str(away)  # noqa: PT017 - one of the cases.
            return
        assert isinstance(seen, Pending)
        assert seen.alert

    play(evm, 1, story)


def test_nodes_on_two_branches_are_an_alert(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        receipt = falsify(RECEIPT, blockHash="0x" + "1" * 64)
        proxies[1].behaviours = {RECEIPT: receipt, BLOCK: falsify(BLOCK, hash="0x" + "1" * 64)}
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert "nodes disagree" in seen.alert
        # People read it: no object of the program, no bytes.
        assert re.search(r"moved [0-9.]+ USDT to 0x[0-9a-fA-F]{40}", seen.alert), seen.alert
        assert "(" not in seen.alert

    play(evm, 2, story)


@pytest.mark.parametrize(
    "failure", [Raw(b"<html>"), Raw(b"{}"), Raw(b"no", 503), Refusal(-32603, "internal error")]
)
def test_garbage_from_one_of_two_nodes_delays_a_verdict_and_from_one_of_three_does_not(
    evm: EvmScene, failure: Exception
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[0].fail(failure)
        assert await verdict(chain, signed) == FinalRecord(ORDERED.transfer, signed.tx_hash)
        proxies[1].fail(failure)
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert
        proxies[2].fail(failure)
        with pytest.raises(ChainAway):
            await verdict(chain, signed)

    play(evm, 3, story)


def test_a_foreign_transaction_must_be_shown_by_every_node(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(0).hex())
        evm.node.mine(6)
        proxies[2].fail(Raw(b"away"))
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert
        proxies[2].mend()
        asked = [proxy.asked.count(RECEIPT) for proxy in proxies]
        assert isinstance(await verdict(chain, signed), ProvenUnpaid)
        # Each node was asked twice for the receipt of the transaction that we signed.
        assert [proxy.asked.count(RECEIPT) for proxy in proxies] == [times + 2 for times in asked]

    play(evm, 3, story)


def test_a_second_look_that_finds_otherwise_is_no_verdict(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(0).hex())
        evm.node.mine(6)

        async def once(forward: Forward, params: list[Any]) -> Any:
            if proxies[0].asked.count(RECEIPT) > 1:
                raise Refusal(-32000, "indexing is in progress")
            return await forward(RECEIPT, *params)

        proxies[0].behaviours[RECEIPT] = once
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert == "a second look found something else"

    play(evm, 2, story)


@pytest.mark.parametrize("whose", ["another key's", "another place's"])
def test_a_real_transaction_of_another_sender_or_nonce_is_no_proof(evm: EvmScene, whose: str) -> None:
    """Its hash and signature are right. A node only claims that our wallet sent it with our nonce."""

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        stranger = PrivateKey()
        evm.node.fund(address_of(stranger))
        raw = evm.foreign(0, units=0, key=stranger)
        given = evm.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
        signed = await pay(evm, chain)
        if whose == "another place's":
            given = (await send(chain, payout(nonce=1, payout_id=2))).tx_hash
            evm.settle()
        shown = {**await proxies[0].ask("eth_getTransactionByHash", given), "from": "0x" + WALLET.hex()}
        for proxy in proxies:
            proxy.always(RECEIPT, None)
            proxy.behaviours[BLOCK] = falsify(BLOCK, transactions=[shown])
        seen = await verdict(chain, signed)
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert "shows no transaction that spent it" in seen.alert

    play(evm, 2, story)


def test_no_single_node_says_where_a_transaction_is_and_so_that_it_moved_nothing(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        # It names an earlier block, in which nothing of the kind was moved.
        proxies[0].behaviours[RECEIPT] = falsify(RECEIPT, blockNumber="0x1")
        with pytest.raises(ChainDisagrees, match="in different blocks"):
            await read_moved(chain, signed.tx_hash)
        proxies[0].always(RECEIPT, None)
        assert await read_moved(chain, signed.tx_hash) is None
        proxies[0].mend()
        moved = await read_moved(chain, signed.tx_hash)
        assert moved is not None
        assert [each.tx_hash for each in moved] == [signed.tx_hash]

    play(evm, 2, story)


def test_two_nodes_of_three_say_where_a_transaction_is(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await pay(evm, chain)
        proxies[1].behaviours[RECEIPT] = falsify(RECEIPT, blockNumber="0x1")
        moved = await read_moved(chain, signed.tx_hash)
        assert moved is not None
        assert [each.tx_hash for each in moved] == [signed.tx_hash]

    play(evm, 3, story)
