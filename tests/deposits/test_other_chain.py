"""Nodes of another chain than the settings name: what arrives there is no deposit."""

from collections.abc import Iterator

import pytest
from devnet.evm_node import EvmDevnet
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.deposits.conftest import COIN, MINIMUM, InTown, Town, address

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.deposits.watcher import ChainUnfit, Watcher


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    """A real EVM node with the token."""
    with EvmDevnet() as node:
        yield open_scene(node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest nodes of one network."""
    with open_tron() as scene:
        yield scene


async def follow(town: Town, name: str, reader: EvmChain | TronReader) -> int:
    """One turn of a fresh watcher; gives how many chains are read then."""
    check = reader.check_chain
    watcher = Watcher(town.connect, name, reader, minimum_units=MINIMUM, check=check, clock=town.clock)
    try:
        await watcher.follow()
    finally:
        await watcher.close()
    return len(await town.rows("select chain from chain_cursor"))


def test_an_evm_chain_of_another_id_is_not_read(in_town: InTown, evm: EvmScene) -> None:
    evm.token.give(address("ulla"), 5 * COIN)
    evm.settle()

    async def scenario(town: Town) -> None:
        async with evm.chain(chain_id=evm.rules.chain_id + 1) as wrong, evm.chain() as right:
            with pytest.raises(ChainUnfit, match=f"the setting says {evm.rules.chain_id + 1}"):
                await follow(town, "ERC20", wrong)
            assert await town.rows("select chain from chain_cursor") == []
            assert await follow(town, "ERC20", right) == 1

    in_town(scenario)


def test_a_tron_chain_of_another_id_is_not_read(in_town: InTown, tron: TronScene) -> None:
    async def scenario(town: Town) -> None:
        wrong = tron.with_rules(chain_id=tron.rules.chain_id + 1)
        with pytest.raises(ChainUnfit, match="node"):
            await follow(town, "TRC20", wrong)
        assert await town.rows("select chain from chain_cursor") == []
        assert await follow(town, "TRC20", tron.chain) == 1

    in_town(scenario)


def test_nodes_that_do_not_answer_are_no_proof_of_the_chain(in_town: InTown, tron: TronScene) -> None:
    async def scenario(town: Town) -> None:
        for server in tron.network.servers:
            server.switches.edit = lambda path, question, answer: b"upstream busy"
        with pytest.raises(ChainUnfit, match="not a TRON answer"):
            await follow(town, "TRC20", tron.chain)

    in_town(scenario)
