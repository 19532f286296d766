"""Orders of several merchants, as operators search them."""

import pytest
from tests.reporting.conftest import COIN, EVM_ADDRESS, START_MS, TRON_ADDRESS, ReportingScene

from merchant_wallet.base.addresses import format_address, parse_address
from merchant_wallet.book.commands import Approve
from merchant_wallet.reporting import orders, rollup
from merchant_wallet.reporting.orders import OrderFilter, StatusCount
from merchant_wallet.withdrawals import payouts

pytestmark = pytest.mark.anyio

OTHER_TRON = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"


async def ids(scene: ReportingScene, **wanted: object) -> list[int]:
    page = await orders.list_orders(scene.conn, scene.cells, OrderFilter(**wanted))  # type: ignore[arg-type]
    return [line.order_id for line in page.rows]


async def test_an_order_in_the_payers_queue_is_taken_up_once_a_payer_has_claimed_it(
    scene: ReportingScene,
) -> None:
    shop = await scene.open_shop("Shop")
    key = (shop, (await scene.order(shop)).order_id)
    await scene.ask(shop, Approve(key[1], "operator"))
    seen = []
    for claims in (False, True):
        assert await payouts.queue_new(scene.conn, scene.conn) == (0 if claims else 1)
        if claims:
            now_ms = scene.clock()
            held = await payouts.claim(scene.conn, key, claimed_by="w", now_ms=now_ms, until_ms=now_ms + 9)
            assert held is not None
        order = await orders.find_order(scene.conn, scene.conn, *key)
        assert order is not None
        seen.append(order.is_taken_up)
    assert seen == [False, True]


