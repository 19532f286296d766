"""Cold money on real development chains, with a database and a signer that enforces its rules."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from devnet.evm_node import EvmNode
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.tron_scene import TronScene, open_tron
from tests.cold.cold_scene import ColdScene, Moved, make_evm, make_tron, open_cold_scene

from merchant_wallet.base.chains import ERC20, TRC20

InScene = Callable[[Callable[[ColdScene], Awaitable[None]]], None]


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    """A real EVM node with the token and a hot wallet with 1000 USDT."""
    return open_scene(evm_node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes with the same."""
    with open_tron() as scene:
        yield scene


@pytest.fixture(params=[ERC20, TRC20])
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> Moved:
    """Each chain."""
    if request.param == ERC20:
        return make_evm(request.getfixturevalue("evm"), tmp_path)
    return make_tron(request.getfixturevalue("tron"), tmp_path)


@pytest.fixture
def in_scene(database_url: str, moved: Moved) -> InScene:
    """Runs a scenario in a fresh scene on each chain."""

    async def play(scenario: Callable[[ColdScene], Awaitable[None]]) -> None:
        async with AsyncExitStack() as closing:
            await scenario(await open_cold_scene(database_url, closing, moved))

    def run(scenario: Callable[[ColdScene], Awaitable[None]]) -> None:
        asyncio.run(play(scenario))

    return run
