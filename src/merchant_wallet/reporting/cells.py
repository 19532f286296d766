"""Reads over all cells: each cell is asked by itself, side by side, and the answers are put together.

Rules:
- A cell that is away, or too slow, is named in the answer. It is never left out silently, and it delays the
  answer by at most the timeout. A cell that does not answer in time is slow: only the caller's connections
  tell whether it is away.
- If no cell answers, the read fails.
- With a single cell there is nothing to put together: its errors are the caller's, and it has no timeout of
  its own.
- Cells are read one beside the other, so a book that moves meanwhile is in two answers or in none. Sums that
  must have each book once are read with `read_still`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Generic, NamedTuple, TypeVar

import psycopg

from merchant_wallet.base.cells import DEFAULT_CELL_NAME
from merchant_wallet.base.db import is_transient_error
from merchant_wallet.base.errors import TransientError
from merchant_wallet.custody.still_snapshots import (
    MAX_WAITS,
    WAIT_S,
    read_moves,
    repeat_while_moving,
    require_still,
)
from merchant_wallet.reporting.paging import Connection, Key, Order, Page, Read, Row, merge_rows, read_page

T = TypeVar("T")
MAX_PARALLEL: Final = 8
"""At most so many cells are asked at once for one read."""
TIMEOUT_S: Final = 2.0
"""A cell that has not answered by then counts as slow."""


class TooSlow(TransientError):
    """A cell did not answer a question in time. It is not known to be away."""


class AllAway(TransientError):
    """No cell answered."""


class BooksMoving(TransientError):
    """Books have moved between cells whenever all cells were read."""


class Patience(NamedTuple):
    """How often books that move are read again, and the pause between."""

    tries: int
    pause_s: float


PAGE_PATIENCE: Final = Patience(5, 0.3)
"""A book is between two cells for a second or two, or longer if its mover has died. A page leaves out what
can't be read.
"""
COMMAND_PATIENCE: Final = Patience(MAX_WAITS, WAIT_S)
"""A command can wait until many books have moved one after another."""


class Source(NamedTuple):
    """A cell to ask: its name, and how to take a connection to it."""

    name: str
    take: Callable[[], AbstractAsyncContextManager[Connection]]


class Gathered(NamedTuple, Generic[T]):
    """The answers in the order of the cells, and the names of the cells that gave none. `slow` are some of
    these.
    """

    answers: tuple[T, ...]
    away: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()

    @property
    def missing(self) -> dict[str, bool]:
        """The cells that gave no answer, each with whether it is slow."""
        return {name: name in self.slow for name in self.away}


class _Missing(NamedTuple):
    """A cell gave no answer."""

    is_slow: bool


async def read_still(home: Connection, read: Callable[[], Awaitable[T]], patience: Patience) -> T:
    """What `read` reads in all cells, with each book in one of them. It is read again if a book has moved.

    Raises BooksMoving.
    """

    async def read_once() -> tuple[T]:
        before = await read_moves(home)
        found = await read()
        await require_still(home, before)
        return (found,)

    answered = await repeat_while_moving(read_once, patience.pause_s, patience.tries)
    if answered is None:
        raise BooksMoving("A book is being moved between two cells. Try again in a moment.")
    return answered[0]


async def gather(
    sources: Sequence[Source], ask: Callable[[Connection], Awaitable[T]], timeout_s: float = TIMEOUT_S
) -> Gathered[T]:
    """Ask every cell. Raises AllAway if none answers, and whatever else an answer raises."""
    if len(sources) == 1:
        return Gathered((await _ask(sources[0], ask),))
    places = asyncio.Semaphore(MAX_PARALLEL)
    asked = [asyncio.create_task(_ask_in_turn(places, source, ask, timeout_s)) for source in sources]
    try:
        found = await asyncio.gather(*asked)
    finally:
        for task in asked:
            task.cancel()
    gathered = _put_together(sources, found)
    if not gathered.answers:
        raise AllAway(f"no cell answers: {', '.join(gathered.away)}")
    return gathered


async def try_source(
    source: Source, ask: Callable[[Connection], Awaitable[T]], timeout_s: float = TIMEOUT_S
) -> Gathered[T]:
    """Ask one cell that may be away."""
    return _put_together([source], [await _ask_in_turn(asyncio.Semaphore(1), source, ask, timeout_s)])


def _put_together(sources: Sequence[Source], found: Sequence[tuple[T] | _Missing]) -> Gathered[T]:
    missing = {
        source.name: one for source, one in zip(sources, found, strict=True) if isinstance(one, _Missing)
    }
    return Gathered(
        tuple([one[0] for one in found if not isinstance(one, _Missing)]),
        tuple(missing),
        tuple([name for name, one in missing.items() if one.is_slow]),
    )


async def _ask(source: Source, ask: Callable[[Connection], Awaitable[T]]) -> T:
    async with source.take() as connection:
        return await ask(connection)


async def _ask_in_turn(
    places: asyncio.Semaphore,
    source: Source,
    ask: Callable[[Connection], Awaitable[T]],
    timeout_s: float,
) -> tuple[T] | _Missing:
    """The cell's answer, if there is one. The time counts from when its turn has come."""
    async with places:
        try:
            async with asyncio.timeout(timeout_s):
                return (await _ask(source, ask),)
        except (TimeoutError, TooSlow, psycopg.errors.QueryCanceled):
            return _Missing(is_slow=True)
        except (TransientError, psycopg.Error) as error:
            if isinstance(error, psycopg.Error) and not is_transient_error(error):
                raise
            return _Missing(is_slow=False)


