"""A payer that is killed, or frozen and resumed, at any point of an attempt: money moves exactly once.

A killed payer is gone. A frozen payer wakes up after its claim has expired and another payer has finished the
order. It goes on with what it knew before.
"""

from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.killed_payer import ForkedProcess, meet

from merchant_wallet.base.addresses import SANDBOX_FAILING, format_address, parse_address

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop
    from tests.withdrawals.fake_chains import FakeChain

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000


@pytest.fixture(params=["in_apart_shop", pytest.param("in_shop_of_one_database", marks=pytest.mark.extended)])
def in_shop(request: pytest.FixtureRequest) -> "InShop":
    """Each test runs in both layouts. An apart cell has all steps of one database, and more."""
    found: InShop = request.getfixturevalue(request.param)
    return found


ADDRESSES = {
    "sequenced": "0x742d35cc6634c0532925a3b844bc454e4438f44e",
    "expiring": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
}
FIRST_POINTS = [
    "after list_unqueued",
    "after queue_orders",
    "after mark_queued",
    "after claim",
    "after read_order",
    "after TakeUp",
    "after check_payable",
    "after funds",
    "before build",
    "after build",
    "before broadcast",
    "after broadcast",
    "after judge",
]
"""From the claim to the first broadcast."""
AGAIN_POINTS = ["before build", "after build", "before broadcast 2", "after broadcast 2"]
"""Where a stuck transfer is replaced, or an expired one is signed again."""
END_POINTS = ["before Settle", "after Settle", "after release"]
FAILED_POINTS = ["after judge", "before Fail", "before Refund", "after Refund", "after release"]
FROZEN = [pytest.param(kind, "SIGSTOP", marks=pytest.mark.extended) for kind in ADDRESSES]
WAYS = [("sequenced", "SIGKILL"), *FROZEN]
"""After a kill the state is the same on both chains, except for a second signature."""
WAYS_AGAIN = [*WAYS, ("expiring", "SIGKILL")]


async def finish(shop: "Shop", payer: "Payer", chain: "FakeChain", order: "Withdrawal") -> int:
    """Run the payer and mine blocks until the order ends. Returns its status."""
    for _ in range(40):
        await shop.turn(payer)
        if await shop.status(order) in (2, 6):
            break
        chain.mine()
        shop.clock.advance(5_000)
    return await shop.status(order)


async def see_paid_once(
    shop: "Shop", chain: "FakeChain", order: "Withdrawal", child: ForkedProcess, payer: "Payer"
) -> None:
    """Finish the order, resume a frozen child, mine more blocks: there must be exactly one transfer."""
    assert await finish(shop, payer, chain, order) == 2
    await child.resume()
    for _ in range(3):
        chain.mine(3)
        shop.clock.advance(60_000)
        await shop.turn(payer)
    assert chain.paid() == {order.order_id: [order.arrival_units]}
    assert await shop.rows("select count(*) from entry where kind = 'settle'") == [(1,)]
    assert await shop.rows("select status, is_queued from withdrawal") == [(2, True)]
    assert await shop.rows("select phase from payout") == [("closed",)]
    assert await shop.rows("select frozen_ms from hot_wallet where frozen_ms is not null") == []
    assert (await shop.balances()).get("hold:USDT", 0) == 0


@pytest.mark.parametrize(("kind", "sent"), WAYS)
@pytest.mark.parametrize("point", FIRST_POINTS)
def test_a_payer_ended_before_or_while_it_sends_pays_the_order_once(
    in_shop: "InShop", point: str, kind: str, sent: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES[kind]), shop.fake(kind)
        child = await meet(shop, point, sent, str(shop.folder))
        # The nodes forget what the dead payer sent, so it must be sent again.
        chain.drop_pool()
        await see_paid_once(shop, chain, order, child, shop.payer(chains=shop.fakes()))

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "sent"), WAYS_AGAIN)
@pytest.mark.parametrize("point", AGAIN_POINTS)
def test_a_payer_ended_while_it_signs_again_pays_the_order_once(
    in_shop: "InShop", point: str, kind: str, sent: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES[kind]), shop.fake(kind)
        payer = shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        # Its fee is too low from now on: the transaction gets stuck or expires.
        chain.set(fee=1_100)
        chain.mine(7)
        shop.clock.advance(60_000)
        child = await meet(shop, point, sent, str(shop.folder))
        chain.set(fee=1_000)
        await see_paid_once(shop, chain, order, child, payer)

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "sent"), WAYS)
@pytest.mark.parametrize("point", END_POINTS)
def test_a_payer_ended_while_it_settles_settles_once(
    in_shop: "InShop", point: str, kind: str, sent: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES[kind]), shop.fake(kind)
        payer = shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.mine(3)
        shop.clock.advance(60_000)
        child = await meet(shop, point, sent, str(shop.folder))
        await see_paid_once(shop, chain, order, child, payer)

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "sent"), WAYS)
@pytest.mark.parametrize("point", FAILED_POINTS)
def test_a_payer_ended_while_it_gives_an_order_up_refunds_it_once(
    in_shop: "InShop", point: str, kind: str, sent: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES[kind]), shop.fake(kind)
        payer = shop.payer(chains=shop.fakes())
        chain.set(reverting=[parse_address(order.chain, order.address).hex()])
        await shop.turn(payer)
        chain.mine(3)
        shop.clock.advance(60_000)
        child = await meet(shop, point, sent, str(shop.folder))
        # From here on a transfer would succeed: signing again would pay an order that was refunded.
        chain.set(reverting=[])
        assert await finish(shop, payer, chain, order) == 6
        await child.resume()
        chain.mine(6)
        shop.clock.advance(60_000)
        await shop.turn(payer)
        assert chain.paid() == {}
        assert await shop.rows("select phase from payout") == [("closed",)]
        assert await shop.rows("select count(*) from entry where kind = 'refund'") == [(1,)]
        assert await shop.balances() == {"merchant:USDT": 1000 * COIN, "adjustment:USDT": -1000 * COIN}

    in_shop(scenario)


@pytest.mark.parametrize("point", ["after build", "after broadcast", "before Refund"])
def test_a_payer_killed_on_the_sandboxs_chains_ends_the_order_as_its_recipient_has_it(
    in_shop: "InShop", point: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        fails = point == "before Refund"
        address = format_address("TRC20", SANDBOX_FAILING) if fails else ADDRESSES["expiring"]
        order = await shop.order(10 * COIN, address)
        await meet(shop, point, "SIGKILL", "sandbox")
        assert await shop.pay(shop.payer(), order) == (6 if fails else 2)
        assert len(await shop.transfers()) == 1

    in_shop(scenario)


@pytest.mark.parametrize("point", ["after claim", "after TakeUp"])
def test_an_order_that_a_killed_payer_took_up_is_paid_though_its_merchant_is_suspended(
    in_shop: "InShop", point: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES["sequenced"]), shop.fake("sequenced")
        payer = shop.payer(chains=shop.fakes())
        await meet(shop, point, "SIGKILL", str(shop.folder))
        await shop.suspend()
        if point == "after claim":
            # The book had not taken it up: it waits for the merchant, and rests between two looks.
            assert (await shop.turn(payer), await shop.turn(payer), await shop.status(order)) == (1, 0, 0)
            await shop.suspend("active")
        assert await finish(shop, payer, chain, order) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)
