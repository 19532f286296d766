"""What `serve` and `work` wait for before they begin: a reachable database with the right schema."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.conftest import SharedPostgres
from tests.crash.shop import MASTER_KEY, run
from tests.roles import as_web
from tests.waits import eventually

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.nonce_partitions import list_nonce_days
from merchant_wallet.postgres import WEB_ROLE
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.migration_files import MigrationError, read_migrations
from merchant_wallet.processes import start_checks
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.start_checks import name_service_links, prepare

TODAY = 20_500
NOW_MS = TODAY * 86_400_000


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_checks, "RETRY_S", 0.05)


def _settings(folder: Path, url: str) -> Settings:
    return Settings(data=folder, database_url=url, master_key=MASTER_KEY, sandbox=True)


async def _prepare(folder: Path, url: str, stop: asyncio.Event | None = None) -> Base | None:
    return await prepare(_settings(folder, url), url, stop or asyncio.Event(), lambda: NOW_MS)


def _begin_while(
    folder: Path, url: str, then: Callable[[asyncio.Event], None]
) -> tuple[Base | None, list[Any]]:
    """Begin, and call `then` once it has logged that it waits. Returns what it began with, and the log."""

    async def scenario() -> tuple[Base | None, list[Any]]:
        stop = asyncio.Event()
        with capture_logs() as log:
            beginning = asyncio.create_task(_prepare(folder, url, stop))
            await eventually(lambda: _said(log))
            await asyncio.to_thread(then, stop)
            async with asyncio.timeout(30):
                return await beginning, list(log)

    return run(scenario())


async def _said(log: list[Any]) -> bool:
    return bool(log)


@pytest.mark.new_database
@pytest.mark.new_sessions
def test_a_database_that_is_not_there_yet_is_waited_for(
    postgres: SharedPostgres, database_url: str, tmp_path: Path
) -> None:
    name = database_url.partition("?")[0].rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} RENAME TO {name}_later")
    base, log = _begin_while(
        tmp_path, database_url, lambda _: postgres.execute(f"ALTER DATABASE {name}_later RENAME TO {name}")
    )
    assert base is not None
    # A server refused the connection: that is logged as an error, and tried again.
    assert [line["log_level"] for line in log] == ["error"]
    assert "refuses this service" in log[0]["event"]
    assert "does not exist" in log[0]["reason"]


def test_a_server_that_is_not_there_yet_is_waited_for_until_told_to_stop(tmp_path: Path) -> None:
    url = f"postgresql://wallet@/wallet?host={tmp_path}"
    base, log = _begin_while(tmp_path, url, _stop)
    assert base is None
    assert {line["log_level"] for line in log} == {"warning"}
    assert "not there yet" in log[0]["event"]


def _stop(stop: asyncio.Event) -> None:
    stop._loop.call_soon_threadsafe(stop.set)  # type: ignore[attr-defined]


def test_while_it_waits_the_log_has_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    stop = asyncio.Event()

    async def count(_: asyncio.Event) -> None:
        nonlocal tries
        tries += 1
        if tries == 3 * start_checks.LOG_EVERY:
            stop.set()

    monkeypatch.setattr(start_checks, "_wait", count)
    with capture_logs() as log:
        assert run(_prepare(tmp_path, f"postgresql://wallet@/wallet?host={tmp_path}", stop)) is None
    assert len(log) == 3


def test_a_wrong_password_is_said_and_tried_again(database_url: str, tmp_path: Path) -> None:
    wrong = database_url.replace("wallet:", "wallet:x", 1)
    base, log = _begin_while(tmp_path, wrong, _stop)
    assert base is None
    assert "refuses this service" in log[0]["event"]
    assert "password authentication failed" in log[0]["reason"]


def test_a_database_without_tables_is_refused(empty_database_url: str, tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match="no tables yet: run `merchant-wallet migrate`"):
        run(_prepare(tmp_path, empty_database_url))


def test_a_role_that_was_never_named_is_not_told_to_migrate_again(database_url: str, tmp_path: Path) -> None:
    with connect_sync(database_url) as owner:
        owner.execute(f"revoke usage on schema public from public, {WEB_ROLE}".encode())
        with pytest.raises(MigrationError, match=f"role {WEB_ROLE} may not use the schema public"):
            run(_prepare(tmp_path, as_web(database_url)))
        owner.execute(f"grant usage on schema public to public, {WEB_ROLE}".encode())


def test_an_older_schema_is_refused_and_migrate_mends_it(database_url: str, tmp_path: Path) -> None:
    last = read_migrations()[-1].version
    with connect_sync(database_url) as connection:
        connection.execute("delete from schema_migration where version = %s", (last,))
    with pytest.raises(MigrationError, match=f"older than this program, {last - 1} of {last}: run"):
        run(_prepare(tmp_path, database_url))


def test_tables_made_by_migrate_are_taken(empty_database_url: str, tmp_path: Path) -> None:
    migrate(empty_database_url, lambda _: None)
    assert run(_prepare(tmp_path, empty_database_url)) is not None


def test_a_newer_schema_is_refused(database_url: str, tmp_path: Path) -> None:
    newer = read_migrations()[-1].version + 1
    with connect_sync(database_url) as connection:
        connection.execute(
            "insert into schema_migration values (%s, 'n', 'c', 1, 'contract')",
            (newer,),
        )
    with pytest.raises(MigrationError, match=f"newer than this program, {newer} against .*: upgrade the"):
        run(_prepare(tmp_path, database_url))


def test_a_master_key_that_does_not_fit_ends_the_start(database_url: str, tmp_path: Path) -> None:
    from tests.crash.shop import open_merchant

    async def scenario() -> None:
        await open_merchant(database_url)
        other = Settings(data=tmp_path, database_url=database_url, master_key=bytes(32), sandbox=True)
        with pytest.raises(ConfigError, match="WALLET_MASTER_KEY"):
            await prepare(other, database_url, asyncio.Event())

    run(scenario())


def test_today_has_a_nonce_partition_before_anything_is_served(database_url: str, tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        await _prepare(tmp_path, database_url)
        async with await connect(database_url) as connection:
            return await list_nonce_days(connection)

    assert set(run(scenario())) >= {TODAY - 1, TODAY, TODAY + 1}


def test_links_of_kubernetes_are_named_in_one_line_and_nothing_is_said_without_them() -> None:
    with capture_logs() as log:
        name_service_links({"WALLET_PORT": "8080"})
        assert log == []
        name_service_links({"WALLET_PORT": "tcp://10.0.0.1:8080", "WALLET_SERVICE_HOST": "10.0.0.1"})
    [line] = log
    assert line["variables"] == ["WALLET_PORT", "WALLET_SERVICE_HOST"]
    assert "enableServiceLinks: false" in line["advice"]
