"""Sweeps on real development chains, with a database and a signer that enforces its rules."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from devnet.evm_node import EvmNode
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.node_kinds import NAMED
from tests.sweeps.sweep_scene import SweepScene, open_sweep_scene

InScene = Callable[[Callable[[SweepScene], Awaitable[None]]], None]


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    """A real EVM node with the token and a funded hot wallet."""
    return open_scene(evm_node)


@pytest.fixture
def tron(tron_kind: str) -> Iterator[TronScene]:
    """Two honest TRON nodes with the token and a funded hot wallet."""
    with open_tron(named=tron_kind == NAMED) as scene:
        yield scene


@pytest.fixture
def in_scene(database_url: str) -> InScene:
    """Runs a scenario in a fresh scene."""

    async def play(scenario: Callable[[SweepScene], Awaitable[None]]) -> None:
        async with AsyncExitStack() as closing:
            await scenario(await open_sweep_scene(database_url, closing))

    def run(scenario: Callable[[SweepScene], Awaitable[None]]) -> None:
        asyncio.run(play(scenario))

    return run
