"""How often nodes are asked: at most so often for each payout, and once for what all payouts share."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from devnet.tron_network import address_of
from tests.chains import evm_scene
from tests.chains.evm_scene import EvmScene
from tests.chains.node_proxy import NodeProxy
from tests.chains.tron_scene import TronScene, key_of, payout_of

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.node_addresses import CallLimits, NodeAddress, read_node
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.sweeps import EvmSweeper
from merchant_wallet.chains.node_access import access_of
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    ChainDisagrees,
    FinalRecord,
    Payout,
    Pending,
    SignedTransfer,
    Unpayable,
)
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain, TronNodes
from merchant_wallet.chains.tron.sweeps import TronSweeper

PAYOUTS = 6
RECENT_S = 3.0
RECEIPT = "eth_getTransactionReceipt"
USDT = 1_000_000


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(params=[1, 2])
def scene(request: pytest.FixtureRequest) -> TronScene:
    """One TRON node, or two."""
    found: TronScene = request.getfixturevalue("lone" if request.param == 1 else "tron")
    return found


def open_chain(scene: TronScene, clock: Clock) -> TronChain:
    """The scene's chain as the worker side has it: what is the same for all counts for three seconds."""
    rules = msgspec.structs.replace(scene.rules, recent_s=RECENT_S)
    return TronChain(rules, scene.chain.nodes, wallet=scene.wallet, signer=scene.signer, clock_s=clock)


def open_evm_chain(evm: EvmScene, proxy: NodeProxy, clock: Clock) -> EvmChain:
    rules, endpoints = msgspec.structs.replace(evm.rules, recent_s=RECENT_S), Endpoints([proxy.url])
    return EvmChain(rules, endpoints, wallet=evm_scene.WALLET, signer=evm.signer, clock_s=clock)


