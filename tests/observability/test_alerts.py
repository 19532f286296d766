"""The alert rules: made from the table, valid for Prometheus, with a runbook, and firing when they should.

promtool runs the rules over invented series. A series has one value for each minute.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripts.documents.alerts import RULES, describe, write_rules
from tests.prometheus import run_promtool

from merchant_wallet.observability.metric_rows import divide
from merchant_wallet.observability.metric_table import METRICS, list_samples

ALERTS = [alert for line in METRICS for alert in line.alerts]
TABLE = {alert.name: alert for alert in ALERTS}
OPERATING = RULES.with_name("operating.md")


class Case(NamedTuple):
    """Series from minute 0 on, and what one rule says at a minute; empty if it does not fire.

    `labels` are those of the alert besides `job`.
    """

    alert: str
    series: dict[str, str]
    minute: int
    says: str = ""
    labels: dict[str, str] | None = None


BUSY = 'wallet_requests_total{operation="exchange",code="200",instance="a"}'
FAULT = 'wallet_requests_total{operation="exchange",code="50000",instance="a"}'
AWAY = 'wallet_requests_total{operation="exchange",code="50300",instance="b"}'
UP = 'wallet_database_up{process="web",instance="a"}'
UP_B = 'wallet_database_up{process="worker",instance="b"}'
QUEUED = 'wallet_order_oldest_seconds{standing="queued",instance="a"}'
LIMIT = 'wallet_setting{setting="WALLET_QUEUE_LIMIT",process="web",instance="a"}'
WAITING = 'wallet_commands_waiting{process="web",instance="a"}'
DIFFERENCE = 'wallet_reconciliation_unexplained_coins{chain="ERC20",instance="a"}'
AGE = 'wallet_reconciliation_age_seconds{chain="ERC20",instance="a"}'
INTERVAL = 'wallet_setting{setting="WALLET_RECONCILE_INTERVAL_S",process="worker",instance="b"}'
FUNDS = 'wallet_hot_wallet_funds_coins{chain="ERC20",instance="a"}'
RESERVED = 'wallet_hot_wallet_reserved_coins{chain="ERC20",instance="a"}'
GAS = 'wallet_hot_wallet_gas_coins{chain="ERC20",instance="a"}'
CAP = 'wallet_fee_cap_coins{chain="ERC20",instance="a"}'
PARKED = 'wallet_callbacks{state="parked",instance="a"}'
PARKED_B = 'wallet_callbacks{state="parked",instance="b"}'
EVIDENCE = 'wallet_rollback_evidence{subject="book",instance="a"}'
SHOWN = 'wallet_platform_shown{process="web",instance="a"}'
SHOWN_B = 'wallet_platform_shown{process="worker",instance="b"}'
BUILD = 'wallet_build_info{process="web",version="1.0.0",mode="live",instance="a"}'
TARGET = 'up{instance="a"}'
TARGET_B = 'up{instance="b"}'
BUILD_B = 'wallet_build_info{process="web",version="1.1.0",mode="live",instance="b"}'
SLOW = 'wallet_request_seconds_bucket{operation="exchange",le="0.256"}'
ALL = 'wallet_request_seconds_count{operation="exchange"}'
IDLE = 'wallet_watcher_idle_seconds{chain="TRC20",instance="a"}'
SANDBOX = 'wallet_sandbox{process="web",instance="a"}'
STARTED = 'process_start_time_seconds{process="web",instance="a"}'

ABOVE = 'wallet_hot_wallet_outside_seconds{chain="ERC20",limit="above",instance="a"}'
BELOW = 'wallet_hot_wallet_outside_seconds{chain="ERC20",limit="below",instance="a"}'
SIGN = 'wallet_cold_transfer_oldest_seconds{chain="ERC20",state="signature",instance="a"}'
MOVING = 'wallet_cold_transfer_oldest_seconds{chain="ERC20",state="moving",instance="a"}'
TRANSFER = 'wallet_cold_transfers{chain="ERC20",state="moving",instance="a"}'
TRANSFER_ELSEWHERE = 'wallet_cold_transfers{chain="TRC20",state="moving",instance="a"}'
HELD = 'wallet_screening_oldest_seconds{subject="order",state="held",instance="a"}'
UNANSWERED = 'wallet_screening_oldest_seconds{subject="deposit",state="unanswered",instance="a"}'
ANSWERS = 'wallet_screening_questions{outcome="answered",instance="a"}'
FAILURES = 'wallet_screening_questions{outcome="unanswered",instance="a"}'
OBSTACLE = 'wallet_obstacle_oldest_seconds{chain="ERC20",kind="funds",instance="a"}'
HOURS = 'wallet_obstacle_oldest_seconds{chain="ERC20",kind="payout_hours",instance="a"}'
SCREENED = 'wallet_obstacle_oldest_seconds{chain="ERC20",kind="screening_away",instance="a"}'

SHIPPING = 'wallet_backup_running{instance="a"}'
BEHIND = 'wallet_backup_behind_seconds{instance="a"}'
NEVER = " ".join(["Inf"] * 80)
BASE = 'wallet_backup_base_age_seconds{instance="a"}'
VERIFIED = 'wallet_backup_verify_age_seconds{instance="a"}'

LIMITED = 'wallet_requests_total{operation="exchange",code="42900",instance="a"}'
LATE = 'wallet_requests_total{operation="exchange",code="40102",instance="a"}'
REFUSED = 'wallet_requests_total{operation="exchange",code="40100",instance="a"}'
REFUSALS = 'wallet_signer_refusals_total{instance="a"}'
UNDER_WAY = 'wallet_requests_under_way{process="web",instance="a"}'
AHEAD = 'wallet_clock_ahead_seconds{process="web",instance="a"}'
FOUND = 'wallet_rollback_evidence_found{process="worker",instance="a"}'
FILES = 'process_open_fds{process="web",instance="a"}'
MAX_FILES = 'process_max_fds{process="web",instance="a"}'
FREE = 'wallet_disk_free_bytes{process="web",folder="data",instance="a"}'
SIZE = 'wallet_disk_size_bytes{process="web",folder="data",instance="a"}'
FAILED = 'wallet_orders{standing="failed",instance="a"}'
PROCESSING = 'wallet_order_oldest_seconds{standing="processing",instance="a"}'
APPROVAL = 'wallet_order_oldest_seconds{standing="approval",instance="a"}'
DEADLINE = 'wallet_setting{setting="WALLET_APPROVAL_DEADLINE_S",process="web",instance="b"}'
FROZEN = 'wallet_frozen_orders{instance="a"}'
WALLET_FROZEN = 'wallet_hot_wallet_frozen{chain="TRC20",instance="a"}'
STOPPED = 'wallet_payout_stops{chain="ERC20",actor="reconciliation",instance="a"}'
STOPPED_BY_ANN = 'wallet_payout_stops{chain="ERC20",actor="operator:ann",instance="a"}'
DUE = 'wallet_callback_oldest_seconds{state="due",instance="a"}'
DEPOSITS_HELD = 'wallet_deposits{chain="ERC20",status="held",instance="a"}'
PENDING = 'wallet_deposit_oldest_seconds{chain="ERC20",status="pending",instance="a"}'
SOUND = 'wallet_reconciliation_sound{chain="TRC20",instance="a"}'
PASSWORDS = 'wallet_failed_sign_ins{factor="password",instance="a"}'
CODES = 'wallet_failed_sign_ins{factor="code",instance="a"}'
UNFOLLOWED = 'wallet_cell_unfollowed_seconds{cell="west",instance="a"}'
CELL = 'wallet_cell_up{cell="west",instance="a"}'
RATES = 'wallet_cell_rates_age_seconds{cell="west",instance="a"}'
LAG = 'wallet_watcher_lag_blocks{chain="TRC20",instance="a"}'
WATCHER = 'wallet_watcher_stopped{chain="TRC20",instance="a"}'
NONCE_DAYS = 'wallet_nonce_days_ahead{instance="a"}'
RANGES = 'wallet_id_ranges_left{instance="a"}'
BOOK_IDS = 'wallet_book_ids_left{instance="a"}'
ACCOUNTS = 'wallet_accounts_left{instance="a"}'
ARCHIVER = 'wallet_archiver_behind_seconds{instance="a"}'
STANDBY = 'wallet_standby_lag_seconds{standby="db2",instance="a"}'
CERTIFICATE = 'wallet_certificate_left_seconds{instance="a"}'

CASES = (
    Case("WalletRequestsFail", {BUSY: "0+6000x30", FAULT: "0+30x30"}, 20),
    Case(
        "WalletRequestsFail",
        {BUSY: "0+6000x30", FAULT: "0+120x30"},
        20,
        "1.961% of requests are answered 50000 · shop",
    ),
    Case("WalletRequestsFail", {BUSY: "0x30", FAULT: "0x30"}, 20),
    Case(
        "WalletUnavailable",
        {BUSY: "0+6000x30", AWAY: "0+600x30"},
        10,
        "9.091% of requests are answered 50300 · shop",
    ),
    Case("WalletRequestsSlow", {SLOW: "0+199x30", ALL: "0+200x30"}, 25),
    Case(
        "WalletRequestsSlow",
        {SLOW: "0+90x30", ALL: "0+100x30"},
        25,
        "10% of requests take longer than 0.256 s · shop",
    ),
    Case("WalletNotScraped", {BUILD: "1x10 _x20"}, 9),
    Case(
        "WalletNotScraped", {BUILD: "1x10 stale _x20"}, 20, "Prometheus gets no metrics of the service · shop"
    ),
    Case(
        "WalletProcessDown",
        {TARGET: "1x5 0x15", TARGET_B: "1x20", BUILD: "1x5 stale", BUILD_B: "1x20"},
        15,
        "A process does not answer · shop · a",
        {"instance": "a"},
    ),
    Case("WalletProcessDown", {TARGET: "1x5 0 1x15", BUILD: "1x5 stale 1x15"}, 15),
    # A target of another program is not ours.
    Case("WalletProcessDown", {TARGET: "1x20", TARGET_B: "0x20", BUILD: "1x20"}, 15),
    Case("WalletVersionsDiffer", {BUILD: "1x90", BUILD_B: "1x90"}, 30),
    Case(
        "WalletVersionsDiffer",
        {BUILD: "1x90", BUILD_B: "1x90"},
        70,
        "2 versions of the program have run for an hour · shop",
    ),
    Case("WalletQueueFull", {WAITING: "3000x10", LIMIT: "4096x10"}, 5),
    Case(
        "WalletQueueFull",
        {WAITING: "4000x10", LIMIT: "4096x10"},
        5,
        "4000 commands wait in the books' queues, more than 80 % of the limit · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    Case("WalletDatabaseDown", {UP: "1x10", UP_B: "1x10"}, 5),
    Case(
        "WalletDatabaseDown",
        {UP: "1x10", UP_B: "1 1 0x8"},
        5,
        "The database does not answer · shop · b · worker",
        {"instance": "b", "process": "worker"},
    ),
    Case("WalletPlatformNotShown", {SHOWN: "1x20", SHOWN_B: "0x20"}, 15),
    Case(
        "WalletPlatformNotShown",
        {SHOWN: "0x20", SHOWN_B: "0x20"},
        15,
        "No process reads the platform's metrics · shop",
    ),
    Case(
        "WalletRestarts",
        {STARTED: "0+1x20", BUILD: "1x20"},
        15,
        "A process was started 15 times in 15 minutes · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    Case("WalletRestarts", {STARTED: "5x20", BUILD: "1x20"}, 15),
    Case("WalletOrdersNotPaid", {QUEUED: "30x20"}, 15),
    Case(
        "WalletOrdersNotPaid",
        {QUEUED: "0+60x20"},
        15,
        "The oldest approved withdrawal has waited 15m 0s for a payer · shop",
        {"standing": "queued"},
    ),
    Case(
        "WalletHotWalletShort",
        {FUNDS: "90x20", RESERVED: "100x20"},
        10,
        "ERC20: the hot wallet holds 90.00 USDT, less than is reserved for payouts · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletHotWalletShort", {FUNDS: "110x20", RESERVED: "100x20"}, 10),
    Case(
        "WalletGasLow",
        {GAS: "0.9x20", CAP: "0.02x20"},
        15,
        "ERC20: the hot wallet holds 0.90 coins for network fees, less than 50 payouts may cost · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletGasLow", {GAS: "1.1x20", CAP: "0.02x20"}, 15),
    Case("WalletCallbacksParked", {PARKED: "3x120"}, 110),
    Case(
        "WalletCallbacksParked",
        {PARKED: "3x100 4x20"},
        110,
        "4 callbacks are parked, more than there were an hour ago · shop",
    ),
    # Another process shows the platform now: the same number is no growth.
    Case("WalletCallbacksParked", {PARKED: "3x50 stale", PARKED_B: "_x50 3x70"}, 110),
    Case("WalletRollbackEvidence", {EVIDENCE: "0x5 1x5"}, 4),
    Case(
        "WalletRollbackEvidence",
        {EVIDENCE: "0x5 1x5"},
        8,
        "There is evidence of a rolled-back database (book: 1) · shop",
        {"subject": "book"},
    ),
    Case(
        "WalletBooksAndChainDiffer",
        {DIFFERENCE: "0x5 -2x5"},
        8,
        "ERC20: books and chain differ by -2.00 USDT · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletBooksAndChainDiffer", {DIFFERENCE: "0x10"}, 8),
    Case("WalletNotReconciled", {AGE: "0+60x60", INTERVAL: "600x60"}, 20),
    Case(
        "WalletNotReconciled",
        {AGE: "0+60x60", INTERVAL: "600x60"},
        40,
        "ERC20: books and chain were compared 40m 0s ago · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletNotReconciled", {AGE: "0+60x60", INTERVAL: "0x60"}, 40),
    Case(
        "WalletWatcherIdle",
        {IDLE: "0+60x30", SANDBOX: "0x30"},
        20,
        "TRC20: no block was read for 20m 0s · shop",
        {"chain": "TRC20"},
    ),
    Case("WalletWatcherIdle", {IDLE: "0+60x30", SANDBOX: "1x30"}, 20),
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", BELOW: "0x120"}, 50),
    Case(
        "WalletHotWalletAboveLimit",
        {ABOVE: "0+60x120", BELOW: "0x120"},
        70,
        "ERC20: the hot wallet has been above its limit for 1h 10m 0s · shop",
        {"chain": "ERC20"},
    ),
    # What should move is under way; a transfer of another chain helps nobody.
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", TRANSFER: "0x60 1x60"}, 70),
    Case(
        "WalletHotWalletAboveLimit",
        {ABOVE: "0+60x120", TRANSFER_ELSEWHERE: "1x120"},
        70,
        "ERC20: the hot wallet has been above its limit for 1h 10m 0s · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletHotWalletBelowLimit", {ABOVE: "0x120", BELOW: "0+60x120"}, 10),
    Case(
        "WalletHotWalletBelowLimit",
        {ABOVE: "0x120", BELOW: "0+60x120"},
        20,
        "ERC20: the hot wallet has been below its refill line for 20m 0s · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletColdTransferWaits", {SIGN: "0+60x60", MOVING: "0x60"}, 25),
    Case(
        "WalletColdTransferWaits",
        {SIGN: "0+60x60", MOVING: "0x60"},
        35,
        "ERC20: a cold transfer has waited 35m 0s · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletColdTransferWaits", {SIGN: "0x60", MOVING: "0+60x60"}, 35),
    Case("WalletColdTransferSlow", {SIGN: "0x150", MOVING: "0+60x150"}, 110),
    Case(
        "WalletColdTransferSlow",
        {SIGN: "0x150", MOVING: "0+60x150"},
        125,
        "ERC20: a cold transfer has been under way for 2h 5m 0s · shop",
        {"chain": "ERC20"},
    ),
    Case("WalletScreeningHolds", {HELD: "0+60x90", UNANSWERED: "0x90"}, 55),
    Case(
        "WalletScreeningHolds",
        {HELD: "0+60x90", UNANSWERED: "0x90"},
        65,
        "Held by screening for 1h 5m 0s: order · shop",
        {"subject": "order"},
    ),
    Case("WalletScreeningAway", {HELD: "0x90", UNANSWERED: "0+60x90"}, 8),
    Case(
        "WalletScreeningAway",
        {HELD: "0x90", UNANSWERED: "0+60x90"},
        15,
        "Screening has had no answer for 15m 0s: deposit · shop",
        {"subject": "deposit"},
    ),
    Case("WalletScreeningFails", {ANSWERS: "95x30", FAILURES: "5x30"}, 25),
    Case(
        "WalletScreeningFails",
        {ANSWERS: "80x30", FAILURES: "20x30"},
        25,
        "20% of the questions to the screening URL have no usable answer · shop",
    ),
    Case("WalletScreeningFails", {ANSWERS: "0x30", FAILURES: "0x30"}, 25),
    Case("WalletPayoutObstacle", {OBSTACLE: "0+60x60"}, 25),
    Case(
        "WalletPayoutObstacle",
        {OBSTACLE: "0+60x60"},
        35,
        "ERC20: payouts have waited 35m 0s (obstacle: funds) · shop",
        {"chain": "ERC20", "kind": "funds"},
    ),
    # Payouts that wait for the morning are no obstacle, and screening has its own alerts.
    Case("WalletPayoutObstacle", {HOURS: "0+60x60", SCREENED: "0+60x60"}, 50),
    Case("WalletBackupStopped", {SHIPPING: "1x5 0x15"}, 8),
    Case("WalletBackupStopped", {SHIPPING: "1x5 0x15"}, 15, "The database's WAL is not being stored · shop"),
    Case("WalletBackupBehind", {BEHIND: "3x20"}, 15),
    Case("WalletBackupBehind", {BEHIND: "3x5 90x15"}, 15, "The stored back-up is 1m 30s behind · shop"),
    Case(
        "WalletRequestsLimited",
        {BUSY: "0+6000x40", LIMITED: "0+1000x40"},
        30,
        "14.29% of requests are answered 42900 · shop",
    ),
    Case("WalletRequestsLimited", {BUSY: "0+6000x40", LIMITED: "0+300x40"}, 30),
    Case(
        "WalletTimestampsRefused",
        {BUSY: "0+6000x40", LATE: "0+300x40"},
        20,
        "4.762% of requests are answered 40102 · shop",
    ),
    Case("WalletTimestampsRefused", {BUSY: "0+6000x40", LATE: "0+60x40"}, 20),
    Case(
        "WalletRequestsRefused",
        {BUSY: "0+6000x40", REFUSED: "0+4000x40"},
        30,
        "40% of requests are refused with 40100 · shop",
        {"code": "40100"},
    ),
    Case("WalletRequestsRefused", {BUSY: "0+6000x40", REFUSED: "0+1000x40"}, 30),
    Case(
        "WalletSignerRefuses",
        {REFUSALS: "0x10 0+1x10"},
        20,
        "Signatures that the signer refused in 15 minutes: 9 · shop",
    ),
    Case("WalletSignerRefuses", {REFUSALS: "7x30"}, 20),
    Case(
        "WalletRequestsPileUp",
        {UNDER_WAY: "1500x20"},
        10,
        "1500 requests wait for their answers · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    Case("WalletRequestsPileUp", {UNDER_WAY: "1500x3 20x20"}, 10),
    Case(
        "WalletClockDiffers",
        {AHEAD: "-3x20"},
        10,
        "A clock differs by 3s from the database's · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    Case("WalletClockDiffers", {AHEAD: "1x20"}, 10),
    Case(
        "WalletClockWrong",
        {AHEAD: "-45x20"},
        10,
        "A clock differs by 45s from the database's · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    Case("WalletClockWrong", {AHEAD: "20x20"}, 10),
    Case(
        "WalletRollbackEvidenceFound",
        {FOUND: "0 2x20"},
        10,
        "Books or logs that a comparison found behind their checkpoints: 2 · shop · a · worker",
        {"instance": "a", "process": "worker"},
    ),
    Case(
        "WalletFilesRunOut",
        {FILES: "900x20", MAX_FILES: "1024x20", BUILD: "1x20"},
        10,
        "87.89% of the files that a process may open are open · shop · a · web",
        {"instance": "a", "process": "web"},
    ),
    # Prometheus' own files are not ours.
    Case("WalletFilesRunOut", {FILES: "900x20", MAX_FILES: "1024x20"}, 10),
    Case(
        "WalletDiskLow",
        {FREE: "10e9x20", SIZE: "100e9x20"},
        10,
        "10% of the disk below the folder data is free · shop · a · web",
        {"folder": "data", "instance": "a", "process": "web"},
    ),
    Case("WalletDiskLow", {FREE: "20e9x20", SIZE: "100e9x20"}, 10),
    Case(
        "WalletDiskFull",
        {FREE: "4e9x20", SIZE: "100e9x20"},
        10,
        "Only 4% of the disk below the folder data is free · shop · a · web",
        {"folder": "data", "instance": "a", "process": "web"},
    ),
    Case("WalletDiskFull", {FREE: "10e9x20", SIZE: "100e9x20"}, 10),
    Case(
        "WalletRefundsWait",
        {FAILED: "0x5 2x30"},
        25,
        "Failed withdrawals that wait for their refund: 2 · shop",
    ),
    Case(
        "WalletPayoutsSlow",
        {PROCESSING: "0+60x90"},
        70,
        "A payout has been under way for 1h 10m 0s · shop",
        {"standing": "processing"},
    ),
    Case(
        "WalletApprovalsWait",
        {APPROVAL: "70000x10", DEADLINE: "86400x10"},
        5,
        "A withdrawal has waited 19h 26m 40s for approval · shop",
    ),
    Case("WalletApprovalsWait", {APPROVAL: "60000x10", DEADLINE: "86400x10"}, 5),
    Case("WalletOrderFrozen", {FROZEN: "0 2x10"}, 5, "Frozen withdrawals: 2 · shop"),
    Case(
        "WalletHotWalletFrozen",
        {WALLET_FROZEN: "0 1x10"},
        5,
        "TRC20: the hot wallet is frozen and signs nothing · shop",
        {"chain": "TRC20"},
    ),
    Case(
        "WalletPayoutsStopped",
        {STOPPED: "1x10"},
        5,
        "ERC20: reconciliation has stopped payouts · shop",
        {"chain": "ERC20"},
    ),
    # Whoever stops payouts knows it.
    Case("WalletPayoutsStopped", {STOPPED_BY_ANN: "1x10"}, 5),
    Case("WalletCallbacksNotSent", {DUE: "180000x10"}, 5, "A callback has been due for 2d 2h 0m 0s · shop"),
    Case(
        "WalletDepositsHeld",
        {DEPOSITS_HELD: "0 3x10"},
        5,
        "ERC20: held deposits: 3 · shop",
        {"chain": "ERC20"},
    ),
    Case(
        "WalletDepositsNotCredited",
        {PENDING: "0+60x90"},
        70,
        "ERC20: a final deposit has waited 1h 10m 0s to be credited · shop",
        {"chain": "ERC20"},
    ),
    Case(
        "WalletReconciliationUnsound",
        {SOUND: "1x5 0x30"},
        25,
        "TRC20: the last comparison of books and chain needs a person · shop",
        {"chain": "TRC20"},
    ),
    Case("WalletReconciliationUnsound", {SOUND: "1x5 0x10 1x20"}, 25),
    Case(
        "WalletSignInsFail",
        {PASSWORDS: "150x10"},
        5,
        "150 sign-ins failed within an hour (password) · shop",
        {"factor": "password"},
    ),
    Case(
        "WalletCodesFail",
        {CODES: "12x10"},
        5,
        "12 sign-ins failed at the second factor within an hour · shop",
    ),
    Case("WalletCodesFail", {CODES: "8x10", PASSWORDS: "150x10"}, 5),
    Case("WalletCellDown", {CELL: "1 0x10"}, 5, "Cell west does not answer · shop", {"cell": "west"}),
    Case(
        "WalletCellRatesOld",
        {RATES: "40x10"},
        5,
        "Cell west: the copies of the exchange rates are 40s old · shop",
        {"cell": "west"},
    ),
    Case(
        "WalletCellNotFollowed",
        {UNFOLLOWED: "0 30 90x10"},
        5,
        "Cell west: the node that Citus names is not used, for 1m 30s · shop",
        {"cell": "west"},
    ),
    Case(
        "WalletWatcherBehind",
        {LAG: "0+10x60"},
        50,
        "TRC20: deposits are read 500 blocks late, and later and later · shop",
        {"chain": "TRC20"},
    ),
    # It catches up.
    Case("WalletWatcherBehind", {LAG: "600-10x60"}, 40),
    Case(
        "WalletWatcherStopped",
        {WATCHER: "0 1x10"},
        5,
        "TRC20: deposits are not read any more · shop",
        {"chain": "TRC20"},
    ),
    Case(
        "WalletNonceDaysEnd", {NONCE_DAYS: "0x20"}, 15, "There is no partition of nonces for tomorrow · shop"
    ),
    Case("WalletIdRangesEnd", {RANGES: "900x10"}, 5, "900 ranges of ids are left · shop"),
    Case(
        "WalletBookIdsEnd",
        {BOOK_IDS: "5000x20"},
        10,
        "5000 ids are left in a book without a next range · shop",
    ),
    Case("WalletAccountsEnd", {ACCOUNTS: "4x10"}, 5, "4 derived accounts are left · shop"),
    Case(
        "WalletArchiverFails",
        {ARCHIVER: "0x5 0+60x20"},
        20,
        "PostgreSQL has not archived WAL for 14m 0s · shop",
    ),
    Case("WalletArchiverFails", {ARCHIVER: "0x20"}, 15),
    Case(
        "WalletStandbyLags", {STANDBY: "90x20"}, 10, "Standby db2 is 1m 30s behind · shop", {"standby": "db2"}
    ),
    Case("WalletStandbyLags", {STANDBY: "0x20"}, 10),
    Case(
        "WalletStandbyGone",
        {STANDBY: "0x60 stale", SHOWN: "1x100"},
        80,
        "Standby db2 was connected an hour ago and is not now · shop",
        {"standby": "db2"},
    ),
    Case("WalletStandbyGone", {STANDBY: "0x100", SHOWN: "1x100"}, 80),
    # Without the database nobody knows.
    Case("WalletStandbyGone", {STANDBY: "0x60 stale", SHOWN: "1x60 0x40"}, 80),
    Case(
        "WalletCertificateEnds",
        {CERTIFICATE: "864000x10"},
        5,
        "The certificate of WALLET_PUBLIC_URL ends in 10d 0h 0m 0s · shop",
    ),
    Case("WalletCertificateEnds", {CERTIFICATE: "2592000x10"}, 5),
    Case(
        "WalletCertificateEnded",
        {CERTIFICATE: "3600x10"},
        5,
        "The certificate of WALLET_PUBLIC_URL ends in 1h 0m 0s, or is not trusted · shop",
    ),
    Case("WalletCertificateEnded", {CERTIFICATE: "864000x10"}, 5),
    Case("WalletBackupBaseOld", {BASE: "690000+60x80"}, 20),
    Case(
        "WalletBackupBaseOld",
        {BASE: "691200+60x80"},
        70,
        "There is no base back-up of this database of the last 8 days · shop",
    ),
    Case("WalletBackupBaseOld", {BASE: NEVER}, 50),
    Case(
        "WalletBackupBaseOld",
        {BASE: NEVER},
        70,
        "There is no base back-up of this database of the last 8 days · shop",
    ),
    Case("WalletBackupUnverified", {VERIFIED: "2900000+60x80"}, 70),
    Case(
        "WalletBackupUnverified",
        {VERIFIED: "3024000+60x80"},
        70,
        "No restore of this database was rehearsed in the last 35 days · shop",
    ),
    Case(
        "WalletBackupUnverified",
        {VERIFIED: NEVER},
        70,
        "No restore of this database was rehearsed in the last 35 days · shop",
    ),
)


def write_case(case: Case, job: str = "shop") -> dict[str, Any]:
    """The case as promtool reads it: all of the alert's text is compared."""
    alert = TABLE[case.alert]
    fired = {
        "exp_labels": {"severity": alert.severity, "job": job, **(case.labels or {})},
        "exp_annotations": {
            "summary": case.says,
            "description": describe(alert),
            "runbook_url": f"https://{job}.test/runbook#{case.alert.lower()}",
        },
    }
    series = case.series | {f'wallet_runbook_info{{url="https://{job}.test/runbook"}}': "1x200"}
    return {
        "interval": "1m",
        "input_series": write_series(series, job),
        "alert_rule_test": [
            {
                "alertname": case.alert,
                "eval_time": f"{case.minute}m",
                "exp_alerts": [fired] if case.says else [],
            }
        ],
    }


