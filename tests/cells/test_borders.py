"""Each named query touches tables of one place: home, or a cell and what a cell mirrors.

Home and cell may be different databases, so a statement over both can't stay one statement.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from tests.plans import explain
from tests.query_files import SOURCE, read_queries

from merchant_wallet.base.db import Query, connect_sync
from merchant_wallet.postgres.grants import GRANTS
from merchant_wallet.postgres.places import CELL, HOME, MIRRORED, OF_EACH_SCHEMA

_TABLES: Final = HOME | CELL
_NAME: Final = r"\w+(?:\s+(?:as\s+)?\w+)?"
_NAMED: Final = re.compile(rf"\b(?:from|join|into|update|table|only|using)\s+({_NAME}(?:\s*,\s*{_NAME})*)")
_WRITTEN: Final = re.compile(r"\b(?:insert into|update|delete from)\s+(\w+)")


def list_queries() -> Iterator[tuple[str, Query]]:
    """All named queries, each with its file."""
    for path in sorted(SOURCE.rglob("*.sql")):
        file = str(path.relative_to(SOURCE))
        if not file.startswith("postgres/migrations/"):
            yield from ((file, query) for query in read_queries(path).values())


def read_tables(text: str) -> set[str]:
    """The tables that a statement names."""
    names = (part.split()[0] for named in _NAMED.findall(text.lower()) for part in named.split(","))
    return set(_TABLES.intersection(names))


def list_cell_queries() -> Iterator[tuple[str, Query]]:
    """The queries that a cell answers by itself: those over cell tables."""
    for file, query in list_queries():
        if read_tables(query.text) & CELL:
            yield file, query


def crosses(text: str) -> bool:
    """Whether a statement touches home and a cell. Reading a mirrored table counts as either."""
    tables = read_tables(text)
    written = set(_WRITTEN.findall(text.lower()))
    return bool(tables & CELL) and bool((tables & HOME) - MIRRORED - OF_EACH_SCHEMA or written & HOME)


def _list_planned_tables(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _list_planned_tables(part)
    elif isinstance(node, dict):
        if "Relation Name" in node:
            yield re.sub(r"^nonce_\d+$", "nonce", node["Relation Name"])
        for part in node.values():
            yield from _list_planned_tables(part)


def test_each_table_has_one_place() -> None:
    assert not HOME & CELL
    assert set(GRANTS) == _TABLES
    assert MIRRORED <= HOME
    assert OF_EACH_SCHEMA <= HOME


def test_no_query_touches_home_and_a_cell() -> None:
    assert [(file, query.name) for file, query in list_queries() if crosses(query.text)] == []


def test_a_query_over_both_places_is_found() -> None:
    assert crosses("select from withdrawal w left join payout p using (order_id)")
    assert crosses("select from withdrawal w, hot_wallet h")
    assert crosses("with a as (insert into book values (1)) update merchant set name = ''")
    assert not crosses("select from withdrawal w join merchant m using (merchant_id)")
    assert not crosses("insert into merchant values (1)")


def test_postgresql_plans_no_table_that_the_text_does_not_name(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        planned = 0
        for file, query in list_queries():
            if query.text.lower().startswith(("lock ", "set ", "create ", "alter ")):
                continue
            tables = _TABLES & set(_list_planned_tables(_plan(connection, query)))
            assert tables <= read_tables(query.text), f"{file}: {query.name}"
            planned += bool(tables)
        assert planned > 300


def _plan(connection: psycopg.Connection, query: Query) -> Any:
    with connection.transaction(force_rollback=True):
        return explain(connection, query.text)
