"""Lists in pages by key, forwards and backwards. Each page costs the same.

Rules:
- A list's query compares with the key in the form `(created_ms, order_id) < (%(key_0)s, %(key_1)s)` and
  writes `asc` or `desc` after each column of its order. So it can be reversed to read backwards.
- A key is opaque to clients and fits one list in one order.
- A query with more filters looks at `stride` rows at a time. If it needs more, it adds the last of them,
  marked `is_edge`. Such a page may have fewer rows than `limit`, or none, and still have a next page.
"""

import base64
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Generic, TypeVar

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from merchant_wallet.base.db import Query
from merchant_wallet.base.units import MAX_BIGINT

Connection = AsyncConnection[Any]
Row = dict[str, Any]
Part = int | str
T = TypeVar("T")

MAX_LIMIT: Final = 200
STRIDE: Final = 2000
"""How many rows are searched at once for those that match the filters."""
STRIDES: Final = 3
"""How many strides a page searches at most while it is empty."""
MIN_NUMBER: Final = -1
LAST_TEXT: Final = "\U0010ffff"
"""Greater than every stored text, in byte order."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some rows of a list. `next` and `previous` are the keys of the pages beside it, or None."""

    rows: tuple[T, ...]
    next: str | None
    previous: str | None


class Order(msgspec.Struct, frozen=True):
    """One list in one order: its name, the columns of its key, and the key before its first row."""

    name: str
    columns: tuple[str, ...]
    first: tuple[Part, ...]

    @property
    def is_descending(self) -> bool:
        """Whether the greatest key comes first. All columns of a key have one direction."""
        return self.first[0] in (MAX_BIGINT, LAST_TEXT)

    def key_of(self, row: Row) -> tuple[Part, ...]:
        """The values of a row's key."""
        return tuple([row[column] for column in self.columns])


class Key(msgspec.Struct, frozen=True):
    """Where a page begins: after these values, or, backwards, before them."""

    values: tuple[Part, ...]
    is_backward: bool


Read = Callable[[Key, int], Awaitable[list[Row]]]
"""Reads at most so many rows after a key in its direction. Each row has the key's columns by name."""


def encode_key(order: Order, key: Key) -> str:
    """The text of a key, for a URL."""
    packed = msgspec.json.encode([order.name, key.is_backward, *key.values])
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def decode_key(order: Order, text: str) -> Key:
    """The key of a text. Raises ValueError if it is not a key of this list and order."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        name, is_backward, *values = msgspec.json.decode(packed, type=list[bool | int | str])
    except (ValueError, msgspec.DecodeError) as error:
        raise _misfit(order) from error
    fits = name == order.name and isinstance(is_backward, bool)
    if not fits or [_kind(value) for value in values] != [_kind(value) for value in order.first]:
        raise _misfit(order)
    return Key(tuple(values), bool(is_backward))


def _kind(value: Part) -> str:
    """The type of a key's part: a number of 64 bits, or a text that the database accepts."""
    if isinstance(value, bool):
        return "neither"
    if isinstance(value, int):
        return "number" if -MAX_BIGINT <= value <= MAX_BIGINT else "neither"
    return "neither" if "\0" in value else "text"


def _misfit(order: Order) -> ValueError:
    return ValueError(f"after is not a place in the list {order.name}")


def reverse_order(text: str) -> str:
    """The same query in reverse order."""
    flipped = {"<": ">", ">": "<"}
    turned = re.sub(r"\) ([<>])(=?) \((?=%\(key)", lambda at: f") {flipped[at[1]]}{at[2]} (", text)
    return re.sub(r"\b(asc|desc)\b", lambda word: "desc" if word[0] == "asc" else "asc", turned)


