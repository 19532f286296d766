"""A folder is restored from a copy older than its checkpoints: nothing is paid until a person accepts it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
from tests.checkpoints import write_checkpoints
from tests.crash.client import Client
from tests.crash.service import PROGRAM, Service
from tests.folders import copy_folder
from tests.forked_commands import ForkedCommand
from tests.waits import TIMEOUT_S, wait_until

from merchant_wallet.audit.checkpointing.keys import open_or_create_signer
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.settings import Settings
from merchant_wallet.processes.base import make_base

ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
LOG_TEXTS = ("evidence of a rollback", "payouts stopped: the database was rolled back, an operator must look")


def command(service: Service, *words: str) -> tuple[int, str, str]:
    """A command of an operator: its status, its output and its errors."""
    with ForkedCommand(*words, "--data", service.data, environment=service.environment()) as running:
        return running.finish()


def answer(service: Service, *words: str) -> dict[str, Any]:
    """The output of a command that must succeed."""
    status, said, errors = command(service, *words, "--json")
    assert status == 0, errors
    found: dict[str, Any] = json.loads(said)
    return found


def order(service: Service, mc_order_id: str) -> None:
    """A withdrawal of 10 USDT."""
    client = Client(service.url, service.app_key, service.secret)
    made = asyncio.run(
        client.ask_once(
            "createMerchantWithdrawOrder",
            mcOrderId=mc_order_id,
            currency="USDT",
            amount="10",
            chainType="ERC20",
            address=ADDRESS,
            notifyUrl="http://127.0.0.1:1/told",
        )
    )
    assert made["code"] == 200, made


def statuses(service: Service) -> dict[str, int]:
    """The status of each order in the database."""
    with connect_sync(service.database_url()) as connection:
        rows = connection.execute("select mc_order_id, status from withdrawal").fetchall()
    return dict(rows)


def checkpoint(service: Service) -> None:
    """What the worker does within a minute."""
    settings = Settings(data=service.data)

    async def write() -> int:
        base = make_base(settings, service.database_url())
        signer = open_or_create_signer(settings)
        async with await connect(base.url) as conn:
            return await write_checkpoints(conn, signer, base.checkpoint_dir, now_ms(), interval_ms=0)

    assert asyncio.run(write()) == 1


def count_evidence(service: Service) -> float:
    """The metric of books behind their checkpoints."""
    page = httpx.get(f"{service.url}/metrics", timeout=TIMEOUT_S).text
    [line] = [one for one in page.splitlines() if one.startswith('wallet_rollback_evidence{subject="book"}')]
    return float(line.rsplit(" ", 1)[1])


def restore(service: Service, copy: Path) -> None:
    """Restore the database of a copy. Checkpoints and keys stay, as the manual says."""
    shutil.rmtree(service.data / "postgres")
    copy_folder(copy / "postgres", service.data / "postgres")


def test_a_restored_database_pays_nothing_until_a_person_has_accepted_it(service: Service) -> None:
    service.start()
    answer(service, "book", "credit", "Shop", "USDT", "1000", "--reason", "opening")
    order(service, "before")
    wait_until(lambda: statuses(service) == {"before": 2}, "the first order is paid")
    service.stop()
    copy = service.data.parent / "copy"
    copy_folder(service.data, copy)

    service.start()
    order(service, "lost")
    wait_until(lambda: statuses(service) == {"before": 2, "lost": 2}, "the order that will be lost is paid")
    checkpoint(service)
    service.stop()
    restore(service, copy)

    # The restored database can be inspected before anybody may call or pay.
    look_at_the_database_alone(service)

    service.start()
    order(service, "after")
    wait_until(lambda: count_evidence(service) == 1, "the metric tells")
    wait_until(lambda: all(text in service.errors() for text in LOG_TEXTS), "the log tells")
    status, said, _ = command(service, "doctor", "--json")
    [check] = [one for one in json.loads(said)["checks"] if one["name"] == "checkpoints"]
    assert (status, check["ok"]) == (1, False)
    assert "accept-rollback" in check["advice"]
    assert command(service, "book", "verify")[0] == 1
    # The payout was due all this time, and the worker looks ten times a second.
    assert statuses(service) == {"before": 2, "after": 0}
    with connect_sync(service.database_url()) as connection:
        assert connection.execute("select count(*) from payout_signed").fetchall() == [(1,)]

    status, _, _ = command(service, "book", "accept-rollback", "--reason", " ")
    assert (status, statuses(service)["after"]) == (1, 0)
    accepted = answer(service, "book", "accept-rollback", "--reason", "restored a copy, nothing was entered")
    assert [item["kind"] for item in accepted["signs"]] == ["behind"]
    assert Path(accepted["evidence"], accepted["files"][0]["name"]).exists()
    wait_until(lambda: statuses(service) == {"before": 2, "after": 2}, "payouts go on")
    assert count_evidence(service) == 0
    [entry] = answer(service, "audit", "list", "--action", "rollback.accept")["entries"]
    assert entry["after"]["reason"] == "restored a copy, nothing was entered"
    assert answer(service, "book", "verify")["ok"]
    assert answer(service, "doctor")["ok"]


def look_at_the_database_alone(service: Service) -> None:
    """`up --database-only`: commands work, requests are not answered, no worker runs."""
    process = subprocess.Popen(
        [str(PROGRAM), "up", "--data", str(service.data), "--database-only"],
        env=service.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("ready: "):
                break
        assert [line.split(":")[0] for line in said] == ["doctor", "verify", "psql", "ready"]
        status, verified, _ = command(service, "book", "verify", "--json")
        assert status == 1
        [book] = json.loads(verified)["books"]
        assert book["fault"]["rule"] == "checkpoint"
        with connect_sync(service.database_url()) as connection:
            # This order and no other.
            count = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
            assert connection.execute(count).fetchall() == [(1,)]
    finally:
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout is not None
        process.stdout.close()
