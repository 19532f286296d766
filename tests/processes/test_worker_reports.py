"""What workers report of nodes, signer and hot wallets, on development chains of which one node is dead."""

import asyncio
from functools import partial
from pathlib import Path

import psycopg
import pytest
from devnet.chains import HOT_KEY, run_devnet
from structlog.testing import capture_logs
from tests.processes.test_payout_workers import PASSPHRASE, QUICK_COST, opened
from tests.roles import as_web, as_worker

from merchant_wallet.approvals.acts import reports
from merchant_wallet.approvals.acts.reports import Report, list_reports
from merchant_wallet.base import db
from merchant_wallet.base.config import load_settings
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.notifications.mail import find_server
from merchant_wallet.processes.nodes import open_chain_readers
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.worker_reports import WorkerReporter


def test_nodes_signer_and_wallets_are_reported_with_what_is_wrong(database_url: str, tmp_path: Path) -> None:
    async def scenario(environment: dict[str, str]) -> list[Report]:
        settings = load_settings(environment)
        async with opened(database_url, environment) as payouts:
            await asyncio.wait_for(payouts.checked.wait(), 60)
            readers = open_chain_readers(settings)
            connect = partial(db.connect, as_worker(database_url))
            mail = find_server(settings)
            reporter = WorkerReporter(connect, payouts, None, readers, mail, clock=lambda: 7_000)
            await reporter.report()
            await reporter.close()
            for reader in readers.values():
                await reader.close()
        async with await db.connect(as_web(database_url)) as web:
            return await list_reports(web)

    with run_devnet() as devnet:
        environment = {
            **devnet.settings,
            "WALLET_DATA": str(tmp_path),
            "WALLET_MASTER_KEY": "11" * 32,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
            "WALLET_SMTP_HOST": "mail.test",
            "WALLET_SMTP_FROM": "wallet@example.com",
        }
        first = environment["WALLET_ERC20_RPC"]
        second = first.replace("127.0.0.1", "localhost")
        environment["WALLET_ERC20_RPC"] = f"{first},{second},http://127.0.0.1:1/v3/a-secret-key"
        folder = find_keys_folder(load_settings(environment))
        for what, secret in (("ERC20", HOT_KEY.secret), ("TRC20", HOT_KEY.secret), (SEED, bytes(64))):
            store_key(folder, what, secret, PASSPHRASE, cost=QUICK_COST)
        found = asyncio.run(scenario(environment))
    by_thing = {(one.topic, one.subject): one.report for one in found}
    assert {one.reported_ms for one in found} == {7_000}
    nodes = {subject: report for (topic, subject), report in by_thing.items() if topic == reports.NODE}
    dead = [report for report in nodes.values() if report["failure"]]
    assert [report["name"] for report in dead] == ["127.0.0.1:1"]
    assert "a-secret-key" not in str(by_thing)
    alive = [report for report in nodes.values() if not report["failure"]]
    assert {report["chain"] for report in alive} == {"ERC20", "TRC20"}
    assert all(report["head"] >= report["final"] >= 0 for report in alive)
    assert by_thing[reports.SIGNER, "signer"]["answers"] is True
    assert by_thing[reports.MAIL, "server"] == {"address": "mail.test:587"}
    assert set(by_thing[reports.SIGNER, "signer"]["wallets"]) == {"ERC20", "TRC20"}
    setup = by_thing[reports.CHAIN_SETUP, "all"]
    assert setup["fits"]
    assert [wrong.partition(": ")[0] for wrong in setup["wrong"]] == ["127.0.0.1:1"]
    for chain in ("ERC20", "TRC20"):
        wallet = by_thing[reports.HOT_WALLET, chain]
        assert wallet["fundsUnits"] > 0
        assert int(wallet["coin"]) > 0


def test_a_database_that_is_away_is_no_fault_of_a_topic(database_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        away = partial(db.connect, "postgresql://wallet@127.0.0.1:1/wallet")
        async with opened(
            database_url, {"WALLET_DATA": str(tmp_path), "WALLET_MASTER_KEY": "11" * 32}
        ) as payouts:
            reporter = WorkerReporter(away, payouts, None, {})
            with capture_logs() as lines, pytest.raises(psycopg.OperationalError):
                await reporter.report()
        assert [line for line in lines if "topic" in line] == []

    asyncio.run(scenario())
