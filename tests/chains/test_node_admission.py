"""A node that does not fit the settings is not used. The others of its chain go on."""

from collections.abc import Callable

import pytest
from devnet.evm_node import CHAIN_ID
from tests.chains import evm_scene
from tests.chains.evm_scene import EvmScene
from tests.chains.node_proxy import NodeProxy, Raw, Refusal
from tests.chains.test_evm_reader import play
from tests.chains.tron_faults import both, go_away
from tests.chains.tron_scene import OTHER, TronScene, payout_of

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import ChainAway


def be_of_another_chain(node: NodeProxy) -> None:
    node.always("eth_chainId", "0x1")


def be_away(node: NodeProxy) -> None:
    node.fail(Raw(b"no"))


def sync_from_scratch(node: NodeProxy) -> None:
    """Its newest block is old, and has no token yet."""
    node.always("eth_getCode", "0x")
    node.always("eth_getTransactionCount", "0x0")
    node.always("eth_getBalance", "0x0")


def have_another_contract(node: NodeProxy) -> None:
    """Where the token should be. It has no decimals, so the call reverts."""
    node.fail(Refusal(3, "execution reverted"), "eth_call")


@pytest.mark.parametrize("spoil", [be_of_another_chain, be_away, sync_from_scratch, have_another_contract])
def test_payouts_go_on_beside_a_node_that_does_not_fit(
    evm: EvmScene, spoil: Callable[[NodeProxy], None]
) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        spoil(one)
        admission = await chain.admit_nodes(lambda: time_ms)
        assert admission.is_open
        [wrong] = admission.wrong
        assert one.url.removeprefix("http://") in wrong
        one.asked.clear()
        await evm_scene.send(chain, evm_scene.payout())
        assert one.asked == []
        one.mend()
        assert (await chain.admit_nodes(lambda: time_ms)).wrong == []
        await chain.funds()
        assert one.asked != []

    play(evm, story)


def test_a_node_that_fitted_is_not_barred_because_it_is_away_for_a_moment(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        assert (await chain.admit_nodes(lambda: time_ms)).wrong == []
        for node in (one, two):
            be_away(node)
        admission = await chain.admit_nodes(lambda: time_ms)
        assert (len(admission.wrong), admission.is_open) == (2, True)
        for node in (one, two):
            node.mend()
        assert await chain.funds() == evm_scene.HELD
        be_of_another_chain(one)
        await chain.admit_nodes(lambda: time_ms)
        be_away(one)
        assert len((await chain.admit_nodes(lambda: time_ms)).wrong) == 1
        one.asked.clear()
        await chain.funds()
        assert one.asked == []

    play(evm, story)


def test_if_no_node_fits_the_chain_is_away_and_says_why(evm: EvmScene) -> None:
    async def story(chain: EvmChain, one: NodeProxy, two: NodeProxy) -> None:
        time_ms = (await chain.head()).time_ms
        be_of_another_chain(one)
        be_away(two)
        assert not (await chain.admit_nodes(lambda: time_ms)).is_open
        for ask in (chain.head(), chain.funds(), chain.build(evm_scene.payout(), [])):
            with pytest.raises(ChainAway, match=f"the chain id is 1, the setting says {CHAIN_ID}"):
                await ask

    play(evm, story)


def test_payouts_on_tron_go_on_beside_a_node_that_does_not_fit(tron: TronScene) -> None:
    now_ms = tron.network.fake.head.time_ms
    go_away(both(tron)[0])

    async def story() -> None:
        assert (await tron.chain.admit_nodes(lambda: now_ms)).is_open
        await tron.pay(payout_of())
        alone = tron.with_rules(token=OTHER)
        assert not (await alone.admit_nodes(lambda: now_ms)).is_open
        with pytest.raises(ChainAway, match="there is no contract at the token's address"):
            await alone.broadcast(b"")

    tron.play(story())
