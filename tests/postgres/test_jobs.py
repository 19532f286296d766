"""Long jobs exclude each other: one row says who has what, and the database refuses a second one."""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from tests.waits import TIMEOUT_S, eventually, wait_until

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.postgres import jobs
from merchant_wallet.postgres.jobs import EVERYTHING, JobInTheWay, Kind, Scope, scope_of_book, scope_of_cell

BOOK = scope_of_book(7, 0)
WEST = scope_of_cell(2, "west")
MOVE = scope_of_book(7, 0, 2)
OTHERS: list[tuple[Scope, Scope, bool]] = [
    (BOOK, BOOK, True),
    (BOOK, scope_of_book(8, 0), False),
    (BOOK, scope_of_cell(0, "main"), True),
    (BOOK, WEST, False),
    (MOVE, WEST, True),
    (MOVE, scope_of_book(7, 2), True),
    (MOVE, scope_of_book(8, 2), False),
    (WEST, scope_of_cell(3, "east"), False),
    (BOOK, EVERYTHING, True),
    (WEST, EVERYTHING, True),
    (EVERYTHING, EVERYTHING, True),
]


Scenario = Callable[[psycopg.AsyncConnection, psycopg.AsyncConnection], Awaitable[None]]


async def is_refused(home: psycopg.AsyncConnection, scope: Scope) -> bool:
    """Whether an archive of the scope has to wait."""
    try:
        async with jobs.hold(home, Kind.ARCHIVE, scope, "cli:bob", patience_s=0):
            return False
    except JobInTheWay:
        return True


def run(scenario: Scenario, url: str) -> None:
    """Run a scenario with two sessions of home."""

    async def main() -> None:
        async with await connect(url) as first, await connect(url) as second:
            await scenario(first, second)

    asyncio.run(main())


def test_two_jobs_with_a_part_of_the_same_books_never_run_at_once(database_url: str) -> None:
    async def scenario(first: psycopg.AsyncConnection, second: psycopg.AsyncConnection) -> None:
        for held, wanted, refused in OTHERS:
            for one, other in ((held, wanted), (wanted, held)):
                async with jobs.hold(first, Kind.BOOK_MOVE, one, "cli:ann"):
                    assert await is_refused(second, other) is refused, (one, other)
                assert not await is_refused(second, other)

    run(scenario, database_url)


def test_who_is_in_the_way_is_named_with_its_time(database_url: str) -> None:
    async def scenario(first: psycopg.AsyncConnection, second: psycopg.AsyncConnection) -> None:
        async with jobs.hold(first, Kind.CELL_MOVE, WEST, "cli:ann"):
            [job] = await jobs.list_all(second)
            assert (job.kind, job.subject, job.actor) == ("move of a cell", "cell west", "cli:ann")
            with pytest.raises(
                JobInTheWay,
                match=r"move of a cell \(cell west\), begun by cli:ann at 20.* UTC\. Run this again",
            ):
                async with jobs.hold(second, Kind.MONTH, EVERYTHING, "worker", patience_s=0):
                    pass
        assert await jobs.list_all(second) == []

    run(scenario, database_url)


def test_the_database_refuses_a_second_row_whoever_writes_it(database_url: str) -> None:
    row = "insert into job (kind, scope, subject, actor, began_ms) values ('x', %s, 'x', 'x', 1)"
    with connect_sync(database_url) as home:
        home.execute(row, [BOOK.ranges])
        with pytest.raises(psycopg.errors.ExclusionViolation):
            home.execute(row, [EVERYTHING.ranges])


def test_a_job_whose_command_died_is_in_nobodys_way(database_url: str) -> None:
    async def scenario(first: psycopg.AsyncConnection, second: psycopg.AsyncConnection) -> None:
        entered = jobs.hold(first, Kind.BOOK_MOVE, MOVE, "cli:ann")
        await entered.__aenter__()
        assert await is_refused(second, BOOK)
        await first.close()
        await eventually(lambda: is_free(second))
        assert await (await second.execute("select count(*) from job")).fetchone() == (0,)
        # The end of the dead command does no harm.
        await entered.__aexit__(None, None, None)

    async def is_free(home: psycopg.AsyncConnection) -> bool:
        return not await is_refused(home, BOOK)

    run(scenario, database_url)


def test_a_job_ends_with_its_command_that_fails(database_url: str) -> None:
    async def scenario(first: psycopg.AsyncConnection, second: psycopg.AsyncConnection) -> None:
        with pytest.raises(ZeroDivisionError):
            async with jobs.hold(first, Kind.BOOK_MOVE, MOVE, "cli:ann"):
                raise ZeroDivisionError
        assert not await is_refused(second, BOOK)

    run(scenario, database_url)


def test_what_a_job_has_done_counts_though_its_row_could_not_be_deleted(database_url: str) -> None:
    async def scenario(first: psycopg.AsyncConnection, second: psycopg.AsyncConnection) -> None:
        async with jobs.hold(first, Kind.BOOK_MOVE, MOVE, "cli:ann"):
            await second.execute("select pg_terminate_backend(%s)", [first.info.backend_pid])
        async with jobs.hold(second, Kind.ARCHIVE, BOOK, "cli:bob", patience_s=TIMEOUT_S):
            pass

    run(scenario, database_url)


def test_what_waits_ends_when_it_is_asked_to_stop(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.05)
    said: list[str] = []
    waiting = jobs.Waiting(said.append, lambda: bool(said))

    async def scenario(first: psycopg.AsyncConnection, _: psycopg.AsyncConnection) -> None:
        async with jobs.hold(first, Kind.ARCHIVE, BOOK, "cli:ann"):
            with pytest.raises(JobInTheWay):
                await asyncio.to_thread(wait)

    def wait() -> None:
        with jobs.hold_alone(database_url, Kind.MIGRATION, EVERYTHING, "up", waiting):
            raise AssertionError("it did not wait")

    run(scenario, database_url)
    assert len(said) == 1


def test_what_waits_begins_when_the_other_one_ends_and_says_for_what(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.05)
    said: list[str] = []

    def wait() -> None:
        with jobs.hold_alone(database_url, Kind.MIGRATION, EVERYTHING, "up", jobs.Waiting(said.append)):
            said.append("migrating")

    async def scenario(first: psycopg.AsyncConnection, _: psycopg.AsyncConnection) -> None:
        async with jobs.hold(first, Kind.ARCHIVE, BOOK, "cli:ann"):
            waiting = asyncio.create_task(asyncio.to_thread(wait))
            await asyncio.to_thread(wait_until, lambda: said, "it did not say that it waits")
        await waiting

    run(scenario, database_url)
    assert said[0].startswith(
        "waiting: another job has these books, archive (the book of merchant 7), begun by cli:ann"
    )
    assert said[-1] == "migrating"


def test_a_database_that_knows_no_jobs_has_none_to_wait_for(database_url: str) -> None:
    with connect_sync(database_url) as home:
        home.execute("alter table job rename to job_kept")
    try:
        with jobs.hold_alone(database_url, Kind.MIGRATION, EVERYTHING, "up"):
            pass
    finally:
        with connect_sync(database_url) as home:
            home.execute("alter table job_kept rename to job")
