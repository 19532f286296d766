"""A cell on a node of a real Citus that fails over: the service's worker follows the catalogue by itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.cells.citus_layout import open_citus_layout, place_at_node
from tests.cells.citus_servers import NO_PROGRAMS, PROGRAMS, citus_servers
from tests.cells.layout import Layout
from tests.cells.test_http import open_shop, pay
from tests.conftest import FAR
from tests.journeys.conftest import Shop, running
from tests.journeys.every_operation import DEBIT
from tests.journeys.orders import debit
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync

pytestmark = pytest.mark.skipif(not PROGRAMS, reason=NO_PROGRAMS)

FOLLOWED: Final = "select actor, after->>'address' from audit_entry where action = 'cell.follow'"
CAUSE: Final = "select unfollowed_cause from cell where admin_address is not null"


@contextmanager
def paying(shop: Shop) -> Iterator[list[str]]:
    """Debits alice with 1 again and again. The list has the order ids that were answered with success."""
    acknowledged: list[str] = []
    stop = threading.Event()

    def pay_on() -> None:
        while not stop.is_set():
            order = f"t{shop.next_order()}"
            if shop.client.call(DEBIT, **debit(order, "0.01")).code == 200:
                acknowledged.append(order)

    payer = threading.Thread(target=pay_on)
    payer.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        payer.join()


def read_orders(layout: Layout, url: str, merchant_id: int) -> list[str]:
    """The order ids of a book's entries, as a server of the cell has them."""
    with connect_sync(url) as cell:
        rows = cell.execute(
            f"select mc_order_id from {FAR}.entry where merchant_id = %s and mc_order_id like 't%%'".encode(),
            (merchant_id,),
        )
        return [order for (order,) in rows.fetchall()]


def test_a_nodes_failover_is_followed_and_loses_nothing(database_url: str, tmp_path: Path) -> None:
    with citus_servers() as servers:
        layout = open_citus_layout(database_url, servers.coordinator.url())
        servers.place_at_first()
        place_at_node(layout, servers.coordinator.url())
        with running(layout.url, tmp_path, working=True) as platform:
            near, away = (open_shop(platform, layout, away=apart) for apart in (False, True))
            with paying(away) as acknowledged:
                wait_until(lambda: len(acknowledged) > 20, "transfers before the failover")
                servers.first.kill()
                wait_until(lambda: away.client.call("getMerchantBalance").code == 50300, "the cell is away")
                assert pay(near) == "510"
                servers.replace_node(servers.first, servers.standby)
                # The catalogue names a server that takes no writes yet.
                cause = wait_until(lambda: platform.rows(CAUSE)[0][0], "the node is refused")
                assert f"Citus names the node {servers.standby.sockets}:5432, which is away" in cause
                count = len(acknowledged)
                servers.standby.promote()
                wait_until(lambda: len(acknowledged) > count + 20, "transfers after the failover")
                # The old server comes back, and takes writes. Nobody uses it.
                servers.first.start()
                count = len(acknowledged)
                wait_until(lambda: len(acknowledged) > count + 20, "transfers at the new server")
            orders = read_orders(layout, servers.standby.url(), away.merchant_id)
            assert set(acknowledged) <= set(orders)
            assert len(orders) == len(set(orders))
            assert platform.rows(CAUSE) == [(None,)]
            [(actor, address)] = platform.rows(FOLLOWED)
            assert actor == "worker"
            assert str(servers.standby.sockets) in address
