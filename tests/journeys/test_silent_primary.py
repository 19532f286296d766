"""A primary that answers nothing, and one that goes on beside its successor: callers get 50300, then 200."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.clusters import Cluster, primary_and_standby, until_replayed
from tests.journeys.conftest import Platform, Shop, running
from tests.journeys.orders import withdrawal
from tests.journeys.paid_orders import CREATE, create_order, until_paid
from tests.waits import wait_until

from merchant_wallet.base.db import connect
from merchant_wallet.base.hosts import Hosts
from merchant_wallet.book.checkpoint_keys import load_keys
from merchant_wallet.book.verification.verify import BookReport, verify_book


@pytest.fixture(params=["primary first", "standby first"])
def clusters(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Cluster, str]]:
    """A primary, its standby, and the URL of both, in either order."""
    with primary_and_standby("wallet") as (primary, standby, url):
        primary.make_sides("wallet")
        start, _, hosts = url.rpartition("=")
        if request.param == "standby first":
            hosts = ",".join(reversed(hosts.split(",")))
        yield primary, standby, f"{start}={hosts}&target_session_attrs=read-write"


@contextmanager
def trading(clusters: tuple[Cluster, Cluster, str], folder: Path) -> Iterator[tuple[Platform, Shop]]:
    """A shop on both hosts, whose first order is paid and at the standby."""
    primary, standby, url = clusters
    with running(url, folder, working=True) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        until_paid(shop, shop.client.do(CREATE, **withdrawal("before")))
        until_replayed(primary, standby)
        yield platform, shop


def test_callers_of_a_frozen_primary_are_answered_and_every_process_follows_the_new_one(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, standby, _ = clusters
    with trading(clusters, tmp_path) as (_, shop), primary.silent():
        # Requests of one merchant wait for each other, and those that come later are refused at once.
        with ThreadPoolExecutor(8) as crowd:
            codes = set(crowd.map(lambda n: create_order(shop, f"meanwhile {n}"), range(24)))
        assert codes == {50300}
        standby.promote()
        wait_until(lambda: create_order(shop, "after") == 200, "an order is taken by the new primary")
        # The workers' sessions led to the frozen one as well.
        until_paid(shop, shop.client.do(CREATE, **withdrawal("after")))
    assert standby.execute("select count(*) from withdrawal", "wallet") == 2


def test_a_primary_that_goes_on_beside_its_successor_is_left(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, standby, url = clusters
    with trading(clusters, tmp_path) as (_, shop):
        standby.promote()
        # What the old one took until then would be lost, and rightly stop payouts: the last test.
        wait_until(lambda: bool(Hosts.of(url).left), "the old primary is left")
        before = primary.execute("select count(*) from withdrawal", "wallet")
        for number in range(5):
            order = shop.client.do(CREATE, **withdrawal(f"after {number}"))
        until_paid(shop, order)
        assert primary.execute("select count(*) from withdrawal", "wallet") == before


def test_what_an_asynchronous_primary_alone_has_answered_is_found_after_it_was_left(
    clusters: tuple[Cluster, Cluster, str], tmp_path: Path
) -> None:
    primary, standby, url = clusters
    with trading(clusters, tmp_path) as (platform, shop):
        standby.execute("alter system set primary_conninfo = ''")
        standby.execute("select pg_reload_conf()")
        wait_until(lambda: primary.execute("select count(*) from pg_stat_replication") == 0, "it is cut off")
        shop.client.do(CREATE, **withdrawal("lost"))
        standby.promote()
        question = "select count(*) from rollback_evidence where subject = 'book'"
        wait_until(lambda: standby.execute(question, "wallet") == 1, "the loss is found")
        report = asyncio.run(_verify(platform, shop, url))
        assert report.violation is not None
        assert report.violation.rule == "checkpoint"


async def _verify(platform: Platform, shop: Shop, url: str) -> BookReport:
    folder = platform.base.checkpoint_dir
    async with await connect(url) as conn:
        keys = await load_keys(conn, folder)
        return await verify_book(conn, conn, shop.merchant_id, checkpoint_dir=folder, checkpoint_keys=keys)
