"""In a large book, no list, search or figure reads a growing table completely, in either direction.

The plans are those that the planner prefers, with nothing switched off.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import BARE_TEMPLATE
from tests.plans import explain, list_nodes
from tests.query_files import read_queries

import merchant_wallet.reporting
from merchant_wallet.base.db import connect_sync
from merchant_wallet.reporting.paging import reverse_order

FOLDER = Path(merchant_wallet.reporting.__file__).parent
EXCEPT = {
    "begin_snapshot": "is no query",
    "list_fees": "sums what was ever taken out of each book's fees, for one operator's question",
}
TEXTS = {
    f"{path.stem}/{name}{way}": text
    for path in sorted(FOLDER.glob("*.sql"))
    for name, query in read_queries(path).items()
    for way, text in (("", query.text), (" backwards", reverse_order(query.text)))
    if name not in EXCEPT and (not way or "key_0" in query.text)
}
GROWING = (
    "account",
    "sub_user",
    "wallet_address",
    "issued_address",
    "entry",
    "posting",
    "withdrawal",
    "deposit",
    "deposit_credit",
    "callback",
    "callback_attempt",
    "payout",
    "payout_signed",
    "sweep",
    "sweep_signed",
    "daily_figure",
)
FEW = (
    "payout_frozen_open",
    "payout_blocked",
    "callback_due",
    "callback_stopped",
    "withdrawal_unapproved",
    "deposit_held",
)
"""Partial indexes of few, unfinished rows. They may be read completely."""
FILL = Path(__file__).parents[1].joinpath("large_book.sql").read_text()


@pytest.fixture(scope="module")
def filled(postgres: Any) -> Iterator[psycopg.Connection]:
    """A large book among small ones."""
    with postgres.database(BARE_TEMPLATE) as url, connect_sync(url) as connection:
        connection.execute(FILL.encode())
        yield connection


def read_whole(connection: psycopg.Connection, text: str) -> list[str]:
    """The growing tables that a plan reads completely, also along an index."""
    return [
        f"{node['Relation Name']} by {node.get('Index Name', 'nothing')}"
        for node in list_nodes(explain(connection, text))
        if node.get("Relation Name") in GROWING
        and (
            "Seq Scan" in node["Node Type"]
            or ("Index Cond" not in node and node.get("Index Name", FEW[0]) not in FEW)
        )
    ]


def test_no_reporting_query_reads_a_growing_table_whole_in_a_large_book(filled: psycopg.Connection) -> None:
    assert len(TEXTS) > 50
    found = {name: read_whole(filled, text) for name, text in TEXTS.items()}
    assert {name: tables for name, tables in found.items() if tables} == {}


def test_open_wallet_pages_poll_deposits_and_nothing_about_their_owners(filled: psycopg.Connection) -> None:
    plan = list(list_nodes(explain(filled, TEXTS["deposits/list_uncredited"])))
    assert {node["Relation Name"] for node in plan if "Relation Name" in node} == {"deposit"}


def test_this_would_find_a_table_that_is_read_whole(filled: psycopg.Connection) -> None:
    assert read_whole(filled, "select * from entry where facts = %(facts)s::text") == ["entry by nothing"]
    assert read_whole(filled, "select count(*) from (select merchant_id from entry order by merchant_id) e")
