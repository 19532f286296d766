"""What the database refuses about callbacks, and claims made at once."""

import asyncio

import psycopg
import pytest
from tests.callbacks.conftest import CallbackScene, InScene

from merchant_wallet.base.db import connect
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.outbox import Key

REFUSED = (
    ("update callback set state = 'lost'", "an unknown state"),
    ("update callback set state = 'delivered'", "delivered at no moment"),
    ("update callback set status = 1", "a status that nobody is told of"),
    ("update callback set status = 0", "a withdrawal without a status"),
    ("update callback set event_type = 'deposit'", "a deposit with a status"),
    ("update callback set order_id = order_id + 1", "a withdrawal that is not there"),
    ("update callback set next_ms = -1", "a moment before all time"),
    ("update callback set attempt_no = -1", "fewer attempts than none"),
    ("insert into callback_attempt values (1, 1, 2, 1, 0)", "an attempt of no callback"),
)


@pytest.mark.parametrize(
    "statement", [statement for statement, _ in REFUSED], ids=[name for _, name in REFUSED]
)
def test_the_database_refuses_what_no_callback_can_be(in_scene: InScene, statement: str) -> None:
    async def scenario(scene: CallbackScene) -> None:
        await scene.cancelled(await scene.open_merchant())
        with pytest.raises(psycopg.errors.IntegrityError):
            await scene.rows(statement)

    in_scene(scenario)


def test_a_callback_that_another_is_claiming_just_now_is_left_out_and_not_waited_for(
    in_scene: InScene,
) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        for _ in range(2):
            await scene.cancelled(shop)
        keys = [Key(*row) for row in await scene.rows("select merchant_id, order_id, status from callback")]
        now = scene.clock()
        async with await connect(scene.url) as other, other.transaction():
            first = await outbox.claim(other, keys[:1], claimed_by="other", now_ms=now, until_ms=now + 30_000)
            async with asyncio.timeout(5):
                rest = await outbox.claim(
                    scene.connection, keys, claimed_by="mine", now_ms=now, until_ms=now + 30_000
                )
        assert [claim.key for claim in first] == keys[:1]
        assert [claim.key for claim in rest] == keys[1:]

    in_scene(scenario)


def test_a_claim_that_is_held_is_not_given_twice(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        await scene.cancelled(await scene.open_merchant())
        (row,) = await scene.rows("select merchant_id, order_id, status from callback")
        now = scene.clock()
        given = [
            await outbox.claim(
                scene.connection, [Key(*row)], claimed_by="m", now_ms=at_ms, until_ms=at_ms + 30_000
            )
            for at_ms in (now, now + 29_999, now + 30_000)
        ]
        assert [[claim.attempt_no for claim in claims] for claims in given] == [[1], [], [2]]

    in_scene(scenario)


def test_a_busy_merchant_hides_no_other(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        busy, quiet = await scene.open_merchant("Busy"), await scene.open_merchant("Quiet")
        for _ in range(8):
            await scene.cancelled(busy)
        scene.clock.advance_s(1)
        await scene.cancelled(quiet)
        merchant_ids = [opened.merchant.merchant_id for opened in (busy, quiet)]
        assert await outbox.list_waiting(scene.connection, after=0, limit=10) == [
            (merchant_id, False) for merchant_id in merchant_ids
        ]
        assert await outbox.list_waiting(scene.connection, after=merchant_ids[0], limit=10) == [
            (merchant_ids[1], False)
        ]
        found = await outbox.peek_due(scene.connection, merchant_ids, scene.clock(), each=5, limit=2)
        assert [waiting.key.merchant_id for waiting in found] == merchant_ids
        found = await outbox.peek_due(scene.connection, merchant_ids, scene.clock(), each=5, limit=100)
        assert len(found) == 6

    in_scene(scenario)
