"""A worker of cold money killed at every step, or frozen and resumed: the money moves exactly once."""

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.cold.cold_scene import COLD, HELD, USDT, ColdScene
from tests.fork_server import STOPPED, ForkedProcess, fork_program

from merchant_wallet.base.chains import is_evm

if TYPE_CHECKING:
    from tests.cold.conftest import InScene

UNITS = 700 * USDT
POINTS = [
    "before funds",
    "after funds",
    "after reserve",
    "before build",
    "before store_signed",
    "after store_signed",
    "before broadcast",
    "after broadcast",
    "before judge",
    "before end",
]
"""In order: claimed, reserved, signed and not stored, stored, sent, judged, about to be ended."""
SIGNED_UNSTORED = "before store_signed"


async def meet(scene: ColdScene, point: str, sent: str) -> ForkedProcess:
    """Start a worker and mine blocks until it reaches its point. Afterwards its claim has lapsed."""
    now, told = str(scene.clock.now_ms), str(scene.moved.file)
    child = fork_program("tests.cold.killable_cold_worker", scene.url, now, point, sent, told)
    scene.closing.callback(child.end)
    finished = asyncio.create_task(asyncio.to_thread(child.wait_for_state))
    while not finished.done():
        await asyncio.to_thread(scene.moved.settle)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(finished), 0.05)
    wanted = STOPPED if sent == "SIGSTOP" else -signal.Signals[sent]
    assert finished.result() == wanted, f"it never came to {point}"
    scene.clock.now_ms += 60_000
    return child


async def see_moved_once(scene: ColdScene, number: int) -> None:
    assert scene.moved.balance(COLD) == UNITS
    assert scene.moved.balance(scene.moved.hot) == HELD - UNITS
    assert (await scene.shown(number)).step == "done"
    if not is_evm(scene.moved.chain):
        # On an EVM chain what was not sent in time may be replaced at the same nonce.
        assert await scene.rows("select count(*) from cold_signed") == [(1,)]
    nonces = await scene.rows("select nonce, purpose from wallet_nonce")
    assert nonces == ([(0, "cold")] if is_evm(scene.moved.chain) else [])
    assert await scene.rows("select frozen_cause from hot_wallet") == [(None,)]


def test_a_worker_killed_at_every_step_moves_the_money_once(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(UNITS)
        for point in POINTS:
            if point == SIGNED_UNSTORED and not is_evm(scene.moved.chain):
                # The signer would refuse a second signature until the lost one has expired.
                continue
            await meet(scene, point, "SIGKILL")
        assert (await scene.finish(scene.worker(), number)).step == "done"
        await see_moved_once(scene, number)

    in_scene(scenario)


@pytest.mark.parametrize("point", ["after reserve", "before store_signed", "before broadcast", "before end"])
def test_a_frozen_worker_that_wakes_up_late_changes_nothing(in_scene: "InScene", point: str) -> None:
    async def scenario(scene: ColdScene) -> None:
        if point == SIGNED_UNSTORED and not is_evm(scene.moved.chain):
            return
        number = await scene.begin(UNITS)
        child = await meet(scene, point, "SIGSTOP")
        assert (await scene.finish(scene.worker(), number)).step == "done"
        child.resume()
        assert await asyncio.to_thread(child.wait_for_state) == 0
        scene.moved.settle()
        await see_moved_once(scene, number)

    in_scene(scenario)


def test_bytes_that_were_lost_with_their_process_are_not_signed_again_before_they_expire(
    in_scene: "InScene",
) -> None:
    """The signer's own record knows them. On an EVM chain the same nonce may be signed again at once."""

    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(UNITS)
        await meet(scene, SIGNED_UNSTORED, "SIGKILL")
        # Before the next block the same bytes would be made, and they may be signed again.
        scene.moved.mine()
        worker = scene.worker()
        await scene.turn(worker)
        waiting = await scene.shown(number)
        if is_evm(scene.moved.chain):
            assert waiting.step == "signed"
        else:
            assert "has not expired yet" in str(waiting.obstacle)
        assert scene.moved.balance(COLD) in (0, UNITS)

    in_scene(scenario)
