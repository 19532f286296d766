"""A primary that accepts no more writes, and a standby that takes over: merchants get 50300, then 200."""

import time
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.clusters import Cluster, primary_and_standby, until_replayed
from tests.journeys.conftest import Platform, Shop, running
from tests.journeys.orders import withdrawal
from tests.journeys.paid_orders import CREATE, create_order, until_paid
from tests.waits import wait_until

WATCHED_S = 3.0


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster, str]]:
    """A primary, its standby, and the URL of both. Every migration is applied and the sides' roles exist."""
    with primary_and_standby("wallet") as (primary, standby, url):
        primary.make_sides("wallet")
        yield primary, standby, url


def test_writes_that_end_are_50300_until_the_standby_takes_over_by_itself(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, standby, url = clusters
    with capture_logs() as log, running(url, tmp_path, working=True) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        until_paid(shop, shop.client.do(CREATE, **withdrawal("before")))

        # Its sessions stay open, so each has to notice. PostgreSQL tells them without waiting for them.
        primary.forbid_writes()
        wait_until(lambda: create_order(shop, "before") == 50300, "a session has noticed")
        with ThreadPoolExecutor(8) as crowd:
            codes = set(crowd.map(lambda n: create_order(shop, f"meanwhile {n}"), range(40)))
        assert codes == {50300}
        until_replayed(primary, standby)
        standby.promote()

        wait_until(lambda: create_order(shop, "after") == 200, "an order is taken by the new primary")
        until_paid(shop, shop.client.do(CREATE, **withdrawal("after")))
        assert standby.execute("select count(*) from withdrawal", "wallet") == 2
        _see_reads(platform, shop)
    assert not [
        line for line in log if "exc_info" in line or line["event"] in ("group halved", "batch halved")
    ]


def _see_reads(platform: Platform, shop: Shop) -> None:
    """Reads go on, and an unknown key is looked up in the new primary."""
    assert shop.balances()[0] != "1000"
    shop.client.expect(40100, "getMerchantBalance", appKey="mk_nobody")
    assert platform.run(platform.writer.open) is None


def test_a_primary_that_vanishes_is_followed_by_its_standby(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, standby, url = clusters
    with running(url, tmp_path) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        until_replayed(primary, standby)
        primary.kill()
        # The standby answers but accepts no writes, so it is not taken for the primary.
        assert create_order(shop, "1") == 50300
        standby.promote()
        wait_until(lambda: create_order(shop, "1") == 200, "an order is taken by the new primary")
        assert standby.execute("select pg_is_in_recovery()") is False


def test_a_read_only_database_is_not_asked_without_end(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, _, url = clusters
    # Orders that take long are checked again and again.
    with running(url, tmp_path, working=True, sandbox_confirm_ms=60_000) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        for number in range(20):
            shop.client.do(CREATE, **withdrawal(str(number)))
        with capture_logs() as log:
            primary.forbid_writes()
            wait_until(lambda: _count(log, "payer") > 0, "the payer has noticed")
            noticed = len(log)
            began = time.monotonic()
            wait_until(lambda: time.monotonic() > began + WATCHED_S, "some seconds passed")
            # About a dozen workers, each with one line in ten seconds: not a line for each order and attempt.
            assert len(log) - noticed < 60
        assert not [line for line in log if "exc_info" in line]


def _count(log: list[MutableMapping[str, Any]], worker: str) -> int:
    return sum(line.get("worker") == worker for line in log)
