"""The /metrics page of a real database, and who may read it."""

import asyncio
import platform
import re
import time
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from ipaddress import ip_network
from pathlib import Path

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from tests.prometheus import run_promtool
from tests.roles import as_web

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.settings import Settings, make_settings
from merchant_wallet.base.source_addresses import Network
from merchant_wallet.chains.node_access import NodeFigures
from merchant_wallet.observability import metrics as metrics_module
from merchant_wallet.observability.counters import RequestCounters
from merchant_wallet.observability.metric_table import (
    COUNTERS,
    GAUGES,
    HISTOGRAM,
    METRICS,
    PROCESS,
    SHOWN_ONCE,
    list_samples,
)
from merchant_wallet.observability.metrics import CACHE_S, Metrics
from merchant_wallet.observability.metrics_page import PageServer, make_route
from merchant_wallet.observability.server_metrics import SERVER

NOW_MS = 1_763_712_000_000
BOOK = (
    Path(__file__)
    .parents[1]
    .joinpath("large_book.sql")
    .read_text()
    # So many orders, deposits and callbacks have every status.
    .replace("generate_series(1, 8000)", "generate_series(1, 400)")
)
ADVISORY_LOCKS = (
    "from pg_locks join pg_database on oid = database"
    " where locktype = 'advisory' and datname = current_database()"
)
LOOPBACK = (ip_network("127.0.0.0/8"),)

LABELS = {line.name: line.labels for line in METRICS}
TEXTS = {line.name: line.text for line in METRICS}
TYPES = dict.fromkeys(LABELS, "gauge") | dict.fromkeys((line.name for line in COUNTERS), "counter")
TYPES |= {HISTOGRAM.name: "histogram", "process_cpu_seconds": "counter"}
Shown = dict[tuple[str, tuple[str, ...]], float]
"""Values by a sample's name and its labels' values."""


class Queue:
    """A writer's counters."""

    group_count = 1
    batch_count = 3
    command_count = 40
    optimistic_count = 2
    waiting_count = 7


def read_page(page: bytes) -> Shown:
    """The page as a scraper reads it."""
    shown = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            # The parser sorts labels. The table's order reads better.
            names = [*LABELS[family.name], *(["le"] if sample.name.endswith("_bucket") else [])]
            assert (family.documentation, family.type) == (TEXTS[family.name], TYPES[family.name])
            assert sorted(names) == sorted(sample.labels)
            shown[sample.name, tuple(sample.labels[name] for name in names)] = sample.value
    return shown


def make_metrics(
    url: str, *, sandbox: bool = False, request_counters: RequestCounters | None = None, process: str = "web"
) -> Metrics:
    chains = make_settings({"erc20_rpc": ("http://node.invalid",)}).chains
    return Metrics(
        partial(connect, as_web(url)),
        process=process,
        clock=lambda: NOW_MS,
        settings=Settings(sandbox=sandbox, chains=chains, data=Path("/"), checkpoint_dir=Path("/")),
        writer=Queue(),
        request_counters=request_counters,
        under_way=lambda: 2,
        clock_ahead_ms=lambda: -1500,
        signer_refusals=lambda: 1,
        forwarded=lambda: 30,
        rollback_evidence=lambda: 0,
        list_nodes=lambda: {"n.example": NodeFigures({"payouts": 5}, 2.5, 1)},
    )


def show(url: str, *, sandbox: bool = False, request_counters: RequestCounters | None = None) -> Shown:
    async def run() -> bytes:
        metrics = make_metrics(url, sandbox=sandbox, request_counters=request_counters)
        try:
            return await metrics.render()
        finally:
            await metrics.close()

    return read_page(asyncio.run(run()))


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with connect_sync(database_url) as opened:
        yield opened


@pytest.mark.new_database
def test_an_empty_database_shows_what_there_is_of_it(database_url: str) -> None:
    shown = show(database_url)
    assert shown["wallet_database_up", ("web",)] == 1
    assert shown["wallet_orders", ("queued",)] == 0
    assert shown["wallet_callbacks", ("due",)] == 0
    assert shown["wallet_nonce_days_ahead", ()] == -1
    assert shown["wallet_id_ranges_left", ()] == 2**20 - 1
    assert shown["wallet_accounts_left", ()] == 0
    assert shown["wallet_sandbox", ("web",)] == 0
    assert show(database_url, sandbox=True)["wallet_sandbox", ("web",)] == 1


