"""Every row of a book is in its new cell: of all tables, changed and deleted ones, figures and positions."""

from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from tests.cells.book_moved import MAIN, list_tables_with_merchants, open_book
from tests.cells.layout import Layout
from tests.crash.shop import run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants.cells.book_copies import BookCopy
from merchant_wallet.merchants.cells.book_tables import BOOK, MERCHANT, OWN_COLUMNS, list_tables
from merchant_wallet.postgres.places import CELL
from merchant_wallet.reporting import rollup

LARGE: Final = 1
"""The merchant with the large book among 200."""
FILL: Final = Path(__file__).parents[1].joinpath("large_book.sql").read_text().replace("8000", "500")
"""It has rows in every table, and needs no thousands here."""
TODAY: Final = now_ms() // DAY_MS
MORE: Final = f"""
select add_nonce_days({TODAY - 1}, {TODAY + 1});
update book set last_ms = {TODAY}::bigint * 86400000;
insert into nonce select 1, 'n' || i, {TODAY} - i % 2, gen_random_uuid() from generate_series(1, 500) i;
insert into callback_pause values (1, 5, 'test');
insert into wallet_session
select 1, sha256(user_id::text::bytea), user_id, false, 1, 2, 9 from sub_user where merchant_id = 1;
insert into daily_figure values (1, 1, 'deposit', 'KFB', 2, 3, 4), (0, 1, 'deposit', 'KFB', 2, 3, 4);
insert into daily_movement values (1, 1, 4, 'KFB', 'deposit', 2, 3, 4), (0, 1, 4, 'KFB', 'deposit', 2, 3, 4);
insert into archived_month
values (1, '2020-01', 1, 2, 2, 2, 3, 4, sha256('a'), sha256('b'), sha256('c'), 2, 5);
insert into archived_order (merchant_id, entry_id, at_ms, source_id, target_id, amount, rate_e8, kind,
                            mc_order_id, currency, facts)
select 1, n, 3, 1, 2, 5, 0, 'user_to_merchant', 'archived ' || n, 'KFB', '' from generate_series(1, 2) n;
"""
"""What the large book has no rows of."""
CHANGES: Final = (
    "update account set balance = balance + 1 where merchant_id = 1 and account_id % 7 = 0",
    "delete from wallet_session where merchant_id = 1 and user_id % 3 = 0",
    "delete from callback_pause where merchant_id = 1",
    "update sub_user set pin_hash = 'x', pin_failures = 2 where merchant_id = 1 and user_id = 120",
    "update withdrawal set frozen_ms = 5 where merchant_id = 1 and order_id = 105",
    "insert into entry (merchant_id, entry_id, kind, at_ms, hash) values (1, 1000000, 'adjust', 1, '')",
    "insert into posting values (1, 1000000, 1, 2, 101, 'KFB', 1, 0, 1)",
    f"insert into nonce values (1, 'last', {TODAY}, gen_random_uuid())",
    "update daily_figure set entries = 3 where merchant_id = 1",
    "update daily_movement set postings = 3 where merchant_id = 1",
    "update archived_month set removed_id = 1 where merchant_id = 1",
    "delete from archived_order where merchant_id = 1 and entry_id = 2",
)


@pytest.fixture
def filled(layout: Layout) -> Layout:
    """The large book in the default cell."""
    with connect_sync(layout.url) as home, home.transaction():
        home.execute("delete from nonce")
        for text in (FILL, MORE):
            home.execute(text.encode())
    return layout


def read_rows(cell: psycopg.Connection, table: str, columns: list[str]) -> list[Any]:
    """A merchant's rows of a table, each as a text, sorted."""
    query = f"select row({', '.join(columns)})::text from {table} where merchant_id = {LARGE} order by 1"
    return cell.execute(query.encode()).fetchall()


def list_columns(cell: psycopg.Connection, table: str) -> list[str]:
    found = cell.execute(
        "select column_name::text from information_schema.columns"
        " where table_schema = current_schema() and table_name = %s order by ordinal_position",
        (table,),
    ).fetchall()
    own = OWN_COLUMNS if table == BOOK else frozenset()
    return [name for (name,) in found if name not in own]