async def test_orders_are_found_by_status_chain_merchant_amount_and_day(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    paid = (await scene.order(shop, 30 * COIN)).order_id
    ether = (await scene.order(shop, 20 * COIN, address=EVM_ADDRESS)).order_id
    noon = scene.clock()
    other = (await scene.order(stall, 25 * COIN)).order_id
    order = await orders.find_order(scene.conn, scene.conn, shop, paid)
    assert order is not None
    assert order.merchant_name == "Shop"
    for_paid = await scene.order(shop)
    await scene.settle(shop, for_paid)
    newest = for_paid.order_id
    assert await ids(scene) == [newest, other, ether, paid]
    assert await ids(scene, statuses=(2,)) == [newest]
    assert await ids(scene, statuses=(0, 2)) == [newest, other, ether, paid]
    assert await ids(scene, statuses=(3, 4, 5, 6)) == []
    assert await ids(scene, chain="ERC20") == [ether]
    assert await ids(scene, merchant_id=stall) == [other]
    assert await ids(scene, merchant_id=shop, min_units=20 * COIN) == [ether, paid]
    assert await ids(scene, to_ms=noon) == [ether, paid]
    assert await ids(scene, from_ms=noon, statuses=(0,)) == [other]
    assert await ids(scene, merchant_id=999) == []


async def test_orders_come_largest_first_when_asked(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    made = [(await scene.order(shop, units * COIN)).order_id for units in (20, 90, 40)]
    for merchant_id in (None, shop):
        page = await orders.list_orders(
            scene.conn, scene.cells, OrderFilter(merchant_id=merchant_id), sort="amount"
        )
        assert [line.order_id for line in page.rows] == [made[1], made[2], made[0]]
    late = OrderFilter(from_ms=START_MS + 10**9)
    assert (await orders.list_orders(scene.conn, scene.cells, late, sort="amount")).rows == ()


@pytest.mark.parametrize(
    ("wanted", "sort", "message"),
    [
        (OrderFilter(statuses=(7,)), "created", "status is one of"),
        (OrderFilter(chain="BTC"), "created", "chain is one of ERC20, TRC20"),
        (OrderFilter(), "fee", "sort is one of created, amount"),
    ],
)
async def test_a_filter_that_there_is_not_is_refused(
    scene: ReportingScene, wanted: OrderFilter, sort: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        await orders.list_orders(scene.conn, scene.cells, wanted, sort=sort)


async def test_an_address_shows_who_paid_it_and_how_often(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    first = await scene.order(shop, 10 * COIN, address=EVM_ADDRESS)
    await scene.settle(shop, first)
    await scene.order(shop, 20 * COIN, address=EVM_ADDRESS.lower())
    await scene.order(shop, 40 * COIN)
    last = await scene.order(stall, 30 * COIN, address=EVM_ADDRESS)
    history = await orders.show_address(scene.cells, EVM_ADDRESS.lower())
    told = [(one.merchant_name, one.status, one.orders, one.amount_units // COIN) for one in history.sums]
    assert told == [("Shop", 0, 1, 20), ("Shop", 2, 1, 10), ("Stall", 0, 1, 30)]
    assert (history.sums[1].first_ms, history.sums[2].last_ms) == (first.created_ms, last.created_ms)
    assert history.is_complete
    own = await orders.show_address(scene.cells, EVM_ADDRESS, stall)
    assert [one.merchant_id for one in own.sums] == [stall]
    assert len(await ids(scene, address=EVM_ADDRESS)) == 3
    assert await ids(scene, address=EVM_ADDRESS, statuses=(2,)) == [first.order_id]
    assert await ids(scene, address=EVM_ADDRESS, merchant_id=stall) == [last.order_id]
    assert await ids(scene, address=OTHER_TRON) == []
    assert await ids(scene, address="a\0b") == []
    # The same twenty bytes on another chain are the same key's.
    raw = parse_address("ERC20", EVM_ADDRESS)
    await scene.order(stall, 5 * COIN, address=format_address("TRC20", raw))
    assert await orders.count_to(scene.cells, raw) == (3, 1)


async def test_the_history_of_an_address_says_when_it_is_cut_short(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "MAX_OF_ADDRESS", 2)
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    await scene.order(shop)
    await scene.order(stall)
    assert (await orders.show_address(scene.cells, TRON_ADDRESS)).is_complete
    for _ in range(2):
        await scene.order(shop)
    history = await orders.show_address(scene.cells, TRON_ADDRESS)
    assert [one.orders for one in history.sums] == [2, 1]
    assert not history.is_complete


async def test_the_queue_for_approval_is_oldest_first_and_leaves_out_what_has_its_word(
    scene: ReportingScene,
) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    first, second = await scene.order(shop), await scene.order(stall)
    await scene.order(shop, needs_word=False)
    given_up, third = await scene.order(shop), await scene.order(shop)
    await scene.cancel(shop, given_up)
    page = await orders.list_unapproved(scene.conn, scene.cells, limit=2)
    assert [line.order_id for line in page.rows] == [first.order_id, second.order_id]
    page = await orders.list_unapproved(scene.conn, scene.cells, after=page.next, limit=2)
    assert [line.order_id for line in page.rows] == [third.order_id]
    page = await orders.list_unapproved(scene.conn, scene.cells, after=page.previous, limit=2)
    assert [line.order_id for line in page.rows] == [first.order_id, second.order_id]
    await scene.conn.execute(
        "update withdrawal set second_limit_units = 1, first_approved_by = 'operator:ann'"
        " where order_id = %s",
        [third.order_id],
    )
    own = await orders.list_unapproved(scene.conn, scene.cells, shop)
    assert [(line.approvals_given, line.approvals_needed) for line in own.rows] == [(0, 1), (1, 2)]
    assert [line.order_id for line in own.rows] == [first.order_id, third.order_id]


async def test_an_order_is_found_by_either_of_its_ids(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    order = await scene.order(shop)
    assert await orders.find_order(scene.conn, scene.conn, stall, order.order_id) is None
    (found,) = await orders.find_orders(scene.conn, scene.cells, order.mc_order_id)
    assert (found.order_id, found.amount_units, found.fee_units) == (order.order_id, 10 * COIN, COIN)
    assert await orders.find_orders(scene.conn, scene.cells, order.mc_order_id, stall) == []
    assert await orders.find_orders(scene.conn, scene.cells, "w-\0") == []


async def test_orders_are_counted_where_they_stand(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    made = [await scene.order(shop, units * COIN) for units in (10, 20, 30, 40)]
    await scene.order(stall, 50 * COIN)
    await scene.settle(shop, made[1])
    await scene.refund(shop, made[2])
    await scene.cancel(shop, made[3])
    await rollup.advance_all(scene.conn, scene.clock())
    own = {one.status: one for one in await orders.count_by_status(scene.cells, shop)}
    assert own[0] == StatusCount(0, 1, 10 * COIN, made[0].created_ms)
    assert [(own[n].orders, own[n].amount_units // COIN) for n in range(1, 7)] == [
        (0, 0),
        (1, 20),
        (0, 0),
        (1, 40),
        (0, 0),
        (1, 30),
    ]
    every = {one.status: one.orders for one in await orders.count_by_status(scene.cells)}
    assert every == {0: 2, 1: 0, 2: 1, 3: 0, 4: 1, 5: 0, 6: 1}
