"""A change of a merchant's cell and its records in home: together, or around it in an apart cell."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from tests.cells.layout import Layout, open_near_layout

from merchant_wallet.audit.book_commands import ask_book
from merchant_wallet.audit.cell_changes import Told, change_cell
from merchant_wallet.audit.records import Author
from merchant_wallet.base.codes import PATH_UNKNOWN, Refusal, Refused
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Cancel, Command
from merchant_wallet.book.outcomes import Outcome

Connection = psycopg.AsyncConnection[Any]
Act = Callable[[Connection, Told], Awaitable[None]]


@pytest.fixture
def layout(url_with_cell: str) -> Layout:
    return open_near_layout(url_with_cell)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _both(layout: Layout, where: str) -> AsyncIterator[tuple[Connection, Connection]]:
    async with await connect(layout.url) as home, await connect(layout.far_url) as far:
        yield home, home if where == "default" else far


async def _change(home: Connection, cell: Connection, act: Act) -> None:
    author = Author("cli:ann", "test", 1, clock=lambda: 5)
    async with change_cell(author, home, cell, "thing.set", "a thing", None) as told:
        await act(cell, told)


async def _add(cell: Connection, told: Told) -> None:
    await cell.execute("insert into credited_transaction values ('ERC20', 't', 'b')")
    told.after = {"paused": True}


async def _read_times(home: Connection) -> list[int]:
    return [row[0] async for row in await home.execute("select at_ms from audit_entry order by audit_no")]


async def _read(layout: Layout, cell: Connection) -> tuple[list[tuple[Any, ...]], int]:
    async with await connect(layout.url) as home, await connect(layout.far_url) as far:
        found = await (
            await home.execute("select action, after from audit_entry order by audit_no")
        ).fetchall()
        count = "select count(*) from credited_transaction"
        counted = [await (await one.execute(count)).fetchone() for one in (home, far)]
    return found, sum(row[0] for row in counted if row is not None)


DONE = {
    "default": [("thing.set", {"paused": True})],
    "apart": [("thing.set.asked", None), ("thing.set", {"paused": True})],
}
TIMES = {"default": [1], "apart": [1, 5]}
"""An apart cell may take long. So the outcome has a time of its own."""
FAILED = {
    "default": [],
    "apart": [("thing.set.asked", None), ("thing.set.refused", {"reason": "no"})],
}
UNCHANGED = {
    "default": [],
    "apart": [("thing.set.asked", None), ("thing.set.refused", {"reason": "nothing was changed"})],
}
LOST = {"default": [], "apart": [("thing.set.asked", None)]}


@pytest.mark.parametrize("where", DONE)
async def test_a_change_is_recorded(where: str, layout: Layout) -> None:
    async with _both(layout, where) as (home, cell):
        await _change(home, cell, _add)
        assert await _read(layout, cell) == (DONE[where], 1)
        assert await _read_times(home) == TIMES[where]


@pytest.mark.parametrize("where", FAILED)
async def test_a_change_that_fails_is_undone(where: str, layout: Layout) -> None:
    async def fail(cell: Connection, told: Told) -> None:
        await _add(cell, told)
        raise ValueError("no")

    async with _both(layout, where) as (home, cell):
        with pytest.raises(ValueError, match="no"):
            await _change(home, cell, fail)
        assert await _read(layout, cell) == (FAILED[where], 0)


@pytest.mark.parametrize("where", UNCHANGED)
async def test_a_change_of_nothing_is_no_change(where: str, layout: Layout) -> None:
    async def pass_by(cell: Connection, told: Told) -> None:
        """Changes nothing."""

    async with _both(layout, where) as (home, cell):
        await _change(home, cell, pass_by)
        assert await _read(layout, cell) == (UNCHANGED[where], 0)


@pytest.mark.parametrize("where", LOST)
async def test_a_change_whose_commit_was_lost_has_no_outcome_in_the_log(where: str, layout: Layout) -> None:
    async def lose(cell: Connection, told: Told) -> None:
        await _add(cell, told)
        pid = cell.info.backend_pid
        async with await connect(layout.url) as other:
            await other.execute("select pg_terminate_backend(%s)", (pid,))

    async with _both(layout, where) as (home, cell):
        with pytest.raises(psycopg.OperationalError):
            await _change(home, cell, lose)
        assert await _read(layout, cell) == (LOST[where], 0)


async def test_the_outcome_of_a_command_has_a_time_of_its_own(layout: Layout) -> None:
    async def refuse(merchant_id: int, command: Command) -> Outcome:
        return Refusal(PATH_UNKNOWN, "late")

    async with _both(layout, "default") as (home, _):
        await home.execute(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " values (1001, 'Shop', 'mk_1001', 'KFB', 0)"
        )
        with pytest.raises(Refused):
            await ask_book(
                Author("cli:ann", "test", 1, clock=lambda: 5), home, refuse, 1001, Cancel(7, "cli:ann")
            )
        assert await _read_times(home) == [1, 5]
