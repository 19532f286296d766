"""The service behind PgBouncer: session mode works, the other modes are refused before anything is set."""

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from tests.clusters import Cluster, lone_cluster
from tests.folders import make_folder
from tests.forked_commands import ForkedCommand
from tests.journeys.conftest import running
from tests.journeys.every_operation import call_each, open_account
from tests.ports import find_port
from tests.tools import require_tool
from tests.waits import wait_until

from merchant_wallet.base import poolers
from merchant_wallet.base.db import connect, connect_sync, explain_error, place
from merchant_wallet.base.poolers import PoolerRefused
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection
from merchant_wallet.cli.failures import CANNOT_RUN
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE

USERS = ("postgres", WEB_ROLE, WORKER_ROLE)
COMMANDS = (
    ("serve",),
    ("work",),
    ("migrate",),
    ("rates", "set", "USDT:KFB", "7.10"),
    ("merchant", "list", "--json"),
    ("book", "verify"),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with lone_cluster() as made:
        made.execute("create database wallet encoding 'UTF8' template template0")
        made.make_sides("wallet")
        yield made


@contextmanager
def pooling(cluster: Cluster, mode: str, *, size: int = 40, further: str = "") -> Iterator[str]:
    """PgBouncer in front of the cluster, with `further` settings. Yields the URL through it."""
    program = require_tool("pgbouncer")
    # It refuses to run as root. The server's user is good enough.
    account = cluster.programs.account
    folder, port = make_folder("wallet-pooler-"), find_port()
    (folder / "users").write_text("".join(f'"{user}" ""\n' for user in USERS))
    (folder / "pgbouncer.ini").write_text(
        f"""[databases]
wallet = host={cluster.sockets}
[pgbouncer]
pool_mode = {mode}
auth_type = trust
auth_file = {folder}/users
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
default_pool_size = {size}
ignore_startup_parameters = options
{further}
"""
    )
    for path in (folder, *folder.iterdir()):
        if account:
            os.chown(path, account.uid, account.gid)
    user = [f"--user={pwd.getpwuid(account.uid).pw_name}"] if account else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *user, folder / "pgbouncer.ini"], stdout=log, stderr=log)
        try:
            wait_until(lambda: (folder / f".s.PGSQL.{port}").exists(), (folder / "log").read_text)
            yield f"postgresql://postgres@/wallet?host={quote(str(folder), safe='')}&port={port}"
        finally:
            process.terminate()
            process.wait()
    shutil.rmtree(folder)


def test_session_mode_is_as_good_as_the_server_itself(cluster: Cluster, tmp_path: Path) -> None:
    with pooling(cluster, "session") as url, running(url, tmp_path, working=True) as platform:
        shop = open_account(platform.open_merchant())
        answers = call_each(shop)
        assert answers["balances"][1]["usdtBalance"] == "4"
        wait_until(lambda: platform.rows("select status from withdrawal") == [(2,)], "the order is paid")


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_other_modes_are_refused_and_nothing_reaches_other_programs(
    cluster: Cluster, mode: str, tmp_path: Path
) -> None:
    def show_settings(url: str) -> list[tuple[str, str]]:
        """What is set in a session that another program is given. The pooler itself sets the name."""
        with psycopg.connect(url, autocommit=True) as other:
            cursor = other.execute(
                "select name, setting from pg_settings"
                " where source = 'session' and name <> 'application_name' order by name"
            )
            return cursor.fetchall()

    with pooling(cluster, mode) as url:
        before = show_settings(url)
        environment = {
            **os.environ,
            "WALLET_DATABASE_URL": url,
            "WALLET_SANDBOX": "true",
            "WALLET_MASTER_KEY": "00" * 32,
            "WALLET_PORT": str(find_port()),
            "WALLET_METRICS_PORT": str(find_port()),
            "WALLET_DATA": str(tmp_path),
        }
        for words in COMMANDS:
            with ForkedCommand(*words, environment=environment) as command:
                status, output, errors = command.finish()
            assert status == CANNOT_RUN, (words, output, errors)
            # What is before the last line is the log.
            assert "in transaction or statement mode" in errors.splitlines()[-1] + output, (words, errors)
            assert "Traceback" not in errors
        assert show_settings(url) == before


def test_a_cell_behind_such_a_pooler_is_refused_too(cluster: Cluster) -> None:
    with pooling(cluster, "transaction") as url:
        cell = place(cluster.url("wallet"), url, "far")
        with pytest.raises(PoolerRefused):
            asyncio.run(connect(cell))
        with pytest.raises(ConnectionLost, match="in transaction or statement mode"):
            asyncio.run(PipelineConnection.open(cell, {}))


def test_a_session_that_another_client_has_used_is_as_good_as_a_new_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the only one of the pooler, so nobody can look whether others are shared."""
    monkeypatch.setattr(poolers, "WAIT_S", 0.5)
    left = "select count(*) from pg_prepared_statements where name = 'claim'"
    with pooling(cluster, "session", size=1, further="server_reset_query =") as url:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("prepare claim as select 1")
            other.execute("create temporary table book (number int)")
            session = other.execute("select pg_backend_pid()").fetchone()
        with connect_sync(url) as ours:
            assert ours.execute("select pg_backend_pid()").fetchone() == session
            assert ours.execute(left.encode()).fetchone() == (0,)
            assert ours.execute("select to_regclass('pg_temp.book')").fetchone() == (None,)
            assert ours.execute("show application_name").fetchone() == ("merchant-wallet",)


def test_a_pooler_without_room_is_named_instead_of_waited_for(cluster: Cluster) -> None:
    with pooling(cluster, "session", size=1) as url:
        impatient = f"{url}&connect_timeout=2"
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("select 1")
            with pytest.raises(psycopg.errors.ConnectionTimeout) as raised:
                connect_sync(impatient)
            explained = explain_error(raised.value)
            assert explained is not None
            assert "raise its pool" in explained.advice
            with pytest.raises(psycopg.errors.ConnectionTimeout):
                asyncio.run(connect(impatient))
            with pytest.raises(ConnectionLost, match="no session was given within 1 s"):
                asyncio.run(PipelineConnection.open(url, {}, timeout_s=1))


def test_a_server_without_a_pooler_is_asked_once(cluster: Cluster) -> None:
    count = partial(cluster.execute, "select sum(sessions) from pg_stat_database where datname = 'wallet'")
    sessions = count()
    connect_sync(cluster.url("wallet")).close()
    wait_until(lambda: count() == int(str(sessions)) + 1, "one session more")
