"""Reads over all cells: each cell is asked by itself, side by side, and the answers are put together.

Rules:
- A cell that is away, or too slow, is named in the answer. It is never left out silently, and it delays the
  answer by at most the timeout.
- If no cell answers, the read fails.
- With a single cell there is nothing to put together: its errors are the caller's, and it has no timeout of
  its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, NamedTuple, TypeVar

import psycopg
import structlog

from merchant_wallet.base.db import TransientError, is_transient_error
from merchant_wallet.reporting.paging import Connection, Key, Order, Page, Read, Row, merge_rows, read_page

log = structlog.get_logger("reporting")

T = TypeVar("T")
MAX_PARALLEL: Final = 8
"""At most so many cells are asked at once for one read."""
TIMEOUT_S: Final = 2.0
"""A cell that has not answered by then counts as away."""


class AllAway(TransientError):
    """No cell answered."""


class Source(NamedTuple):
    """A cell to ask: its name, and how to take a connection to it."""

    name: str
    take: Callable[[], AbstractAsyncContextManager[Connection]]


class Gathered(NamedTuple, Generic[T]):
    """The answers in the order of the cells, and the names of the cells that are away."""

    answers: tuple[T, ...]
    away: tuple[str, ...]


async def gather(
    sources: Sequence[Source], ask: Callable[[Connection], Awaitable[T]], timeout_s: float = TIMEOUT_S
) -> Gathered[T]:
    """Ask every cell. Raises AllAway if none answers, and whatever else an answer raises."""
    if len(sources) == 1:
        return Gathered((await _ask(sources[0], ask),), ())
    places = asyncio.Semaphore(MAX_PARALLEL)
    asked = [asyncio.create_task(_ask_in_turn(places, source, ask, timeout_s)) for source in sources]
    try:
        found = await asyncio.gather(*asked)
    finally:
        for task in asked:
            task.cancel()
    answers = tuple(answer for answered in found for answer in answered)
    away = tuple(source.name for source, answered in zip(sources, found, strict=True) if not answered)
    if not answers:
        raise AllAway(f"no cell answers: {', '.join(away)}")
    return Gathered(answers, away)


async def _ask(source: Source, ask: Callable[[Connection], Awaitable[T]]) -> T:
    async with source.take() as connection:
        return await ask(connection)


async def _ask_in_turn(
    places: asyncio.Semaphore,
    source: Source,
    ask: Callable[[Connection], Awaitable[T]],
    timeout_s: float,
) -> tuple[T, ...]:
    """The cell's answer, or nothing if it is away. The time counts from when its turn has come."""
    async with places:
        try:
            async with asyncio.timeout(timeout_s):
                return (await _ask(source, ask),)
        except (TimeoutError, TransientError, psycopg.Error) as error:
            if isinstance(error, psycopg.Error) and not is_transient_error(error):
                raise
            log.warning("cell away", cell=source.name, reason=str(error) or "no answer in time")
            return ()


async def gather_page(
    order: Order,
    sources: Sequence[Source],
    make_read: Callable[[Connection], Read],
    show: Callable[[Row], T],
    after: str | None,
    limit: int,
) -> tuple[Page[T], tuple[str, ...]]:
    """One page of a list over all cells, and the cells that are missing from it. Raises as `read_page`."""
    away: dict[str, None] = {}

    async def read(key: Key, count: int) -> list[Row]:
        found = await gather(sources, lambda connection: make_read(connection)(key, count))
        away.update(dict.fromkeys(found.away))
        return merge_rows(order, key, count, found.answers)

    page = await read_page(order, read, show, after, limit)
    return page, tuple(away)
