"""Merchants of two cells over HTTP, one of them on a server of its own, which dies and comes back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cells.layout import Layout, far_cluster
from tests.clusters import Cluster
from tests.conftest import SharedPostgres
from tests.journeys.conftest import Platform, Shop, running
from tests.journeys.every_operation import DEBIT, call_each, open_account
from tests.journeys.orders import debit
from tests.waits import wait_until

from merchant_wallet.base.cells import DEFAULT_CELL_ID


@pytest.fixture
def cells(database_url: str) -> Iterator[tuple[Layout, Cluster]]:
    with far_cluster(database_url) as found:
        yield found


def open_shop(platform: Platform, layout: Layout, *, away: bool) -> Shop:
    """A merchant with 1000 KFB whose user alice has 500, in one of the cells."""
    return open_account(platform.open_merchant(cell_id=layout.far_id if away else DEFAULT_CELL_ID))


def pay(shop: Shop) -> str:
    """Debit alice with 10. Returns what the merchant has then."""
    shop.client.do(DEBIT, **debit(shop.next_order(), "10"))
    return shop.balances()[1]


def test_every_operation_answers_the_same_in_both_cells(layout: Layout, tmp_path: Path) -> None:
    with running(layout.url, tmp_path) as platform:
        near, away = (open_shop(platform, layout, away=away) for away in (False, True))
        with layout.both() as (home, _):
            home.execute("insert into far.rate select * from rate")
        answers = call_each(near)
        assert call_each(away) == answers
        assert answers["balances"][1]["usdtBalance"] == "4"
        assert layout.list_merchants() == ([near.merchant_id], [away.merchant_id])


def test_a_cell_that_dies_is_refused_for_its_merchants_alone(
    cells: tuple[Layout, Cluster], tmp_path: Path
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        near, away = (open_shop(platform, layout, away=away) for away in (False, True))
        assert [pay(shop) for shop in (near, away)] == ["510", "510"]

        cluster.kill()
        for number in range(10):
            away.client.expect(50300, DEBIT, **debit(f"refused{number}", "10"))
            away.client.expect(50300, "getMerchantBalance")
            assert pay(near) == f"{520 + 10 * number}"
        # A user that nobody has asked for yet: the address is home's, and the book is away.
        away.client.expect(50300, "getMerchantCustomer", extUserId="bob")

        cluster.start()
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the cell is back")
        assert away.balances()[1] == "510"
        assert pay(away) == "520"
        assert away.client.do("getMerchantCustomer", extUserId="bob")["balance"] == "0"
        assert near.balances()[1] == "610"


def test_an_order_id_that_was_refused_while_the_cell_was_away_may_be_sent_again(
    cells: tuple[Layout, Cluster], tmp_path: Path
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        away = open_shop(platform, layout, away=True)
        cluster.kill()
        away.client.expect(50300, DEBIT, **debit("again", "10"))
        cluster.start()
        wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the cell is back")
        for _ in range(2):
            away.client.do(DEBIT, **debit("again", "10"))
        assert away.balances()[1] == "510"


def test_a_known_merchant_of_another_cell_needs_no_home_whatever_its_nonces_look_like(
    cells: tuple[Layout, Cluster], postgres: SharedPostgres, database_url: str, tmp_path: Path
) -> None:
    """These bytes may be a test value of the sandbox. Nonces and signatures have them by chance."""
    layout, _ = cells
    with running(layout.url, tmp_path) as platform:
        away = open_shop(platform, layout, away=True)
        with postgres.closing(database_url):
            for number, nonce in enumerate(("plain", "9004", "9005", "sbx", "57a7")):
                away.client.do(DEBIT, **debit(f"{number}", "10"), nonceStr=nonce)
        assert away.balances()[1] == "550"
