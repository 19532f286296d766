"""How a chain's nodes are: how far each is, how long it takes, and what is wrong with it. For people alone.

Rules: a node is named by host and port. Its whole URL may have a key. Nothing is decided by this.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import NodeFailed, NodeRefused

N = TypeVar("N")


class NodeStatus(msgspec.Struct, frozen=True):
    """One node: its newest and its final block, or its failure. `took_ms` is the time of both answers."""

    name: str
    head: Block | None
    final: Block | None
    took_ms: int
    failure: str | None = None


async def look_at(
    names: Iterable[str],
    every: Callable[
        [Callable[[N], Awaitable[tuple[Block, Block, int]]]],
        Awaitable[Sequence[tuple[Block, Block, int] | NodeFailed | NodeRefused]],
    ],
    read_head: Callable[[N], Awaitable[Block]],
    read_final: Callable[[N], Awaitable[Block]],
) -> list[NodeStatus]:
    """The status of each node, in their order. `every` asks all of them at once."""

    async def look(node: N) -> tuple[Block, Block, int]:
        began_s = time.monotonic()
        head, final = await read_head(node), await read_final(node)
        return head, final, int((time.monotonic() - began_s) * 1000)

    answers = await every(look)
    return [
        NodeStatus(name, None, None, 0, str(answer))
        if isinstance(answer, NodeFailed | NodeRefused)
        else NodeStatus(name, *answer)
        for name, answer in zip(names, answers, strict=True)
    ]
