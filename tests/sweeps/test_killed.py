"""A sweeper killed at every step, or frozen and let go on: each address is topped_up and emptied once."""

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.chains.tron_scene import SOLID_LAG, WALLET_UNITS, TronScene
from tests.fork_server import STOPPED, ForkedProcess, fork_program
from tests.sweeps.killable_sweeper import open_real
from tests.sweeps.sweep_scene import USDT, SweepScene

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.custody.sweeps import store

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

STEPS = ("after draft", "after sign", "before broadcast", "after broadcast", "after judge", "after fee_of")
POINTS = [f"{step.split()[0]} {kind} {step.split()[1]}" for kind in ("top_up", "token") for step in STEPS]
"""In their order: decided, signed and not committed, committed, sent, judged, about to be written down."""
AMOUNTS = [70 * USDT, 80 * USDT]


@dataclass
class Field:
    """A chain with deposits on it, whichever it is."""

    chain: str
    file: Path
    settle: Callable[[], object]
    held_by_wallet: Callable[[], int]
    give: Callable[[bytes, int], object]
    first_held: int


@pytest.fixture(params=[ERC20, TRC20])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Field:
    """A field on a real EVM node, and one on the double of TRON."""
    file = tmp_path / "where.json"
    if request.param == ERC20:
        evm: EvmScene = request.getfixturevalue("evm")
        where: dict[str, Any] = {"chain": ERC20, "urls": [evm.node.url], "token": evm.token.address.hex()}
        made = Field(ERC20, file, evm.settle, lambda: evm.token.balance(WALLET), evm.token.give, HELD)
    else:
        tron: TronScene = request.getfixturevalue("tron")
        network = tron.network
        where = {"chain": TRC20, "urls": network.urls, "token": network.token.hex()}
        where |= {"chain_id": tron.rules.chain_id}
        made = Field(
            TRC20,
            file,
            # Quick blocks, so that nothing lapses while a process starts.
            lambda: network.mine(SOLID_LAG + 1, interval_ms=10),
            lambda: network.balance(tron.wallet),
            lambda address, units: network.fund(address, units=units),
            WALLET_UNITS,
        )
    file.write_text(json.dumps(where))
    return made


async def pay_in(scene: SweepScene, field: Field) -> None:
    for index, units in enumerate(AMOUNTS):
        field.give(await scene.deposit(index, units, field.chain), units)
    field.settle()


async def meet(scene: SweepScene, field: Field, point: str, sent: str) -> ForkedProcess:
    """A sweeper that comes to its point while blocks are made."""
    child = fork_program("tests.sweeps.killable_sweeper", scene.url, point, sent, str(field.file))
    scene.closing.callback(child.end)
    finished = asyncio.create_task(asyncio.to_thread(child.wait_for_state))
    while not finished.done():
        await asyncio.to_thread(field.settle)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(finished), 0.05)
    wanted = STOPPED if sent == "SIGSTOP" else -signal.Signals[sent]
    assert finished.result() == wanted, f"it never came to {point}"
    return child


async def finish(scene: SweepScene, field: Field) -> None:
    """Another sweeper brings everything to its end."""
    chain, sweeper = open_real(json.loads(field.file.read_text()), field.file.parent)
    worker = scene.worker({chain: sweeper})
    await scene.begin(worker, chain)
    for _ in range(12):
        await worker.follow(with_unsigned=True)
        if not await store.count_open(scene.connection, chain):
            return
        field.settle()


async def see_swept_once(scene: SweepScene, field: Field) -> None:
    """Everything arrived, by one signature a step, and no place of the wallet is without its bytes."""
    assert field.held_by_wallet() == field.first_held + sum(AMOUNTS)
    assert await scene.steps() == ["done"] * len(AMOUNTS)
    signed = await scene.rows("select kind, count(*) from sweep_signed group by kind order by kind")
    assert signed == [("token", len(AMOUNTS)), ("top_up", len(AMOUNTS))]
    nonces = await scene.rows("select nonce from wallet_nonce where purpose = 'top_up' order by nonce")
    assert nonces == ([(0,), (1,)] if field.chain == ERC20 else [])


def test_a_sweeper_killed_at_every_step_moves_everything_once(in_scene: "InScene", ground: Field) -> None:
    async def scenario(scene: SweepScene) -> None:
        await pay_in(scene, ground)
        for point in POINTS:
            await meet(scene, ground, point, "SIGKILL")
        await finish(scene, ground)
        await see_swept_once(scene, ground)

    in_scene(scenario)


@pytest.mark.parametrize("point", ["after top_up draft", "before top_up broadcast", "before token fee_of"])
def test_a_frozen_sweeper_that_wakes_up_late_changes_nothing(
    in_scene: "InScene", ground: Field, point: str
) -> None:
    async def scenario(scene: SweepScene) -> None:
        await pay_in(scene, ground)
        child = await meet(scene, ground, point, "SIGSTOP")
        await finish(scene, ground)
        child.resume()
        assert await asyncio.to_thread(child.wait_for_state) == 0
        ground.settle()
        await see_swept_once(scene, ground)

    in_scene(scenario)
