"""kill -9 at every step of a delivery: each final status is delivered at least once, with one event id."""

import asyncio
import signal
from collections import Counter

import pytest
from tests.callbacks.conftest import CallbackScene, InScene
from tests.callbacks.killable_sender import STEPS
from tests.fork_server import fork_program

PASSES = (0, 1)
"""Two senders at once: one dies at once, the other a little later."""


async def run_sender(scene: CallbackScene, step: str, passes: int) -> int | str:
    """Run a sender in its own process. Returns its exit status."""
    child = fork_program("tests.callbacks.killable_sender", scene.url, step, str(passes))
    try:
        return await asyncio.to_thread(child.wait_for_state)
    finally:
        child.end()


async def make_events(scene: CallbackScene) -> set[str]:
    """Orders in every final status. Returns the ids of all their events."""
    shop, other = await scene.open_merchant("Shop"), await scene.open_merchant("Other")
    events = {await scene.cancelled(merchant) for merchant in (shop, other) for _ in range(4)}
    for merchant in (shop, other):
        events.add(f"evt_{(await scene.paid(merchant)).order_id}_2")
        failed = await scene.failed(merchant)
        events |= {f"evt_{failed.order_id}_3", f"evt_{failed.order_id}_6"}
    return events


@pytest.mark.parametrize("step", STEPS)
def test_a_sender_killed_at_any_step_loses_nothing(in_scene: InScene, step: str) -> None:
    async def scenario(scene: CallbackScene) -> None:
        events = await make_events(scene)
        ended = await asyncio.gather(*(run_sender(scene, step, passes) for passes in PASSES))
        assert ended == [-signal.SIGKILL, -signal.SIGKILL]
        assert await run_sender(scene, "", 0) == 0
        told = Counter(scene.receiver.events)
        assert told.keys() == events
        assert set((await scene.states()).values()) == {"delivered"}
        assert await scene.rows("select count(*) from withdrawal where notified_ms is null") == [(0,)]
        # Only attempts whose sender died before recording the result are sent again.
        unfinished = await scene.rows("select count(*) from callback_attempt where latency_ms is null")
        attempts = await scene.rows("select count(*) from callback_attempt")
        assert attempts[0][0] == len(events) + unfinished[0][0]
        assert told.total() <= attempts[0][0]
        for event in events:
            orders = {
                request.fields["orderId"] for request in scene.receiver.received if request.event_id == event
            }
            assert len(orders) == 1

    in_scene(scenario)


def test_one_orders_callbacks_stay_in_order_across_deaths(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        order = await scene.failed(await scene.open_merchant())
        failed, refunded = f"evt_{order.order_id}_3", f"evt_{order.order_id}_6"
        for step in ("after send", "before note"):
            assert await run_sender(scene, step, 0) == -signal.SIGKILL
        assert await run_sender(scene, "", 0) == 0
        assert scene.receiver.events == [failed, failed, failed, refunded]

    in_scene(scenario)
