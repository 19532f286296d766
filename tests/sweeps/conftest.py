"""Sweeps on real chains of the development kind, with a database and a signer that keeps its rules."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from devnet.evm_node import EvmDevnet
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.sweeps.yard import Yard, open_yard

InYard = Callable[[Callable[[Yard], Awaitable[None]]], None]


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    """A real EVM node with the token and a funded hot wallet."""
    with EvmDevnet() as node:
        yield open_scene(node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes with the same."""
    with open_tron() as scene:
        yield scene


@pytest.fixture
def in_yard(database_url: str) -> InYard:
    """Runs a scenario in a fresh yard."""

    async def play(scenario: Callable[[Yard], Awaitable[None]]) -> None:
        async with AsyncExitStack() as closing:
            await scenario(await open_yard(database_url, closing))

    def run(scenario: Callable[[Yard], Awaitable[None]]) -> None:
        asyncio.run(play(scenario))

    return run
