"""A further id range for a book in an apart cell: two commits, killed at each step."""

from uuid import uuid4

from psycopg import AsyncConnection
from tests.cells.conftest import TwoDatabases
from tests.cells.killed import kill_at_each_step, run_program
from tests.crash.shop import run

from merchant_wallet.base.db import connect
from merchant_wallet.merchants.id_ranges import QUERIES


async def _open_book(two: TwoDatabases, name: str) -> int:
    """A merchant whose book is in the cell."""
    await run_program("create", *two, name)
    async with await connect(two.home) as home:
        cursor = await home.execute("select merchant_id from merchant where name = %s", [name])
        ((merchant_id,),) = await cursor.fetchall()
    return int(merchant_id)


async def _list_ranges(home: AsyncConnection, merchant_id: int) -> list[int]:
    query = "select range_no::int from id_range where merchant_id = %s order by range_no"
    return [range_no for (range_no,) in await (await home.execute(query, [merchant_id])).fetchall()]


def test_a_range_killed_at_any_step_is_given_by_the_next_call_and_none_is_skipped(
    two_databases: TwoDatabases,
) -> None:
    async def scenario() -> None:
        books: dict[str, int] = {}
        for step in range(1, 8):
            for point in (f"before {step}", f"after {step}"):
                books[point] = await _open_book(two_databases, point)
        points = []
        async for point in kill_at_each_step("allocate", *two_databases, lambda point: (books[point],)):
            points.append(point)
            await _open_book(two_databases, f"Another that takes a range {point}")
            await run_program("allocate", *two_databases, books[point])
        # Read the book. Lock the ranges, look for an unused one, read the next, insert it. Write the book.
        assert len(points) == 2 * 6
        async with await connect(two_databases.home) as home, await connect(two_databases.cell) as cell:
            for point in points:
                ranges = await _list_ranges(home, books[point])
                found = await cell.execute(
                    "select id_range::int, next_range::int from book where merchant_id = %s", [books[point]]
                )
                assert [list(row) for row in await found.fetchall()] == [ranges], point
                assert len(ranges) == 2

    run(scenario())


def test_a_late_caller_gives_a_book_no_range_that_it_used_already(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        merchant_id = await _open_book(two_databases, "Shop")
        await run_program("allocate", *two_databases, merchant_id)
        async with await connect(two_databases.home) as home, await connect(two_databases.cell) as cell:
            first, second = await _list_ranges(home, merchant_id)
            await cell.execute("update book set id_range = next_range, next_range = null")
            late = {"merchant_id": merchant_id, "range_no": second, "version": uuid4()}
            assert (await cell.execute(QUERIES["write_next_range"].text, late)).rowcount == 0
            await run_program("allocate", *two_databases, merchant_id)
            third = (await _list_ranges(home, merchant_id))[2]
            found = await cell.execute("select id_range::int, next_range::int from book")
            assert await found.fetchall() == [(second, third)]
            assert first < second < third

    run(scenario())
