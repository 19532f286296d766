"""A withdrawal's life in the sandbox, from order to end, with the workers beside the web side."""

from typing import Any

import pytest
from tests.journeys.client import Answer
from tests.journeys.conftest import Platform, RunPlatform, Shop
from tests.journeys.orders import FAILING, withdrawal
from tests.waits import wait_until

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.commands import Approve, Cancel
from merchant_wallet.book.outcomes import Withdrawal

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 200}
APPROVAL_DEADLINE_S = 1
CREATE = "createMerchantWithdrawOrder"
CHAINS = ("ERC20", "TRC20")
SLOW = {"ERC20": "0x000000000000000000000000000000000000bEEF", "TRC20": "T9yD14Nj9j7xAB4dbGeiX9h8upPPuQyPkv"}


def query(shop: Shop, order: Answer) -> Answer:
    return shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId=str(order["mcOrderId"]))


def wait_for(shop: Shop, order: Answer, status: str) -> Answer:
    wait_until(lambda: query(shop, order)["txnStatus"] == status, f"status {status}")
    return query(shop, order)


def steps(shop: Shop, order: Answer) -> list[int]:
    """The statuses that an order went through."""
    found = shop.platform.rows(
        "select to_status from withdrawal_step where merchant_id = %s and order_id = %s order by step_no",
        shop.merchant_id,
        int(order["orderId"]),
    )
    return [status for (status,) in found]


def callbacks(shop: Shop, order: Answer) -> list[int]:
    """The statuses for which callbacks exist."""
    found = shop.platform.rows(
        "select status from callback where merchant_id = %s and order_id = %s order by status",
        shop.merchant_id,
        int(order["orderId"]),
    )
    return [status for (status,) in found]


def account(shop: Shop, kind: str) -> int:
    """An account's balance of USDT in units."""
    found = shop.platform.rows(
        "select balance from account where merchant_id = %s and kind = %s and currency = 'USDT'",
        shop.merchant_id,
        kind,
    )
    return int(found[0][0])


@pytest.fixture
def careful(shop: Shop) -> Shop:
    """A merchant with a fee of 1 USDT, whose withdrawals above 50 USDT need approval."""
    shop.change(approval_limit="50", withdraw_fee_min="1")
    return shop


@pytest.mark.parametrize("chain", CHAINS)
def test_an_order_within_the_limit_is_paid_by_itself(chain: str, careful: Shop) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "50", chain))
    assert order["txnStatus"] == "0"
    assert careful.balances()[0] == "950"
    wait_for(careful, order, "2")
    assert steps(careful, order) == [0, 1, 2]
    assert callbacks(careful, order) == [2]
    assert careful.balances()[0] == "950"
    assert account(careful, "hold") == 0
    assert account(careful, "fees") == 1_000_000
    assert account(careful, f"chain:{chain}") == 49_000_000


def test_the_chain_got_exactly_what_should_arrive(careful: Shop) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "12.34"))
    wait_for(careful, order, "2")
    sent = careful.platform.rows(
        "select amount_units from sandbox_transfer join withdrawal using (tx_hash) where order_id = %s",
        int(order["orderId"]),
    )
    assert sent == [(11_340_000,)]


def test_an_order_whose_transfer_is_not_final_is_in_processing(careful: Shop) -> None:
    orders = [
        careful.client.do(CREATE, **withdrawal(chain, "5", chain, address=SLOW[chain])) for chain in CHAINS
    ]
    for order in orders:
        assert wait_for(careful, order, "1")["notifyTime"] is None
        assert (steps(careful, order), callbacks(careful, order)) == ([0, 1], [])
    assert (careful.balances()[0], account(careful, "hold")) == ("990", 10_000_000)


def test_an_order_above_the_limit_waits_for_approval(careful: Shop) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "50.01"))
    small = careful.client.do(CREATE, **withdrawal("2", "2"))
    wait_for(careful, small, "2")
    assert query(careful, order)["txnStatus"] == "0"
    assert isinstance(careful.ask_book(Approve(int(order["orderId"]), "operator")), Withdrawal)
    wait_for(careful, order, "2")
    assert (steps(careful, order), callbacks(careful, order)) == ([0, 1, 2], [2])


