"""kill -9 at every step of a notification: it is sent, and where it may have been sent twice, it says so."""

import asyncio
import signal

import pytest
from tests.fork_server import fork_program
from tests.notifications.conftest import Run
from tests.notifications.killable_notifier import STEPS
from tests.notifications.scene import NotifierScene

from merchant_wallet.notifications.outbox import SENT
from merchant_wallet.notifications.worker import CLAIM_MS

DOUBTFUL = ("after claim", "before send", "after send", "before note")
"""Here the message is claimed, and nobody knows whether it was sent."""
TWICE = ("after send", "before note")


async def run_notifier(scene: NotifierScene, step: str) -> int | str:
    """One turn of a notifier in its own process, which dies. Returns its exit status."""
    at_ms = scene.callbacks.clock()
    child = fork_program("tests.notifications.killable_notifier", scene.callbacks.url, str(at_ms), step)
    try:
        return await asyncio.to_thread(child.wait_for_state)
    finally:
        child.end()


@pytest.mark.parametrize("step", STEPS)
def test_a_notifier_killed_at_any_step_tells_all_the_same(tells: Run, step: str) -> None:
    async def scenario(scene: NotifierScene) -> None:
        ann = await scene.operator("ann", "stop")
        await scene.stop()
        assert await run_notifier(scene, step) == -signal.SIGKILL
        await scene.turn(scene.notifier())
        scene.callbacks.clock.now_ms += CLAIM_MS + 1
        await scene.turn(scene.notifier())
        (sent,) = await scene.sent_to(ann)
        told = scene.told("ann")
        assert sent.state == SENT
        assert sent.is_doubtful is (step in DOUBTFUL)
        assert len(told) == (2 if step in TWICE else 1)
        assert len({one.headers["webhook-id"] for one in scene.callbacks.receiver.received}) == 1

    tells(scenario)