@pytest.mark.new_database
def test_every_metric_of_the_table_can_be_seen_and_no_other(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(BOOK.encode())
    connection.execute(b"set application_name = 'wallet-backup stored 1000 900 0'")
    connection.execute(
        b"""
        update payout set frozen_cause = 'c', frozen_ms = 1 where merchant_id = 1 and order_id = 111;
        update payout set obstacle_kind = 'fuel', obstacle_cause = 'c', obstacle_ms = 1 where order_id = 112;
        insert into hot_wallet
            (chain, address, funds, funds_ended_payouts, checked_ms, frozen_cause, frozen_ms)
        values ('TRC20', repeat('h', 20)::bytea, 5000000, 0, 1, 'c', 1);
        insert into payout_stop values ('ERC20', 'reconciliation', 'c', 1);
        insert into chain_cursor values ('ERC20', 90, 'f', 95, 'h', 'a', 1);
        insert into reconciliation
        (chain, at_ms, block_number, books_units, chain_units, unexplained_units, is_sound, explanation)
        values ('ERC20', 1, 100, 5, 7000000, -2000000, false,
                '{"coin": [{"address": "a", "held": "1500000000000000000"}]}');
        insert into cold_limit values ('TRC20', 1000000, 2000000, 3000000, 1, 1763711940000);
        insert into screening (merchant_id, order_id, chain, address, amount, facts, begun_ms, changed_ms)
        values (1, 112, 'ERC20', repeat('a', 20)::bytea, 5, '{}', 1, 1);
        create table nonce_20000 partition of nonce for values in (20000)
        """
    )
    request_counters = RequestCounters()
    request_counters.count("/merchant/exchange", 200, 0.003)
    shown = show(database_url, request_counters=request_counters)
    # Those of apart cells, and of a server with archiving and standbys, have tests of their own.
    elsewhere = ("wallet_cell_", *(line.name for line in SERVER))
    assert {name for name, _ in shown} == {
        sample for line in METRICS if not line.name.startswith(elsewhere) for sample in list_samples(line)
    }
    assert (
        0
        < shown["wallet_disk_free_bytes", ("web", "data")]
        < shown["wallet_disk_size_bytes", ("web", "data")]
    )
    assert shown["wallet_frozen_orders", ()] == 1
    assert shown["wallet_obstacles", ("ERC20", "fuel")] == 1
    assert shown["wallet_hot_wallet_funds_coins", ("TRC20",)] == 5
    assert shown["wallet_hot_wallet_frozen", ("TRC20",)] == 1
    assert shown["wallet_payout_stops", ("ERC20", "reconciliation")] == 1
    assert shown["wallet_watcher_lag_blocks", ("ERC20",)] == 10
    assert shown["wallet_watcher_stopped", ("ERC20",)] == 1
    assert shown["wallet_reconciliation_unexplained_coins", ("ERC20",)] == -2
    assert shown["wallet_reconciliation_sound", ("ERC20",)] == 0
    assert shown["wallet_hot_wallet_gas_coins", ("ERC20",)] == 1.5
    assert shown["wallet_nonce_days_ahead", ()] == 20000 - NOW_MS // 86_400_000
    # 200 merchants have one range each. The large book has orders, deposits and callbacks.
    assert shown["wallet_id_ranges_left", ()] == 2**20 - 1 - 200
    assert shown["wallet_orders", ("approval",)] > 0
    assert shown["wallet_backup_behind_seconds", ()] == (NOW_MS - 900) / 1000
    # There is no base back-up, and no restore was ever rehearsed.
    assert shown["wallet_backup_base_age_seconds", ()] == float("inf")
    assert shown["wallet_backup_verify_age_seconds", ()] == float("inf")
    assert shown["wallet_order_oldest_seconds", ("approval",)] > 10**9
    assert shown["wallet_deposits", ("ERC20", "dust")] == 10
    assert shown["wallet_callbacks", ("parked",)] == 50


def test_money_is_what_the_accounts_hold(database_url: str, connection: psycopg.Connection) -> None:
    connection.execute(
        b"""
        insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)
        values (1, 'm', 'mk', 'KFB', 0);
        insert into id_range values (1, 1);
        insert into book (merchant_id, id_range, head_hash, last_ms)
        values (1, 1, decode(repeat('00', 32), 'hex'), 0);
        insert into account (merchant_id, account_id, kind, currency, balance)
        values (1, 8, 'chain:ERC20', 'USDT', -9000000), (1, 1, 'merchant', 'USDT', 4000000),
               (1, 101, 'subuser', 'USDT', 2500000), (1, 102, 'subuser', 'USDT', 2500000)
        """
    )
    shown = show(database_url)
    assert shown["wallet_money_coins", ("chain:ERC20", "USDT")] == -9
    assert shown["wallet_money_coins", ("merchant", "USDT")] == 4
    # Sub-users' accounts are too many to read: their sum is what the other balances lack to zero.
    assert shown["wallet_money_coins", ("subuser", "USDT")] == 5


def test_signs_of_a_rollback_are_counted_with_their_age(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(
        "insert into rollback_evidence values (1001, 'book', 'behind', 'why', %(a)s), "
        "(1002, 'book', 'diverged', 'why', %(b)s), (0, 'signer', 'behind', 'why', %(b)s)",
        {"a": NOW_MS - 60_000, "b": NOW_MS - 5_000},
    )
    shown = show(database_url)
    counts = {names[0]: value for (name, names), value in shown.items() if name == "wallet_rollback_evidence"}
    assert counts == {"book": 2, "audit": 0, "signer": 1, "key": 0, "home": 0}
    assert shown["wallet_rollback_evidence_oldest_seconds", ("book",)] == 60


def test_the_process_shows_what_it_counts(database_url: str) -> None:
    request_counters = RequestCounters()
    for code, took_s in ((200, 0.003), (200, 0.0001), (42200, 0.003)):
        request_counters.count("/merchant/exchange", code, took_s)
    shown = show(database_url, request_counters=request_counters)
    assert shown["wallet_requests_total", ("exchange", "200")] == 2
    assert shown["wallet_requests_total", ("exchange", "42200")] == 1
    assert shown["wallet_request_seconds_bucket", ("exchange", "0.001")] == 1
    assert shown["wallet_request_seconds_bucket", ("exchange", "0.004")] == 3
    assert shown["wallet_request_seconds_bucket", ("exchange", "+Inf")] == 3
    assert shown["wallet_commands_waiting", ("web",)] == 7
    assert (shown["wallet_batches_total", ()], shown["wallet_batch_commands_total", ()]) == (3, 40)
    assert shown["wallet_optimistic_batches_total", ()] == 2
    assert shown["wallet_groups_total", ()] == 1
    assert shown["wallet_signer_refusals_total", ()] == 1
    assert shown["wallet_forwarded_commands_total", ()] == 30
    assert shown["wallet_node_calls_total", ("n.example", "payouts")] == 5
    assert shown["wallet_node_wait_seconds_total", ("n.example",)] == 2.5
    assert shown["wallet_node_rests_total", ("n.example",)] == 1
    assert shown["wallet_requests_under_way", ("web",)] == 2
    assert shown["wallet_clock_ahead_seconds", ("web",)] == -1.5


def test_the_sandboxs_blocks_say_nothing_about_a_lag(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute("insert into chain_cursor values ('ERC20', 90, 'f', 95, 'h', null, 1)")
    connection.execute(
        "insert into reconciliation"
        " (chain, at_ms, block_number, books_units, chain_units, unexplained_units, is_sound, explanation)"
        " values ('ERC20', 1, 1763712000000, 0, 0, 0, true, '{\"coin\": []}')"
    )
    shown = show(database_url, sandbox=True)
    assert ("wallet_watcher_lag_blocks", ("ERC20",)) not in shown
    assert ("wallet_accounts_left", ()) not in shown
    assert shown["wallet_reconciliation_sound", ("ERC20",)] == 1


def test_a_chain_that_is_taken_out_of_the_settings_has_no_age(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute("insert into chain_cursor values ('BEP20', 90, 'f', 95, 'h', null, 1)")
    connection.execute(
        "insert into reconciliation"
        " (chain, at_ms, block_number, books_units, chain_units, unexplained_units, is_sound, explanation)"
        " values ('BEP20', 1, 100, 0, 3000000, 0, true, '{\"coin\": []}')"
    )
    shown = {name for name, labels in show(database_url) if labels[:1] == ("BEP20",)}
    assert shown >= {"wallet_watcher_block", "wallet_custody_coins"}
    ages = {"wallet_watcher_stopped", "wallet_watcher_idle_seconds", "wallet_watcher_lag_blocks"}
    assert not shown & {*ages, "wallet_reconciliation_age_seconds", "wallet_reconciliation_sound"}


def test_a_comparison_that_failed_keeps_the_numbers_of_the_one_before(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(
        "insert into reconciliation"
        " (chain, at_ms, block_number, books_units, chain_units, unexplained_units, is_sound, explanation)"
        " values ('ERC20', 1, 5, 0, 3000000, 0, true, '{\"coin\": []}')"
    )
    connection.execute(
        "insert into reconciliation (chain, at_ms, is_sound, explanation, cause)"
        " values ('ERC20', %s, false, '{}', 'away')",
        (NOW_MS - 4000,),
    )
    shown = show(database_url)
    assert shown["wallet_reconciliation_sound", ("ERC20",)] == 0
    assert shown["wallet_reconciliation_age_seconds", ("ERC20",)] == 4
    assert shown["wallet_custody_coins", ("ERC20",)] == 3


def test_a_database_that_is_away_leaves_what_the_process_knows(tmp_path: Path) -> None:
    request_counters = RequestCounters()
    request_counters.count("/merchant/exchange", 200, 0.003)
    shown = show(f"postgresql:///wallet?host={tmp_path}", request_counters=request_counters)
    assert shown["wallet_database_up", ("web",)] == 0
    assert shown["wallet_requests_total", ("exchange", "200")] == 1
    assert ("wallet_orders", ("queued",)) not in shown


def test_scrapes_at_once_ask_the_database_once(database_url: str) -> None:
    async def run() -> list[bytes]:
        metrics = make_metrics(database_url)
        try:
            return await asyncio.gather(*(metrics.render() for _ in range(5)))
        finally:
            await metrics.close()

    pages = asyncio.run(run())
    assert len({id(page) for page in pages}) == 1


async def _say() -> bytes:
    return b"wallet_database_up 1\n"


def fetch(
    peer: str,
    headers: dict[str, str] | None = None,
    networks: tuple[Network, ...] = LOOPBACK,
    trusted: tuple[Network, ...] = (),
) -> int:
    """The status for a scraper from this address."""

    async def run() -> int:
        application = Starlette(routes=[make_route(_say, networks, trusted)])
        transport = httpx.ASGITransport(application, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://wallet") as client:
            return (await client.get("/metrics", headers=headers)).status_code

    return asyncio.run(run())


def test_only_the_networks_of_the_setting_may_read() -> None:
    inside = (ip_network("10.0.0.0/8"),)
    assert fetch("127.0.0.1") == 200
    assert fetch("192.0.2.7") == 404
    assert fetch("10.1.2.3", networks=inside) == 200
    assert fetch("127.0.0.1", networks=inside) == 404
    assert fetch("127.0.0.1", networks=()) == 404


def test_who_comes_through_a_proxy_that_is_not_named_is_anyone() -> None:
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert fetch("127.0.0.1", {name: "127.0.0.1"}) == 404


def test_a_named_proxy_tells_who_asks() -> None:
    proxy = (ip_network("10.0.0.1/32"),)
    assert fetch("10.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, trusted=proxy) == 200
    assert fetch("10.0.0.1", {"X-Forwarded-For": "127.0.0.1, 192.0.2.7"}, trusted=proxy) == 404


def test_the_worker_sides_page_is_served_on_its_own_port() -> None:
    async def run() -> tuple[int, int, str]:
        server = PageServer(make_route(_say, LOOPBACK, ()))
        port = await server.start("127.0.0.1", 0)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            page, other = await client.get("/metrics"), await client.get("/merchant/exchange")
        await server.stop()
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection("127.0.0.1", port)
        return page.status_code, other.status_code, page.headers["content-type"]

    status, other, content_type = asyncio.run(run())
    assert (status, other) == (200, 404)
    assert content_type.startswith("text/plain; version=0.0.4")


def test_a_second_worker_of_a_machine_shows_its_metrics_on_the_next_port() -> None:
    async def run() -> tuple[int, int]:
        servers = [PageServer(make_route(_say, LOOPBACK, ())) for _ in range(3)]
        try:
            first = await servers[0].start("127.0.0.1", 0)
            with pytest.raises(OSError, match="in use"):
                await servers[1].start("127.0.0.1", first)
            return first, await servers[2].start("127.0.0.1", first, 10)
        finally:
            for server in servers:
                await server.stop()

    first, second = asyncio.run(run())
    assert first < second < first + 10


def test_the_table_names_each_metric_once_and_says_what_it_is() -> None:
    assert len({line.name for line in METRICS}) == len(METRICS)
    assert len(METRICS) == len(COUNTERS) + len(GAUGES) + len(PROCESS) + 1
    for line in METRICS:
        assert re.fullmatch(r"(wallet|process)(_[a-z]+)+", line.name)
        assert line.text
        assert not line.text.endswith(".")


def test_gauges_name_their_process_unless_one_process_shows_them() -> None:
    for line in (*GAUGES, *PROCESS):
        assert ("process" in line.labels) != (line.name in SHOWN_ONCE), line.name


def test_a_histogram_has_its_sum_and_its_count(database_url: str) -> None:
    request_counters = RequestCounters()
    for took_s in (0.25, 0.5, 4.0):
        request_counters.count("/merchant/exchange", 200, took_s)
    shown = show(database_url, request_counters=request_counters)
    assert shown["wallet_request_seconds_sum", ("exchange",)] == 4.75
    assert shown["wallet_request_seconds_count", ("exchange",)] == 3
    assert shown["wallet_request_seconds_bucket", ("exchange", "0.512")] == 2


def test_the_page_says_what_runs_and_how_it_is_set(database_url: str) -> None:
    shown = show(database_url)
    build = ("web", metadata.version("merchant-wallet"), platform.python_version(), "live")
    assert shown["wallet_build_info", build] == 1
    assert shown["wallet_setting", ("web", "WALLET_QUEUE_LIMIT")] == 4096
    assert shown["wallet_fee_cap_coins", ("ERC20",)] == 0.02
    assert ("wallet_fee_cap_coins", ("TRC20",)) not in shown, "that chain is off"
    assert shown["process_resident_memory_bytes", ("web",)] > 2**20
    assert shown["process_open_fds", ("web",)] > 3
    assert shown["process_start_time_seconds", ("web",)] < time.time()
    assert shown["process_cpu_seconds_total", ("web",)] > 0


def of_platform(shown: Shown) -> set[str]:
    return {name for name, _ in shown if name in SHOWN_ONCE}


def test_of_all_processes_one_shows_the_platform_and_another_takes_over(database_url: str) -> None:
    async def run() -> list[Shown]:
        names = ("web", "web-2", "worker")
        first, second, third = (make_metrics(database_url, process=name) for name in names)
        pages = [await metrics.render() for metrics in (first, second, third)]
        await first.close()
        pages += [await metrics.render() for metrics in (third, first)]
        # A killed process loses its session, and the turn with it.
        async with await connect(database_url) as admin:
            await admin.execute(f"select pg_terminate_backend(pid, 5000) {ADVISORY_LOCKS}".encode())
        await asyncio.sleep(CACHE_S)
        pages += [await metrics.render() for metrics in (second, third)]
        for metrics in (first, second, third):
            await metrics.close()
        return [read_page(page) for page in pages]

    first, second, third, taken, again, after, last = asyncio.run(run())
    assert "wallet_orders" in of_platform(first)
    assert (first["wallet_platform_shown", ("web",)], second["wallet_platform_shown", ("web-2",)]) == (1, 0)
    assert of_platform(second) == of_platform(third) == set()
    assert second["wallet_database_up", ("web-2",)] == 1
    # The page of the third is a moment old, so it is the one of before.
    assert of_platform(taken) == set()
    assert of_platform(again) == of_platform(first)
    assert of_platform(after) == of_platform(first)
    assert of_platform(last) == set()


def test_a_process_that_is_not_scraped_any_more_leaves_the_platform_to_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "UNASKED_S", 0.01)

    async def run() -> Shown:
        first, second = make_metrics(database_url), make_metrics(database_url, process="web-2")
        await first.render()
        async with await connect(database_url) as admin:
            held: list[object] = [True]
            while held:
                await asyncio.sleep(0.02)
                cursor = await admin.execute(f"select 1 {ADVISORY_LOCKS}".encode())
                held = list(await cursor.fetchall())
        page = read_page(await second.render())
        await second.close()
        return page

    assert "wallet_orders" in of_platform(asyncio.run(run()))


NOT_A_UNIT = 'wallet_nonce_days_ahead use base unit "seconds" instead of "days"'
"""It counts partitions. Its name is in people's own rules, so it stays."""


def test_promtool_finds_nothing_to_correct_in_a_page(database_url: str) -> None:
    request_counters = RequestCounters()
    request_counters.count("/merchant/exchange", 200, 0.003)

    async def run() -> bytes:
        metrics = make_metrics(database_url, request_counters=request_counters)
        try:
            return await metrics.render()
        finally:
            await metrics.close()

    assert run_promtool("check", "metrics", given=asyncio.run(run()), status=3).strip() == NOT_A_UNIT