def write_series(series: dict[str, str], job: str) -> list[dict[str, str]]:
    """Series of one installation."""
    return [
        {"series": name.replace("{", f'{{job="{job}",', 1), "values": values}
        for name, values in series.items()
    ]


def run_cases(folder: Path, *cases: dict[str, Any]) -> None:
    """Let promtool judge cases, each with its own rule alone. Fails with what it says."""
    head, *rules = re.split(r"(?=^      - alert: )", RULES.read_text(encoding="utf-8"), flags=re.M)
    for rule in rules:
        name = rule.split()[2]
        tests = [case for case in cases if case["alert_rule_test"][0]["alertname"] == name]
        (folder / f"{name}.rules.yml").write_text(head + re.split(r"^  - name:", rule, flags=re.M)[0])
        written = {"rule_files": [f"{name}.rules.yml"], "tests": tests}
        (folder / f"{name}.json").write_text(json.dumps(written))
    run_promtool("test", "rules", *sorted(each.name for each in folder.glob("*.json")), folder=folder)


def test_the_rules_are_those_of_the_table() -> None:
    assert RULES.read_text(encoding="utf-8") == write_rules(), "run `make docs`"


def test_promtool_accepts_every_rule_and_finds_no_duplicate() -> None:
    said = run_promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert f"{len(ALERTS)} rules found" in said


