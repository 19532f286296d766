"""A payer that is killed, or frozen and resumed, at any point of an attempt: money moves exactly once.

A killed payer is gone. A frozen payer wakes up after its claim has expired and another payer has finished the
order. It goes on with what it knew before.
"""

from typing import TYPE_CHECKING

import pytest
from tests.crash_points import Program
from tests.withdrawals.killed_payer import FROZEN, KILLED, kill_process, meet

from merchant_wallet.base.addresses import SANDBOX_FAILING, format_address, parse_address

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop
    from tests.withdrawals.fake_chains import FakeChain

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000


@pytest.fixture
def in_shop(in_apart_shop: "InShop") -> "InShop":
    """An apart cell has all steps of one database, and more."""
    return in_apart_shop


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
WAYS = [
    ("sequenced", KILLED),
    *(pytest.param(kind, FROZEN, marks=pytest.mark.extended) for kind in ADDRESSES),
]
"""After a kill the state is the same on both chains, except for a second signature."""
WAYS_AGAIN = [*WAYS, ("expiring", KILLED)]


async def finish(shop: "Shop", payer: "Payer", chain: "FakeChain", order: "Withdrawal") -> int:
    """Run the payer and mine blocks until the order ends. Returns its status."""
    for _ in range(40):
        await shop.turn(payer)
        if await shop.status(order) in (2, 6):
            break
        chain.mine()
        shop.clock.advance(5_000)
    return await shop.status(order)


async def resume(shop: "Shop", chain: "FakeChain", late: Program, end: str) -> None:
    """Let a frozen payer go on, and mine more blocks."""
    if end == FROZEN:
        assert await late.resume() is None
    chain.mine(6)
    shop.clock.advance(60_000)


class Paid:
    """The orders of a chain that must be paid, each exactly once."""

    def __init__(self, shop: "Shop", chain: "FakeChain") -> None:
        self.shop, self.chain = shop, chain
        self.arrived: dict[int, list[int]] = {}

    async def see(self, order: "Withdrawal", late: Program, end: str, payer: "Payer") -> None:
        """Finish the order, resume a frozen payer, mine more blocks: there must be exactly one transfer."""
        shop = self.shop
        self.arrived[order.order_id] = [order.arrival_units]
        assert await finish(shop, payer, self.chain, order) == 2
        await resume(shop, self.chain, late, end)
        await shop.turn(payer)
        assert self.chain.paid() == self.arrived
        count = len(self.arrived)
        assert await shop.rows("select count(*) from entry where kind = 'settle'") == [(count,)]
        assert await shop.rows("select status, is_queued from withdrawal") == [(2, True)] * count
        assert await shop.rows("select phase from payout") == [("closed",)] * count
        assert await shop.rows("select frozen_ms from hot_wallet where frozen_ms is not null") == []
        assert (await shop.balances()).get("hold:USDT", 0) == 0


@pytest.mark.parametrize(("kind", "end"), WAYS)
def test_a_payer_ended_before_or_while_it_sends_pays_the_order_once(
    in_shop: "InShop", kind: str, end: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.fake(kind)
        paid = Paid(shop, chain)
        for point in FIRST_POINTS:
            order = await shop.order(10 * COIN, ADDRESSES[kind])
            late = await meet(shop, point, end, str(shop.folder))
            # The nodes forget what the dead payer sent, so it must be sent again.
            chain.drop_pool()
            await paid.see(order, late, end, shop.payer(chains=shop.fakes()))

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "end"), WAYS_AGAIN)
def test_a_payer_ended_while_it_signs_again_pays_the_order_once(
    in_shop: "InShop", kind: str, end: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake(kind), shop.payer(chains=shop.fakes())
        paid = Paid(shop, chain)
        for point in AGAIN_POINTS:
            order = await shop.order(10 * COIN, ADDRESSES[kind])
            await shop.turn(payer)
            # Its fee is too low from now on: the transaction gets stuck or expires.
            chain.set(fee=1_100)
            chain.mine(7)
            shop.clock.advance(60_000)
            late = await meet(shop, point, end, str(shop.folder))
            chain.set(fee=1_000)
            await paid.see(order, late, end, payer)

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "end"), WAYS)
def test_a_payer_ended_while_it_settles_settles_once(in_shop: "InShop", kind: str, end: str) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake(kind), shop.payer(chains=shop.fakes())
        paid = Paid(shop, chain)
        for point in END_POINTS:
            order = await shop.order(10 * COIN, ADDRESSES[kind])
            await shop.turn(payer)
            chain.mine(3)
            shop.clock.advance(60_000)
            late = await meet(shop, point, end, str(shop.folder))
            await paid.see(order, late, end, payer)

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "end"), WAYS)
def test_a_payer_ended_while_it_gives_an_order_up_refunds_it_once(
    in_shop: "InShop", kind: str, end: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake(kind), shop.payer(chains=shop.fakes())
        for count, point in enumerate(FAILED_POINTS, 1):
            order = await shop.order(10 * COIN, ADDRESSES[kind])
            chain.set(reverting=[parse_address(order.chain, order.address).hex()])
            await shop.turn(payer)
            chain.mine(3)
            shop.clock.advance(60_000)
            late = await meet(shop, point, end, str(shop.folder))
            # From here on a transfer would succeed: signing again would pay an order that was refunded.
            chain.set(reverting=[])
            assert await finish(shop, payer, chain, order) == 6
            await resume(shop, chain, late, end)
            await shop.turn(payer)
            assert chain.paid() == {}
            assert await shop.rows("select phase from payout") == [("closed",)] * count
            assert await shop.rows("select count(*) from entry where kind = 'refund'") == [(count,)]
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
        await meet(shop, point, KILLED, "sandbox")
        assert await shop.pay(shop.payer(), order) == (6 if fails else 2)
        assert len(await shop.transfers()) == 1

    in_shop(scenario)


def test_an_order_whose_payers_process_is_killed_is_paid_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES["sequenced"]), shop.fake("sequenced")
        await kill_process(shop, "after broadcast", str(shop.folder))
        assert await finish(shop, shop.payer(chains=shop.fakes()), chain, order) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


@pytest.mark.parametrize("point", ["after claim", "after TakeUp"])
def test_an_order_that_a_killed_payer_took_up_is_paid_though_its_merchant_is_suspended(
    in_shop: "InShop", point: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(10 * COIN, ADDRESSES["sequenced"]), shop.fake("sequenced")
        payer = shop.payer(chains=shop.fakes())
        await meet(shop, point, KILLED, str(shop.folder))
        await shop.suspend()
        if point == "after claim":
            # The book had not taken it up: it waits for the merchant, and rests between two looks.
            assert (await shop.turn(payer), await shop.turn(payer), await shop.status(order)) == (1, 0, 0)
            await shop.suspend("active")
        assert await finish(shop, payer, chain, order) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)
