"""A merchant's book moves to another cell while it is in use. Nothing is lost and nothing is done twice."""

import itertools
from typing import Any

import pytest
from tests.cells.book_moved import (
    MAIN,
    MovableBook,
    kill_mover,
    list_tables_with_merchants,
    move_to,
    open_book,
    stop_mover,
    take_over,
    under_load,
)
from tests.cells.killable_book_mover import LATE_POINTS, POINTS, SWITCH_POINTS
from tests.cells.layout import Layout
from tests.cells.moved import has_answers
from tests.conftest import FAR
from tests.crash.shop import open_shop, run
from tests.crash_points import Point, before_change, run_killed
from tests.waits import eventually

from merchant_wallet.base.db import connect
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.exchange import rates
from merchant_wallet.merchants.cells.book_moves import OPENING, SWITCHED


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


def test_a_book_that_moves_to_another_cell_finds_homes_newest_rate_there(layout: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            # No worker has brought it there yet.
            await rates.set_rate(home, rates.USDT_TO_KFB, 710_000_000, at_ms=1)
            await book.move()
            assert await (await far.execute("select usdt_kfb_e8 from rate")).fetchall() == [(710_000_000,)]

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


def among_extended(*points: Point) -> list[Any]:
    """Points that `make test-all` tries."""
    return [pytest.param(point, marks=pytest.mark.extended) for point in points]


@pytest.mark.parametrize(
    "point", [POINTS[7], LATE_POINTS[0], *among_extended(POINTS[3], LATE_POINTS[1])], ids=str
)
def test_a_killed_move_is_continued_by_the_same_command(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await stop_mover(book, point)
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")
        assert book.list_copies() == (False, True)

    run(scenario())


def test_a_move_whose_process_is_killed_in_the_switch_is_continued(layout: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await kill_mover(book, SWITCH_POINTS[8])
            assert book.read_place() == (0, "switching")
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())


@pytest.mark.parametrize("point", [SWITCH_POINTS[8], *among_extended(SWITCH_POINTS[3])], ids=str)
def test_a_worker_opens_the_old_copy_after_the_mover_died_in_the_switch(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book) as load:
            await stop_mover(book, point)
            assert book.read_place() == (0, "switching")
            await take_over(layout.url)
            assert book.read_place() == (0, "copying")
            assert book.list_copies() == (True, False)
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())


@pytest.mark.parametrize("point", [LATE_POINTS[1], *among_extended(LATE_POINTS[0])], ids=str)
def test_a_worker_opens_the_new_copy_after_the_decision(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book) as load:
            await stop_mover(book, point)
            assert book.read_place() == (layout.far_id, "opening")
            await take_over(layout.url)
            assert book.read_place() == (layout.far_id, "switched")
            assert book.list_copies() == (False, True)
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))

    run(scenario())


@pytest.mark.parametrize("point", [POINTS[4], SWITCH_POINTS[7], *among_extended(SWITCH_POINTS[4])], ids=str)
def test_a_killed_move_is_undone(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await stop_mover(book, point)
            await book.undo()
        assert book.read_place() == (0, None)
        assert book.list_copies() == (True, None)
        with layout.both() as (_, far):
            for table in list_tables_with_merchants(far):
                assert far.execute(f"select count(*) from {table}".encode()).fetchone() == (0,), table

    run(scenario())


async def back_out(book: MovableBook, *, by_worker: bool) -> None:
    """After a kill: undo the move, or let a worker open the book first. Home's decision stands."""
    if by_worker:
        await take_over(book.layout.url)
    if book.read_place()[1] not in (None, OPENING, SWITCHED):
        await book.undo()


async def check_use(book: MovableBook, cell: str, order: str) -> None:
    """The book is open in this cell, it takes orders there, and it is sound."""
    main, far = book.list_copies()
    assert (main, far)[cell == FAR] is True
    assert (main, far)[cell != FAR] is not True
    assert book.is_in(cell)
    async with book.layout.open_writers() as writers:
        answer = await book.shop.ask(writers, book.shop.credit(order))  # type: ignore[arg-type]  # the same interface
    assert isinstance(answer, Transferred)
    book.follow()
    async with await connect(book.layout.url) as home, await connect(book.shop.url) as found:
        assert (await verify_book(home, found, book.merchant_id)).violation is None


async def kill_twice(book: MovableBook, number: int, old: str, new: str) -> bool:
    """Back out of a move that is killed before its change of this number, then do it again and continue.

    False if the mover came to its end before.
    """
    for turn in ("back", "on"):
        work = move_to(book.layout.url, book.merchant_id, new)
        if not await run_killed(work, before_change(number)):
            return False
        if turn == "back":
            await back_out(book, by_worker=number % 2 == 0)
            if book.is_in(new):
                break
            assert book.read_place()[1] is None
            await check_use(book, old, "backed out")
    await book.move(new)
    assert book.read_place()[1] == SWITCHED
    await check_use(book, new, "moved")
    return True


@pytest.mark.extended
@pytest.mark.parametrize(("old", "new", "stride"), [(MAIN, FAR, 3), (FAR, MAIN, 5)])
def test_a_mover_that_is_killed_before_any_of_its_changes_does_no_harm(
    layout: Layout, old: str, new: str, stride: int
) -> None:
    """The way back is the same code, so it is killed before some changes only."""

    async def scenario() -> None:
        for number in itertools.count(1, stride):
            book = await open_book(layout, f"Shop {number}")
            if old == FAR:
                await book.move(FAR)
                await book.drop_old()
            if not await kill_twice(book, number, old, new):
                break
        assert number > 25

    run(scenario())
