"""No list reads a cell with a million sub-users, deposits and orders as a whole."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.cells.layout import Layout
from tests.cells.test_page_lists import LISTS

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.reporting.cells import Reach, Source
from merchant_wallet.reporting.paging import Connection

FILL = Path(__file__).with_name("million.sql").read_text()
ENOUGH = 50_000
"""More rows than a page with filters may look through, and fewer than any of the tables has."""
MERCHANTS = (
    b"insert into merchant (merchant_id, name, currency_mode, status, require_pin, frame_origins)"
    b" select m, 'm' || m, 'KFB', 'active', false, '{}' from generate_series(1, 20) m"
)
ROWS_READ = b"select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_xact_user_tables"


def _fill(layout: Layout) -> None:
    with layout.both() as (home, far):
        home.execute(
            b"insert into merchant (merchant_id, name, app_key, currency_mode, created_ms, cell_id)"
            b" select m, 'm' || m, 'mk_' || m, 'KFB', 0, 1 from generate_series(1, 20) m"
        )
        far.execute(MERCHANTS)
        far.execute(FILL.encode())


async def _count_rows_read(far: Connection, name: str, home: Connection, cells: Reach) -> tuple[int, int]:
    """The rows that the first two pages of a list read in the cell, and those that they show."""
    async with far.transaction():
        page = await LISTS[name](home, cells, None, 50)
        following = await LISTS[name](home, cells, page.next, 50)
        row = await (await far.execute(ROWS_READ)).fetchone()
    assert row is not None
    return int(row[0]), len(page.rows) + len(following.rows)


def test_lists_of_a_cell_with_a_million_rows_read_a_few_of_them(layout: Layout) -> None:
    async def scenario() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            sources = [Source("main", lambda: nullcontext(home)), Source("far", lambda: nullcontext(far))]

            async def find(_: int) -> Source:
                return sources[1]

            async def list_all() -> Sequence[Source]:
                return sources

            read = {name: await _count_rows_read(far, name, home, Reach(find, list_all)) for name in LISTS}
            assert {name: rows for name, (rows, _) in read.items() if rows > ENOUGH} == {}
            shown = {name: count for name, (_, count) in read.items()}
            assert shown["sub-users"] == shown["deposits"] == shown["orders"] == shown["callbacks"] == 100

    _fill(layout)
    asyncio.run(scenario())


def test_this_would_find_a_table_that_is_read_as_a_whole(layout: Layout) -> None:
    with connect_sync(layout.far_url) as far, far.transaction():
        far.execute(MERCHANTS)
        (before,) = far.execute(ROWS_READ).fetchone() or (0,)
        far.execute(b"select count(*) from merchant")
        (after,) = far.execute(ROWS_READ).fetchone() or (0,)
        assert after - before == 20
