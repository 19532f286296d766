"""kill -9 at every step of a delivery: each final status is delivered at least once, with one event id."""

import asyncio
import signal
from collections import Counter

import psycopg
import pytest
from tests.callbacks.conftest import CallbackScene, InScene
from tests.callbacks.killable_sender import CLAIM_MS, STEPS, at, work
from tests.crash_points import run_killed
from tests.dying_sessions import sessions_die
from tests.fork_server import fork_program

from merchant_wallet.base.db import connect
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.outbox import Claim, Key

PASSES = (0, 1)
"""Two senders: one dies at once, the other a little later."""
WITH_SIGNAL = "after send"
"""Here the senders are processes of their own that work at the same time, and are killed by a signal."""


async def run_process(scene: CallbackScene, step: str, passes: int) -> int | str:
    """Run a sender in its own process. Returns its exit status."""
    child = fork_program("tests.callbacks.killable_sender", scene.url, step, str(passes))
    try:
        return await asyncio.to_thread(child.wait_for_state)
    finally:
        child.end()


async def run_sender(scene: CallbackScene, step: str, passes: int) -> bool:
    """Run a sender in this process. Returns whether it was killed."""

    async def pass_time() -> None:
        scene.clock.now_ms += CLAIM_MS

    return await run_killed(work(scene.url, scene.clock, pass_time), at(step, passes))


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
        if step == WITH_SIGNAL:
            ended = await asyncio.gather(*(run_process(scene, step, passes) for passes in PASSES))
            assert ended == [-signal.SIGKILL, -signal.SIGKILL]
            assert await run_process(scene, "", 0) == 0
        else:
            for passes in PASSES:
                assert await run_sender(scene, step, passes)
            assert not await run_sender(scene, "", 0)
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
            assert await run_sender(scene, step, 0)
        assert not await run_sender(scene, "", 0)
        assert scene.receiver.events == [failed, failed, failed, refunded]

    in_scene(scenario)


async def claim_all(scene: CallbackScene) -> list[Claim]:
    """Claim every callback on a connection of its own."""
    keys = [Key(*row) for row in await scene.rows("select merchant_id, order_id, status from callback")]
    now = scene.clock()
    async with await connect(scene.url) as connection:
        return await outbox.claim(connection, keys, claimed_by="mine", now_ms=now, until_ms=now + 1000)


def test_a_session_that_dies_between_the_claim_and_its_attempts_claims_nothing(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        for _ in range(2):
            await scene.cancelled(shop)
        async with sessions_die(scene.url, "insert", "callback_attempt"):
            with pytest.raises(psycopg.OperationalError):
                await claim_all(scene)
        assert await scene.rows("select distinct attempt_no, claimed_by, next_ms from callback") == [
            (0, None, 0)
        ]
        assert await scene.rows("select count(*) from callback_attempt") == [(0,)]
        assert [claim.attempt_no for claim in await claim_all(scene)] == [1, 1]
        assert await scene.rows("select attempt_no from callback_attempt") == [(1,), (1,)]

    in_scene(scenario)


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_session_that_dies_before_an_answer_is_recorded_records_nothing_of_it(
    in_scene: InScene, succeeded: bool
) -> None:
    async def scenario(scene: CallbackScene) -> None:
        await scene.cancelled(await scene.open_merchant())
        (claim,) = await claim_all(scene)

        async def record() -> None:
            async with await connect(scene.url) as connection:
                if succeeded:
                    await outbox.record_success(connection, claim, Answer(5, http_status=200), scene.clock())
                else:
                    await outbox.record_failure(connection, claim, Answer(5, error="no answer"), None)

        async with sessions_die(scene.url, "update", "callback_attempt"):
            with pytest.raises(psycopg.OperationalError):
                await record()
        read = (
            "select c.state, c.claimed_by, w.notified_ms from callback c join withdrawal w using (order_id)"
        )
        assert await scene.rows(read) == [("due", "mine", None)]
        await record()
        state, told = ("delivered", scene.clock()) if succeeded else ("dead_letter", None)
        assert await scene.rows(read) == [(state, None, told)]
        assert await scene.rows("select latency_ms from callback_attempt") == [(5,)]

    in_scene(scenario)