async def read_page(
    order: Order, read: Read, show: Callable[[Row], T], after: str | None, limit: int
) -> Page[T]:
    """One page of a list. Raises ValueError for a limit outside 1 to 200 and for a key of another list."""
    check_limit(limit)
    key = Key(order.first, False) if after is None else decode_key(order, after)
    rows, stopped = await _look(order, read, key, limit + 1)
    more = len(rows) > limit
    rows = rows[:limit]
    if key.is_backward and not more and stopped is None:
        # Back at the beginning: read a full page from there.
        return await read_page(order, read, show, None, limit)
    ahead = _key_of(order, rows[-1] if more else stopped, key.is_backward)
    behind = None if after is None else _key_of(order, rows[0] if rows else None, not key.is_backward)
    if key.is_backward:
        rows.reverse()
        ahead, behind = behind, ahead
    return Page(tuple([show(row) for row in rows]), ahead, behind)


async def read_rows(read: Callable[[str | None, int], Awaitable[Page[T]]], limit: int) -> list[T]:
    """The first rows of a list, read page by page. `read` takes `after` and `limit` as `read_page` does."""
    rows: list[T] = []
    after = None
    while len(rows) < limit:
        page = await read(after, min(MAX_LIMIT, limit - len(rows)))
        rows += page.rows
        after = page.next
        if after is None:
            break
    return rows


def split_page(rows: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """The rows of a page, and the last of them where there are more. One more than `limit` was read."""
    shown = rows[:limit]
    return shown, shown[-1] if len(rows) > limit else None


async def _look(order: Order, read: Read, key: Key, count: int) -> tuple[list[Row], Row | None]:
    """The first matching rows after a key, at most a few strides ahead, and the row where the search
    stopped.
    """
    stopped = None
    for _ in range(STRIDES):
        rows = await read(key, count)
        stopped = rows.pop() if rows and rows[-1].get("is_edge") else None
        if rows or stopped is None:
            return rows, stopped
        key = Key(order.key_of(stopped), key.is_backward)
    return [], stopped


def merge_rows(order: Order, key: Key, count: int, parts: Iterable[Sequence[Row]]) -> list[Row]:
    """What one list would read after a key, from what each part of it read there. Pure.

    Each part has read at most `count` rows in the key's direction. Where a part's search has stopped at an
    edge, its later rows are unknown. So the merged rows end there too.
    """
    is_falling = order.is_descending is not key.is_backward
    rows = sorted(chain.from_iterable(parts), key=order.key_of, reverse=is_falling)
    merged = rows[:count]
    edge = next((number for number, row in enumerate(merged) if row.get("is_edge")), None)
    return merged if edge is None else merged[: edge + 1]


def _key_of(order: Order, row: Row | None, is_backward: bool) -> str | None:
    if row is None:
        return None
    return encode_key(order, Key(order.key_of(row), is_backward))


def check_limit(limit: int) -> None:
    """Raise ValueError for a limit out of range."""
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit is between 1 and {MAX_LIMIT}")


def check_words(field: str, words: Sequence[Part], known: Sequence[Part]) -> list[Part]:
    """The values of a filter; all known ones if none is given. Raises ValueError for an unknown one."""
    for word in words:
        if word not in known:
            raise ValueError(f"{field} is one of {', '.join(map(str, known))}")
    return list(dict.fromkeys(words)) if words else list(known)


def make_reader(conn: Connection, query: Query, values: dict[str, Any], *, is_filtered: bool = False) -> Read:
    """Read the pages of a query. `is_filtered`: filters may drop rows, so search further than a page."""

    async def read(key: Key, count: int) -> list[Row]:
        keys = {f"key_{number}": value for number, value in enumerate(key.values)}
        text = reverse_order(query.text) if key.is_backward else query.text
        stride = max(STRIDE, count) if is_filtered else count
        return await fetch(conn, text, {**values, **keys, "page": count, "stride": stride})

    return read


async def fetch(conn: Connection, text: str, values: dict[str, Any]) -> list[Row]:
    """The rows of a statement as dictionaries."""
    async with conn.cursor(binary=True, row_factory=dict_row) as cursor:
        await cursor.execute(text.encode(), values)
        return await cursor.fetchall()
