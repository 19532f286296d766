"""How many transactions the wallet has sent: two nodes agree or one shows the last transaction. Otherwise
the nonce is unknown.
"""

from typing import Any

import pytest
from coincurve import PrivateKey
from devnet.tron_network import address_of
from tests.chains.evm_liars import play
from tests.chains.evm_scene import WALLET, EvmScene, payout, send
from tests.chains.node_proxy import Forward, NodeProxy, Raw, Refusal

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import Blocked, ChainAway

COUNT = "eth_getTransactionCount"
BLOCK = "eth_getBlockByNumber"
PRUNED = Refusal(-32000, "missing trie node 0f00 (path ) state is not available")


def claim(proxy: NodeProxy, count: int) -> None:
    """The node claims this count for every account and block."""
    proxy.always(COUNT, hex(count))


def claim_now(proxy: NodeProxy, count: int) -> None:
    """The node claims this count for now, and tells the truth about older blocks."""
    head: list[str] = []

    async def answer(forward: Forward, params: list[Any]) -> Any:
        head[:] = [await forward("eth_blockNumber")]
        return hex(count) if params[1] in ("pending", "latest", *head) else await forward(COUNT, *params)

    proxy.behaviours[COUNT] = answer


async def steal(evm: EvmScene, count: int = 1, depth: int = 4) -> None:
    """A stranger with our key sends `count` transactions. The last one is `depth` blocks deep."""
    for nonce in range(count):
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(nonce).hex())
        evm.node.mine()
    evm.node.mine(depth)


async def is_first(chain: EvmChain, known: int | None = None) -> int:
    return await chain.next_nonce(known, is_first=True)


async def goes_on(chain: EvmChain, known: int) -> int:
    return await chain.next_nonce(known, is_first=False)


@pytest.mark.parametrize("lie", [claim, claim_now])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_node_that_counts_too_many_moves_nothing(evm: EvmScene, count: int, lie: Any) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await send(chain, payout())
        evm.settle()
        lie(proxies[0], 1_000)
        assert await goes_on(chain, 1) == 1
        # A nonce that the platform assigned itself needs no proof from a node.
        assert await goes_on(chain, 1_000) == 1_000
        if count < 3:
            with pytest.raises(Blocked, match="Configure two nodes"):
                await is_first(chain, 1)
        else:
            assert await is_first(chain) == 1

    play(evm, count, story)


def test_a_new_wallet_has_nothing_to_show(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        assert await is_first(chain) == 0

    play(evm, 1, story)
    play(evm, 2, story)


@pytest.mark.parametrize("count", [1, 2])
def test_a_wallet_that_was_used_before_is_proven_by_its_last_transaction(evm: EvmScene, count: int) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await steal(evm, 3, depth=17)
        # The other node lags and shows none of them.
        if count == 2:
            claim(proxies[1], 0)
        assert await is_first(chain) == 3
        assert await goes_on(chain, 1) == 3

    play(evm, count, story)


def test_what_two_nodes_say_is_believed_without_proof(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        for proxy in proxies[:2]:
            claim(proxy, 5)
        assert await goes_on(chain, 1) == 5
        assert await is_first(chain) == 5
        # A third node with an even higher count changes nothing.
        claim(proxies[2], 9)
        assert await goes_on(chain, 1) == 5
        assert await is_first(chain) == 5

    play(evm, 3, story)


def test_two_nodes_that_differ_begin_nothing_but_go_on_by_the_platforms_own_count(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        claim(proxies[0], 7)
        claim(proxies[1], 5)
        with pytest.raises(Blocked, match="7 and 5 transactions") as blocked:
            await is_first(chain)
        assert blocked.value.obstacle.kind == "node"
        # Both say at least 5, which is more than the platform has assigned.
        assert await goes_on(chain, 3) == 5
        assert await goes_on(chain, 6) == 6

    play(evm, 2, story)


def test_one_of_two_nodes_being_away_begins_nothing_on_the_others_word(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[1].fail(Raw(b"away", 503))
        with pytest.raises(Blocked):
            await is_first(chain)
        assert await goes_on(chain, 2) == 0
        await steal(evm)
        assert await goes_on(chain, 0) == 1
        proxies[0].fail(Raw(b"away", 503))
        with pytest.raises(ChainAway):
            await goes_on(chain, 0)

    play(evm, 2, story)


def test_a_pruned_node_proves_only_what_it_still_has(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await steal(evm, depth=40)

        async def pruned(forward: Forward, params: list[Any]) -> Any:
            if params[1].startswith("0x") and int(params[1], 16) < evm.node.height() - 8:
                raise PRUNED
            return await forward(COUNT, *params)

        proxies[0].behaviours[COUNT] = pruned
        assert await goes_on(chain, 0) == 0
        with pytest.raises(Blocked):
            await is_first(chain)
        # The way out that the obstacle names: send an empty transaction, which the node can show.
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(1, units=0).hex())
        evm.node.mine(5)
        assert await is_first(chain) == 2

    play(evm, 1, story)


@pytest.mark.parametrize("shown", ["a stranger's", "an older one", "an invented one", "another chain's"])
def test_what_is_not_the_wallets_transaction_at_that_nonce_proves_nothing(evm: EvmScene, shown: str) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        stranger = PrivateKey()
        evm.node.fund(address_of(stranger))
        raw = evm.foreign(0, units=0, key=stranger)
        theirs = evm.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
        await steal(evm)
        ours = next(
            one
            for number in range(evm.node.height() + 1)
            for one in evm.node.ask(BLOCK, hex(number), True)["transactions"]
            if one["from"] == "0x" + WALLET.hex()
        )
        given = ours if shown != "a stranger's" else evm.node.ask("eth_getTransactionByHash", theirs)
        given = {**given, "from": "0x" + WALLET.hex()}
        if shown == "an invented one":
            given |= {"nonce": hex(999)}

        async def block(forward: Forward, params: list[Any]) -> Any:
            found = await forward(BLOCK, *params)
            return {**found, "transactions": [given]} if params[1] else found

        proxies[0].behaviours[BLOCK] = block
        claim_now(proxies[0], 1_000)
        if shown == "another chain's":
            claim_now(proxies[0], 1)
            chain.rules = type(chain.rules)(chain_id=5, token=chain.rules.token)
        assert await goes_on(chain, 0) == 0
        with pytest.raises(Blocked):
            await is_first(chain)

    play(evm, 1, story)


def test_a_node_that_shows_nonsense_as_proof_proves_nothing(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        claim_now(proxies[0], 1)
        for transactions in ([], ["0x" + "1" * 64], [{"from": "0x" + WALLET.hex()}], [None]):

            async def block(forward: Forward, params: list[Any], shown: Any = transactions) -> Any:
                return {**await forward(BLOCK, *params), "transactions": shown}

            proxies[0].behaviours[BLOCK] = block
            assert await goes_on(chain, 0) == 0

    play(evm, 1, story)


def test_no_count_is_asked_for_proof_that_the_platform_gave_out_itself(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await steal(evm, 3)
        proxies[0].asked.clear()
        assert await goes_on(chain, 3) == 3
        assert proxies[0].asked == [COUNT]

    play(evm, 1, story)
