"""Every named query is planned on the migrated schema, with tables in which one book is large.

A query that does not fit the schema fails here at once. So does a query without an index, and a batch's query
that reads all rows of a merchant where a key would be enough.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import BARE_TEMPLATE
from tests.plans import Plan, explain, explain_prepared, list_nodes
from tests.query_files import read_queries

import merchant_wallet
from merchant_wallet.base.db import Queries, connect_sync
from merchant_wallet.book.connection import SESSION
from merchant_wallet.book.early_approvals import QUERIES as EARLY_APPROVALS
from merchant_wallet.book.store import STATEMENTS
from merchant_wallet.deposits.deposit_store import QUERIES as DEPOSITS

SOURCE = Path(merchant_wallet.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.sql") if path.parent.name != "migrations")
ALL = [(path, name) for path in FILES for name in read_queries(path)]
HOT = {name.decode(): text.decode() for name, text in STATEMENTS.items()}

KEYS_FILTERED = re.compile(r"\b(nonce|entry_id|order_id|mc_order_id|tx_hash|user_id)\)?(::text)? = ANY \(\$")

GROWING = (
    "account",
    "sub_user",
    "wallet_address",
    "wallet_session",
    "daily_figure",
    "daily_movement",
    "issued_address",
    "entry",
    "posting",
    "nonce",
    "withdrawal",
    "withdrawal_step",
    "deposit",
    "deposit_credit",
    "chain_transfer",
    "credited_transaction",
    "callback",
    "callback_attempt",
    "payout",
    "payout_signed",
    "payout_reservation",
    "wallet_nonce",
    "sweep",
    "sweep_signed",
    "custody_movement",
    "custody_remainder",
    "audit_entry",
)
"""The tables with a row for each sub-user, transfer or order."""

READS_ALL = {
    "records.sql/sum_accounts": "adds every balance up, so that one which somebody changed shows",
    "records.sql/sum_deposits": "sums what came to each address, if a sum is wrong",
    "records.sql/list_swept": "sums what was swept from each address, if a sum is wrong",
    "books.sql/list_fees": "sums what was ever taken out of each book's fees, for one operator's question",
    "home_restoration.sql/list_addresses": "what a restored home may lack, once in an acceptance",
    "home_restoration.sql/sum_approvals": "what a restored home may lack, once in an acceptance",
    "verify.sql/list_books": "skips along each index from one merchant to the next",
    "verify.sql/find_stray_wallet": "holds all addresses of a book against the platform's",
    "verify.sql/find_stray_deposit": "holds all deposits of a book against their credits",
    "sweeps.sql/sum_arrived": "sums what ever came to each address, for a plan",
    "sweeps.sql/list_sweeps": "goes from the newest down until the page is full",
    "sweeps.sql/sum_sweeps": "sums what was ever swept, for one comparison with the chain",
}
"""Queries that may read a growing table completely, and why."""

PARTIAL_INDEXES = (
    "withdrawal_open",
    "withdrawal_unapproved",
    "withdrawal_unqueued",
    "withdrawal_frozen",
    "payout_open",
    "payout_frozen_open",
    "payout_blocked",
    "payout_reservation_open",
    "callback_due",
    "callback_stopped",
    "test_event_waiting",
    "asked_act_open",
    "deposit_seen",
    "deposit_pending",
    "deposit_dust",
    "deposit_held",
    "chain_transfer_untaken",
    "sweep_open",
    "sweep_under_way",
    "custody_movement_open",
    "screening_waiting",
    "screening_unapplied",
    "wallet_nonce_fee",
)
"""Indexes of the few rows that are still open."""

PLANNABLE = ("select", "insert", "update", "delete", "with")

FILL = Path(__file__).parents[1].joinpath("large_book.sql").read_text()


@pytest.fixture(scope="module")
def module_url(postgres: Any) -> Iterator[str]:
    """A migrated database for this file."""
    with postgres.database(BARE_TEMPLATE) as url:
        yield url


@pytest.fixture(scope="module")
def early_session(module_url: str) -> Iterator[psycopg.Connection]:
    """A writer's session that planned the batch's statements before the tables were filled."""
    with connect_sync(module_url) as connection, connect_sync(module_url) as other:
        connection.execute(SESSION.encode())
        for name, text in HOT.items():
            connection.execute(f"prepare {name} as {text}".encode())
            explain_prepared(connection, name, text)
        other.execute(FILL.encode())
        # As autovacuum leaves it. Otherwise it could run in between, and plans would change.
        other.execute(b"vacuum analyze")
        yield connection


@pytest.fixture
def filled_url(module_url: str, early_session: psycopg.Connection) -> str:
    """The same database after it was filled. No test here changes it."""
    return module_url


def _table(node: Plan) -> str:
    """The table that a node reads. A partition counts as the nonce table."""
    return re.sub(r"^nonce_\d+$", "nonce", str(node.get("Relation Name", "")))


def _whole_reads(plan: Plan) -> list[str]:
    """The growing tables that are read completely, even along an index of all rows."""
    return [
        _table(node)
        for node in list_nodes(plan)
        if _table(node) in GROWING
        and (
            "Seq Scan" in node["Node Type"]
            or ("Index Cond" not in node and node.get("Index Name", "none") not in (*PARTIAL_INDEXES, "none"))
        )
    ]


def test_every_named_query_fits_the_schema_and_has_an_index_to_go_by(filled_url: str) -> None:
    faults: dict[str, object] = {}
    with connect_sync(filled_url) as connection:
        # The question is whether there is a way without reading all rows. Which way is cheaper is the
        # planner's decision.
        connection.execute(b"set enable_seqscan = off")
        for path, name in ALL:
            label = f"{path.name}/{name}"
            try:
                whole = _try_query(connection, read_queries(path)[name].text)
            except psycopg.Error as error:
                faults[label] = str(error)
            else:
                faults |= {label: whole} if whole and label not in READS_ALL else {}
    assert faults == {}


def _try_query(connection: psycopg.Connection, text: str) -> list[str]:
    """The growing tables that a query reads completely."""
    if text.lower().startswith(PLANNABLE):
        return _whole_reads(explain(connection, text))
    # Locks and settings have no plan. They can be executed.
    with connection.transaction(force_rollback=True):
        connection.execute(text.encode())
    return []


def _filter_keys(connection: psycopg.Connection) -> dict[str, list[str]]:
    """The queries that read more rows than an array of keys names, and then filter them."""
    connection.execute(b"set enable_seqscan = off")
    texts = {f"{path.name}/{name}": read_queries(path)[name].text for path, name in ALL}
    plans = {
        label: explain(connection, text)
        for label, text in texts.items()
        if text.lower().startswith(PLANNABLE) and "any(" in text
    }
    found = {
        label: [node["Filter"] for node in list_nodes(plan) if KEYS_FILTERED.search(node.get("Filter", ""))]
        for label, plan in plans.items()
    }
    return {label: filters for label, filters in found.items() if filters}


def test_an_array_of_keys_is_looked_up_and_never_a_filter(filled_url: str, database_url: str) -> None:
    with connect_sync(filled_url) as large, connect_sync(database_url) as empty:
        empty.execute(b"create table nonce_0 partition of nonce for values in (0)")
        assert (_filter_keys(large), _filter_keys(empty)) == ({}, {})


def test_waits_are_joined_with_orders_by_their_person(filled_url: str) -> None:
    text = EARLY_APPROVALS["find_early_approval"].text
    with connect_sync(filled_url) as connection:
        # Comparing every order with every wait, there is no other way than this.
        connection.execute(b"set enable_nestloop = off")
        kinds = [node["Node Type"] for node in list_nodes(explain(connection, text))]
    assert "Nested Loop" not in kinds


@pytest.mark.parametrize("table", ["sub_user", "deposit", "withdrawal", "callback", "entry", "account"])
def test_open_books_are_taken_for_much_of_a_table(filled_url: str, tmp_path: Path, table: str) -> None:
    """If the planner expects no row of any book, it reads a million rows to find the first fifty."""
    path = tmp_path / "rows.sql"
    path.write_text(f"-- name: rows\n-- Of open books.\nselect from {table} where {{open_books}}")
    with connect_sync(filled_url) as connection:
        whole = explain(connection, f"select from {table}")["Plan Rows"]
        assert explain(connection, Queries(path)["rows"].text)["Plan Rows"] * 3 > whole > 1000


@pytest.mark.parametrize("state", ["known dust", "unknown dust", "young"])
def test_new_dust_is_judged_without_a_look_at_the_dust_of_other_addresses(
    filled_url: str, database_url: str, state: str
) -> None:
    """Nearly all deposits are dust. Without statistics of that, dust is believed to be rare."""
    url = database_url if state == "young" else filled_url
    with connect_sync(url) as connection, connection.transaction(force_rollback=True):
        if state == "young":
            connection.execute(FILL.replace("8000", "30").removesuffix("analyze;\n").encode())
        connection.execute(b"update deposit set status = 'dust' where status = 'credited'")
        if state == "known dust":
            connection.execute(b"analyze deposit")
        plan = list(list_nodes(explain(connection, DEPOSITS["raise_dust"].text)))
    reads = [node for node in plan if "Relation Name" in node and node["Node Type"] != "ModifyTable"]
    assert len(reads) == 2
    for node in reads:
        assert re.search(r"address = a\.address|tx_hash = own\.tx_hash", node.get("Index Cond", "")), node


def test_the_queries_that_read_all_are_still_there() -> None:
    assert set(READS_ALL) <= {f"{path.name}/{name}" for path, name in ALL}


def _find_faults(plan: Plan) -> list[str]:
    """Where a plan reads a whole table, or all rows of a merchant although a key would be enough."""
    faults = []
    for node in list_nodes(plan):
        if "Seq Scan" in node["Node Type"]:
            faults.append(f"reads {_table(node)} whole")
        condition = node.get("Index Cond", "")
        if (
            "Index" in node["Node Type"]
            and "merchant_id" in condition
            and "(merchant_id = ANY" not in condition
        ):
            one_row_per_merchant = node["Index Name"] in ("book_pkey", "rate_pkey")
            if not one_row_per_merchant and " AND " not in condition:
                faults.append(condition)
    return faults


def test_a_batchs_statement_goes_by_the_whole_key_in_a_large_book(filled_url: str) -> None:
    with connect_sync(filled_url) as connection:
        connection.execute(SESSION.encode())
        found = {name: _find_faults(explain(connection, text)) for name, text in HOT.items()}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_batchs_statement_reads_no_table_whole_even_while_the_tables_are_empty(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        connection.execute(b"create table nonce_0 partition of nonce for values in (0)")
        connection.execute(SESSION.encode())
        found = {name: _whole_reads(explain(connection, text)) for name, text in HOT.items()}
    assert {name: tables for name, tables in found.items() if tables} == {}


def test_a_batchs_statement_makes_no_bitmap_while_a_days_nonces_were_not_analyzed(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        connection.execute(b"create table nonce_0 partition of nonce for values in (0)")
        connection.execute(b"alter table nonce_0 set (autovacuum_enabled = off)")
        connection.execute(
            b"insert into nonce (merchant_id, nonce, day, group_id)"
            b" select 1, n::text, 0, gen_random_uuid() from generate_series(1, 20000) n"
        )
        connection.execute(SESSION.encode())
        found = {
            name: [node["Node Type"] for node in list_nodes(explain(connection, text))]
            for name, text in HOT.items()
        }
    assert [name for name, kinds in found.items() if any("Bitmap" in kind for kind in kinds)] == []


def test_plans_made_while_the_tables_were_empty_are_made_anew_once_those_were_analyzed(
    early_session: psycopg.Connection,
) -> None:
    found = {name: _find_faults(explain_prepared(early_session, name, text)) for name, text in HOT.items()}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_filled_database_is_what_these_tests_take_it_for(filled_url: str) -> None:
    with connect_sync(filled_url) as connection:
        plan = explain(connection, "select * from entry where facts = $1::text")
        one_key = explain(connection, "select count(*) from withdrawal where merchant_id = $1::integer")
    assert _whole_reads(plan) == ["entry"]
    assert _find_faults(plan) == ["reads entry whole"]
    assert _find_faults(one_key) != []


def test_there_are_queries_to_plan() -> None:
    assert len(ALL) > 300
    assert len(HOT) > 20
