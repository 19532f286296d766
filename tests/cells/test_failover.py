"""An apart cell on a primary with a standby: its merchants go on at the standby that was promoted."""

from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from tests.cells.layout import open_layout
from tests.cells.test_http import open_shop, pay
from tests.clusters import primary_and_standby, until_replayed
from tests.conftest import FAR
from tests.journeys.conftest import running
from tests.journeys.orders import debit
from tests.waits import wait_until

from merchant_wallet.base.db import for_writing, place
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE


def test_a_cells_merchants_go_on_at_its_promoted_standby(database_url: str, tmp_path: Path) -> None:
    owner = conninfo_to_dict(database_url)["user"]
    with primary_and_standby("books") as (primary, standby, hosts):
        for role, rights in ((owner, "superuser login"), (WEB_ROLE, "login"), (WORKER_ROLE, "login")):
            primary.execute(f"create role {role} {rights}")
        url = for_writing(hosts)
        layout = open_layout(database_url, place(url, None, FAR), url)
        with running(layout.url, tmp_path) as platform:
            near, away = (open_shop(platform, layout, away=apart) for apart in (False, True))
            assert [pay(shop) for shop in (near, away)] == ["510", "510"]
            until_replayed(primary, standby)

            primary.kill()
            away.client.expect(50300, "transferFromUserToMerchant", **debit("refused", "10"))
            assert pay(near) == "520"

            standby.promote()
            wait_until(lambda: away.client.call("getMerchantBalance").code == 200, "the standby serves")
            assert away.balances()[1] == "510"
            # The request that was refused is sent again.
            away.client.do("transferFromUserToMerchant", **debit("refused", "10"))
            assert pay(away) == "530"
