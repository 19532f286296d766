"""What the platform holds, exact and current, and what waits."""

import pytest
from tests.reporting.conftest import COIN, ReportingScene

from merchant_wallet.book.commands import Exchange
from merchant_wallet.exchange.rates import USDT_TO_KFB, set_rate
from merchant_wallet.reporting import figures
from merchant_wallet.reporting.figures import Held

pytestmark = pytest.mark.anyio


async def test_what_is_held_is_exact_before_any_figure_was_added_up(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    alice, bob = await scene.register(shop, "alice"), await scene.register(stall, "bob", "USDT")
    await scene.pay_out(shop, alice, 100 * COIN)
    await scene.charge(shop, alice, 40 * COIN, fee_rate_e8=10_000_000)
    await scene.pay_out(stall, bob, 7 * COIN)
    await set_rate(scene.conn, USDT_TO_KFB, 7_00000000, at_ms=scene.clock())
    await scene.ask(shop, Exchange(None, "USDT", "KFB", 10 * COIN, None, None))
    await scene.order(shop, 30 * COIN)
    usdt, kfb = await figures.read_held(scene.cells, shop)
    assert usdt == Held("USDT", 960 * COIN, 0, 30 * COIN, 0, 10 * COIN)
    assert kfb == Held("KFB", 1006 * COIN, 60 * COIN, 0, 4 * COIN, -70 * COIN)
    usdt, kfb = await figures.read_held(scene.cells)
    assert usdt == Held("USDT", 1953 * COIN, 7 * COIN, 30 * COIN, 0, 10 * COIN)
    assert usdt.owed_units == 1990 * COIN
    assert kfb.sub_user_units == 60 * COIN
    rows = await scene.conn.execute(
        "select currency::text, sum(balance) from account where kind = 'subuser' group by 1"
    )
    assert dict(await rows.fetchall()) == {"USDT": usdt.sub_user_units, "KFB": kfb.sub_user_units}


async def test_a_platform_without_merchants_holds_nothing(scene: ReportingScene) -> None:
    assert [(one.currency, one.owed_units) for one in await figures.read_held(scene.cells)] == [
        ("USDT", 0),
        ("KFB", 0),
    ]
    assert await figures.read_volume(scene.cells, 0) == []
    assert await figures.sum_volume(scene.cells, 0) == []
    overview = await figures.read_overview(scene.conn, scene.cells)
    assert (overview.books, overview.unapproved, overview.frozen, overview.failing) == (0, 0, 0, ())


async def test_the_pulse_tells_what_waits_and_who_cant_be_reached(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    waiting = await scene.order(shop, 30 * COIN)
    await scene.order(shop, 20 * COIN, needs_word=False)
    for merchant_id in (shop, stall, stall):
        await scene.cancel(merchant_id, await scene.order(merchant_id))
    await scene.conn.execute("update callback set state = 'dead_letter' where merchant_id = %s", [stall])
    await scene.conn.execute("update callback set retry_no = 1 where merchant_id = %s", [shop])
    await scene.conn.execute(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, frozen_cause,"
        " frozen_ms) values (%s, %s, 'TRC20', 1, 'payer', 0, 'odd', 77)",
        [shop, waiting.order_id],
    )
    await scene.add_deposit(shop, "t1", status="pending")
    await scene.add_deposit(shop, "t2", status="held")
    overview = await figures.read_overview(scene.conn, scene.cells)
    assert [(one.status, one.orders) for one in overview.statuses if one.status in (0, 1, 3)] == [
        (0, 2),
        (1, 0),
        (3, 0),
    ]
    assert (overview.unapproved, overview.unapproved_units) == (1, 30 * COIN)
    assert overview.unapproved_oldest_ms == waiting.created_ms
    assert (overview.frozen, overview.frozen_oldest_ms) == (1, 77)
    assert {one.status: one.deposits for one in overview.deposits} == {
        "seen": 0,
        "pending": 1,
        "dust": 0,
        "held": 1,
    }
    assert [(one.state, one.callbacks) for one in overview.callbacks] == [
        ("due", 1),
        ("dead_letter", 2),
        ("paused", 0),
    ]
    assert [(one.name, one.callbacks) for one in overview.failing] == [("Stall", 2), ("Shop", 1)]
    assert overview.figures_behind == 12
