"""The product's EVM chain over several nodes. Each is a proxy of the same real node, and honest at first.

Each test sets which faults a node has.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.chains.evm_scene import EvmScene
from tests.chains.node_proxy import NodeProxy

from merchant_wallet.chains.evm.chain import EvmChain


@asynccontextmanager
async def nodes(evm: EvmScene, count: int) -> AsyncIterator[tuple[EvmChain, list[NodeProxy]]]:
    """The product's chain over this many proxies."""
    proxies = [NodeProxy(evm.node.url) for _ in range(count)]
    entered = [await proxy.__aenter__() for proxy in proxies]
    try:
        async with evm.chain(*(proxy.url for proxy in entered)) as chain:
            yield chain, entered
    finally:
        for proxy in entered:
            await proxy.__aexit__(None, None, None)


def play(evm: EvmScene, count: int, story: Callable[[EvmChain, list[NodeProxy]], Awaitable[None]]) -> None:
    async def run() -> None:
        async with nodes(evm, count) as (chain, proxies):
            await story(chain, proxies)

    asyncio.run(run())