def test_payouts_at_once_share_what_is_the_same_for_all_of_them(scene: TronScene) -> None:
    """Check and signature of a payout ask about its recipient once."""
    servers, clock = scene.network.servers, Clock()
    chain = open_chain(scene, clock)
    payouts = [payout_of(number, bytes([number]) * 20, USDT) for number in range(1, PAYOUTS + 1)]

    def count() -> Counter[str]:
        return sum((Counter(server.api.asked) for server in servers), Counter[str]())

    async def pay(payout: Payout) -> SignedTransfer:
        await chain.check_payable(payout.transfer)
        signed = await chain.build(payout, [])
        await chain.broadcast(signed.raw)
        return signed

    async def steps() -> None:
        before, nodes = count(), len(servers)
        signed = await asyncio.gather(*map(pay, payouts))
        asked = count() - before
        # Successor, pause, our own place on the blacklist, fee and balance are asked once for all.
        views = 5 * nodes + PAYOUTS * (nodes + 1)
        assert asked["/wallet/triggerconstantcontract"] <= views
        assert asked["/wallet/broadcasthex"] == PAYOUTS
        assert asked.total() <= views + PAYOUTS + 4 * nodes + 3
        # The second time the other node gets it, which has it already from the first one.
        before = count()
        for one in signed:
            await chain.broadcast(one.raw)
        assert count() - before == {"/wallet/broadcasthex": PAYOUTS}
        sent = [server.api.asked.count("/wallet/broadcasthex") for server in servers]
        assert sent == [2 * PAYOUTS // nodes] * nodes
        # Nobody asks for a transfer that can't be final yet.
        clock.now_s += 10
        before = count()
        early = [await chain.judge(*each) for each in pairs(signed)]
        assert all(isinstance(verdict, Pending) and verdict.check_after_ms for verdict in early)
        assert count() - before == {"/walletsolidity/getblock": nodes}
        scene.network.settle()
        clock.now_s += 60
        before = count()
        verdicts = [await chain.judge(*each) for each in pairs(signed)]
        assert {type(verdict) for verdict in verdicts} == {FinalRecord}
        assert (count() - before).total() <= nodes * (PAYOUTS + 2)
        # What it burnt was shown, too.
        before = count()
        assert await TronSweeper(chain, scene.signer).fee_of(signed[0].tx_hash)
        assert count() == before
        await chain.close()

    def pairs(signed: list[SignedTransfer]) -> list[tuple[Payout, list[SignedTransfer]]]:
        return [(payout, [one]) for payout, one in zip(payouts, signed, strict=True)]

    scene.play(steps())


def test_payouts_at_once_on_an_evm_chain_share_the_same(evm: EvmScene) -> None:
    async def story() -> None:
        async with NodeProxy(evm.node.url) as proxy:
            chain = open_evm_chain(evm, proxy, Clock())

            async def pay(nonce: int) -> None:
                ordered = evm_scene.payout(nonce=nonce, payout_id=nonce + 1)
                await chain.check_payable(ordered.transfer)
                await evm_scene.send(chain, ordered)

            await asyncio.gather(*map(pay, range(PAYOUTS)))
            # Six views of the token, prices, the newest block, the wallet's coin and code. The blacklist, the
            # estimate and the broadcast are each payout's own.
            assert len(proxy.asked) <= 3 * PAYOUTS + 10
            await chain.close()

    asyncio.run(story())


def test_recipient_and_token_are_asked_about_again_after_a_moment(lone: TronScene) -> None:
    clock, network, transfer = Clock(), lone.network, payout_of().transfer
    chain = open_chain(lone, clock)

    async def steps() -> None:
        await chain.check_payable(transfer)
        network.blacklist(transfer.recipient)
        network.settle()
        clock.now_s += RECENT_S + 1
        with pytest.raises(Unpayable):
            await chain.check_payable(transfer)
        network.blacklist(transfer.recipient, is_listed=False)
        network.set_fee(10, 5)
        network.settle()
        clock.now_s += RECENT_S + 1
        with pytest.raises(Blocked) as fee:
            await chain.build(payout_of(), [])
        assert fee.value.obstacle.kind == "token_fee"
        assert not lone.signer.requests
        await chain.close()

    lone.play(steps())


def test_what_is_signed_is_followed_after_new_payouts_got_their_share_of_the_day(
    lone: TronScene, evm: EvmScene
) -> None:
    limits = CallLimits(per_day=1_000)

    async def follow(chain: EvmChain | TronChain, node: NodeAddress, ordered: Payout) -> None:
        signed = await chain.build(ordered, [])
        budget, at_ms = access_of(node, connections=9).budget, now_ms()
        budget.take(0.0, at_ms, 950 - budget.count_today(at_ms))
        with pytest.raises(ChainAway, match="the rest is for what is signed"):
            await chain.check_payable(ordered.transfer)
        await chain.broadcast(signed.raw)
        assert isinstance(await chain.judge(ordered, [signed]), Pending)
        budget.take(0.0, at_ms, 50)
        with pytest.raises(ChainAway, match="that its limits allow are used"):
            await chain.broadcast(signed.raw)
        await chain.close()

    async def story() -> None:
        node = read_node(lone.network.urls[0])._replace(limits=limits)
        nodes = TronNodes([node])
        tron = TronChain(lone.rules, nodes, wallet=lone.wallet, signer=lone.signer)
        await follow(tron, node, payout_of())
        node = NodeAddress(evm.node.url, limits=limits)
        chain = EvmChain(evm.rules, Endpoints([node]), wallet=evm_scene.WALLET, signer=evm.signer)
        await follow(chain, node, evm_scene.payout())

    lone.play(story())


def test_receipts_are_asked_for_when_a_final_block_has_used_the_nonce(evm: EvmScene) -> None:
    async def story() -> None:
        clock, ordered = Clock(), evm_scene.payout()
        async with NodeProxy(evm.node.url) as proxy:
            chain = open_evm_chain(evm, proxy, clock)
            unmined = Pending(check_after_ms=21_000)
            mined = Pending(check_after_ms=6_000, is_mined=True)
            signed = await evm_scene.send(chain, ordered)
            assert await chain.judge(ordered, [signed]) == unmined
            evm.node.mine()
            # What is the same for all payouts counts for a moment. It is the final block and two counts.
            for pause_s, asked in ((RECENT_S + 1, 3), (0, 0), (RECENT_S + 1, 3)):
                clock.now_s += pause_s
                proxy.asked.clear()
                assert await chain.judge(ordered, [signed]) == mined
                assert len(proxy.asked) == asked
            # Its block leaves the chain, so it must be sent again.
            evm.node.reorganise(1)
            clock.now_s += RECENT_S + 1
            assert await chain.judge(ordered, [signed]) == unmined
            assert RECEIPT not in proxy.asked
            await chain.broadcast(signed.raw)
            evm.settle()
            clock.now_s += RECENT_S + 1
            assert await chain.judge(ordered, [signed]) == FinalRecord(ordered.transfer, signed.tx_hash)
            # What it burnt was shown, too.
            assert await EvmSweeper(chain, evm.signer).fee_of(signed.tx_hash)
            assert proxy.asked.count(RECEIPT) == 1
            await chain.close()

    asyncio.run(story())


def test_a_block_that_was_read_is_read_again_only_when_nodes_disagree(tron: TronScene) -> None:
    payer, [one, two] = key_of("payer"), tron.network.servers
    tron.network.fund(address_of(payer), units=USDT, sun=10**9)
    tron.network.settle()
    first = tron.network.height() + 1
    tron.network.pay(payer, bytes(range(20)), 5)
    tron.network.settle()

    def count() -> int:
        return sum(path.endswith("blocknum") for server in (one, two) for path in server.api.asked)

    def inflate(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("blocknum"):
            return answer
        return [{**each, "log": [{**log, "data": f"{7:064x}"} for log in each["log"]]} for each in answer]

    async def steps() -> None:
        two.switches.edit = inflate
        with pytest.raises(ChainDisagrees):
            await tron.chain.transfers(first, first)
        two.switches.edit = None
        before = count()
        for _ in range(2):
            assert [each.amount_units for each in await tron.chain.transfers(first, first)] == [5]
            assert count() == before + 2

    tron.play(steps())


def test_a_block_that_was_seen_and_then_replaced_is_not_read_as_final(evm: EvmScene) -> None:
    """Its deposits would be missed, or credited without being there."""
    clock = Clock()

    async def story() -> None:
        async with NodeProxy(evm.node.url) as proxy:
            chain = open_evm_chain(evm, proxy, clock)
            evm.node.mine()
            number = evm.node.height()
            seen = await chain.block(number)
            evm.node.reorganise(1, [(evm.foreign(0), 0)])
            assert evm.node.height() == number
            evm.node.mine(2)
            final = await chain.final()
            assert (final.number, final.hash == (seen and seen.hash)) == (number, False)
            with pytest.raises(ChainAway, match="is not the one that it calls final"):
                await chain.transfers(number, number)
            clock.now_s += RECENT_S + 1
            assert [each.amount_units for each in await chain.transfers(number, number)] == [7]
            await chain.close()

    asyncio.run(story())
