"""EVM nodes that tests use one after the other: reset after each test, instead of started anew.

A start costs 100 ms of processor time, and a copy of the tests' process. A reset costs 2.
"""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from devnet.evm_node import EvmDevnet, NodeError

_IDLE: list[EvmDevnet] = []


@contextmanager
def use_node() -> Iterator[EvmDevnet]:
    """A node at its start that makes blocks when asked. Raises NodeError, ProgramMissing."""
    node = _IDLE.pop() if _IDLE else EvmDevnet()
    try:
        node.reset()
    except (NodeError, OSError):
        # It ends with the thread that started it.
        node.stop()
        node = EvmDevnet()
    yield node
    _IDLE.append(node)


@atexit.register
def _stop_idle() -> None:
    for node in _IDLE:
        node.stop()
