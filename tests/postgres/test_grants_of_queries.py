"""`grants.GRANTS` against the named queries of web and worker: no privilege is missing or superfluous.

PostgreSQL itself judges each query: EXPLAIN needs the same privileges as running it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import psycopg
import pytest
from tests.plans import explain
from tests.postgres.test_grants import AS, SOURCE
from tests.query_files import read_queries

from merchant_wallet.base.db import SHARED_FRAGMENTS, Query, connect_sync
from merchant_wallet.postgres.grants import GRANTS, Side

WEB, WORKER = (Side.WEB,), (Side.WORKER,)
BOTH: Final = (Side.WEB, Side.WORKER)

RUN_BY: Final[Mapping[str, tuple[Side, ...]]] = {
    "approvals/acts/asked.sql": BOTH,
    "approvals/acts/reports.sql": BOTH,
    "approvals/changes.sql": WEB,
    "approvals/proposals.sql": BOTH,
    "approvals/sessions.sql": WEB,
    "approvals/standing.sql": BOTH,
    "audit/audit.sql": BOTH,
    "audit/failures.sql": BOTH,
    "book/archive/closing.sql": (),
    "book/archive/months.sql": BOTH,
    "book/archive/removal.sql": (),
    "book/book.sql": BOTH,
    "book/checkpoint_keys.sql": BOTH,
    "book/early_approvals.sql": BOTH,
    "book/checkpoints.sql": BOTH,
    "book/closed_books.sql": BOTH,
    "book/frozen_orders.sql": BOTH,
    "book/home.sql": BOTH,
    "book/verification/payouts.sql": WEB,
    "book/verification/verify.sql": WEB,
    "callbacks/outbox.sql": BOTH,
    "callbacks/test_events.sql": BOTH,
    "audit/checkpointing/acceptance.sql": (),
    "audit/checkpointing/frozen_orders.sql": (),
    "audit/checkpointing/keys.sql": WORKER,
    "merchants/cells/adding.sql": (),
    "merchants/cells/book_copies.sql": (),
    "merchants/cells/book_fence.sql": WORKER,
    "merchants/cells/book_moves.sql": WORKER,
    "merchants/cells/book_placement.sql": (),
    "merchants/cells/book_tables.sql": (),
    "merchants/cells/cells.sql": BOTH,
    "merchants/cells/citus.sql": WORKER,
    "merchants/cells/inspection.sql": (),
    "merchants/cells/placement.sql": WEB,
    "cli/doctor.sql": (),
    "postgres/jobs.sql": BOTH,
    "custody/records.sql": BOTH,
    "custody/treasury.sql": BOTH,
    "custody/still_snapshots.sql": BOTH,
    "custody/sandbox.sql": WORKER,
    "deposits/chain_store.sql": WORKER,
    "deposits/deposits.sql": WORKER,
    "deposits/sandbox_deposits.sql": BOTH,
    "exchange/rates.sql": WEB,
    "merchants/addresses.sql": BOTH,
    "merchants/own_addresses.sql": BOTH,
    "merchants/app_keys.sql": WEB,
    "merchants/books.sql": BOTH,
    "merchants/brand.sql": WEB,
    "merchants/cells/carrying.sql": BOTH,
    "merchants/cells/copies.sql": (),
    "merchants/cells/fence.sql": WORKER,
    "merchants/cells/home_restoration.sql": (),
    "merchants/cells/lost_merchants.sql": (),
    "merchants/cells/mirroring.sql": BOTH,
    "merchants/cells/moves.sql": WORKER,
    "merchants/cells/new_place.sql": (),
    "merchants/cells/places.sql": WORKER,
    "merchants/cells/replication.sql": (),
    "merchants/cells/kept_copies.sql": WEB,
    "merchants/id_ranges.sql": BOTH,
    "withdrawals/lost_payouts.sql": WORKER,
    "merchants/merchants.sql": BOTH,
    "merchants/xpub_pool.sql": BOTH,
    "observability/backup_metrics.sql": BOTH,
    "base/hosts.sql": BOTH,
    "observability/metrics.sql": BOTH,
    "observability/server_metrics.sql": BOTH,
    "observability/screening_metrics.sql": BOTH,
    "postgres/backups/backups.sql": (),
    "processes/backup_verification.sql": (),
    "observability/cell_figures.sql": BOTH,
    "observability/platform_turn.sql": BOTH,
    "observability/traces.sql": BOTH,
    "notifications/contacts.sql": BOTH,
    "notifications/outbox.sql": BOTH,
    "merchants/staff_secrets.sql": WEB,
    "operators/order_approvals.sql": WEB,
    "operators/operators.sql": BOTH,
    "postgres/migrate.sql": (),
    "processes/instances.sql": BOTH,
    "reporting/books.sql": WEB,
    "reporting/callbacks.sql": WEB,
    "reporting/deposits.sql": WEB,
    "reporting/endpoints.sql": WEB,
    "reporting/entries.sql": WEB,
    "reporting/figures.sql": WEB,
    "custody/network_fees.sql": WORKER,
    "reporting/finance/accounting.sql": WEB,
    "reporting/finance/custody.sql": WEB,
    "reporting/finance/desk.sql": WEB,
    "reporting/finance/invoices.sql": BOTH,
    "reporting/finance/months.sql": BOTH,
    "reporting/finance/movements.sql": BOTH,
    "reporting/inbox.sql": BOTH,
    "reporting/payout_blockers.sql": BOTH,
    "reporting/lookalikes.sql": BOTH,
    "reporting/merchants.sql": WEB,
    "reporting/orders.sql": WEB,
    "reporting/payout_pace.sql": WEB,
    "reporting/platform_status.sql": WEB,
    "reporting/rollup.sql": WORKER,
    "reporting/search_parts.sql": WEB,
    "reporting/search.sql": WEB,
    "reporting/statements.sql": WEB,
    "reporting/sub_users.sql": WEB,
    "api/refused_requests/refusals.sql": WEB,
    "api/request_log/request_log.sql": BOTH,
    "audit/rollback/comparison.sql": BOTH,
    "audit/rollback/reached_cells.sql": BOTH,
    "audit/rollback/compared_cells.sql": WORKER,
    "audit/rollback/home_marks.sql": WORKER,
    "audit/rollback/signer_record.sql": WORKER,
    "audit/rollback/evidence.sql": BOTH,
    "sandbox/sandbox.sql": BOTH,
    "screening/asking.sql": WORKER,
    "screening/screening.sql": BOTH,
    "sub_users/activity.sql": WEB,
    "sub_users/pins.sql": WEB,
    "sub_users/profile.sql": WEB,
    "sub_users/sessions.sql": BOTH,
    "custody/earlier_payouts.sql": WORKER,
    "sub_users/controls.sql": BOTH,
    "custody/cold/counting.sql": WORKER,
    "custody/cold/transfers.sql": BOTH,
    "custody/cold/wallets.sql": BOTH,
    "custody/rescues/rescues.sql": BOTH,
    "custody/sweeps/sweeps.sql": WORKER,
    "book/nonce_partitions.sql": BOTH,
    "withdrawals/freezes.sql": WORKER,
    "withdrawals/nonce_gaps.sql": WORKER,
    "hot_wallet/funds.sql": WORKER,
    "hot_wallet/nonces.sql": WORKER,
    "hot_wallet/stops.sql": BOTH,
    "hot_wallet/store.sql": BOTH,
    "withdrawals/payouts.sql": BOTH,
    "withdrawals/reservations.sql": WORKER,
    "withdrawals/sandbox_ledger.sql": WORKER,
}
"""Which processes run the queries of a file. A new file needs a line."""

NOT_RUN: Final[Mapping[Side, Mapping[str, str]]] = {
    # Only the worker pays, credits, delivers and compares.
    Side.WEB: {
        "reporting/finance/invoices.sql": "add_invoices",
        "reporting/finance/months.sql": """
            put_month put_books withdraw_acceptance close_month keep_superseded keep_superseded_books
            delete_books begin_version""",
        "approvals/acts/asked.sql": "lapse claim keep give_back finish",
        "approvals/acts/reports.sql": "store drop_others",
        "api/request_log/request_log.sql": "delete_old_usage delete_old_minutes",
        "audit/failures.sql": "note_logged drop_old drop_old_seen",
        "book/book.sql": "insert_credited_transactions insert_credits update_deposits",
        "callbacks/outbox.sql": "claim insert_attempts record_success note_order record_answer",
        "callbacks/test_events.sql": "claim record",
        "custody/cold/transfers.sql": """
            claim unclaim reserve release end_reservation read_signed set_unsigned end_transfer
            find_cancellation""",
        "custody/rescues/rescues.sql": "open_sweep",
        "custody/records.sql": """
            read_watched find_first_block read_cursor move_cursor insert_addresses list_open_movements
            insert_movements explain_movements insert_result insert_remainders list_remainders
            move_survey read_survey read_survey_place""",
        # In home. An apart cell's copies have other rights.
        "merchants/cells/mirroring.sql": "delete_rates delete_evidence insert_evidence",
        "merchants/cells/placement.sql": "write_state",
        "merchants/cells/kept_copies.sql": "drop_kept",
        "merchants/xpub_pool.sql": "insert_accounts drop_accounts list_lost give_lost_account",
        "audit/rollback/evidence.sql": "record_evidence",
        "book/nonce_partitions.sql": "drop_nonce_day",
        "notifications/outbox.sql": """
            list_told insert_told mark_gone mark_back forget claim is_waiting record_result
            delete_old delete_old_items""",
        "observability/traces.sql": "delete_old",
        "sandbox/sandbox.sql": "record_callback drop_old_callbacks",
        "hot_wallet/store.sql": "open_wallet",
        "withdrawals/payouts.sql": "queue_orders mark_queued claim store_signed mark_broadcast release wake",
    },
    # Only the web process and commands create and change merchants, sub-users and operators.
    Side.WORKER: {
        "approvals/acts/asked.sql": "ask",
        "audit/failures.sql": "count_failure note_seen",
        "approvals/proposals.sql": "insert_proposal decide",
        "book/book.sql": "insert_sub_users insert_wallet_addresses insert_withdrawals",
        "callbacks/outbox.sql": "pause_merchant resume_merchant",
        "custody/cold/transfers.sql": "open_transfer",
        "custody/rescues/rescues.sql": "add_rescue settle_failed",
        "custody/cold/wallets.sql": "retire register restore set_limits",
        "custody/treasury.sql": "record_treasury",
        "notifications/contacts.sql": """
            lock_contact write_contact delete_choices insert_choices lock_escalation delete_steps
            delete_times insert_steps insert_times""",
        "deposits/sandbox_deposits.sql": "lock_deposits insert_deposit",
        "sandbox/sandbox.sql": """
            end_transfer hold_refund lock_deposits drop_old_unconfirmed insert_unconfirmed
            delete_unconfirmed drop_block""",
        # In home. An apart cell's copies have other rights.
        "merchants/cells/carrying.sql": "insert_copy write_copy",
        "merchants/cells/mirroring.sql": "delete_rates insert_rates delete_evidence",
        # Only a command moves a cell. The worker opens a cell again whose mover died.
        "merchants/cells/book_moves.sql": "begin delete set_cell",
        "merchants/cells/fence.sql": "begin_state",
        "merchants/cells/moves.sql": "begin delete set_address",
        # It looks where cells are. An acceptance writes it down.
        "merchants/cells/places.sql": "list_strangers write_place write_move add_cell",
        "api/request_log/request_log.sql": "insert_requests add_usage add_minute note_uses",
        "callbacks/test_events.sql": "insert_test trim_tests",
        "merchants/merchants.sql": """
            insert_merchant write_account_xpubs raise_settings_version write_settings
            write_status insert_secret retire_secret expire_secret take_address_index""",
        "merchants/xpub_pool.sql": """
            take_account insert_accounts give_account drop_accounts list_lost give_lost_account""",
        "observability/traces.sql": "keep",
        "operators/operators.sql": """
            insert_operator list_operators read_by_name read_by_id lock_by_id lock_first
            lock_owners read_password lock_password write_password replace_password write_role
            write_status write_preferences delete_totp propose_totp lock_totp use_step delete_codes
            forget_addresses insert_codes use_code count_codes list_code_hashes insert_session
            read_session find_ended
            touch_session list_sessions end_session end_sessions delete_expired_sessions count_attempt

            find_source remember_source delete_old_sources
            begin_wait mark_signed_in find_ended""",
        "sub_users/sessions.sql": "lock_sub_user insert_session write_seen",
    },
}
"""Queries in files of a process that it never runs, and could not."""

MODULES_ALONE: Final = {("schema_migration", "select")}
"""Privileges for statements that are in no query file."""


def _queries(side: Side) -> Iterator[tuple[str, Query]]:
    for file, sides in RUN_BY.items():
        if side in sides:
            yield from ((file, query) for query in read_queries(SOURCE / file).values())


def _is_left_out(side: Side, file: str, name: str) -> bool:
    return name in NOT_RUN[side].get(file, "").split()


def _is_planned(text: str) -> bool:
    return not text.lower().startswith(("lock ", "set "))


def test_every_file_of_queries_has_its_line() -> None:
    files = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.sql") if path != SHARED_FRAGMENTS}
    assert set(RUN_BY) == {file for file in files if not file.startswith("postgres/migrations/")}


@pytest.mark.parametrize("side", Side)
def test_each_side_may_run_its_queries_and_none_of_the_others(database_url: str, side: Side) -> None:
    with connect_sync(AS[side](database_url)) as connection:
        for file, query in _queries(side):
            refused = False
            try:
                with connection.transaction(force_rollback=True):
                    if _is_planned(query.text):
                        explain(connection, query.text)
                    else:
                        connection.execute(query.text.encode())
            except psycopg.errors.InsufficientPrivilege:
                refused = True
            assert refused == _is_left_out(side, file, query.name), f"{file}: {query.name}"


def _read_plan(node: Any, needed: set[tuple[str, str]]) -> None:
    """Record what a plan does with which table. The partitions of the nonce table count as one."""
    if isinstance(node, list):
        for part in node:
            _read_plan(part, needed)
    elif isinstance(node, dict):
        table = re.sub(r"^nonce_\d+$", "nonce", str(node.get("Relation Name", "")))
        if table and node.get("Schema") == "public":
            changes = node["Node Type"] == "ModifyTable"
            needed.add((table, node["Operation"].lower() if changes else "select"))
            if node.get("Conflict Resolution"):
                needed.add((table, "select"))
            if node.get("Conflict Resolution") == "UPDATE":
                needed.add((table, "update"))
        for part in node.values():
            _read_plan(part, needed)


def _needs(connection: psycopg.Connection, side: Side) -> tuple[set[tuple[str, str]], list[str]]:
    """What a process's queries do with which tables, and the texts of these queries."""
    needed: set[tuple[str, str]] = set(MODULES_ALONE)
    texts = []
    for file, query in _queries(side):
        if _is_left_out(side, file, query.name):
            continue
        texts.append(query.text)
        if _is_planned(query.text):
            _read_plan(explain(connection, query.text, verbose=True), needed)
        for table in re.findall(r"insert into (\w+)", query.text):
            if "returning" in query.text:
                needed.add((table, "select"))
        if re.search(r"for (no key )?update", query.text) or query.text.startswith("lock table"):
            needed |= {(table, "update") for table in re.findall(r"(?:from|lock table) (\w+)", query.text)}
    return needed, texts


def _granted(side: Side) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Table, privilege, and the columns that it is limited to."""
    for table, grant in GRANTS.items():
        for privilege, columns in re.findall(r"(\w+)(?: \(([^)]*)\))?", grant.of(side)):
            yield table, privilege, tuple(column.strip() for column in columns.split(",") if column)


@pytest.mark.parametrize("side", Side)
def test_each_privilege_is_needed_by_a_query(database_url: str, side: Side) -> None:
    with connect_sync(database_url) as connection:
        connection.execute("select add_nonce_days(20000, 20000)")
        needed, texts = _needs(connection, side)
    for table, privilege, columns in _granted(side):
        assert (table, privilege) in needed, f"no query of the {side} side needs {privilege} on {table}"
        for column in columns:
            use = rf"\b{table}\b.*\b{column}\s*=" if privilege == "update" else rf"\b{column}\b.*\b{table}\b"
            found = re.compile(use, re.DOTALL)
            assert any(found.search(text) for text in texts), f"no query needs {table}.{column}"
