"""An order that is frozen, or blocked after a rollback, never releases its hold by itself."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import AsyncConnection, AsyncCursor
from tests.withdrawals.conftest import MERCHANT_ID, START_MS

from merchant_wallet.audit.rollback.evidence import RollbackEvidence, record_evidence
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.commands import Cancel, Command, Expire, Fail, Refund, TakeUp
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.withdrawals import FROZEN, ROLLED_BACK
from merchant_wallet.chains.protocol import SignedTransfer, Unpayable
from merchant_wallet.hot_wallet.stops import stop_payouts
from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
from merchant_wallet.withdrawals import payouts

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
DEADLINE_MS = 3_600_000
BEHIND = RollbackEvidence(
    MERCHANT_ID, "book", "behind", "the checkpoint saw 9 entries, the journal has 3", START_MS
)


@pytest.fixture
def in_shop(in_each_layout: "InShop") -> "InShop":
    """Each test runs in both layouts."""
    return in_each_layout


async def freeze(shop: "Shop", order: Withdrawal) -> None:
    """What `acceptance` does to an order for which the signer has signed more than the database knows."""
    await frozen_orders.freeze(shop.connection, MERCHANT_ID, [order.order_id], shop.clock.now_ms)
    await shop.rows(
        "insert into payout"
        " (merchant_id, order_id, chain, phase, fence, claimed_by, claimed_until_ms, frozen_cause, frozen_ms)"
        " values (%s, %s, %s, %s, 1, 'acceptance', 0, 'it may have been paid', %s)",
        MERCHANT_ID,
        order.order_id,
        order.chain,
        payouts.phase_of(order),
        shop.clock.now_ms,
    )


async def held_units(shop: "Shop") -> int:
    return (await shop.balances()).get("hold:USDT", 0)


def test_a_frozen_order_does_not_expire_until_it_is_thawed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, expiry = await shop.order(200 * COIN), shop.expiry()
        await freeze(shop, order)
        shop.clock.advance(DEADLINE_MS + 1)
        assert await expiry.expire_overdue() == 0
        assert (await shop.status(order), await held_units(shop)) == (0, 200 * COIN)
        await shop.thaw(order.order_id)
        assert await expiry.expire_overdue() == 1
        assert (await shop.status(order), await held_units(shop)) == (5, 0)

    in_shop(scenario)


@pytest.mark.parametrize("kind", [TakeUp, Expire, Refund])
def test_the_book_itself_takes_no_step_with_a_frozen_order_or_after_a_rollback(
    in_shop: "InShop", kind: type[TakeUp] | type[Expire] | type[Refund]
) -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(10 * COIN if kind is not Expire else 200 * COIN)
        if kind is Refund:
            for command in (TakeUp(order.order_id), Fail(order.order_id, "the token refuses it")):
                assert isinstance(await shop.ask(command), Withdrawal)
        shop.clock.advance(DEADLINE_MS + 1)
        before = await shop.status(order)
        step: Command = kind(order.order_id)
        await record_evidence(shop.connection, [BEHIND])
        assert await shop.ask(step) == ROLLED_BACK
        await freeze(shop, order)
        assert await shop.ask(step) == ROLLED_BACK
        await shop.rows("delete from rollback_evidence")
        assert await shop.ask(step) == FROZEN
        assert (await shop.status(order), await held_units(shop)) == (before, order.amount_units)
        await shop.thaw(order.order_id)
        assert isinstance(await shop.ask(step), Withdrawal)

    in_shop(scenario)


def test_another_orders_freeze_stops_nobody(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        frozen, other = await shop.order(200 * COIN), await shop.order(200 * COIN)
        await freeze(shop, frozen)
        shop.clock.advance(DEADLINE_MS + 1)
        assert await shop.expiry().expire_overdue() == 1
        assert [await shop.status(order) for order in (frozen, other)] == [0, 5]

    in_shop(scenario)


def test_a_merchants_user_cancels_neither_after_a_rollback_nor_a_frozen_order(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(200 * COIN)
        by_merchant = Cancel(order.order_id, "operator:shop", by_merchant=True, even_frozen=True)
        await record_evidence(shop.connection, [BEHIND])
        assert await shop.ask(by_merchant) == ROLLED_BACK
        await shop.rows("delete from rollback_evidence")
        await freeze(shop, order)
        assert await shop.ask(by_merchant) == FROZEN
        assert (await shop.status(order), await held_units(shop)) == (0, 200 * COIN)
        await shop.thaw(order.order_id)
        assert isinstance(await shop.ask(by_merchant), Withdrawal)

    in_shop(scenario)


def test_the_platform_cancels_after_a_rollback_and_a_frozen_order_only_when_that_is_confirmed(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        behind, frozen = await shop.order(200 * COIN), await shop.order(150 * COIN)
        await freeze(shop, frozen)
        await record_evidence(shop.connection, [BEHIND])
        assert isinstance(await shop.ask(Cancel(behind.order_id, "cli:ann")), Withdrawal)
        assert await shop.ask(Cancel(frozen.order_id, "cli:ann")) == FROZEN
        await shop.rows("delete from rollback_evidence")
        assert await shop.ask(Cancel(frozen.order_id, "cli:ann")) == FROZEN
        assert await held_units(shop) == 150 * COIN
        assert isinstance(await shop.ask(Cancel(frozen.order_id, "cli:ann", even_frozen=True)), Withdrawal)
        assert (await shop.status(frozen), await held_units(shop)) == (4, 0)

    in_shop(scenario)


def test_a_refund_that_a_rollback_overtakes_waits_and_is_no_fault(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        chain.may_build.clear()
        chain.build_error = Unpayable("the token refuses it")
        payer = shop.payer(chain)
        await payer.start_due()
        await chain.building.wait()
        await shop.rows(
            "create function sign_now() returns trigger language plpgsql as $$ begin"
            " insert into rollback_evidence values (0, 'audit', 'behind', 'now', 1); return new; end $$"
        )
        await shop.rows(
            "create trigger sign_at_failure after update on withdrawal for each row"
            " when (new.status = 3) execute function sign_now()"
        )
        chain.may_build.set()
        await payer.finish()
        assert (await shop.status(order), await held_units(shop)) == (3, 10 * COIN)
        assert await shop.rows("select failures from payout") == [(0,)]
        await shop.rows("delete from rollback_evidence")
        assert await shop.pay(payer, order) == 6

    in_shop(scenario)


class StopLiftingConnection:
    """A connection on which a stop is lifted right after a write was refused."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute(self, query: bytes, parameters: Any = None) -> AsyncCursor[Any]:
        cursor = await self._connection.execute(query, parameters)
        if (
            b"signed_no = %(attempt_no)s::int - 1 and given_up_ms is null" in query
            and b"select fence" in query
        ):
            await self._connection.execute("delete from payout_stop")
        return cursor


