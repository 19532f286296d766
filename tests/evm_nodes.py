"""EVM nodes that tests use one after the other: taken back to their start after each test, not started anew.

A start costs 100 ms of processor time, and a copy of the tests' process. Taking one back costs 2.
"""

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from devnet.evm_node import EvmDevnet, NodeError
from devnet.tron_network import run_network, start_evm
from tests.tools import require_tool

if TYPE_CHECKING:
    from devnet.geth_node import GethNode

_IDLE: list[EvmDevnet] = []
_IDLE_OF_TRON: list[tuple[EvmDevnet, str]] = []
"""Each with the snapshot of its start."""


@contextmanager
def use_node() -> Iterator[EvmDevnet]:
    """A node at its start that makes blocks when asked. Raises NodeError, ProgramMissing."""
    node = _IDLE.pop() if _IDLE else EvmDevnet()
    if not _is_taken_back(node, node.reset):
        node = EvmDevnet()
    yield node
    _IDLE.append(node)


@contextmanager
def use_geth() -> "Iterator[GethNode]":
    """A geth of its own. Without the program the test is skipped. Raises NodeError."""
    # It needs modules that take long to import.
    from devnet.geth_node import GethNode

    program = require_tool("geth")
    with GethNode(program) as node:
        yield node


@contextmanager
def use_node_of_tron() -> Iterator[EvmDevnet]:
    """The same for the contracts of a fake TRON network."""
    node = None
    if _IDLE_OF_TRON:
        # A reset would give it a base fee.
        idle, start = _IDLE_OF_TRON.pop()
        node = idle if _is_taken_back(idle, partial(idle.revert, start)) else None
    node = node or start_evm()
    start = node.take_snapshot()
    yield node
    _IDLE_OF_TRON.append((node, start))


run_tron_network = partial(run_network, open_evm=use_node_of_tron)


def _is_taken_back(node: EvmDevnet, take_back: Callable[[], None]) -> bool:
    try:
        take_back()
    except (NodeError, OSError):
        # It ends with the thread that started it.
        node.stop()
        return False
    return True


@atexit.register
def _stop_idle() -> None:
    for node in [*_IDLE, *(node for node, _ in _IDLE_OF_TRON)]:
        node.stop()
