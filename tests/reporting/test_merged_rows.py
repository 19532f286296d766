"""A list over several cells: its pages are those of one list, forwards and backwards, also at edges."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.reporting.paging import MIN_NUMBER, Key, Order, Page, Read, Row, merge_rows, read_page

NEWEST = Order("newest", ("at_ms", "order_id"), (MAX_BIGINT, MAX_BIGINT))
OLDEST = Order("oldest", ("at_ms", "order_id"), (MIN_NUMBER, MIN_NUMBER))
STRIDE = 5

orders = st.sampled_from([NEWEST, OLDEST])
rows = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 1), st.booleans()),
    min_size=20,
    max_size=40,
    unique_by=lambda row: row[1],
).map(
    lambda drawn: [
        {"at_ms": at_ms, "order_id": order_id, "cell": cell, "matches": matches}
        for at_ms, order_id, cell, matches in drawn
    ]
)


def read_part(order: Order, part: Sequence[Row]) -> Read:
    """Reads as a query with filters does: it searches a stride, and adds the edge if it needs more."""

    async def read(key: Key, count: int) -> list[Row]:
        falls = order.is_descending is not key.is_backward
        place = order.key_of
        ahead = [row for row in part if (place(row) < key.values if falls else place(row) > key.values)]
        strip = sorted(ahead, key=place, reverse=falls)[: max(STRIDE, count)]
        found = [row for row in strip if row["matches"]][:count]
        if len(found) == count or len(strip) < max(STRIDE, count):
            return found
        return [*found, {**strip[-1], "is_edge": True}]

    return read


def merged(order: Order, reads: Sequence[Read]) -> Read:
    async def read(key: Key, count: int) -> list[Row]:
        return merge_rows(order, key, count, [await read(key, count) for read in reads])

    return read


async def list_pages(order: Order, read: Read, limit: int) -> list[int]:
    """The ids on all pages, one after the other."""

    async def read_one(after: str | None) -> Page[int]:
        return await read_page(order, read, lambda row: int(row["order_id"]), after, limit)

    page = await read_one(None)
    listed = [*page.rows]
    while page.next is not None:
        page = await read_one(page.next)
        listed += page.rows
    return listed


async def list_reads(order: Order, read: Read, key: Key, count: int) -> list[int]:
    """The ids that one read after the other finds, each from where the one before ended."""
    listed: list[int] = []
    while found := await read(key, count):
        listed += [row["order_id"] for row in found if not row.get("is_edge")]
        key = Key(order.key_of(found[-1]), key.is_backward)
    return listed


@given(orders, rows, st.integers(1, 7))
def test_the_pages_over_several_cells_are_those_of_one_list(
    order: Order, rows: list[Row], limit: int
) -> None:
    read = merged(
        order, [read_part(order, [row for row in rows if row["cell"] == cell]) for cell in range(2)]
    )
    matching = [row for row in rows if row["matches"]]
    expected = [row["order_id"] for row in sorted(matching, key=order.key_of, reverse=order.is_descending)]
    assert asyncio.run(list_pages(order, read, limit)) == expected
    end = (-1, -1) if order.is_descending else (100, 100)
    assert asyncio.run(list_reads(order, read, Key(end, True), limit)) == expected[::-1]


def row_of(order_id: int, *, is_edge: bool = False) -> Row:
    return {"at_ms": 1, "order_id": order_id, "is_edge": is_edge}


@each_row(
    ("count", "parts", "expected"),
    [
        (2, [[9, 5], [8, 7]], [9, 8]),
        (9, [[9, 5], [], [8]], [9, 8, 5]),
        (9, [[9, "6"], [8, 5]], [9, 8, "6"]),
        (9, [["6"], ["7"]], ["7"]),
        (1, [[9, "6"], [8]], [9]),
        (9, [[9, 6, "6"], [5]], [9, 6, "6"]),
    ],
)
def test_merged_rows_end_at_the_first_edge(
    count: int, parts: list[list[int | str]], expected: list[int | str]
) -> None:
    """An edge is written as a text."""
    read = [[row_of(int(one), is_edge=isinstance(one, str)) for one in part] for part in parts]
    got = merge_rows(NEWEST, Key(NEWEST.first, False), count, read)
    assert [str(row["order_id"]) if row["is_edge"] else row["order_id"] for row in got] == expected
