"""A merchant's book moves to another cell while it is in use. Nothing is lost and nothing is done twice."""

import asyncio
import itertools
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from tests.cells.book_moved import (
    MAIN,
    MovableBook,
    fork_mover,
    list_tables_with_merchants,
    open_book,
    stop_mover,
    take_over,
    under_load,
)
from tests.cells.killable_book_mover import LATE_POINTS, POINTS, SWITCH_POINTS
from tests.cells.killable_mover import Point
from tests.cells.layout import Layout
from tests.cells.moved import has_answers
from tests.conftest import FAR
from tests.crash.shop import COIN, eventually, open_shop, run

from merchant_wallet.book.outcomes import Transferred


def test_a_book_moves_to_another_cell_and_back(cells_of_both_kinds: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(cells_of_both_kinds)
        other = await open_shop(cells_of_both_kinds.url, "Other")
        await book.move()
        assert book.read_place() == (cells_of_both_kinds.far_id, "switched")
        assert book.list_copies() == (False, True)
        await book.verify()
        await book.drop_old()
        assert book.read_place() == (cells_of_both_kinds.far_id, None)
        assert book.list_copies() == (None, True)
        await book.verify()
        await book.move(MAIN)
        assert book.read_place() == (0, "switched")
        assert book.list_copies() == (True, False)
        await book.drop_old()
        assert book.list_copies() == (True, None)
        await book.verify()
        await other.verify()

    run(scenario())


def test_a_book_moves_while_it_is_in_use(cells_of_both_kinds: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(cells_of_both_kinds)
        async with under_load(book) as load:
            mover = await book.move()
        waits = f"{load.refused_count} refusals, the longest wait {load.longest_gap_s:.2f} s"
        print(f"closed for {mover.closed_s:.3f} s, {waits}")
        await book.drop_old()
        async with under_load(book):
            await book.move(MAIN)

    run(scenario())


def _list_points(points: Sequence[Point], *chosen: Point) -> list[Any]:
    """The points of the long form. The chosen ones are in the usual run, too."""
    assert set(chosen) <= set(points)
    return [
        pytest.param(point, id=str(point), marks=() if point in chosen else pytest.mark.extended)
        for point in points
    ]


@pytest.mark.parametrize(
    "point",
    _list_points(
        (*POINTS, *SWITCH_POINTS, *LATE_POINTS), POINTS[3], POINTS[7], SWITCH_POINTS[8], *LATE_POINTS
    ),
)
def test_a_killed_move_is_continued_by_the_same_command(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await stop_mover(book, *point)
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")
        assert book.list_copies() == (False, True)

    run(scenario())


@pytest.mark.parametrize("point", _list_points(SWITCH_POINTS[2:], SWITCH_POINTS[3], SWITCH_POINTS[8]))
def test_a_worker_opens_the_old_copy_after_the_mover_died_in_the_switch(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book) as load:
            await stop_mover(book, *point)
            assert book.read_place() == (0, "switching")
            await take_over(layout.url)
            assert book.read_place() == (0, "copying")
            assert book.list_copies() == (True, False)
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())


@pytest.mark.parametrize("point", _list_points(LATE_POINTS, *LATE_POINTS))
def test_a_worker_opens_the_new_copy_after_the_decision(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book) as load:
            await stop_mover(book, *point)
            assert book.read_place() == (layout.far_id, "opening")
            await take_over(layout.url)
            assert book.read_place() == (layout.far_id, "switched")
            assert book.list_copies() == (False, True)
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))

    run(scenario())


@pytest.mark.parametrize(
    "point", _list_points((*POINTS[1:], *SWITCH_POINTS), POINTS[4], SWITCH_POINTS[4], SWITCH_POINTS[7])
)
def test_a_killed_move_is_undone(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await stop_mover(book, *point)
            await book.undo()
        assert book.read_place() == (0, None)
        assert book.list_copies() == (True, None)
        with layout.both() as (_, far):
            for table in list_tables_with_merchants(far):
                assert far.execute(f"select count(*) from {table}".encode()).fetchone() == (0,), table

    run(scenario())


async def run_killed(book: MovableBook, number: int, cell: str) -> int | str:
    """Move the book in a process that is killed before its statement of this number. Returns how it ended."""
    child = fork_mover(book, "", number, signal.SIGKILL, cell)
    try:
        return await asyncio.to_thread(child.wait_for_state)
    finally:
        child.end()


async def bring_back(book: MovableBook, number: int, old: str, new: str) -> None:
    """After a kill: continue, undo, or let a worker do what it can. At last the book is where it was."""
    if number % 3 == 2:
        await take_over(book.layout.url)
    is_moved, state = book.is_in(new), book.read_place()[1]
    if number % 3 == 0 and not is_moved:
        await book.move(new)
    elif state is not None and not is_moved:
        await book.undo()
    if book.is_in(new):
        await book.drop_old()
        await book.move(old)
        await book.drop_old()
    copies = (True, None) if old == MAIN else (None, True)
    assert (book.is_in(old), book.read_place()[1], book.list_copies()) == (True, None, copies)


@pytest.mark.extended
@pytest.mark.parametrize(("old", "new"), [(MAIN, FAR), (FAR, MAIN)])
def test_a_mover_that_is_killed_before_any_of_its_statements_does_no_harm(
    layout: Layout, old: str, new: str
) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        if old == FAR:
            await book.move(FAR)
            await book.drop_old()
        for number in itertools.count():
            if await run_killed(book, number, new) == 0:
                break
            await bring_back(book, number, old, new)
            async with layout.open_writers() as writers:
                answer = await book.shop.ask(writers, book.shop.credit(f"order {number}"))  # type: ignore[arg-type]  # the same interface
            assert isinstance(answer, Transferred)
            await book.verify()
        assert number > 100
        book.follow()
        assert await book.shop.alice_units() == number * COIN

    run(scenario())
