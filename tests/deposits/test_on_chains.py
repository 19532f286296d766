"""Deposits on a real EVM node and on a fake TRON node: what was sent is what is credited."""

from collections.abc import Iterator
from functools import partial

import msgspec
import pytest
from devnet.evm_node import EvmNode
from devnet.tron_network import address_of
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import WALLET_SUN, WALLET_UNITS, TronScene, key_of, open_tron
from tests.deposits.conftest import COIN, MINIMUM, DepositScene, InScene, address
from tests.node_kinds import NAMED

from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.final_ranges import FinalityBroken, Reader
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.reporting.deposits import list_cursors


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    """A real EVM node with the token."""
    return open_scene(evm_node)


@pytest.fixture
def tron(tron_kind: str) -> Iterator[TronScene]:
    """Two honest nodes of one network."""
    with open_tron(named=tron_kind == NAMED) as scene:
        yield scene


async def rescan(scene: DepositScene, name: str, reader: Reader, after: int) -> None:
    """What `deposits rescan` stores."""
    block = await reader.block(after)
    assert block is not None
    assert await chain_store.rewind_cursor(scene.home, name, block, scene.clock())


def go_ahead(evm: EvmScene) -> None:
    """The issuer's transaction with a log. Its high fee makes it the first of the next block."""
    call = evm.token.call_data("approve(address,uint256)", address("anna"), 7)
    evm.node.send_as(evm.token.issuer, evm.token.address, call, tip_wei=100 * 10**9)


def watch(scene: DepositScene, name: str, reader: Reader) -> Watcher:
    return Watcher(scene.connect, scene.connect, name, reader, minimum_units=MINIMUM, clock=scene.clock)


