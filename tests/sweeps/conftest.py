"""Sweeps on real development chains, with a database and a signer that enforces its rules."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.evm_nodes import use_node
from tests.sweeps.sweep_scene import SweepScene, open_sweep_scene

InScene = Callable[[Callable[[SweepScene], Awaitable[None]]], None]


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    """A real EVM node with the token and a funded hot wallet."""
    with use_node() as node:
        yield open_scene(node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes with the token and a funded hot wallet."""
    with open_tron() as scene:
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