def test_an_order_above_the_second_limit_is_paid_once_two_people_have_approved_it(careful: Shop) -> None:
    careful.change(second_approval_limit="100")
    order = careful.client.do(CREATE, **withdrawal("1", "100.01"))
    order_id = int(order["orderId"])
    assert isinstance(careful.ask_book(Approve(order_id, "operator:ann")), Withdrawal)
    assert isinstance(careful.ask_book(Approve(order_id, "cli:ann")), Refusal)
    small = careful.client.do(CREATE, **withdrawal("2", "2"))
    wait_for(careful, small, "2")
    assert query(careful, order)["txnStatus"] == "0"
    assert isinstance(careful.ask_book(Approve(order_id, "operator:bob")), Withdrawal)
    wait_for(careful, order, "2")
    assert (steps(careful, order), callbacks(careful, order)) == ([0, 1, 2], [2])


def test_a_cancelled_orders_amount_comes_back(careful: Shop) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "100"))
    assert (careful.balances()[0], account(careful, "hold")) == ("900", 100_000_000)
    assert isinstance(careful.ask_book(Cancel(int(order["orderId"]), "operator")), Withdrawal)
    assert query(careful, order)["txnStatus"] == "4"
    assert (careful.balances()[0], account(careful, "hold")) == ("1000", 0)
    assert (steps(careful, order), callbacks(careful, order)) == ([0, 4], [4])
    assert isinstance(careful.ask_book(Approve(int(order["orderId"]), "operator")), Refusal)


def test_an_order_that_nobody_approves_expires(own_platform: RunPlatform) -> None:
    with own_platform(working=True, approval_deadline_s=APPROVAL_DEADLINE_S) as platform:
        shop = platform.open_merchant(approval_limit="50")
        shop.fund("USDT", "1000")
        order = shop.client.do(CREATE, **withdrawal("1", "100"))
        wait_for(shop, order, "5")
        assert (shop.balances()[0], account(shop, "hold")) == ("1000", 0)
        assert (steps(shop, order), callbacks(shop, order)) == ([0, 5], [5])
        assert isinstance(shop.ask_book(Approve(int(order["orderId"]), "operator")), Refusal)
        assert query(shop, order)["txnStatus"] == "5"


@pytest.mark.parametrize("chain", CHAINS)
def test_an_order_that_can_never_be_paid_is_failed_and_returned_in_full(chain: str, careful: Shop) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "20", chain, address=FAILING[chain]))
    assert careful.balances()[0] == "980"
    wait_for(careful, order, "6")
    assert (steps(careful, order), callbacks(careful, order)) == ([0, 1, 3, 6], [3, 6])
    assert (careful.balances()[0], account(careful, "hold"), account(careful, "fees")) == ("1000", 0, 0)


def test_a_suspended_merchants_order_waits_and_goes_on_when_it_is_resumed(
    careful: Shop, platform: Platform
) -> None:
    order = careful.client.do(CREATE, **withdrawal("1", "51"))
    careful.suspend()
    assert isinstance(careful.ask_book(Approve(int(order["orderId"]), "operator")), Withdrawal)
    witness = platform.open_merchant()
    witness.fund("USDT", "10")
    wait_for(witness, witness.client.do(CREATE, **withdrawal("1", "1")), "2")
    assert steps(careful, order) == [0]
    careful.resume()
    wait_for(careful, order, "2")


def test_a_repeat_during_an_orders_life_shows_where_it_is(careful: Shop) -> None:
    fields: dict[str, Any] = withdrawal("1", "10")
    order = careful.client.do(CREATE, **fields)
    wait_for(careful, order, "2")
    again = careful.client.do(CREATE, **fields)
    assert again.without_sign() == {**order.without_sign(), "txnStatus": "2"}
    assert callbacks(careful, order) == [2]
