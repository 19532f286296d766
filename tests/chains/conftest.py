"""Development nodes for the chains' tests. Each test that asks gets a fresh one."""

from collections.abc import Iterator

import pytest
from devnet.evm_node import EvmNode
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.node_kinds import NAMED


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    """An EVM node with the token and a funded hot wallet."""
    return open_scene(evm_node)


@pytest.fixture
def tron(tron_kind: str) -> Iterator[TronScene]:
    """Two honest TRON nodes, with the token and a funded hot wallet."""
    with open_tron(named=tron_kind == NAMED) as scene:
        yield scene


@pytest.fixture
def lone() -> Iterator[TronScene]:
    """One honest TRON node, with the token and a funded hot wallet."""
    with open_tron(nodes=1) as scene:
        yield scene
