"""On which nodes a test runs.

With the marker `each_node` it runs on the usual nodes, which are anvil and the fake TRON network, and in
`make test-all` also on geth and on the TRON nodes that `WALLET_TEST_TRON` names. Such a test asks for
`evm_node` or `tron_kind`, and uses nothing that only the usual nodes can do.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from devnet.evm_node import EvmNode

ANVIL: Final = "anvil"
GETH: Final = "geth"
FAKE: Final = "fake"
NAMED: Final = "named"
NAMED_TIMEOUT_S: Final = 1800
"""Of a test that waits for others' blocks."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run marked tests once on each node."""
    is_marked = metafunc.definition.get_closest_marker("each_node") is not None
    if is_marked and "evm_node" in metafunc.fixturenames:
        kinds = [ANVIL, pytest.param(GETH, marks=pytest.mark.extended)]
        metafunc.parametrize("evm_node", kinds, indirect=True)
    if is_marked and "tron_kind" in metafunc.fixturenames:
        marks = [pytest.mark.extended, pytest.mark.timeout(NAMED_TIMEOUT_S)]
        metafunc.parametrize("tron_kind", [FAKE, pytest.param(NAMED, marks=marks)], indirect=True)


@pytest.fixture
def evm_node(request: pytest.FixtureRequest) -> "Iterator[EvmNode]":
    """A real EVM node that makes a block only when a test says so."""
    # Not every run has tests of chains.
    from tests.evm_nodes import use_geth, use_node

    use = use_geth if getattr(request, "param", ANVIL) == GETH else use_node
    with use() as node:
        yield node


@pytest.fixture
def tron_kind(request: pytest.FixtureRequest) -> str:
    """The kind of TRON network. Without nodes that `WALLET_TEST_TRON` names, a test of theirs is skipped."""
    kind: str = getattr(request, "param", FAKE)
    if kind == NAMED and not os.environ.get("WALLET_TEST_TRON"):
        pytest.skip("WALLET_TEST_TRON names no TRON node")
    return kind
