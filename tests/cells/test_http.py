"""Merchants of two cells over HTTP, one of them on a server of its own, which dies and comes back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cells.layout import Layout, far_cluster
from tests.clusters import Cluster
from tests.journeys.conftest import Platform, Shop, running, wait_until
from tests.journeys.orders import credit, debit

DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"


@pytest.fixture
def cells(database_url: str) -> Iterator[tuple[Layout, Cluster]]:
    with far_cluster(database_url) as found:
        yield found


def _open_shop(platform: Platform, layout: Layout, *, away: bool) -> Shop:
    """A merchant with 1000 KFB whose user alice has 500, in one of the cells."""
    shop = platform.open_merchant()
    shop.fund("KFB", "1000")
    if away:
        layout.move_book(shop.merchant_id)
    answer = shop.client.do("getMerchantCustomer", extUserId="alice")
    shop.client.do(CREDIT, **credit("opening", answer["address"], "500"))
    return shop


def _pay(shop: Shop) -> str:
    """Debit alice with 10. Returns what the merchant has then."""
    shop.client.do(DEBIT, **debit(shop.next_order(), "10"))
    return shop.balances()[1]


def test_a_cell_that_dies_is_refused_for_its_merchants_alone(
    cells: tuple[Layout, Cluster], tmp_path: Path
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        near, away = (_open_shop(platform, layout, away=away) for away in (False, True))
        assert [_pay(shop) for shop in (near, away)] == ["510", "510"]

        cluster.kill()
        for number in range(10):
            away.client.expect(50300, DEBIT, **debit(f"refused{number}", "10"))
            away.client.expect(50300, "getMerchantBalance")
            assert _pay(near) == f"{520 + 10 * number}"
        # A user that nobody has asked for yet: the address is home's, and the book is away.
        away.client.expect(50300, "getMerchantCustomer", extUserId="bob")

        cluster.start()
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the cell is back")
        assert away.balances()[1] == "510"
        assert _pay(away) == "520"
        assert away.client.do("getMerchantCustomer", extUserId="bob")["balance"] == "0"
        assert near.balances()[1] == "610"


def test_an_order_id_that_was_refused_while_the_cell_was_away_may_be_sent_again(
    cells: tuple[Layout, Cluster], tmp_path: Path
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        away = _open_shop(platform, layout, away=True)
        cluster.kill()
        away.client.expect(50300, DEBIT, **debit("again", "10"))
        cluster.start()
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the cell is back")
        for _ in range(2):
            away.client.do(DEBIT, **debit("again", "10"))
        assert away.balances()[1] == "510"
