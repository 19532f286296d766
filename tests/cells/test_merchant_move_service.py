"""Everything of a merchant goes on in its new cell, with the whole service at work."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cells.book_moved import move_to
from tests.cells.layout import Layout
from tests.journeys.client import Answer
from tests.journeys.conftest import Platform, Shop, running
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import debit, withdrawal
from tests.waits import wait_until

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.cli.deposits import SENDER
from merchant_wallet.deposits.sandbox_deposits import add_deposit
from merchant_wallet.merchants import store

CREATE = "createMerchantWithdrawOrder"
DEBIT = "transferFromUserToMerchant"
COIN = 10**6


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


@pytest.fixture
def platform(cells_of_both_kinds: Layout, tmp_path: Path) -> Iterator[Platform]:
    """The whole service over two cells. The sandbox's chains take a moment."""
    with running(cells_of_both_kinds.url, tmp_path, working=True, sandbox_confirm_ms=1500) as found:
        yield found


@pytest.fixture
def shop(platform: Platform) -> Shop:
    """A merchant with 1000 of each currency and a user, alice, with 100 KFB."""
    made = platform.open_merchant()
    made.fund("USDT", "1000")
    made.fund("KFB", "1000")
    made.user("alice", "100")
    return made


def move(shop: Shop, cell: str) -> None:
    """Move the shop's book."""
    url, merchant_id = shop.platform.url, shop.merchant_id
    shop.platform.run(lambda: move_to(url, merchant_id, cell))


def query(shop: Shop, order: Answer) -> Answer:
    return shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId=str(order["mcOrderId"]))


def is_paid(shop: Shop, order: Answer) -> bool:
    return bool(query(shop, order)["txnStatus"] == "2")


def is_told(endpoint: Endpoint, order: Answer) -> bool:
    return endpoint.statuses(order) == ["2"]


def sign(shop: Shop, operation: str, **fields: Any) -> dict[str, Any]:
    """A signed request that can be sent again and again."""
    sent = {**shop.client.common(), **fields}
    return {**sent, "sign": shop.client.sign(f"/merchant/{operation}", sent)}


def let_arrive(platform: Platform, address: str, amount_units: int) -> None:
    """A deposit on the sandbox's chain."""
    family, recipient = parse_wallet_address(address)
    at_ms = platform.clock()
    platform.operate(lambda home: add_deposit(home, family.key_name, SENDER, recipient, amount_units, at_ms))


def read_far(layout: Layout, statement: str) -> list[tuple[Any, ...]]:
    with connect_sync(layout.far_url) as far:
        return far.execute(statement.encode()).fetchall()


def verify(platform: Platform, layout: Layout, merchant_id: int) -> None:
    async def check() -> Any:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            return await verify_book(home, far, merchant_id)

    assert platform.run(check).violation is None


def test_orders_callbacks_deposits_and_settings_go_on(
    cells_of_both_kinds: Layout, platform: Platform, shop: Shop, endpoint: Endpoint
) -> None:
    layout = cells_of_both_kinds
    taken_up = shop.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
    wait_until(lambda: query(shop, taken_up)["txnStatus"] in ("1", "2"), "the payer has taken the order up")
    waiting = shop.client.do(CREATE, **withdrawal("2", notifyUrl=endpoint.url))
    used = sign(shop, DEBIT, **debit("before", "10"))
    assert shop.client.post(f"/merchant/{DEBIT}", used).code == 200
    alice = shop.client.do("getMerchantCustomer", extUserId="alice")
    let_arrive(platform, alice["address"], 5 * COIN)
    wait_until(
        lambda: platform.rows("select count(*) from deposit") == [(1,)],
        "the deposit is seen in the old cell",
    )

    move(shop, "far")
    # On a busy machine the deposit may have been credited before.
    left = platform.rows("select count(*) from deposit_credit")
    let_arrive(platform, alice["address"], 7 * COIN)
    keyring = platform.base.keyring
    platform.operate(
        lambda home: store.change_settings(home, keyring, shop.merchant_id, {"name": "Moved shop"})
    )

    # A request that was answered in the old cell is not answered again in the new one.
    assert shop.client.post(f"/merchant/{DEBIT}", used).code == 40103
    shop.client.do(DEBIT, **debit("after", "10"))
    shop.client.do(DEBIT, **debit("before", "10"))
    for order in (taken_up, waiting):
        wait_until(partial(is_paid, shop, order), "the order is paid")
        wait_until(partial(is_told, endpoint, order), "its callback came")
    new_order = shop.client.do(CREATE, **withdrawal("3", notifyUrl=endpoint.url))
    wait_until(partial(is_paid, shop, new_order), "an order of the new cell is paid")
    wait_until(
        lambda: read_far(layout, "select count(*) from deposit where status = 'credited'") == [(2,)],
        "both deposits are credited",
    )
    assert read_far(layout, "select count(*), count(distinct tx_hash) from deposit_credit") == [(2, 2)]
    # 100 KFB, less two debits, and 12 USDT at 7.1.
    assert shop.user_balance("alice") == "165.2"
    assert platform.rows("select count(*) from payout where phase <> 'closed'") == [(0,)]
    wait_until(
        lambda: read_far(layout, "select name from merchant") == [("Moved shop",)], "the settings are carried"
    )
    # Nothing was done in the old copy.
    assert platform.rows("select count(*) from deposit_credit") == left
    assert platform.rows("select is_open from book") == [(False,)]
    verify(platform, layout, shop.merchant_id)
