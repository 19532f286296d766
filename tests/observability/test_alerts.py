"""The alert rules: made from the table, valid for Prometheus, with a runbook, and firing when they should.

promtool runs the rules over invented series. A series has one value for each minute.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripts.documents.alerts import RULES, write_rules
from tests.prometheus import run_promtool

from merchant_wallet.observability.metric_table import METRICS, list_samples

ALERTS = [alert for line in METRICS for alert in line.alerts]
OPERATING = RULES.with_name("operating.md")


class Case(NamedTuple):
    """Series from minute 0 on, and how many alerts of one rule fire at a minute."""

    alert: str
    series: dict[str, str]
    minute: int
    firing: int


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

CASES = (
    Case("WalletRequestsFail", {BUSY: "0+6000x30", FAULT: "0+30x30"}, 20, 0),
    Case("WalletRequestsFail", {BUSY: "0+6000x30", FAULT: "0+120x30"}, 20, 1),
    Case("WalletRequestsFail", {BUSY: "0x30", FAULT: "0x30"}, 20, 0),
    Case("WalletUnavailable", {BUSY: "0+6000x30", AWAY: "0+600x30"}, 10, 1),
    Case("WalletRequestsSlow", {SLOW: "0+199x30", ALL: "0+200x30"}, 25, 0),
    Case("WalletRequestsSlow", {SLOW: "0+90x30", ALL: "0+100x30"}, 25, 1),
    Case("WalletNotScraped", {BUILD: "1x10 _x20"}, 9, 0),
    Case("WalletNotScraped", {BUILD: "1x10 stale _x20"}, 20, 1),
    Case(
        "WalletProcessDown",
        {TARGET: "1x5 0x15", TARGET_B: "1x20", BUILD: "1x5 stale", BUILD_B: "1x20"},
        15,
        1,
    ),
    Case("WalletProcessDown", {TARGET: "1x5 0 1x15", BUILD: "1x5 stale 1x15"}, 15, 0),
    # A target of another program is not ours.
    Case("WalletProcessDown", {TARGET: "1x20", TARGET_B: "0x20", BUILD: "1x20"}, 15, 0),
    Case("WalletVersionsDiffer", {BUILD: "1x90", BUILD_B: "1x90"}, 30, 0),
    Case("WalletVersionsDiffer", {BUILD: "1x90", BUILD_B: "1x90"}, 70, 1),
    Case("WalletQueueFull", {WAITING: "3000x10", LIMIT: "4096x10"}, 5, 0),
    Case("WalletQueueFull", {WAITING: "4000x10", LIMIT: "4096x10"}, 5, 1),
    Case("WalletDatabaseDown", {UP: "1x10", UP_B: "1x10"}, 5, 0),
    Case("WalletDatabaseDown", {UP: "1x10", UP_B: "1 1 0x8"}, 5, 1),
    Case("WalletPlatformNotShown", {SHOWN: "1x20", SHOWN_B: "0x20"}, 15, 0),
    Case("WalletPlatformNotShown", {SHOWN: "0x20", SHOWN_B: "0x20"}, 15, 1),
    Case("WalletRestarts", {STARTED: "0+1x20", BUILD: "1x20"}, 15, 1),
    Case("WalletRestarts", {STARTED: "5x20", BUILD: "1x20"}, 15, 0),
    Case("WalletOrdersNotPaid", {QUEUED: "30x20"}, 15, 0),
    Case("WalletOrdersNotPaid", {QUEUED: "0+60x20"}, 15, 1),
    Case("WalletHotWalletShort", {FUNDS: "90x20", RESERVED: "100x20"}, 10, 1),
    Case("WalletHotWalletShort", {FUNDS: "110x20", RESERVED: "100x20"}, 10, 0),
    Case("WalletGasLow", {GAS: "0.9x20", CAP: "0.02x20"}, 15, 1),
    Case("WalletGasLow", {GAS: "1.1x20", CAP: "0.02x20"}, 15, 0),
    Case("WalletCallbacksParked", {PARKED: "3x120"}, 110, 0),
    Case("WalletCallbacksParked", {PARKED: "3x100 4x20"}, 110, 1),
    # Another process shows the platform now: the same number is no growth.
    Case("WalletCallbacksParked", {PARKED: "3x50 stale", PARKED_B: "_x50 3x70"}, 110, 0),
    Case("WalletRollbackEvidence", {EVIDENCE: "0x5 1x5"}, 4, 0),
    Case("WalletRollbackEvidence", {EVIDENCE: "0x5 1x5"}, 8, 1),
    Case("WalletBooksAndChainDiffer", {DIFFERENCE: "0x5 -2x5"}, 8, 1),
    Case("WalletBooksAndChainDiffer", {DIFFERENCE: "0x10"}, 8, 0),
    Case("WalletNotReconciled", {AGE: "0+60x60", INTERVAL: "600x60"}, 20, 0),
    Case("WalletNotReconciled", {AGE: "0+60x60", INTERVAL: "600x60"}, 40, 1),
    Case("WalletNotReconciled", {AGE: "0+60x60", INTERVAL: "0x60"}, 40, 0),
    Case("WalletWatcherIdle", {IDLE: "0+60x30", SANDBOX: "0x30"}, 20, 1),
    Case("WalletWatcherIdle", {IDLE: "0+60x30", SANDBOX: "1x30"}, 20, 0),
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", BELOW: "0x120"}, 50, 0),
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", BELOW: "0x120"}, 70, 1),
    # What should move is under way; a transfer of another chain helps nobody.
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", TRANSFER: "0x60 1x60"}, 70, 0),
    Case("WalletHotWalletAboveLimit", {ABOVE: "0+60x120", TRANSFER_ELSEWHERE: "1x120"}, 70, 1),
    Case("WalletHotWalletBelowLimit", {ABOVE: "0x120", BELOW: "0+60x120"}, 10, 0),
    Case("WalletHotWalletBelowLimit", {ABOVE: "0x120", BELOW: "0+60x120"}, 20, 1),
    Case("WalletColdTransferWaits", {SIGN: "0+60x60", MOVING: "0x60"}, 25, 0),
    Case("WalletColdTransferWaits", {SIGN: "0+60x60", MOVING: "0x60"}, 35, 1),
    Case("WalletColdTransferWaits", {SIGN: "0x60", MOVING: "0+60x60"}, 35, 0),
    Case("WalletColdTransferSlow", {SIGN: "0x150", MOVING: "0+60x150"}, 110, 0),
    Case("WalletColdTransferSlow", {SIGN: "0x150", MOVING: "0+60x150"}, 125, 1),
    Case("WalletScreeningHolds", {HELD: "0+60x90", UNANSWERED: "0x90"}, 55, 0),
    Case("WalletScreeningHolds", {HELD: "0+60x90", UNANSWERED: "0x90"}, 65, 1),
    Case("WalletScreeningAway", {HELD: "0x90", UNANSWERED: "0+60x90"}, 8, 0),
    Case("WalletScreeningAway", {HELD: "0x90", UNANSWERED: "0+60x90"}, 15, 1),
    Case("WalletScreeningFails", {ANSWERS: "95x30", FAILURES: "5x30"}, 25, 0),
    Case("WalletScreeningFails", {ANSWERS: "80x30", FAILURES: "20x30"}, 25, 1),
    Case("WalletScreeningFails", {ANSWERS: "0x30", FAILURES: "0x30"}, 25, 0),
    Case("WalletPayoutObstacle", {OBSTACLE: "0+60x60"}, 25, 0),
    Case("WalletPayoutObstacle", {OBSTACLE: "0+60x60"}, 35, 1),
    # Payouts that wait for the morning are no obstacle, and screening has its own alerts.
    Case("WalletPayoutObstacle", {HOURS: "0+60x60", SCREENED: "0+60x60"}, 50, 0),
    Case("WalletBackupStopped", {SHIPPING: "1x5 0x15"}, 8, 0),
    Case("WalletBackupStopped", {SHIPPING: "1x5 0x15"}, 15, 1),
    Case("WalletBackupBehind", {BEHIND: "3x20"}, 15, 0),
    Case("WalletBackupBehind", {BEHIND: "3x5 90x15"}, 15, 1),
)


def write_case(case: Case) -> dict[str, Any]:
    """The case as promtool reads it."""
    expected = [{"labels": "{}", "value": case.firing}] if case.firing else []
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})',
                "eval_time": f"{case.minute}m",
                "exp_samples": expected,
            }
        ],
    }


def test_the_rules_are_those_of_the_table() -> None:
    assert RULES.read_text(encoding="utf-8") == write_rules(), "run `make docs`"


def test_promtool_accepts_every_rule_and_finds_no_duplicate() -> None:
    said = run_promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert f"{len(ALERTS)} rules found" in said


def test_rules_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    written = {"rule_files": [str(RULES)], "tests": [write_case(case) for case in CASES]}
    (tmp_path / "cases.yml").write_text(json.dumps(written))
    run_promtool("test", "rules", "cases.yml", folder=tmp_path)


def test_a_case_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    wrong = CASES[0]._replace(firing=1)
    (tmp_path / "cases.yml").write_text(
        json.dumps({"rule_files": [str(RULES)], "tests": [write_case(wrong)]})
    )
    with pytest.raises(AssertionError, match="WalletRequestsFail"):
        run_promtool("test", "rules", "cases.yml", folder=tmp_path)


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
    links = re.findall(r"runbook_url: docs/operating.md#(\w+)", RULES.read_text(encoding="utf-8"))
    assert sorted(links) == sorted(name.lower() for name in headings)
