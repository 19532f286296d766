"""How a chain's nodes are: how far each is, how long it takes, and what is wrong with it. For people alone.

Rules: a node is named by host and port. Its whole URL may have a key. Nothing is decided by this.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from merchant_wallet.chains.node_access import NodeUse
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import NodeFailed, NodeRefused

N = TypeVar("N")
Look = tuple[Block, Block | None, int, str | None]
"""A node's newest and its final block, the milliseconds of both answers, and why it names no final block."""


class NodeStatus(msgspec.Struct, frozen=True):
    """One node: its newest and its final block, and what is wrong. `took_ms` is the time of both answers.

    Without `head` it does not answer. With `head` and without `final` it names no final block. `use` is that
    of this process.
    """

    name: str
    use: NodeUse
    head: Block | None
    final: Block | None
    took_ms: int
    failure: str | None = None


async def look_at(
    names: Iterable[str],
    list_use: Callable[[], Sequence[NodeUse]],
    every: Callable[[Callable[[N], Awaitable[Look]]], Awaitable[Sequence[Look | NodeFailed | NodeRefused]]],
    read_head: Callable[[N], Awaitable[Block]],
    read_final: Callable[[N], Awaitable[Block]],
) -> list[NodeStatus]:
    """The status of each node, in their order. `every` asks all of them at once."""

    async def look(node: N) -> Look:
        began_s = time.monotonic()
        head = await read_head(node)
        final, failure = None, None
        try:
            final = await read_final(node)
        except (NodeFailed, NodeRefused) as error:
            failure = str(error)
        return head, final, int((time.monotonic() - began_s) * 1000), failure

    answers = await every(look)
    return [
        NodeStatus(name, use, None, None, 0, str(answer))
        if isinstance(answer, NodeFailed | NodeRefused)
        else NodeStatus(name, use, *answer)
        for name, use, answer in zip(names, list_use(), answers, strict=True)
    ]
