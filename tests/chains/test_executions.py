"""What became of an unsigned transfer, from nodes that lie, lag or are away: no single one ends it."""

from typing import Any

import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import KEY, RECIPIENT, USDT, WALLET, EvmScene, sign
from tests.chains.node_proxy import Forward, NodeProxy, Refusal
from tests.chains.tron_scene import OTHER, TronScene, key_of

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.cold import Executed, InFlight, Replaced, UnsignedTransfer
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.transactions import join
from merchant_wallet.chains.protocol import ChainAway, Transfer
from merchant_wallet.chains.tron import transactions as tron_transactions

COUNT = "eth_getTransactionCount"
TRANSFER = Transfer(ERC20, "USDT", RECIPIENT, 5 * USDT)


async def export(chain: EvmChain) -> UnsignedTransfer:
    return await chain.build_unsigned(WALLET, TRANSFER, None, 60_000)


def test_a_nonce_is_used_once_two_nodes_show_by_what(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        made = await export(chain)
        assert await chain.find_execution(WALLET, made) is None
        await chain.broadcast(join(made.unsigned, sign(made.unsigned, KEY)))
        assert isinstance(await chain.find_execution(WALLET, made), InFlight)
        evm.settle()
        found = await chain.find_execution(WALLET, made)
        assert isinstance(found, Executed)
        assert await chain.knows(found.tx_hash)
        for liar in proxies:
            # It says that nothing was sent. The other one is believed as far as to wait.
            liar.always(COUNT, "0x0")
            assert isinstance(await chain.find_execution(WALLET, made), InFlight)
            liar.mend()

    play(evm, 2, story)


def test_a_nonce_that_one_node_calls_used_is_waited_for(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        made = await export(chain)
        proxies[1].always(COUNT, "0x9")
        assert isinstance(await chain.find_execution(WALLET, made), InFlight)
        proxies[1].fail(Refusal(-32000, "busy"), COUNT)
        with pytest.raises(ChainAway, match="only 1 of 2 nodes"):
            await chain.find_execution(WALLET, made)
        proxies[1].mend()
        await chain.broadcast(evm.foreign(0, units=7))
        evm.settle()
        assert isinstance(await chain.find_execution(WALLET, made), Replaced)
        assert not await chain.knows("0x" + "ab" * 32)

    play(evm, 2, story)


def test_pruned_nodes_show_what_used_a_nonce_long_after_it_was_built(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        made = await export(chain)
        # More blocks than are read upward from where it was built.
        evm.node.skip(1100)
        await chain.broadcast(join(made.unsigned, sign(made.unsigned, KEY)))
        evm.node.mine(30)

        async def count(forward: Forward, params: list[Any]) -> Any:
            if params[1].startswith("0x") and int(params[1], 16) < first:
                raise Refusal(-32000, "missing trie node 0f00 (path ) state is not available")
            return await forward(COUNT, *params)

        for proxy in proxies:
            proxy.behaviours[COUNT] = count
        # The states of the newest blocks, and not even that of the final block.
        for kept in (60, 2):
            first = evm.node.height() - kept
            assert isinstance(await chain.find_execution(WALLET, made), Executed)
        assert max(proxy.asked.count("eth_getBlockByNumber") for proxy in proxies) < 128

    play(evm, 2, story)


def test_a_tron_transfer_is_known_by_the_id_of_its_unsigned_bytes(tron: TronScene) -> None:
    async def steps() -> None:
        chain, network = tron.chain, tron.network
        made = await chain.build_unsigned(tron.wallet, Transfer(TRC20, "USDT", OTHER, 5), None, 60_000)
        assert await chain.find_execution(tron.wallet, made) is None
        hashed = tron_transactions.compute_signing_hash(made.unsigned)
        signature = key_of("hot wallet").sign_recoverable(hashed, hasher=None)
        await chain.broadcast(tron_transactions.join(made.unsigned, signature))
        # In the pool, then in a block, then final.
        assert isinstance(await chain.find_execution(tron.wallet, made), InFlight)
        network.mine()
        assert isinstance(await chain.find_execution(tron.wallet, made), InFlight)
        network.settle()
        txid = tron_transactions.txid_of(made.unsigned)
        assert await chain.find_execution(tron.wallet, made) == Executed(txid)
        for server in network.servers:
            server.switches.hidden.add(txid)
            assert isinstance(await chain.find_execution(tron.wallet, made), InFlight)
            server.switches.hidden.clear()
        # After its expiration one node alone keeps nobody waiting.
        server.switches.hidden.add(txid)
        network.mine(1, interval_ms=60_000 + tron.rules.grace_ms)
        assert isinstance(await chain.find_execution(tron.wallet, made), InFlight)
        network.settle()
        assert await chain.find_execution(tron.wallet, made) is None

    tron.play(steps())


def test_a_tron_node_without_its_pool_still_says_what_is_in_blocks(tron: TronScene) -> None:
    for server in tron.network.servers:
        server.switches.loses_answers_of.add("/wallet/gettransactionfrompending")
    assert not tron.play(tron.chain.knows("ab" * 32))
    for server in tron.network.servers:
        server.switches.loses_answers_of.add("/wallet/gettransactioninfobyid")
        with pytest.raises(ChainAway):
            tron.play(tron.chain.knows("ab" * 32))
