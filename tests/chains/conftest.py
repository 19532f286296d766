"""Development nodes for the chains' tests: a fresh one for each test that asks."""

from collections.abc import Iterator

import pytest
from devnet.evm_node import EvmDevnet
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron


@pytest.fixture
def evm_node() -> Iterator[EvmDevnet]:
    """A real EVM node that makes a block when it is told to."""
    with EvmDevnet() as node:
        yield node


@pytest.fixture
def evm(evm_node: EvmDevnet) -> EvmScene:
    """The same with the token and a funded hot wallet."""
    return open_scene(evm_node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes with the token and a funded hot wallet."""
    with open_tron() as scene:
        yield scene


@pytest.fixture
def lone() -> Iterator[TronScene]:
    """The same with one node."""
    with open_tron(nodes=1) as scene:
        yield scene
