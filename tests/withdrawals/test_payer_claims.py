"""Several payers at once, slow payers, stopped payers: fencing tokens, claims and the loop."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from merchant_wallet.chains.protocol import Unpayable
from merchant_wallet.withdrawals import payouts

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, ScriptedChain, Shop

COIN = 1_000_000


async def stall(shop: "Shop", chain: "ScriptedChain") -> Awaitable[None]:
    """A payer that hangs in `build` for longer than its claim lasts."""
    chain.may_build.clear()
    payer = shop.payer(chain, name="stalled", claim_ms=1_000)
    await payer.start_due()
    await chain.building.wait()
    shop.clock.advance(1_000)
    return payer.finish()


def test_a_payer_whose_claim_expired_can_neither_store_nor_broadcast(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, old, new = await shop.order(), shop.scripted(name="old"), shop.scripted(name="new")
        finishing = await stall(shop, old)
        await shop.turn(shop.payer(new))
        old.may_build.set()
        with capture_logs(processors=[merge_contextvars]) as logs:
            await finishing
        assert [(line["order_id"], line["event"]) for line in logs] == [
            (order.order_id, "payout was taken over by another payer")
        ]
        assert (len(old.broadcasts), len(new.broadcasts)) == (0, 1)
        assert await shop.rows("select raw from payout_signed") == [(new.broadcasts[0],)]
        assert await shop.rows("select fence, signed_no from payout") == [(2, 1)]

    in_shop(scenario)


def test_a_payer_whose_claim_expired_cannot_fail_an_order_that_another_has_signed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, old, new = await shop.order(), shop.scripted(name="old"), shop.scripted(name="new")
        old.build_error = Unpayable("this payer saw no way")
        finishing = await stall(shop, old)
        await shop.turn(shop.payer(new))
        old.may_build.set()
        await finishing
        assert await shop.status(order) == 1
        new.verdict = new.final()
        assert await shop.pay(shop.payer(new), order) == 2

    in_shop(scenario)


def test_of_two_claims_at_once_one_holds_and_a_later_one_has_a_higher_fence(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        key, now = (1001, order.order_id), shop.clock.now_ms
        await payouts.queue_new(shop.connection, shop.connection)
        lines = [await shop.worker_connection().get() for _ in range(8)]

        def claim_all(at_ms: int) -> Awaitable[list[payouts.Claim | None]]:
            claims = [
                payouts.claim(line, key, claimed_by="x", now_ms=at_ms, until_ms=at_ms + 10) for line in lines
            ]
            return asyncio.gather(*claims)

        assert [held.fence for held in await claim_all(now) if held] == [1]
        assert [held.fence for held in await claim_all(now + 9) if held] == []
        assert [held.fence for held in await claim_all(now + 10) if held] == [2]

    in_shop(scenario)


def test_a_claim_or_rest_holds_up_to_ten_minutes_and_a_longer_one_is_of_a_clock_that_went_back(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        key, now = (1001, (await shop.order()).order_id), shop.clock.now_ms
        await payouts.queue_new(shop.connection, shop.connection)

        async def is_claimed(at_ms: int) -> bool:
            until_ms = at_ms + 600_000
            taken = payouts.claim(shop.connection, key, claimed_by="x", now_ms=at_ms, until_ms=until_ms)
            return await taken is not None

        assert [await is_claimed(now + ms) for ms in (0, 0, 599_999, -1)] == [True, False, False, True]

    in_shop(scenario)


def test_several_payers_at_once_pay_each_order_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        orders = [await shop.order(COIN * (number + 2)) for number in range(8)]
        # Claims that expire at once make the payers overtake each other as often as possible.
        payers = [shop.payer(claim_ms=0, name=f"payer {number}") for number in range(4)]
        for _ in range(10):
            await asyncio.gather(*map(shop.turn, payers))
            shop.clock.advance(1_500)
        assert [await shop.status(order) for order in orders] == [2] * 8
        amounts = sorted(row[2] for row in await shop.transfers())
        assert amounts == sorted(order.arrival_units for order in orders)
        assert await shop.rows("select count(*) from entry where kind = 'settle'") == [(8,)]
        assert (await shop.balances()).get("hold:USDT", 0) == 0

    in_shop(scenario)


def test_a_payer_that_is_told_to_stop_finishes_what_it_began(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain, stop = await shop.order(), shop.scripted(), asyncio.Event()
        chain.may_build.clear()
        running = asyncio.create_task(shop.payer(chain).run(stop))
        await chain.building.wait()
        stop.set()
        chain.may_build.set()
        await running
        assert len(chain.broadcasts) == 1
        assert await shop.status(order) == 1

    in_shop(scenario)


def test_a_full_payer_looks_again_as_soon_as_there_is_room(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, five, stop = shop.scripted(), asyncio.Event(), asyncio.Event()

        async def count(_: bytes) -> None:
            if len(chain.broadcasts) == 5:
                five.set()

        chain.on_broadcast = count
        for _ in range(5):
            await shop.order()
        # At this interval only a notification can bring the payer to the fifth order.
        running = asyncio.create_task(shop.payer(chain, max_concurrent=1).run(stop, interval_s=3_600))
        await asyncio.wait_for(five.wait(), 60)
        stop.set()
        await running
        assert len(set(chain.broadcasts)) == 5

    in_shop(scenario)


def test_a_lost_connection_is_opened_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, payer = await shop.order(), shop.payer()
        await shop.turn(payer)
        await shop.rows(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where pid <> pg_backend_pid() and datname = current_database()"
            " and backend_type = 'client backend'"
        )
        shop.clock.advance(20_000)
        # If the server's last message has arrived already, nothing is sent.
        with suppress(psycopg.OperationalError):
            await shop.turn(payer)
        assert await shop.pay(payer, order) == 2

    in_shop(scenario)


def test_the_database_lets_nothing_be_signed_for_an_order_that_was_given_up(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        chain.check_error = Unpayable("never")
        assert await shop.pay(shop.payer(chain), order) == 6
        with pytest.raises(psycopg.errors.CheckViolation):
            await shop.rows("update payout set signed_no = signed_no + 1")

    in_shop(scenario)
