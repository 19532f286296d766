"""Orders judged after a database was restored or a setting changed: the service no longer knows what paid
them.
"""

from tests.chains.evm_liars import play
from tests.chains.evm_scene import EvmScene, payout
from tests.chains.node_proxy import NodeProxy

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.transactions import hash_of
from merchant_wallet.chains.protocol import Pending, ProvenUnpaid

ORDERED = payout()


def test_an_order_paid_by_bytes_that_a_restored_database_lost_never_looks_unpaid(evm: EvmScene) -> None:
    lost = evm.foreign(0, ORDERED.transfer.recipient, ORDERED.transfer.amount_units)

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        await chain.broadcast(lost)
        evm.settle()
        seen = await chain.judge(ORDERED, [signed])
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert hash_of(lost) in seen.alert
        assert not seen.stuck

    play(evm, 2, story)


def test_an_order_is_not_judged_on_another_chain_than_it_was_signed_for(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(ORDERED, [])
        # Our key is used on the other chain too, and there a foreign transaction used this nonce.
        await chain.broadcast(evm.foreign(0))
        evm.settle()
        assert isinstance(await chain.judge(ORDERED, [signed]), ProvenUnpaid)
        async with evm.chain(chain_id=evm.rules.chain_id + 1) as before:
            elsewhere = await before.build(ORDERED, [])
        seen = await chain.judge(ORDERED, [elsewhere])
        assert isinstance(seen, Pending)
        assert seen.alert is not None
        assert f"for chain {evm.rules.chain_id + 1}" in seen.alert

    play(evm, 2, story)


def test_an_order_behind_unused_nonces_says_so(evm: EvmScene) -> None:
    """A node gave too high a nonce when the wallet was first read."""
    beyond = payout(nonce=7)

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        signed = await chain.build(beyond, [])
        await chain.broadcast(signed.raw)
        evm.node.mine(evm.rules.stuck_blocks)
        assert await chain.judge(beyond, [signed]) == Pending()
        # The alert comes after exactly ten times `stuck_blocks`.
        evm.node.mine(evm.rules.stuck_blocks * 9 - 1)
        assert await chain.judge(beyond, [signed]) == Pending()
        evm.node.mine(1)
        seen = await chain.judge(beyond, [signed])
        assert isinstance(seen, Pending)
        assert not seen.stuck
        assert seen.alert is not None
        assert "its nonce is 7, the chain is at 0" in seen.alert

    play(evm, 2, story)
