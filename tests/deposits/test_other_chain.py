"""Nodes of another chain than the settings name: what arrives there is no deposit."""

from collections.abc import Iterator

import pytest
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.deposits.conftest import COIN, MINIMUM, DepositScene, InScene, address
from tests.evm_nodes import use_node

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.deposits.watcher import ChainUnfit, Watcher


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    """A real EVM node with the token."""
    with use_node() as node:
        yield open_scene(node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest nodes of one network."""
    with open_tron() as scene:
        yield scene


async def follow(scene: DepositScene, name: str, reader: EvmChain | TronReader) -> int:
    """One turn of a new watcher. Returns how many chains are read now."""
    check = reader.check_chain
    watcher = Watcher(
        scene.connect, scene.connect, name, reader, minimum_units=MINIMUM, check=check, clock=scene.clock
    )
    try:
        await watcher.follow()
    finally:
        await watcher.close()
    return len(await scene.rows("select chain from chain_cursor"))


def test_an_evm_chain_of_another_id_is_not_read(in_scene: InScene, evm: EvmScene) -> None:
    evm.token.give(address("ulla"), 5 * COIN)
    evm.settle()

    async def scenario(scene: DepositScene) -> None:
        async with evm.chain(chain_id=evm.rules.chain_id + 1) as wrong, evm.chain() as right:
            with pytest.raises(ChainUnfit, match=f"the setting says {evm.rules.chain_id + 1}"):
                await follow(scene, "ERC20", wrong)
            assert await scene.rows("select chain from chain_cursor") == []
            assert await follow(scene, "ERC20", right) == 1

    in_scene(scenario)


def test_a_tron_chain_of_another_id_is_not_read(in_scene: InScene, tron: TronScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        wrong = tron.with_rules(chain_id=tron.rules.chain_id + 1)
        with pytest.raises(ChainUnfit, match="node"):
            await follow(scene, "TRC20", wrong)
        assert await scene.rows("select chain from chain_cursor") == []
        assert await follow(scene, "TRC20", tron.chain) == 1

    in_scene(scenario)


def test_nodes_that_do_not_answer_are_no_proof_of_the_chain(in_scene: InScene, tron: TronScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        for server in tron.network.servers:
            server.switches.edit = lambda path, question, answer: b"upstream busy"
        with pytest.raises(ChainUnfit, match="not a TRON answer"):
            await follow(scene, "TRC20", tron.chain)

    in_scene(scenario)
