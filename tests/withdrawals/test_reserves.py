"""Reservations of a hot wallet's funds, what blocks a payout, and transfers that expire."""

import asyncio
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.waits import eventually
from tests.withdrawals.fake_chains import EvmLikeFake, TronLikeFake

from merchant_wallet.base.addresses import format_address, parse_address
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    Expired,
    FinalRecord,
    Obstacle,
    Pending,
    ProvenUnpaid,
)
from merchant_wallet.custody.cold import wallets as cold_wallets
from merchant_wallet.hot_wallet.stops import thaw_wallet
from merchant_wallet.hot_wallet.store import WalletMoved, list_wallets, open_wallet
from merchant_wallet.withdrawals.payouts import list_blocked, list_frozen, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000
TRON = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


async def finish(shop: "Shop", payer: "Payer", *orders: "Withdrawal", rounds: int = 20) -> list[int]:
    """Run the payer and mine blocks on both chains until the orders end. Returns their statuses."""
    statuses: list[int] = []
    for _ in range(rounds):
        await shop.turn(payer)
        statuses = [await shop.status(order) for order in orders]
        if set(statuses) <= {2, 6}:
            break
        for kind in ("sequenced", "expiring"):
            shop.fake(kind).mine()
        shop.clock.advance(5_000)
    return statuses


async def kinds(shop: "Shop") -> list[str]:
    return [waiting.kind for waiting in await list_blocked(shop.connection)]


