"""Expiry of orders, on a real database."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from merchant_wallet.book.commands import Expire, Submission
from merchant_wallet.book.errors import CommandFailed
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.withdrawals import expiry
from merchant_wallet.withdrawals.expiry import NotExpired

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
DEADLINE_MS = 3_600_000


def test_an_order_that_nobody_approved_expires_after_its_deadline_and_not_at_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(200 * COIN)
        worker = shop.expiry()
        shop.clock.advance(DEADLINE_MS)
        assert await worker.expire_overdue() == 0
        shop.clock.advance(1)
        assert await worker.expire_overdue() == 1
        assert await shop.status(order) == 5
        assert await shop.balances() == {"merchant:USDT": 1000 * COIN, "adjustment:USDT": -1000 * COIN}
        assert await worker.expire_overdue() == 0

    in_shop(scenario)


def test_an_approved_order_never_expires(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        by_limit, by_operator = await shop.order(), await shop.order(200 * COIN)
        await shop.approve(by_operator)
        shop.clock.advance(10 * DEADLINE_MS)
        assert await shop.expiry().expire_overdue() == 0
        assert [await shop.status(order) for order in (by_limit, by_operator)] == [0, 0]

    in_shop(scenario)


def test_all_overdue_orders_expire_in_one_turn_even_of_a_suspended_merchant(
    in_shop: "InShop", monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(shop: "Shop") -> None:
        orders = [await shop.order(101 * COIN) for _ in range(7)]
        await shop.suspend()
        shop.clock.advance(DEADLINE_MS + 1)
        workers = [shop.expiry() for _ in range(3)]
        assert sum(await asyncio.gather(*(worker.expire_overdue() for worker in workers))) == 7
        assert [await shop.status(order) for order in orders] == [5] * 7

    monkeypatch.setattr(expiry, "PAGE", 3)
    in_shop(scenario)


class FaultyBook:
    """A book that can't judge one of the orders."""

    def __init__(self, shop: "Shop", faulty_id: int) -> None:
        self.shop = shop
        self.faulty_id = faulty_id

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        assert isinstance(submission.command, Expire)
        if submission.command.order_id == self.faulty_id:
            raise CommandFailed("this order")
        return await self.shop.book.submit(merchant_id, submission)


def test_one_orders_trouble_is_reported_and_stops_no_other(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        bad, good = await shop.order(200 * COIN), await shop.order(200 * COIN)
        shop.clock.advance(DEADLINE_MS + 1)
        worker = shop.expiry(FaultyBook(shop, bad.order_id))
        with capture_logs(processors=[merge_contextvars]) as logs, pytest.raises(NotExpired):
            await worker.expire_overdue()
        assert [line["order_id"] for line in logs if line["log_level"] == "error"] == [bad.order_id]
        assert [await shop.status(order) for order in (bad, good)] == [0, 5]

    in_shop(scenario)
