"""Development nodes for the chains' tests. Each test that asks gets a fresh one."""

from collections.abc import Iterator

import pytest
from devnet.evm_node import EvmDevnet
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.evm_nodes import use_node


@pytest.fixture
def evm_node() -> Iterator[EvmDevnet]:
    """A real EVM node that mines a block only when a test says so."""
    with use_node() as node:
        yield node


@pytest.fixture
def evm(evm_node: EvmDevnet) -> EvmScene:
    """An EVM node with the token and a funded hot wallet."""
    return open_scene(evm_node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes, with the token and a funded hot wallet."""
    with open_tron() as scene:
        yield scene


@pytest.fixture
def lone() -> Iterator[TronScene]:
    """One honest TRON node, with the token and a funded hot wallet."""
    with open_tron(nodes=1) as scene:
        yield scene
