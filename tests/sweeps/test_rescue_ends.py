"""A person ends a rescue that has no sweep: it waits for nobody any more, and nothing is sent for it."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from psycopg import AsyncConnection
from psycopg.errors import CheckViolation
from tests.sweeps.rescue_steps import ANN, HELD, decide, show
from tests.sweeps.sweep_scene import NOW_MS, SweepScene, address_of
from tests.waits import wait_until_blocked

from merchant_wallet.base.chains import ERC20
from merchant_wallet.custody.rescues import acts, store
from merchant_wallet.custody.rescues.two_person_changes import RescueRefused, read_before
from merchant_wallet.custody.sweeps.plan import Terms

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

ADDRESS, TOKEN, HOT = address_of(0), b"o" * 20, b"w" * 20
TERMS = Terms(0, 0, 7, 9)


async def open_sweep(connection: AsyncConnection, number: int) -> int | None:
    """What the worker does with a rescue."""
    return await store.open_sweep(connection, number, HOT, HELD, TERMS, NOW_MS)


def test_a_rescue_that_waits_is_ended_by_a_person_and_its_address_is_free_again(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        conn = scene.connection
        number = await decide(scene, ERC20, ADDRESS, TOKEN)
        await store.note_obstacle(conn, number, "fees are too high")
        with pytest.raises(RescueRefused):
            await read_before(conn, ERC20, ADDRESS)
        assert await acts.end(conn, ANN, await show(scene), "worth nothing")
        ended = await show(scene)
        assert (ended.step, ended.cause) == ("failed", "operator:ann ended it: worth nothing")
        assert (ended.ended_by, ended.obstacle) == ("operator:ann", None)
        assert await scene.rows("select ended_ms, ended_by_ms from rescue") == [(ANN.at_ms, ANN.at_ms)]
        [(subject, after)] = await scene.rows("select subject, after from audit_entry")
        assert subject.startswith("rescue ERC20 0x")
        assert (after["rescueNo"], after["reason"]) == (number, "looked at")
        assert await store.list_standing(conn, NOW_MS + 1) == []
        assert await open_sweep(conn, number) is None
        assert not await store.fail_unopened(conn, number, "a worker was late", NOW_MS)
        assert await read_before(conn, ERC20, ADDRESS) == {"rescues": 1}

    in_scene(scenario)


def test_after_a_rollback_no_rescue_is_ended_because_its_sweep_may_be_lost(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        await decide(scene, ERC20, ADDRESS, TOKEN)
        await scene.rows("insert into rollback_evidence values (0, 'home', 'behind', 'restored', 1)")
        assert not await acts.end(scene.connection, ANN, await show(scene), "worth nothing")
        assert (await show(scene)).step == "waiting"
        assert await scene.rows("select count(*) from audit_entry") == [(0,)]

    in_scene(scenario)


@pytest.mark.parametrize("first", ["a person", "a worker"])
def test_of_a_person_and_a_worker_at_the_same_moment_one_decides(in_scene: "InScene", first: str) -> None:
    """Never is a rescue ended, and what it moves signed."""

    async def scenario(scene: SweepScene) -> None:
        home, working = scene.connection, await scene.connect()
        scene.closing.push_async_callback(working.close)
        number = await decide(scene, ERC20, ADDRESS, TOKEN)
        waiting = await show(scene)
        onlooker = await scene.connect()
        scene.closing.push_async_callback(onlooker.close)
        if first == "a person":
            async with home.transaction():
                assert await acts.end(home, ANN, waiting, "worth nothing")
                opening = asyncio.create_task(open_sweep(working, number))
                await wait_until_blocked(onlooker, working.info.backend_pid, opening)
            assert await opening is None
        else:
            async with working.transaction():
                assert await open_sweep(working, number) is not None
                ending = asyncio.create_task(acts.end(home, ANN, waiting, "worth nothing"))
                await wait_until_blocked(onlooker, home.info.backend_pid, ending)
            assert not await ending
        query = (
            "select count(r.ended_ms), count(s.sweep_id) from rescue r left join sweep s using (rescue_no)"
        )
        assert await scene.rows(query) == [(1, 0) if first == "a person" else (0, 1)]

    in_scene(scenario)


def test_the_database_itself_knows_no_person_who_ended_what_has_not_ended(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        await decide(scene, ERC20, ADDRESS, TOKEN)
        for values in (
            "ended_by = 'ann', ended_by_ms = 1",
            "cause = 'x', ended_ms = 1, ended_by = 'ann'",
            "cause = 'x', ended_ms = 1, ended_by_ms = 1",
            "cause = 'x', ended_ms = 1, ended_by_ms = 1, ended_by = ''",
        ):
            with pytest.raises(CheckViolation, match="rescue_ended_by"):
                await scene.connection.execute(f"update rescue set {values}".encode())

    in_scene(scenario)