async def gather_page(
    order: Order,
    sources: Sequence[Source],
    make_read: Callable[[Connection], Read],
    show: Callable[[Row], T],
    after: str | None,
    limit: int,
) -> tuple[Page[T], dict[str, bool]]:
    """One page of a list over all cells, and the cells that are missing from it, each with whether it is
    slow. Raises as `read_page`.
    """
    missing: dict[str, bool] = {}

    async def read(key: Key, count: int) -> list[Row]:
        found = await gather(sources, lambda connection: make_read(connection)(key, count))
        missing.update(found.missing)
        return merge_rows(order, key, count, found.answers)

    page = await read_page(order, read, show, after, limit)
    return page, missing


class Reach:
    """The cells that one page or command reads. It notes which of them were away.

    `find` gives the cell of a merchant's book, `list_all` gives every cell, the default cell first.
    """

    def __init__(
        self,
        find: Callable[[int], Awaitable[Source]],
        list_all: Callable[[], Awaitable[Sequence[Source]]],
        home: Connection | None = None,
        patience: Patience | None = None,
    ) -> None:
        """`home` says whether books move. Without it, none does. `patience` is by default a page's."""
        self._find = find
        self._list_all = list_all
        self._watched = home
        self._patience = patience or PAGE_PATIENCE
        self._missing: dict[str, bool] = {}
        self._misses = 0

    @property
    def misses(self) -> int:
        """How often a cell was missed. A caller of several reads sees which of them lack something."""
        return self._misses

    @property
    def away(self) -> tuple[str, ...]:
        """The names of the cells whose merchants are missing in what was read, whatever the reason."""
        return tuple(sorted(self._missing))

    @property
    def slow(self) -> tuple[str, ...]:
        """The names of those of them that are slow and not known to be away."""
        return tuple(sorted(name for name, is_slow in self._missing.items() if is_slow))

    def note_away(self, name: str, *, is_slow: bool = False) -> None:
        """Note that a cell's merchants are missing."""
        self._missing[name] = is_slow and self._missing.get(name, True)
        self._misses += 1

    async def ask(
        self, ask: Callable[[Connection], Awaitable[T]], merchant_id: int | None = None
    ) -> tuple[T, ...]:
        """The answers of all cells that are there. With a merchant, the answer of its cell.

        Raises AllAway, and what the cell of the merchant raises.
        """
        found = await gather(await self._choose(merchant_id), ask)
        self._note(found.missing)
        return found.answers

    async def read_still(self, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` asks of all cells, with each book once. Raises BooksMoving."""
        if self._watched is None or len(await self._list_all()) == 1:
            return await read()
        return await read_still(self._watched, read, self._patience)

    async def ask_one(self, ask: Callable[[Connection], Awaitable[T]], merchant_id: int) -> T:
        """The answer of a merchant's cell. Raises what it raises."""
        return await _ask(await self._find(merchant_id), ask)

    async def try_one(self, ask: Callable[[Connection], Awaitable[T]], merchant_id: int) -> T | None:
        """The answer of a merchant's cell. None if the cell is away or slow, which is noted."""
        found = await try_source(await self._find(merchant_id), ask)
        self._note(found.missing)
        return found.answers[0] if found.answers else None

    async def try_each(self, asks: Mapping[int, Callable[[Connection], Awaitable[T]]]) -> dict[int, T]:
        """The answers of the cells of these merchants, asked side by side. One that is away is noted."""
        answers = await asyncio.gather(*[self.try_one(ask, merchant_id) for merchant_id, ask in asks.items()])
        return {
            merchant_id: answer
            for merchant_id, answer in zip(asks, answers, strict=True)
            if answer is not None
        }

    async def read_page(
        self,
        order: Order,
        make_read: Callable[[Connection], Read],
        show: Callable[[Row], T],
        after: str | None,
        limit: int,
        merchant_id: int | None = None,
    ) -> Page[T]:
        """One page of a list over all cells, or of the merchant's cell. Raises as `ask` and `read_page`."""
        sources = await self._choose(merchant_id)
        page, missing = await gather_page(order, sources, make_read, show, after, limit)
        self._note(missing)
        return page

    async def _choose(self, merchant_id: int | None) -> Sequence[Source]:
        return await self._list_all() if merchant_id is None else [await self._find(merchant_id)]

    def _note(self, missing: Mapping[str, bool]) -> None:
        for name, is_slow in missing.items():
            self.note_away(name, is_slow=is_slow)


def reach_one(connection: Connection) -> Reach:
    """One database that has all books."""
    source = Source(DEFAULT_CELL_NAME, lambda: nullcontext(connection))

    async def find(_: int) -> Source:
        return source

    async def list_all() -> Sequence[Source]:
        return [source]

    return Reach(find, list_all)