@pytest.mark.each_node
def test_transfers_on_an_evm_chain_are_seen_settled_and_credited(in_scene: InScene, evm: EvmScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with evm.chain() as reader:
            watcher, crediting_worker = watch(scene, "ERC20", reader), scene.crediting_worker()
            await scene.catch_up(watcher)
            other = evm.node.deploy()
            sent = evm.token.give(address("ulla"), 5 * COIN)["transactionHash"]
            faked = other.give(address("ulla"), 7 * COIN)["transactionHash"]
            nothing = evm.token.give(address("ulla"), 0)["transactionHash"]
            await scene.catch_up(watcher)
            assert (await scene.deposit(sent)).confirmations == 3
            evm.node.mine(2)
            await scene.catch_up(watcher)
            assert await crediting_worker.credit_due() == 1
            assert {await scene.status_of(each) for each in (faked, nothing)} == {"nothing"}
            assert await scene.balances() == {"chain:ERC20:USDT": -5 * COIN, "ulla": 5 * COIN}
            assert await reader.balance(address("ulla")) == 5 * COIN
            await scene.expect_sound()
            await watcher.close()

    in_scene(scenario)


def test_of_a_transfer_that_the_token_takes_a_fee_of_what_arrived_is_credited(
    in_scene: InScene, evm: EvmScene
) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with evm.chain() as reader:
            watcher = watch(scene, "ERC20", reader)
            await scene.catch_up(watcher)
            evm.token.give(address("a payer"), 50 * COIN)
            evm.token.do("setParams(uint256,uint256)", 10, 40)
            evm.token.give(address("ulla"), 20 * COIN, sender=address("a payer"))
            evm.node.mine(2)
            await scene.catch_up(watcher)
            await scene.crediting_worker().credit_due()
            arrived = evm.token.balance(address("ulla"))
            assert 0 < arrived < 20 * COIN
            assert (await scene.balances())["ulla"] == arrived
            await watcher.close()

    in_scene(scenario)


@pytest.mark.each_node
def test_a_reorganisation_of_a_real_chain_is_undone_and_followed(in_scene: InScene, evm: EvmScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with evm.chain(finality=6) as reader:
            watcher = watch(scene, "ERC20", reader)
            await scene.catch_up(watcher)
            evm.node.mine(6)
            await scene.catch_up(watcher)
            gone = evm.token.give(address("ulla"), 5 * COIN)["transactionHash"]
            await scene.catch_up(watcher)
            assert await scene.status_of(gone) == "seen"
            evm.node.reorganise(2)
            come = evm.token.give(address("ulla"), 3 * COIN)["transactionHash"]
            await scene.catch_up(watcher)
            assert (await scene.status_of(gone), await scene.status_of(come)) == ("undone", "seen")
            evm.node.mine(6)
            await scene.catch_up(watcher)
            await scene.crediting_worker().credit_due()
            assert (await scene.balances())["ulla"] == evm.token.balance(address("ulla")) == 3 * COIN
            await watcher.close()

    in_scene(scenario)


def test_a_long_gap_on_a_real_chain_is_caught_up_with(in_scene: InScene, evm: EvmScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with evm.chain() as reader:
            watcher = watch(scene, "ERC20", reader)
            await scene.catch_up(watcher)
            evm.token.give(address("ulla"), 2 * COIN)
            evm.node.skip(3000)
            evm.token.give(address("ulla"), 3 * COIN)
            head = evm.node.mine(3)
            await scene.catch_up(watcher)
            assert (await list_cursors(scene.home))[0].final_number == head - 2
            await scene.crediting_worker().credit_due()
            assert (await scene.balances())["ulla"] == 5 * COIN
            await watcher.close()

    in_scene(scenario)


@pytest.mark.each_node
def test_transfers_on_a_tron_chain_are_seen_settled_and_credited(in_scene: InScene, tron: TronScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        network, payer = tron.network, key_of("payer")
        network.fund(address_of(payer), units=WALLET_UNITS, sun=WALLET_SUN)
        network.settle()
        reader = TronReader(tron.rules, tron.chain.nodes)
        watcher = watch(scene, "TRC20", reader)
        await scene.catch_up(watcher)
        sent = [
            network.pay(payer, address("anna", "TRC20"), 5 * COIN),
            network.pay(payer, address("shop", "TRC20"), 6 * COIN),
        ]
        network.mine()
        await scene.catch_up(watcher)
        assert {await scene.status_of(each) for each in sent} == {"seen"}
        network.settle()
        await scene.catch_up(watcher)
        assert await scene.crediting_worker().credit_due() == 2
        assert await scene.balances() == {
            "chain:TRC20:USDT": -11 * COIN,
            "merchant:USDT": 6 * COIN,
            "anna": 35 * COIN,
            "exchange:USDT": 5 * COIN,
            "exchange:KFB": -35 * COIN,
        }
        await scene.expect_sound()
        await watcher.close()

    in_scene(scenario)


def test_an_idle_watcher_reads_each_tron_block_once(in_scene: InScene) -> None:
    """One call for each block, and two for each round: the blocks since the last one, and the final one."""
    blocks, rounds = 5, 4

    async def scenario(scene: DepositScene, tron: TronScene) -> None:
        network, payer = tron.network, key_of("payer")
        network.fund(address_of(payer), units=WALLET_UNITS, sun=WALLET_SUN)
        network.settle()
        reader = TronReader(msgspec.structs.replace(tron.rules, recent_s=3.0), tron.chain.nodes)
        watcher, [server] = watch(scene, "TRC20", reader), network.servers
        await scene.catch_up(watcher)
        for number in range(rounds):
            server.api.asked.clear()
            sent = network.pay(payer, address("anna", "TRC20"), COIN)
            network.mine(blocks)
            await watcher.follow()
            if number:
                assert len(server.api.asked) <= blocks + 2, server.api.asked
        # The last one is two blocks too young.
        assert await scene.status_of(sent) == "pending"
        # What reconciliation reads then was read before.
        server.api.asked.clear()
        last = network.fake.solid_number
        assert len(await reader.transfers(last - 2 * blocks, last)) == 2
        assert server.api.asked == []
        await watcher.close()

    with open_tron(nodes=1) as lone:
        in_scene(partial(scenario, tron=lone))


@pytest.mark.each_node
def test_a_transfer_that_a_reorganisation_below_finality_moved_is_credited_once(
    in_scene: InScene, evm: EvmScene
) -> None:
    """It was the first log of its block. Now it is the second log of another block."""

    async def scenario(scene: DepositScene) -> None:
        async with evm.chain() as reader:
            watcher, crediting_worker = watch(scene, "ERC20", reader), scene.crediting_worker()
            await scene.catch_up(watcher)
            start = evm.node.height()
            raw = evm.foreign(0, to=address("ulla"), units=25 * COIN)
            sent = evm.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
            evm.node.mine(6)
            await scene.catch_up(watcher)
            assert await crediting_worker.credit_due() == 1
            before = await scene.deposit(sent)
            evm.node.reorganise(6)
            evm.node.mine(3)
            with pytest.raises(FinalityBroken):
                await scene.catch_up(watcher)
            go_ahead(evm)
            evm.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
            evm.node.mine(6)
            log = evm.node.ask("eth_getTransactionReceipt", sent)["logs"][0]
            assert int(log["logIndex"], 16) == 1
            for _ in range(2):
                await rescan(scene, "ERC20", reader, start)
                await scene.catch_up(watcher)
                assert await crediting_worker.credit_due() == 0
            after = await scene.deposit(sent)
            assert (after.status, after.log_index) == ("credited", 0)
            assert after.block_number == int(log["blockNumber"], 16) > before.block_number
            assert (await scene.balances())["ulla"] == evm.token.balance(address("ulla")) == 25 * COIN
            await scene.expect_sound()
            await watcher.close()

    in_scene(scenario)


def test_a_transfer_that_a_tron_chain_moved_to_another_block_is_credited_once(
    in_scene: InScene, tron: TronScene
) -> None:
    async def scenario(scene: DepositScene) -> None:
        network, payer = tron.network, key_of("payer")
        network.fund(address_of(payer), units=WALLET_UNITS, sun=WALLET_SUN)
        network.settle()
        reader = TronReader(tron.rules, tron.chain.nodes)
        watcher, crediting_worker = watch(scene, "TRC20", reader), scene.crediting_worker()
        await scene.catch_up(watcher)
        start = network.fake.head.number
        sent = network.pay(payer, address("ulla", "TRC20"), 25 * COIN)
        network.settle()
        await scene.catch_up(watcher)
        assert await crediting_worker.credit_due() == 1
        before = await scene.deposit(sent)
        network.fake.reorganise(network.fake.head.number - start, is_repooled=True)
        network.fake.holds_back = True
        network.mine(2)
        network.fake.holds_back = False
        network.mine()
        network.settle()
        for _ in range(2):
            await rescan(scene, "TRC20", reader, start)
            await scene.catch_up(watcher)
            assert await crediting_worker.credit_due() == 0
        after = await scene.deposit(sent)
        assert (after.status, after.log_index) == ("credited", 0)
        assert after.block_number > before.block_number
        assert (await scene.balances())["ulla"] == 25 * COIN
        await scene.expect_sound()
        await watcher.close()

    in_scene(scenario)
