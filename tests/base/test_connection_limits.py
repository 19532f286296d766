"""A `work` process opens the number of connections that `work --help` promises."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.crash.shop import MASTER_KEY, open_merchant, run
from typer.testing import CliRunner

from merchant_wallet.base.connection_limits import (
    HOST_WATCH,
    MAX_WORKERS,
    OWN_CONNECTIONS,
    SERVE_CONNECTIONS,
    WORK_CONNECTIONS,
    WRITER_EXTRA,
)
from merchant_wallet.base.pool import Pool
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.committer import MAX_GROUPS
from merchant_wallet.cli.program import app
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.worker import WRITER_CONNECTIONS, work


def test_a_work_has_no_more_connections_than_it_says(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    begin_one, begin_pool = WorkerConnection.__init__, Pool.__init__

    def count_one(one: WorkerConnection, *arguments: Any) -> None:
        opened.append(1)
        begin_one(one, *arguments)

    def count_pool(pool: Pool[Any], open_connection: Any, limit: int, **options: Any) -> None:
        opened.append(limit)
        begin_pool(pool, open_connection, limit, **options)

    monkeypatch.setattr(WorkerConnection, "__init__", count_one)
    monkeypatch.setattr(Pool, "__init__", count_pool)

    async def scenario() -> None:
        await open_merchant(database_url)
        settings = Settings(data=tmp_path, database_url=database_url, master_key=MASTER_KEY, sandbox=True)
        stop = asyncio.Event()
        await work(make_base(settings, database_url), stop.set, stop)

    run(scenario())
    # The writer's pools are among those that were counted. Its look-ups have no pool.
    assert opened.count(min(MAX_GROUPS, WRITER_CONNECTIONS)) >= 1
    # Real chains need one for the sweeps, in place of the one for the sandbox's control actions.
    # A server on this machine, as here, is not watched.
    assert WORK_CONNECTIONS - 6 <= sum(opened) + WRITER_EXTRA + HOST_WATCH <= WORK_CONNECTIONS


def test_a_serve_has_no_more_connections_than_it_says() -> None:
    writer = Settings().connections + min(MAX_GROUPS, Settings().connections) + WRITER_EXTRA
    # Merchants; wallet page, its strangers, PINs; console, its strangers, acts of safety, passwords;
    # downloads, verification; refused requests, metrics, hot wallets' addresses, comparison of checkpoints,
    # nonce partitions. The operators' page has the same table.
    others = 5 + 4 + 2 + 2 + 4 + 2 + 2 + 3 + 4 + 2 + 1 + 1 + 1 + 1 + 1
    assert SERVE_CONNECTIONS - 5 <= writer + others + HOST_WATCH <= SERVE_CONNECTIONS


def test_the_help_says_how_many_may_run() -> None:
    said = " ".join(CliRunner().invoke(app, ["work", "--help"]).stdout.split())
    assert MAX_WORKERS >= 5
    assert f"enough for {MAX_WORKERS}" in said
    assert str(OWN_CONNECTIONS) in said
