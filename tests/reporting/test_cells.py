"""Reads over all cells: whoever is away is named, and nobody waits for it longer than the timeout."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast

import psycopg
import pytest
from tests.rows import each_row

from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.reporting.cells import (
    MAX_PARALLEL,
    AllAway,
    Source,
    TooSlow,
    gather,
    gather_page,
    reach_one,
)
from merchant_wallet.reporting.paging import Connection, Key, Order, Read, Row

NEWEST = Order("newest", ("order_id",), (MAX_BIGINT,))
TIMEOUT_S = 0.05


def source(name: str, error: Exception | None = None) -> Source:
    """A cell whose connection is its name. It can't be connected to if there is an error."""

    @asynccontextmanager
    async def take() -> AsyncIterator[Connection]:
        if error is not None:
            raise error
        yield cast(Connection, name)

    return Source(name, take)


async def say_name(connection: Connection) -> str:
    return str(connection)


def run(work: Awaitable[Any]) -> Any:
    async def wait() -> Any:
        return await work

    return asyncio.run(wait())


def test_all_cells_answer_in_their_order() -> None:
    assert run(gather([source(name) for name in "abc"], say_name)) == (("a", "b", "c"), (), ())


@each_row(
    "error", [TransientError("away"), psycopg.OperationalError("refused"), psycopg.errors.AdminShutdown()]
)
def test_a_cell_that_is_away_is_named_and_the_others_answer(error: Exception) -> None:
    assert run(gather([source("a"), source("b", error), source("c")], say_name)) == (("a", "c"), ("b",), ())


def test_a_cell_that_does_not_answer_in_time_is_slow() -> None:
    async def ask(connection: Connection) -> str:
        if str(connection) == "b":
            await asyncio.get_running_loop().create_future()
        return str(connection)

    assert run(gather([source("a"), source("b")], ask, TIMEOUT_S)) == (("a",), ("b",), ("b",))


@each_row("error", [TooSlow("busy"), psycopg.errors.QueryCanceled()])
def test_a_cell_that_says_that_it_takes_too_long_is_slow(error: Exception) -> None:
    found = run(gather([source("a"), source("b", error), source("c", TransientError("away"))], say_name))
    assert found == (("a",), ("b", "c"), ("b",))


def test_a_cell_that_was_away_once_is_not_called_slow() -> None:
    cells = reach_one(cast(Connection, "home"))
    for is_slow in (True, False, True):
        cells.note_away("a", is_slow=is_slow)
        cells.note_away("b", is_slow=True)
    assert (cells.away, cells.slow) == (("a", "b"), ("b",))


def test_if_no_cell_answers_the_read_fails_and_names_them() -> None:
    away = [source(name, TransientError("away")) for name in "ab"]
    with pytest.raises(AllAway, match="no cell answers: a, b"):
        run(gather(away, say_name))


def test_an_error_in_the_statement_is_not_taken_for_a_cell_that_is_away() -> None:
    async def ask(connection: Connection) -> str:
        raise psycopg.errors.UndefinedColumn(str(connection))

    with pytest.raises(psycopg.errors.UndefinedColumn):
        run(gather([source("a"), source("b")], ask))


def test_a_single_cells_error_is_the_callers() -> None:
    with pytest.raises(psycopg.OperationalError, match="refused"):
        run(gather([source("a", psycopg.OperationalError("refused"))], say_name))


def test_at_most_a_few_cells_are_asked_at_once() -> None:
    asked_at_once: list[int] = []

    async def scenario() -> None:
        under_way = 0

        async def ask(connection: Connection) -> None:
            nonlocal under_way
            under_way += 1
            asked_at_once.append(under_way)
            await asyncio.sleep(0)
            under_way -= 1

        await gather([source(str(number)) for number in range(3 * MAX_PARALLEL)], ask)

    run(scenario())
    assert (len(asked_at_once), max(asked_at_once)) == (3 * MAX_PARALLEL, MAX_PARALLEL)


def test_a_page_over_all_cells_names_those_that_are_missing_from_it() -> None:
    stored = {"a": [9, 4, 1], "b": [7, 6], "c": [8]}

    def make_read(connection: Connection) -> Read:
        async def read(key: Key, count: int) -> list[Row]:
            ahead = [one for one in stored[str(connection)] if (one,) < key.values]
            return [{"order_id": one} for one in ahead[:count]]

        return read

    def show(row: Row) -> int:
        return int(row["order_id"])

    sources = [source("a"), source("b"), source("c", TransientError("away"))]
    page, away = run(gather_page(NEWEST, sources, make_read, show, None, 3))
    assert (page.rows, away) == ((9, 7, 6), {"c": False})
    page, away = run(gather_page(NEWEST, sources, make_read, show, page.next, 3))
    assert (page.rows, page.next, away) == ((4, 1), None, {"c": False})