def test_rules_fire_when_they_should_and_not_before_and_say_what_is_wrong(tmp_path: Path) -> None:
    run_cases(tmp_path, *map(write_case, CASES))


def test_each_rule_has_been_fired_and_its_text_read() -> None:
    assert {case.alert for case in CASES if case.says} == {alert.name for alert in ALERTS}


def test_an_installation_that_is_well_hides_no_other(tmp_path: Path) -> None:
    """The same rule, one installation with the fault and another one without, in one Prometheus."""
    quiet = {(case.alert, case.minute): case for case in CASES if not case.says}
    both = [
        (write_case(case), write_series(quiet[case.alert, case.minute].series, "other"))
        for case in CASES
        if case.says and (case.alert, case.minute) in quiet
    ]
    assert len(both) > 20
    run_cases(tmp_path, *[case | {"input_series": case["input_series"] + other} for case, other in both])


def test_the_label_of_a_target_tells_installations_of_one_job_apart() -> None:
    assert divide('max by (chain) (a) > on () group_left () (3 * max(b{c="d"}) > 0)') == (
        "max by (job, installation, chain) (a) > on (job, installation) group_left () "
        '(3 * max by (job, installation) (b{c="d"}) > 0)'
    )
    assert divide("max_over_time(a[1d]) and on (job, instance) b") == (
        "max_over_time(a[1d]) and on (job, installation, instance) b"
    )


def test_a_case_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="WalletRequestsFail"):
        run_cases(tmp_path, write_case(CASES[0]._replace(says="nothing is wrong")))


def test_expressions_name_only_metrics_of_the_table() -> None:
    known = {name for line in METRICS for name in list_samples(line)}
    for alert in ALERTS:
        named = set(re.findall(r"\b(?:wallet|process)_\w+", alert.expression))
        assert named, alert.name
        assert named <= known, alert.name


def test_each_alert_has_a_name_of_its_own_and_a_heading_that_says_what_to_do() -> None:
    page = OPERATING.read_text(encoding="utf-8")
    headings = re.findall(r"^#### (Wallet\w+)$", page, re.M)
    assert sorted(headings) == sorted(alert.name for alert in ALERTS)
    assert len(set(headings)) == len(headings)
    links = re.findall(r"runbook_url: .*#(\w+)", RULES.read_text(encoding="utf-8"))
    assert sorted(links) == sorted(name.lower() for name in headings)
