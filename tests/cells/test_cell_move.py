"""A cell moves to another cluster while it is in use. Nothing is lost and nothing is done twice."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import psycopg
import pytest
from tests.cells.killable_mover import LATE_POINTS, POINTS, SWITCH_POINTS
from tests.cells.moved import (
    Load,
    MovableCell,
    has_answers,
    kill_mover,
    move_to,
    stop_mover,
    take_over,
    under_load,
)
from tests.crash.shop import COIN, run
from tests.crash_points import IsDue, Point, run_killed
from tests.waits import eventually

from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import connect_sync, place
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.merchants.cells import fence
from merchant_wallet.merchants.cells.updates import CellUpdates
from merchant_wallet.postgres import WORKER_ROLE

MOVES: Final = 4
"""So many moves are killed at every point together. Each mover that continues passes three others."""


@pytest.mark.parametrize("grace_s", [pytest.param(fence.GRACE_S, marks=pytest.mark.extended), 0.0])
def test_a_cell_moves_while_it_is_in_use(
    movable: MovableCell, monkeypatch: pytest.MonkeyPatch, grace_s: float
) -> None:
    # Without a grace many a COMMIT is cut off. It is looked up at the new place.
    monkeypatch.setattr(fence, "GRACE_S", grace_s)

    async def scenario() -> None:
        await movable.open_shops("First", "Second")
        before = [await shop.alice_units() for shop in movable.shops]
        async with movable.layout.open_writers() as writers:
            loads = [Load(shop) for shop in movable.shops]
            running = [asyncio.create_task(load.run(writers)) for load in loads]
            await eventually(lambda: has_answers(loads))
            mover = await movable.move()
            counts = [len(load.acknowledged) for load in loads]
            await eventually(lambda: has_answers(loads, counts))
            for load in loads:
                load.end()
            await asyncio.gather(*running)
        movable.follow()
        for shop, load, units in zip(movable.shops, loads, before, strict=True):
            print(
                f"closed for {mover.closed_s:.2f} s; the longest wait {load.longest_gap_s:.2f} s;"
                f" {load.refused_count} refusals, {len(load.acknowledged)} credits"
            )
            assert load.unknown_count == 0
            assert await shop.alice_units() == units + len(load.acknowledged) * COIN
            assert set(await shop.orders()) >= set(load.acknowledged)
        await movable.verify()

    run(scenario())


def test_nobody_writes_at_the_old_place_after_the_switch(movable: MovableCell) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        await movable.move()

    run(scenario())
    address, version, state = movable.read_place()
    assert (version, state) == (2, "switched")
    assert movable.new_url.rsplit("?", 1)[0].rsplit("/", 1)[1] in address
    with connect_sync(movable.layout.far_url) as old:
        assert old.execute("select version, is_open from cell_state").fetchone() == (2, False)
    worker_url = movable.layout.far_url.replace(f"user={_owner(movable)}", f"user={WORKER_ROLE}")
    with connect_sync(worker_url) as old, pytest.raises(psycopg.errors.InsufficientPrivilege):
        old.execute("insert into callback_attempt select * from callback_attempt")
    with connect_sync(place(worker_url, None, "far")) as old:
        assert old.execute("select count(*) from book").fetchone() == (1,)


def test_connections_of_other_parts_follow_the_cell(movable: MovableCell) -> None:
    async def scenario() -> None:
        directory = movable.layout.make_directory()
        await directory.refresh()
        _, cell = directory.list()
        updates = CellUpdates(cell.cell_id, directory.connect_home, partial(directory.connect, cell))
        await updates.update()
        await movable.move()
        movable.follow()
        with connect_sync(movable.layout.far_url) as new:
            new.execute("update reference_state set checked_ms = 0")

        async def is_updated() -> bool:
            with suppress(CellClosed, psycopg.OperationalError):
                await updates.update()
            with connect_sync(movable.layout.far_url) as new:
                return new.execute("select from reference_state where checked_ms > 0").fetchone() is not None

        await eventually(is_updated)
        await updates.close()

    run(scenario())


def _owner(movable: MovableCell) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(movable.layout.far_url)["user"])


@pytest.mark.parametrize("point", [POINTS[6], LATE_POINTS[1]], ids=str)
def test_a_killed_move_of_a_cell_in_use_is_continued_by_the_same_command(
    movable: MovableCell, point: Point
) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable):
            await stop_mover(movable, point)
            await movable.move()
        assert movable.read_place()[2] == "switched"

    run(scenario())


def test_a_worker_opens_the_old_place_after_the_movers_process_was_killed_in_the_switch(
    movable: MovableCell,
) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable) as load:
            await kill_mover(movable, SWITCH_POINTS[9])
            assert movable.read_place()[2] == "switching"
            await take_over(movable.layout.url)
            assert movable.read_place()[2] == "copying"
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))
            await movable.move()
        assert movable.read_place()[2] == "switched"

    run(scenario())


async def check_use(movable: MovableCell) -> None:
    """The cell takes an order where home says that it is, and its book is sound."""
    (shop,) = movable.shops
    before = await shop.alice_units()
    async with movable.layout.open_writers() as writers:
        answer = await shop.ask(writers, shop.credit(f"order {before}"))  # type: ignore[arg-type]  # the same interface
    assert isinstance(answer, Transferred)
    assert await shop.alice_units() == before + COIN
    await movable.verify()


def check_old_alone(movable: MovableCell) -> None:
    """Nothing is left of a move that was undone."""
    assert movable.read_place()[2] is None
    with connect_sync(movable.new_url) as new:
        assert new.execute("select from pg_namespace where nspname = 'far'").fetchall() == []
        assert new.execute("select from pg_subscription").fetchall() == []
    with connect_sync(movable.old_url) as old:
        assert old.execute("select from pg_replication_slots").fetchall() == []
        assert old.execute("select from pg_publication").fetchall() == []


async def kill_and_undo(movable: MovableCell, point: Point) -> None:
    """Kill the mover at the point, and undo the move."""
    await stop_mover(movable, point)
    await movable.undo()
    check_old_alone(movable)
    await check_use(movable)


def find_in_switch(point: Point) -> IsDue:
    """Recognises a point in the switch or after it. A mover that continues has done less before."""
    points = (*SWITCH_POINTS, *LATE_POINTS)
    earlier = [each.text for each in points[: points.index(point)]].count(point.text)
    found, is_begun = Point(point.text, earlier).make_test(), False

    def is_due(when: str, step: str) -> bool:
        nonlocal is_begun
        is_begun = is_begun or SWITCH_POINTS[0].text in step
        return is_begun and found(when, step)

    return is_due


async def kill_and_continue(movable: MovableCell, points: Sequence[Point]) -> None:
    """Kill the mover at the first point, the one that continues at the second, and so on to the end.

    In the switch a worker opens the cell first.
    """
    for point in points:
        is_due = point.make_test() if point in POINTS else find_in_switch(point)
        assert await run_killed(move_to(movable.layout.url, movable.new_url), is_due), f"never at {point}"
        if point in SWITCH_POINTS[2:]:
            assert movable.read_place()[2] == "switching"
            await take_over(movable.layout.url)
            assert movable.read_place()[2] == "copying"
    await movable.move()
    assert movable.read_place()[2] == "switched"
    movable.follow()
    await check_use(movable)


def test_a_killed_move_is_undone_or_continued_wherever_it_stood(movable: MovableCell) -> None:
    points = (*POINTS, *SWITCH_POINTS, *LATE_POINTS)

    async def scenario() -> None:
        await movable.open_shops("Shop")
        for first in range(MOVES):
            for point in (*POINTS[1::2], *SWITCH_POINTS[1::4])[first::MOVES]:
                await kill_and_undo(movable, point)
            await kill_and_continue(movable, points[first::MOVES])
            await movable.drop_old()
            movable.turn_round()

    run(scenario())
