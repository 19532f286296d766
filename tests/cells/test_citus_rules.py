"""The queries of a cell hold on Citus too, where the cell's schema is a distributed one.

A trial with Citus 13.2 showed what it refuses: volatile functions in an update, some CTEs that write (the
claim of callbacks was one), and forced generic plans of `insert … select`. `test_citus.py` is the trial.
In the trial it did not refuse a transaction that begins with a lock, even while the schema was moved. The
rule against it is a precaution: before its first write such a transaction holds only a row's lock.
"""

import re
from typing import Final

import pytest
from tests.cells.layout import Layout
from tests.cells.test_borders import list_cell_queries
from tests.crash.shop import run

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.merchants.cells.directory import choose_plans

LOCKS_LATER: Final = {
    ("reporting/rollup.sql", "lock_cursors"): "the transaction begins with `open_cursors`, an insert",
    ("deposits/deposits.sql", "lock_known"): "the transaction begins with `move_cursor`, an update",
}
"""Queries that lock without a write, and what writes before them in the same transaction."""

WRITES_IN_CTES: Final = {
    ("book/book.sql", "write_books"): "the hottest statement; `test_citus.py` has groups of many books"
}
"""Queries that write in a CTE although Citus refuses some such queries: it takes these."""

_WRITING_CTE: Final = re.compile(r"\bas\s+(?:(?:not\s+)?materialized\s+)?\(\s*(?:insert|update|delete)\b")
_LOCK: Final = re.compile(r"\bfor\s+(?:no\s+key\s+update|update|key\s+share|share)\b")
_WRITE: Final = re.compile(r"\b(?:insert\s+into|update|delete\s+from)\s+\w+")
_CALL: Final = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(")


def has_writing_cte(text: str) -> bool:
    """Whether a statement writes in a CTE. Mostly it must be statements of one transaction instead."""
    return bool(_WRITING_CTE.search(text.lower()))


def only_locks(text: str) -> bool:
    """Whether a statement takes locks and writes nothing."""
    without_locks = _LOCK.sub("", text.lower())
    return bool(_LOCK.search(text.lower())) and not _WRITE.search(without_locks)


def list_called(text: str) -> set[str]:
    """The names of all functions that a statement may call."""
    return set(_CALL.findall(text.lower()))


def test_no_further_query_writes_in_a_cte() -> None:
    found = {(file, query.name) for file, query in list_cell_queries() if has_writing_cte(query.text)}
    assert found == set(WRITES_IN_CTES)


def test_transactions_begin_with_a_write() -> None:
    found = {(file, query.name) for file, query in list_cell_queries() if only_locks(query.text)}
    assert found == set(LOCKS_LATER)


def test_no_query_calls_a_volatile_function(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        rows = connection.execute("select proname from pg_proc where provolatile = 'v'").fetchall()
    volatile = {name for (name,) in rows}
    assert {"gen_random_uuid", "random", "clock_timestamp", "nextval"} <= volatile
    found = {
        (file, query.name): sorted(list_called(query.text) & volatile)
        for file, query in list_cell_queries()
        if list_called(query.text) & volatile
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "with gone as (delete from callback returning order_id) select order_id from gone",
        "WITH a AS MATERIALIZED (\n  UPDATE book SET version = null RETURNING 1) SELECT 1 FROM a",
    ],
)
def test_a_writing_cte_is_found(text: str) -> None:
    assert has_writing_cte(text)


def test_other_ctes_and_conflicts_are_no_writing_ctes() -> None:
    assert not has_writing_cte(
        "with a as (select 1) insert into entry select * from a on conflict do nothing"
    )


def test_a_lock_without_a_write_is_found() -> None:
    assert only_locks("select 1 from sub_user for no key update")
    assert only_locks("select 1 from book\n   for update skip locked")
    assert not only_locks("update book set a = 1 from (select 1 from book for update) o")
    assert not only_locks("select updated from book")


def test_plans_stay_forced_where_citus_is_missing(layout: Layout) -> None:
    async def scenario() -> None:
        async with await connect(layout.far_url) as connection:
            await connection.execute("set plan_cache_mode = force_generic_plan")
            await choose_plans(connection)
            row = await (await connection.execute("show plan_cache_mode")).fetchone()
            assert row == ("force_generic_plan",)

    run(scenario())