def test_a_stop_that_is_lifted_at_once_is_no_other_wallet(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, wallet, now = await shop.order(), bytes(range(20)), shop.clock.now_ms
        key, signed = (MERCHANT_ID, order.order_id), SignedTransfer(b"raw", "hash")
        await open_wallet(shop.connection, "ERC20", wallet, 1)
        await payouts.queue_new(shop.connection, shop.connection)
        held = await payouts.claim(shop.connection, key, claimed_by="w", now_ms=now, until_ms=now + 9)
        assert held is not None
        await stop_payouts(shop.connection, "ERC20", "cli:ann", "a look first", now)
        lifting: Any = StopLiftingConnection(shop.connection)
        with pytest.raises(payouts.PayoutsStopped, match="stopped for a moment"):
            await payouts.store_signed(lifting, held, "ERC20", wallet, 1, signed, now)
        with pytest.raises(WalletMoved, match="is not 0x0909"):
            await payouts.store_signed(shop.connection, held, "ERC20", b"\t" * 20, 1, signed, now)
        assert await shop.rows("select * from payout_signed") == []

    in_shop(scenario)


def test_an_order_that_was_approved_too_early_is_frozen_before_it_is_taken_up_and_can_be_cancelled(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(200 * COIN), shop.scripted()
        await shop.approve(order)
        await shop.rows(
            "insert into operator_wait"
            " select 'operator', approved_ms, approved_ms + 1, 'reset' from withdrawal"
        )
        payer = shop.payer(chain)
        for _ in range(2):
            await shop.turn(payer)
            [frozen] = await payouts.list_frozen(shop.connection)
            assert (frozen.order_id, await shop.status(order)) == (order.order_id, 0)
            assert "did not count" in frozen.cause
            await shop.thaw(order.order_id)
        await shop.turn(payer)
        assert chain.built == []
        assert isinstance(await shop.ask(Cancel(order.order_id, "cli:ann", even_frozen=True)), Withdrawal)
        assert await held_units(shop) == 0

    in_shop(scenario)


def test_a_step_that_was_judged_before_the_freeze_does_not_commit_after_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(200 * COIN)
        shop.clock.advance(DEADLINE_MS + 1)
        async with shop.connection.transaction():
            # The writer has read the order, and can't claim the book before this transaction ends.
            await frozen_orders.freeze(shop.connection, MERCHANT_ID, [order.order_id], shop.clock.now_ms)
            expiring = asyncio.create_task(shop.ask(Expire(order.order_id)))
            # It was not frozen for the writer: it tries to claim.
            assert await asyncio.wait([expiring], timeout=0.3) == (set(), {expiring})
        assert await expiring == FROZEN
        assert await held_units(shop) == 200 * COIN

    in_shop(scenario)


def test_a_freeze_that_ended_between_its_commits_is_undone_after_a_minute(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(200 * COIN)
        await frozen_orders.freeze(shop.connection, MERCHANT_ID, [order.order_id], shop.clock.now_ms)
        await shop.follow_frozen_orders()
        assert await shop.ask(Cancel(order.order_id, "cli:ann")) == FROZEN
        shop.clock.advance(60_000)
        await shop.rows("insert into public.rollback_evidence values (0, 'audit', 'behind', 'why', 1)")
        # An acceptance may be about to freeze it.
        await shop.follow_frozen_orders()
        assert await shop.rows("select count(frozen_ms) from withdrawal") == [(1,)]
        await shop.rows("delete from public.rollback_evidence")
        await shop.follow_frozen_orders()
        assert isinstance(await shop.ask(Cancel(order.order_id, "cli:ann")), Withdrawal)

    in_shop(scenario)


def test_a_thaw_that_ended_between_its_commits_is_finished_after_a_minute(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, other = await shop.order(200 * COIN), await shop.order(200 * COIN)
        await freeze(shop, order)
        await freeze(shop, other)
        shop.clock.advance(60_000)
        assert await payouts.thaw(shop.connection, MERCHANT_ID, order.order_id)
        await shop.follow_frozen_orders()
        assert isinstance(await shop.ask(Cancel(order.order_id, "cli:ann")), Withdrawal)
        assert await shop.ask(Cancel(other.order_id, "cli:ann")) == FROZEN

    in_shop(scenario)


def test_a_freeze_that_only_home_has_comes_to_the_cell_after_a_minute(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, ended = await shop.order(200 * COIN), await shop.order(200 * COIN)
        for one in (order, ended):
            await freeze(shop, one)
        assert isinstance(await shop.ask(Cancel(ended.order_id, "cli:ann", even_frozen=True)), Withdrawal)
        await frozen_orders.thaw(shop.connection, MERCHANT_ID, order.order_id)
        shop.clock.advance(60_000)
        await shop.follow_frozen_orders()
        assert await shop.ask(Cancel(order.order_id, "cli:ann")) == FROZEN
        version = await shop.rows("select version from book")
        await shop.follow_frozen_orders()
        assert await shop.rows("select version from book") == version

    in_shop(scenario)


def test_a_mark_that_was_renewed_since_it_was_read_stays(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, now = await shop.order(200 * COIN), shop.clock.now_ms
        for frozen_ms in (now, now + 1):
            await frozen_orders.freeze(shop.connection, MERCHANT_ID, [order.order_id], frozen_ms)
        await frozen_orders.thaw(shop.connection, MERCHANT_ID, order.order_id, now)
        assert await shop.ask(Cancel(order.order_id, "cli:ann")) == FROZEN

    in_shop(scenario)
