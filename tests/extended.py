"""Which tests are extended: `make test-all` runs them, `make test` does not.

Rules:
- A test is extended if its id begins with a row of `EXTENDED` and with none of `QUICK`, if it is one of
  `EXTENDED_ROWS`, or if it has the marker `extended`.
- Without extended tests wanted, their files are not even imported.
- `pytest PATH` without `-m` runs whatever is in the path, extended or not.
"""

from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
QUICK_ALONE: Final = "not extended"
"""The marker expression of `make test`."""
EXTENDED: Final = {
    "tests/api/test_connection_floods.py": "thousands of connections",
    "tests/base/test_hosts.py::test_who_waits": "waits for time-outs",
    "tests/bench/": "tools: the benchmarks",
    "tests/browser/": "every look of every page, in two browsers",
    "tests/callbacks/test_sender.py::test_ten_merchants_whose_endpoints_hang": "time-outs of many endpoints",
    "tests/cells/test_carrying.py::test_a_c": "loops of kills",
    "tests/cells/test_cell_move.py::test_a_killed": "loops of kills",
    "tests/cells/test_cell_move.py::test_a_worker": "loops of kills",
    "tests/cells/test_cell_move.py::test_connections": "logical replication",
    "tests/cells/test_cell_move.py::test_nobody": "logical replication",
    "tests/cells/test_cell_move_dangers.py": "two servers",
    "tests/cells/test_citus.py": "Citus",
    "tests/cells/test_citus_failover.py": "Citus",
    "tests/cells/test_console.py::test_a_dead_cell": "two servers",
    "tests/cells/test_failover.py": "a standby",
    "tests/cells/test_home_rollback.py::test_a_restoration_killed": "loops of kills",
    "tests/cells/test_http.py::test_a_cell_that_dies": "two servers",
    "tests/cells/test_http.py::test_an_order_id_that_was_refused": "two servers",
    "tests/cells/test_id_ranges.py::test_a_range_killed": "loops of kills",
    "tests/cells/test_merchant_move_dangers.py::test_a_mover": "loops of kills",
    "tests/cells/test_merchant_move_dangers.py::test_a_switch_that": "waits for time-outs",
    "tests/cells/test_metrics.py::test_a_cell_that_is_away": "two servers",
    "tests/cells/test_million.py::test_lists": "large books",
    "tests/cells/test_replication.py": "two servers",
    "tests/cells/test_restored_home_payouts.py": "starts of the whole service",
    "tests/cells/test_search_in_cells.py": "searches of many cells",
    "tests/cells/test_silent_cell.py": "two servers, and waits for time-outs",
    "tests/cells/test_versions.py": "PostgreSQL 15 to 17",
    "tests/cells/test_wallet_pages.py::test_a_wallet_whose_cell_is_away": "two servers",
    "tests/cells/test_wallet_pages.py::test_open_pages_of_other_cells": "two servers",
    "tests/cells/test_workers.py::test_a_cell_that_is_added": "waits for turns of the workers",
    "tests/cells/test_workers.py::test_a_cell_whose_server_dies": "two servers",
    "tests/cells/test_writers.py::test_a_cell_that_is_away": "two servers",
    "tests/chains/test_geth.py": "geth",
    "tests/chains/test_jsonrpc.py::test_a_silent_node": "waits for a time-out",
    "tests/cli/test_cell_move_users.py": "two servers",
    "tests/cli/test_cell_moves.py::test_a_cell_leaves": "two servers",
    "tests/cli/test_cell_moves.py::test_a_cell_moves_to": "two servers",
    "tests/cli/test_cell_moves.py::test_a_server_that_is_gone": "two servers",
    "tests/cli/test_cell_moves.py::test_a_setting_that_would": "two servers",
    "tests/cli/test_cell_moves.py::test_an_interrupted": "loops of kills",
    "tests/cli/test_cell_moves.py::test_home_restored": "two servers",
    "tests/cli/test_cell_moves.py::test_merchants_over_http": "two servers",
    "tests/cli/test_cells.py::test_a_cell_on_another_server": "two servers",
    "tests/cli/test_cells.py::test_a_merchant_is_created_while": "two servers",
    "tests/cli/test_cells.py::test_an_added_cell_whose_command_was_killed": "loops of kills",
    "tests/cli/test_cells.py::test_doctor_says_of_each_cell": "two servers",
    "tests/cli/test_cells.py::test_every_cell_is_migrated": "two servers",
    "tests/cli/test_cells.py::test_lists_over_all_merchants_name": "two servers",
    "tests/cli/test_cells_on_citus.py": "Citus",
    "tests/cli/test_completion.py": "tools: completion of shells",
    "tests/cli/test_finance_simulation.py::test_a_months_end": "a month of the workers",
    "tests/cli/test_jobs.py::test_a_start_of": "starts of the whole service",
    "tests/cli/test_journey.py": "walks",
    "tests/cli/test_lifecycle.py::test_commands_reach_an_up": "starts of the whole service",
    "tests/cli/test_merchant_moves.py::test_a_move_that_was_interrupted": "loops of kills",
    "tests/cli/test_migrations.py": "programs of several versions",
    "tests/cli/test_restored_home.py::test_a_book_that_has_moved_home": "several moves",
    "tests/cli/test_restored_home.py::test_a_book_whose_last_copy": "several moves",
    "tests/cli/test_restored_home.py::test_a_book_whose_only_copy": "several moves",
    "tests/cli/test_restored_home.py::test_a_cell_restored": "several moves",
    "tests/cli/test_restored_home.py::test_a_cell_is_not_followed": "copies of databases",
    "tests/cli/test_restored_home.py::test_a_cell_that_switched": "copies of databases",
    "tests/cli/test_restored_home.py::test_a_cell_that_was_added": "copies of databases",
    "tests/cli/test_restored_home.py::test_a_cell_whose": "copies of databases",
    "tests/cli/test_restored_home.py::test_a_copy_with": "several moves",
    "tests/cli/test_restored_home.py::test_a_move_that": "several moves",
    "tests/cli/test_restored_home.py::test_an_acceptance_that": "loops of kills",
    "tests/cli/test_restored_home.py::test_an_old_place": "copies of databases",
    "tests/cli/test_restored_home.py::test_an_open_old_place": "copies of databases",
    "tests/cli/test_restored_home.py::test_copies_that": "several moves",
    "tests/cli/test_restored_home.py::test_where_a_cell": "copies of databases",
    "tests/client/test_connections.py::test_a_proxy_that_is_reached_over_tls": "proxies",
    "tests/client/test_installed.py": "packaging of the Python client",
    "tests/client/test_sandbox.py::test_a_doubled": "waits for turns of the workers",
    "tests/client/test_sandbox.py::test_a_refunded": "waits for turns of the workers",
    "tests/clients/test_generated.py": "tools: generators of clients",
    "tests/clients/test_runtimes.py": "tools: versions of languages",
    "tests/cold/test_killed.py::test_a_worker_killed_at_every": "loops of kills",
    "tests/collections/": "tools: Postman and Bruno",
    "tests/console/test_books.py::test_a_download": "large books",
    "tests/console/test_hostile_texts.py::test_what_is_typed": "every text in every field of every page",
    "tests/console/test_merchant_sandbox.py": "waits for turns of the workers",
    "tests/console/test_odd_texts.py": "every text in every field of every page",
    "tests/crash/test_backups.py": "loops of kills",
    "tests/crash/test_database_outages.py": "loops of kills",
    "tests/crash/test_killed.py": "loops of kills",
    "tests/crash/test_lost_commit.py::test_a_commit_that_a_loaded": "waits for time-outs",
    "tests/crash/test_lost_commit.py::test_a_server_that_falls": "waits for time-outs",
    "tests/crash/test_rolled_back.py": "loops of kills",
    "tests/crash/test_two_processes.py": "loops of kills",
    "tests/deposits/test_gaps.py::test_deposits_to_two": "many addresses",
    "tests/deposits/test_on_chains.py::test_a_long_gap": "long chains",
    "tests/devnet/test_devnet.py::test_a_node_leaves": "tools: the devnet",
    "tests/docs/test_code_blocks.py::test_the_printed": "other languages",
    "tests/docs/test_operators_book.py": "the operators' page, typed in",
    "tests/failover/": "Patroni",
    "tests/handover/": "proxies, restarts under load",
    "tests/journeys/test_bep20.py::test_a_withdrawal_is_paid": "a chain of the family that ERC20 shows",
    "tests/journeys/test_failover.py": "a standby",
    "tests/journeys/test_pooler.py": "PgBouncer",
    "tests/journeys/test_prometheus.py": "Prometheus",
    "tests/journeys/test_sandbox_control.py::test_a_stream_has": "waits for a heartbeat",
    "tests/journeys/test_sandbox_control.py::test_an_order_that_was_frozen": "waits for turns of the workers",
    "tests/journeys/test_sandbox_values.py::test_a_late": "waits for turns of the workers",
    "tests/journeys/test_sandbox_values.py::test_slow_answers": "waits for seconds",
    "tests/journeys/test_silent_primary.py": "two servers",
    "tests/journeys/test_traces.py::test_a_collector_that": "waits for time-outs",
    "tests/notifications/test_cell_away.py": "two servers",
    "tests/observability/test_alerts.py": "Prometheus",
    "tests/observability/test_dashboards.py": "Prometheus",
    "tests/openapi/test_schemathesis.py": "invented requests",
    "tests/packaging/": "packaging and release",
    "tests/postgres/backups/test_forgery.py::test_a_forged": "several restores",
    "tests/postgres/backups/test_shipping.py::test_a_base": "several restores",
    "tests/postgres/backups/test_shipping.py::test_a_damaged": "several restores",
    "tests/postgres/backups/test_shipping.py::test_a_folder": "several restores",
    "tests/postgres/backups/test_shipping.py::test_a_full_segment": "several restores",
    "tests/postgres/backups/test_shipping.py::test_a_restore": "several restores",
    "tests/postgres/backups/test_shipping.py::test_an_older_copy": "several restores",
    "tests/postgres/backups/test_shipping.py::test_the_second": "several restores",
    "tests/postgres/test_accounts.py": "users of the system",
    "tests/postgres/test_batch_reads.py": "large books",
    "tests/postgres/test_managed.py": "PostgreSQL 15 to 18",
    "tests/postgres/test_migrate.py::test_a_database_of_another_encoding": "starts of servers",
    "tests/postgres/test_migrate.py::test_first_starts": "many processes at once",
    "tests/postgres/test_migrate.py::test_processes_that": "many processes at once",
    "tests/postgres/test_migrations_under_load.py": "capacity of migrations",
    "tests/postgres/test_other_postgres.py": "PostgreSQL 15 to 17",
    "tests/postgres/test_pgbackrest.py": "PostgreSQL 15",
    "tests/postgres/test_server.py::test_a_folder_with": "starts of servers",
    "tests/postgres/test_server.py::test_a_note_with": "starts of servers",
    "tests/postgres/test_server.py::test_a_process_that_ends": "starts of servers",
    "tests/postgres/test_server.py::test_a_second_start": "starts of servers",
    "tests/postgres/test_server.py::test_a_server_that_cannot_start": "starts of servers",
    "tests/postgres/test_server.py::test_a_server_that_does_not": "waits for a time-out",
    "tests/postgres/test_server.py::test_a_server_whose_socket": "starts of servers",
    "tests/postgres/test_server.py::test_a_start_that": "starts of servers",
    "tests/postgres/test_server.py::test_a_stopped_server": "starts of servers",
    "tests/postgres/test_server.py::test_stopping_does_not": "starts of servers",
    "tests/postgres/test_upgrade.py": "PostgreSQL 16",
    "tests/processes/test_core_dumps.py": "users of the system",
    "tests/processes/test_payout_workers.py::test_settings_and": "starts of the whole service",
    "tests/processes/test_side_users.py": "users of the system",
    "tests/processes/test_signers.py::test_up_tells": "starts of the whole service",
    "tests/processes/test_stopping.py": "starts of the worker side",
    "tests/processes/test_up.py::test_a_killed_worker": "starts of the whole service",
    "tests/processes/test_up.py::test_a_port": "starts of the whole service",
    "tests/processes/test_up.py::test_asked_to_stop": "starts of the whole service",
    "tests/processes/test_up.py::test_the_terminals": "starts of the whole service",
    "tests/reporting/test_plans.py": "large books",
    "tests/simulator/test_runs.py": "starts of the whole service",
    "tests/site/": "the documentation site",
    "tests/sweeps/test_rescues_killed.py": "loops of kills",
    "tests/sweeps/test_killed.py::test_a_sweeper_killed_at_every": "loops of kills",
    "tests/test_cells_demo.py": "tools: the demonstration of cells",
    "tests/test_demo.py": "tools: the demonstration",
    "tests/test_guard.py": "tools: the demonstration",
    "tests/test_install.py": "tools: the installation",
    "tests/test_readme.py": "tools: the README",
    "tests/test_setup.py": "tools: set-up",
    "tests/test_test_command.py": "tools: the test commands",
    "tests/test_tools.py": "tools: outside programs",
    "tests/withdrawals/test_limited_nodes.py": "waits for suspensions",
    "tests/withdrawals/test_real_chains.py": "loops of kills",
    "tests/withdrawals/test_stuck_together.py": "nine payouts on a real node",
}
"""The beginnings of ids of extended tests, each with what the tests behind it are about."""
EXTENDED_ROWS: Final = {
    "tests/book/test_many_books.py::test_a_group_that_comes_late": ("1-",),
    "tests/callbacks/test_killed.py::test_a_sender_killed": ("before", "after claim"),
    "tests/cells/test_archive_beside_moves.py::test_a_book": (
        "remove-following",
        "remove-verifying",
        "restore-copying",
        "restore-switching",
    ),
    "tests/cells/test_merchant_move.py::test_a_killed_move_is_continued": ("set is_open",),
    "tests/cells/test_merchant_move.py::test_a_killed_move_is_undone": ("limit",),
    "tests/cells/test_merchant_move_dangers.py::test_a_copy_that_comes_out_wrong": ("copying from cell",),
    "tests/cold/test_killed.py::test_a_frozen_worker": ("ERC20-before", "TRC20-before end"),
    "tests/deposits/test_killed.py::test_a_process_killed": (
        "apart-while",
        "apart-before home",
        "apart-before the cell",
    ),
    "tests/journeys/test_sandbox_control.py::test_a_deposit_that_screening": ("refuse",),
    "tests/notifications/test_killed.py::test_a_notifier_killed": (
        "before send",
        "before store",
        "before claim",
        "after claim",
        "after note",
    ),
    "tests/rollback/test_acceptance.py::test_an_acceptance_that_is_killed": (
        "merchant_wallet.audit.checkpointing.evidence",
        "merchant_wallet.audit.checkpointing.acceptance-freeze",
        "merchant_wallet.audit.checkpointing.acceptance-_move",
    ),
    "tests/screening/test_screened_orders.py::test_an_answer_that_is_not_authentic": ("fail open",),
    "tests/sweeps/test_killed.py::test_a_frozen_sweeper": (
        "TRC20-before",
        "ERC20-after",
        "ERC20-before top_up",
    ),
    "tests/withdrawals/test_payer_crash.py::test_a_payer_ended_while_it_signs_again": ("sequenced",),
}
"""Rows of tests that are extended, by the beginnings of their ids: further points of loops of kills, mostly.
The other rows stay in `make test`.
"""
QUICK: Final = (
    # One journey for each site.
    "tests/browser/test_wallet.py::test_a_customer_sees_money_arrive_and_decides_who_may_take_it",
    "tests/browser/test_two_people.py::test_a_higher_limit_is_proposed_at_a_desk_and_accepted_on_a_phone",
)
"""The beginnings of ids of tests that belong to `make test` all the same."""


def is_extended(test: str) -> bool:
    """Whether the tables say that a test is extended."""
    if test.startswith(QUICK):
        return False
    name, _, row = test.partition("[")
    rows = (rows for start, rows in EXTENDED_ROWS.items() if name.startswith(start))
    return test.startswith(tuple(EXTENDED)) or row.startswith(tuple(chain.from_iterable(rows)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files and folders in which every test is extended, if none of these is wanted."""
    if config.getoption("markexpr") != QUICK_ALONE:
        return None
    path = collection_path.relative_to(ROOT).as_posix() + "/" * collection_path.is_dir()
    holds_quick = any(test.startswith(path) for test in QUICK)
    return True if path.startswith(tuple(EXTENDED)) and not holds_quick else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the table names, before pytest selects by marker."""
    for item in items:
        if is_extended(item.nodeid):
            item.add_marker(pytest.mark.extended)