def compare(layout: Layout) -> dict[str, int]:
    """Compare all rows of both cells, table by table. Returns how many there are."""
    counts = {}
    with layout.both() as (home, far):
        for table in list_tables_with_merchants(far):
            columns = list_columns(far, table)
            rows = read_rows(far, table, columns)
            assert rows == read_rows(home, table, columns), table
            counts[table] = len(rows)
    return counts


def test_all_rows_of_all_tables_are_copied_and_follow_their_changes(filled: Layout) -> None:
    async def scenario() -> None:
        async with await connect(filled.url) as old, await connect(filled.far_url) as new:
            tables = await list_tables(old, new, to_home=False)
            copy = BookCopy(old, new, LARGE, tables, 1)
            await copy.take_up()
            await copy.copy_journal(lambda *_: None)
            await copy.copy_nonces()
            assert (await copy.catch_up()).rows > 3_000
            counts = compare(filled)
            # A new table of books needs rows here.
            assert [table for table, count in counts.items() if not count] == []
            with connect_sync(filled.url) as home:
                for change in CHANGES:
                    assert home.execute(change.encode()).rowcount > 0, change
            # Another database's transaction may have it copy all again. So the number says nothing.
            await copy.catch_up()
            assert compare(filled)["callback_pause"] == 0
        assert filled.list_merchants()[1] == [LARGE]

    run(scenario())


def test_the_tables_that_move_are_those_with_a_merchant(layout: Layout) -> None:
    async def scenario() -> list[str]:
        async with await connect(layout.url) as old, await connect(layout.far_url) as new:
            there = await list_tables(old, new, to_home=False)
            back = await list_tables(new, old, to_home=True)
        names = [table.name for table in there]
        assert sorted(table.name for table in back) == sorted(set(names) - {MERCHANT})
        return names

    names = run(scenario())
    with connect_sync(layout.far_url) as far:
        assert sorted(names) == list_tables_with_merchants(far)
    assert set(names) - CELL == {MERCHANT}
    assert names.index("account") < names.index("sub_user") < names.index("wallet_address")


def test_figures_are_counted_once_over_both_cells(layout: Layout) -> None:
    def sum_all() -> tuple[Any, ...]:
        query = b"select coalesce(sum(entries), 0)::int from daily_figure where merchant_id = "
        with layout.both() as cells:
            everybody = [cell.execute(query + b"0").fetchall()[0][0] for cell in cells]
            of_shop = [cell.execute(query + b"1001").fetchall()[0][0] for cell in cells]
        return sum(everybody), everybody, of_shop

    async def advance() -> None:
        for url in (layout.url, layout.far_url):
            async with await connect(url) as cell:
                await rollup.advance_all(cell, now_ms())

    async def scenario() -> None:
        book = await open_book(layout)
        await advance()
        assert sum_all() == (2, [2, 0], [2, 0])
        await book.move()
        async with layout.open_writers() as writers:
            await book.shop.ask(writers, book.shop.credit("more"))  # type: ignore[arg-type]  # the same interface
        await advance()
        assert sum_all() == (3, [2, 1], [2, 3])
        await book.drop_old()
        assert sum_all() == (3, [2, 1], [0, 3])
        await book.move(MAIN)
        await advance()
        await book.drop_old()
        assert sum_all() == (3, [2, 1], [3, 0])

    run(scenario())


def test_the_new_cell_takes_transfers_in_from_the_old_ones_position(layout: Layout) -> None:
    def positions(url: str) -> list[Any]:
        with connect_sync(url) as cell:
            return cell.execute("select * from chain_position order by chain").fetchall()

    async def scenario() -> None:
        book = await open_book(layout)
        with layout.both() as (home, far):
            home.execute("insert into chain_position values ('ERC20', 90, 1), ('TRC20', 70, 0)")
            far.execute("insert into chain_position values ('ERC20', 95, 2), ('BEP20', 3, 0)")
        await book.move()
        assert positions(layout.far_url) == [("BEP20", 3, 0), ("ERC20", 90, 1), ("TRC20", 70, 0)]
        assert positions(layout.url) == [("ERC20", 90, 1), ("TRC20", 70, 0)]

    run(scenario())