def test_orders_beyond_the_wallets_funds_wait_and_are_paid_once_there_is_more(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("expiring"), shop.payer(chains=shop.fakes())
        chain.set(balance=25 * COIN)
        orders = [await shop.order(11 * COIN, TRON) for _ in range(4)]
        statuses = await finish(shop, payer, *orders)
        assert sorted(statuses) == [1, 1, 2, 2]
        assert await kinds(shop) == ["funds", "funds"]
        [wallet] = await list_wallets(shop.connection)
        assert (wallet.funds_units, wallet.open_units) == (5 * COIN, 0)
        chain.set(balance=45 * COIN)
        shop.clock.advance(50_000)
        assert await finish(shop, payer, *orders) == [2] * 4
        assert await kinds(shop) == []
        assert chain.paid() == {order.order_id: [order.arrival_units] for order in orders}

    in_shop(scenario)


@pytest.mark.parametrize("address", [TRON, "0x742d35cc6634c0532925a3b844bc454e4438f44e"])
def test_no_unit_is_reserved_twice_by_payers_that_run_over_each_other(
    in_shop: "InShop", address: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        kind = "expiring" if address == TRON else "sequenced"
        chain = shop.fake(kind)
        chain.set(balance=50 * COIN)
        orders = [await shop.order(11 * COIN, address) for _ in range(8)]
        payers = [shop.payer(chains=shop.fakes(), claim_ms=0, name=str(number)) for number in range(3)]
        for _ in range(7):
            await asyncio.gather(*map(shop.turn, payers))
            chain.mine()
            shop.clock.advance(5_000)
        # A transfer beyond the funds would have reverted, and its order would have failed.
        statuses = [await shop.status(order) for order in orders]
        assert (statuses.count(2), statuses.count(6)) == (5, 0)
        assert sum(len(amounts) for amounts in chain.paid().values()) == 5

    in_shop(scenario)


class LateFunds(TronLikeFake):
    """It reports the funds from before the newest payouts, as a lagging node does."""

    told = 20 * COIN

    async def funds(self) -> int:
        return self.told


def test_a_payout_counts_against_the_funds_until_they_were_asked_for_after_its_end(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = LateFunds(shop.folder / "expiring", "TRC20")
        payer = shop.payer(chains={"TRC20": chain})
        first = await shop.order(11 * COIN, TRON)
        await shop.turn(payer)
        # The funds are not read again: they are fresh when the first order ends and the second comes.
        chain.mine(3)
        shop.clock.advance(5_000)
        chain.told = 0
        second = await shop.order(21 * COIN, TRON)
        await shop.turn(payer)
        await shop.turn(payer)
        assert (await shop.status(first), await shop.status(second)) == (2, 1)
        assert await kinds(shop) == ["funds"]

    in_shop(scenario)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Blocked(Obstacle("fuel", "no coin for the fee")), "fuel"),
        (Blocked(Obstacle("fee", "above the cap")), "fee"),
        (ChainAway("no node answered"), "node"),
        (ValueError("a fault"), "fault"),
    ],
)
def test_an_obstacle_is_kept_with_the_order_until_it_has_passed(
    in_shop: "InShop", error: Exception, kind: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        payer = shop.payer(chain)
        chain.check_error = error
        began = shop.clock.now_ms
        for _ in range(4):
            await shop.turn(payer)
            shop.clock.advance(20_000)
        [waiting] = await list_blocked(shop.connection)
        assert (waiting.order_id, waiting.kind, waiting.since_ms) == (order.order_id, kind, began)
        assert waiting.cause == str(error)
        assert (await shop.status(order), chain.built) == (1, [])
        chain.check_error = None
        shop.clock.advance(50_000)
        await shop.turn(payer)
        assert (len(chain.built), await list_blocked(shop.connection)) == (1, [])

    in_shop(scenario)


def test_a_paused_token_makes_orders_wait_and_fails_none(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("expiring"), shop.payer(chains=shop.fakes())
        order = await shop.order(address=TRON)
        chain.set(paused=True)
        assert await finish(shop, payer, order) == [1]
        assert await kinds(shop) == ["paused"]
        chain.set(paused=False)
        shop.clock.advance(50_000)
        assert await finish(shop, payer, order) == [2]

    in_shop(scenario)


def test_our_own_wallet_on_the_blacklist_freezes_it_and_fails_nothing(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("expiring"), shop.payer(chains=shop.fakes())
        order = await shop.order(address=TRON)
        chain.set(black=[chain.wallet.hex()])
        assert await finish(shop, payer, order) == [1]
        [wallet] = await list_wallets(shop.connection)
        assert "blacklisted our own wallet" in (wallet.frozen_cause or "")
        chain.set(black=[])
        assert await finish(shop, payer, order) == [1]
        assert await thaw_wallet(shop.connection, "TRC20")
        assert await finish(shop, payer, order) == [2]

    in_shop(scenario)


def test_expired_transfers_are_signed_again_up_to_the_setting(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.fake("expiring"), await shop.order(address=TRON)
        payer = shop.payer(chains=shop.fakes(), max_builds=3)
        # At this price a block takes only a replacement with a higher fee. The mempool is also dropped each
        # time.
        await shop.turn(payer)
        chain.set(fee=10_000)
        for _ in range(60):
            chain.drop_pool()
            chain.mine()
            shop.clock.advance(60_000)
            await shop.turn(payer)
        assert await shop.status(order) == 1
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 3
        assert await kinds(shop) == ["lapsed"]
        # An operator allows one more signature.
        patient = shop.payer(chains=shop.fakes(), max_builds=4)
        chain.mine(1)
        assert await finish(shop, patient, order) == [2]
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


def test_a_recipient_that_became_unpayable_after_an_expiry_fails_the_order(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.fake("expiring"), await shop.order(address=TRON)
        payer = shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.drop_pool()
        chain.set(black=[parse_address("TRC20", TRON).hex()], fee=50_000)
        assert await finish(shop, payer, order) == [6]
        chain.set(fee=1_000, black=[])
        chain.mine(5)
        assert chain.paid() == {}
        assert await shop.rows("select given_up_signed_no from payout") == [(1,)]

    in_shop(scenario)


def test_without_nonces_a_stuck_transfer_is_never_signed_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(Pending(stuck=True, alert="it takes long")), await shop.order()
        payer = shop.payer(chain)
        for _ in range(3):
            await shop.turn(payer)
            shop.clock.advance(5_000)
        assert len(chain.signed) == 1
        assert [(row.order_id, row.kind) for row in await list_blocked(shop.connection)] == [
            (order.order_id, "alert")
        ]

    in_shop(scenario)


def test_an_expired_payout_is_not_signed_again_before_the_chain_has_judged_all_of_it(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(Expired("expired")), await shop.order()
        payer = shop.payer(chain, max_builds=3)
        for _ in range(6):
            await shop.turn(payer)
            shop.clock.advance(60_000)
        signed = [one.tx_hash for one in chain.signed]
        assert len(signed) == 3
        assert chain.judged[-1] == signed
        assert await shop.status(order) == 1

    in_shop(scenario)


def test_an_old_proof_of_death_is_void_once_another_payer_has_signed_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        old = shop.scripted(ProvenUnpaid("nothing of what I know counts", "a stranger"))
        await shop.turn(shop.payer(shop.scripted(Pending())))
        old.broadcasts.append(b"")
        old.may_judge.clear()
        payer = shop.payer(old, claim_ms=1_000)
        shop.clock.advance(5_000)
        await payer.start_due()
        await old.judging.wait()
        shop.clock.advance(1_000)
        new = shop.scripted(Expired("expired"), name="new")
        new.broadcasts.append(b"")
        await shop.turn(shop.payer(new))
        old.may_judge.set()
        await payer.finish()
        assert await shop.status(order) == 1
        assert await shop.rows("select signed_no, given_up_ms from payout") == [(2, None)]
        assert [wallet.frozen_ms for wallet in await list_wallets(shop.connection)] == [None]
        new.verdict = FinalRecord(new.built[0].transfer, new.signed[0].tx_hash)
        shop.clock.advance(60_000)
        assert await shop.pay(shop.payer(new), order) == 2

    in_shop(scenario)


def test_a_final_transfer_that_was_never_signed_for_the_order_freezes_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        payer = shop.payer(chain)
        await shop.turn(payer)
        chain.verdict = FinalRecord(chain.built[0].transfer, "somebody else's")
        shop.clock.advance(5_000)
        await shop.turn(payer)
        [frozen] = await list_frozen(shop.connection)
        assert (frozen.order_id, await shop.status(order)) == (order.order_id, 1)
        assert "somebody else's final, which was never signed for this order" in frozen.cause
        # The reservation is not spent, and the book moved nothing.
        assert await shop.rows("select ended_no from payout_reservation") == [(None,)]
        assert (await shop.balances())["hold:USDT"] == order.amount_units

    in_shop(scenario)


def test_an_order_to_the_hot_wallet_itself_fails_unsigned(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        order = await shop.order(address=format_address("ERC20", chain.wallet))
        assert await shop.pay(shop.payer(chain), order) == 6
        assert chain.built == []

    in_shop(scenario)


def test_another_wallet_takes_over_only_when_nothing_of_the_old_one_is_under_way(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.fake("sequenced"), await shop.order()
        payer = shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        other = EvmLikeFake(shop.folder / "other", "ERC20")
        other.wallet = bytes(range(80, 100))
        with pytest.raises(WalletMoved, match="bring the old one back"):
            await open_wallet(shop.connection, "ERC20", other.wallet, 1)
        moved = shop.payer(chains={"ERC20": other})
        shop.clock.advance(5_000)
        await shop.turn(moved)
        assert (await shop.status(order), other.waiting()) == (1, [])
        shop.clock.advance(60_000)
        assert await finish(shop, payer, order) == [2]
        after = await shop.order()
        await shop.turn(moved)
        assert [tx["payout"] for tx in other.waiting()] == [after.order_id]
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


def test_a_wallet_does_not_take_over_from_one_whose_reservation_is_being_made(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await shop.order()
        await shop.turn(shop.payer(chains=shop.fakes()))
        await shop.connection.execute("update payout_reservation set ended_no = 0")
        row = "select wait_event_type from pg_stat_activity where pid = %s"
        async with await shop.connect() as other, await shop.connect() as beside:

            async def waits() -> bool:
                found = await (await beside.execute(row, (other.info.backend_pid,))).fetchone()
                return found == ("Lock",)

            async with shop.connection.transaction():
                # What a reservation does: it locks the wallet's row first.
                await shop.connection.execute("update hot_wallet set next_nonce = next_nonce")
                taking = asyncio.create_task(open_wallet(other, "ERC20", bytes(range(80, 100)), 2))
                await eventually(waits)
                await shop.connection.execute("update payout_reservation set ended_no = null")
            with pytest.raises(WalletMoved, match="bring the old one back"):
                await taking

    in_shop(scenario)


def test_a_wallet_that_is_being_registered_as_a_cold_one_does_not_take_over(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        old, cold = bytes(range(60, 80)), bytes(range(80, 100))
        await open_wallet(shop.connection, "ERC20", old, 1)
        row = "select wait_event_type from pg_stat_activity where pid = %s"
        async with await shop.connect() as other, await shop.connect() as beside:

            async def waits() -> bool:
                found = await (await beside.execute(row, (other.info.backend_pid,))).fetchone()
                return found == ("Lock",)

            async with shop.connection.transaction():
                await cold_wallets.lock_hot(shop.connection)
                taking = asyncio.create_task(open_wallet(other, "ERC20", cold, 2))
                await eventually(waits)
                await cold_wallets.set_current(shop.connection, "ERC20", cold, 2)
            with pytest.raises(WalletMoved, match="a cold wallet of the platform"):
                await taking

    in_shop(scenario)


def test_the_database_keeps_what_was_signed_and_its_nonce_together(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await shop.order()
        await shop.turn(shop.payer(chains=shop.fakes()))
        for forbidden in (
            b"delete from payout_reservation",
            b"update wallet_nonce set purpose = 'free', merchant_id = null, order_id = null",
            b"update wallet_nonce set order_id = order_id + 1",
        ):
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                await shop.connection.execute(forbidden)

    in_shop(scenario)
