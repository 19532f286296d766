"""A real Prometheus scrapes a running service, runs the alert rules, and answers every panel's query."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from scripts.documents.alerts import RULES
from tests.journeys.conftest import RunPlatform
from tests.journeys.orders import withdrawal
from tests.observability.test_dashboards import list_expressions
from tests.ports import find_port
from tests.tools import require_tool
from tests.waits import wait_until

from merchant_wallet.observability.metric_table import METRICS

SCRAPE = "1s"
EMPTY_IN_A_SANDBOX = (
    "wallet_fee_cap_coins",
    "wallet_watcher_lag_blocks",
    "wallet_accounts_left",
    "wallet_cell_",
)
EMPTY_WHEN_NEW = (
    "wallet_cell_up",
    "wallet_backup",
    "wallet_obstacles",
    "wallet_deposits",
    "wallet_deposit_oldest",
    "wallet_payout_stops",
    "wallet_hot_wallet_outside",
    "wallet_cold_transfer",
    "wallet_screening",
    "wallet_certificate_left",
    "wallet_standby_lag",
    "wallet_archiver_behind",
)


@contextmanager
def prometheus(folder: Path, targets: list[str]) -> Iterator[httpx.Client]:
    """Prometheus with the alert rules, as a client of its interface."""
    program, port = require_tool("prometheus"), find_port()
    jobs = [{"job_name": "merchant-wallet", "static_configs": [{"targets": targets}]}]
    written = {
        "global": {"scrape_interval": SCRAPE, "evaluation_interval": SCRAPE},
        "rule_files": [str(RULES)],
        "scrape_configs": jobs,
    }
    # JSON is YAML, too.
    (folder / "prometheus.yml").write_text(json.dumps(written))
    words = [
        str(program),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log, subprocess.Popen(words, stderr=log) as process:
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)
        try:
            wait_until(lambda: is_ready(client), "Prometheus starts")
            yield client
        finally:
            client.close()
            os.kill(process.pid, signal.SIGTERM)


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def ask(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    """What an expression gives now."""
    answer = client.post("/api/v1/query", data={"query": expression}).json()
    assert answer["status"] == "success", (expression, answer)
    return list(answer["data"]["result"])


def value_of(client: httpx.Client, expression: str) -> float | None:
    found = ask(client, expression)
    return float(found[0]["value"][1]) if found else None


def test_prometheus_reads_all_processes_and_shows_the_platform_once(
    own_platform: RunPlatform, tmp_path: Path
) -> None:
    worker_port = find_port()
    with own_platform(working=True, metrics_port=worker_port, reconcile_interval_s=1) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        shop.client.do("createMerchantWithdrawOrder", **withdrawal("1"))
        targets = [f"127.0.0.1:{platform.port}", f"127.0.0.1:{worker_port}"]
        with prometheus(tmp_path, targets) as client:
            wait_until(lambda: value_of(client, "count(wallet_build_info)") == 2, "both are scraped")
            wait_until(lambda: value_of(client, "count(wallet_custody_coins)") == 2, "it was reconciled")
            rate = 'rate(wallet_requests_total{operation="getMerchantBalance",code="40102"}[10s])'

            def is_counted() -> bool:
                shop.client.do("getMerchantBalance")
                shop.client.expect(40102, "getMerchantBalance", timestamp="1")
                return (value_of(client, rate) or 0) > 0

            wait_until(is_counted, "requests are counted")
            assert len(ask(client, "up == 1")) == 2
            assert value_of(client, "sum(wallet_platform_shown)") == 1
            # Two processes are scraped, and the platform's money counts once.
            money = 'wallet_money_coins{kind="merchant",currency="USDT"}'
            assert value_of(client, f"sum({money})") == value_of(client, f"max({money})") == 990
            empty = [
                each
                for each in list_expressions()
                if not ask(client, each.replace("$__rate_interval", "10s"))
            ]
            excused = (*EMPTY_IN_A_SANDBOX, *EMPTY_WHEN_NEW)
            assert [each for each in empty if not any(name in each for name in excused)] == []
            groups = client.get("/api/v1/rules").json()["data"]["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert len(rules) == sum(len(line.alerts) for line in METRICS)
            assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
            assert {rule["name"] for rule in rules if rule["state"] == "firing"} == set()
            assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []
