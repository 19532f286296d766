"""Payouts on a chain with nonces: nonces, replacements, nonce gaps, and strangers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.chains.protocol import Blocked, Obstacle, Payout, SignedTransfer, Unpayable
from merchant_wallet.hot_wallet.stops import read_stopped, resume_payouts, stop_payouts, thaw_wallet
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.withdrawals.payouts import list_blocked, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.book.outcomes import Withdrawal
    from merchant_wallet.withdrawals.payer import Payer

COIN = 1_000_000
OTHER = "0x00000000000000000000000000000000000000aa"


class FailingBuild(EvmLikeFake):
    """The fake chain, but building fails for some orders after their nonce was reserved.

    With `hold` set, building waits for that event before it fails.
    """

    def __init__(self, path: Path, errors: dict[int, Exception]) -> None:
        super().__init__(path, "ERC20")
        self.errors = errors
        self.spoiling = asyncio.Event()
        self.built = asyncio.Event()
        self.hold: asyncio.Event | None = None

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        if error := self.errors.get(payout.payout_id):
            self.spoiling.set()
            if self.hold is not None:
                await self.hold.wait()
            raise error
        signed = await super().build(payout, earlier)
        self.built.set()
        return signed


async def leave_gap(shop: "Shop", error: Exception) -> "tuple[Withdrawal, Withdrawal, Payer]":
    """Two orders: the first gives nonce 0 back after the second has signed with nonce 1."""
    first = await shop.order()
    chain = FailingBuild(shop.folder / "sequenced", {first.order_id: error})
    chain.hold = asyncio.Event()
    payer = shop.payer(chains={"ERC20": chain})
    await payer.start_due()
    await chain.spoiling.wait()
    second = await shop.order()
    await payer.start_due()
    await chain.built.wait()
    chain.hold.set()
    await payer.finish()
    assert await nonces(shop) == [(0, "free"), (1, "payout")]
    return first, second, payer


async def finish(shop: "Shop", payer: "Payer", *orders: "Withdrawal") -> list[int]:
    """Run the payer and mine blocks until the orders end. Returns their statuses."""
    statuses: list[int] = []
    for _ in range(20):
        await shop.turn(payer)
        statuses = [await shop.status(order) for order in orders]
        if set(statuses) <= {2, 6}:
            break
        shop.fake("sequenced").mine()
        shop.clock.advance(5_000)
    return statuses


async def nonces(shop: "Shop") -> list[tuple[int, str]]:
    return [
        (row[0], row[1]) for row in await shop.rows("select nonce, purpose from wallet_nonce order by nonce")
    ]


def test_orders_take_one_nonce_after_another_and_each_is_paid_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        orders = [await shop.order((2 + number) * COIN) for number in range(10)]
        payers = [shop.payer(chains=shop.fakes(), claim_ms=0, name=str(number)) for number in range(3)]
        for _ in range(8):
            await asyncio.gather(*map(shop.turn, payers))
            shop.fake("sequenced").mine()
            shop.clock.advance(5_000)
        assert await finish(shop, payers[0], *orders) == [2] * 10
        assert await nonces(shop) == [(number, "payout") for number in range(10)]
        assert shop.fake("sequenced").paid() == {order.order_id: [order.arrival_units] for order in orders}

    in_shop(scenario)


def test_a_stuck_transfer_is_replaced_at_its_nonce_until_one_of_them_counts(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order, payer = shop.fake("sequenced"), await shop.order(), shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.set(fee=1_200)
        assert await finish(shop, payer, order) == [2]
        first, second = await read_signed(shop.connection, 1001, order.order_id)
        assert (first.attempt_no, second.attempt_no) == (1, 2)
        assert await nonces(shop) == [(0, "payout")]
        assert await shop.rows("select tx_hash from withdrawal") == [(second.signed.tx_hash,)]
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


def test_the_orders_hash_is_the_one_that_counted_replaced_or_not(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order, payer = shop.fake("sequenced"), await shop.order(), shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.set(fee=1_100)
        for _ in range(3):
            chain.mine()
            shop.clock.advance(5_000)
            await shop.turn(payer)
        first, second = await read_signed(shop.connection, 1001, order.order_id)
        # As if a miner had seen only the first transaction.
        chain.drop_pool()
        chain.set(fee=1_000)
        await chain.broadcast(first.signed.raw)
        chain.mine()
        assert await finish(shop, payer, order) == [2]
        assert await shop.rows("select tx_hash from withdrawal") == [(first.signed.tx_hash,)]
        assert second.signed.tx_hash != first.signed.tx_hash
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


def test_a_replacement_above_the_fee_cap_waits_and_the_same_bytes_are_sent_on(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order, payer = shop.fake("sequenced"), await shop.order(), shop.payer(chains=shop.fakes())
        chain.set(fee=99_000)
        await shop.turn(payer)
        chain.set(fee=100_001)
        assert await finish(shop, payer, order) == [1]
        [waiting] = await list_blocked(shop.connection)
        assert (waiting.order_id, waiting.kind) == (order.order_id, "fee")
        chain.drop_pool()
        chain.set(fee=99_000)
        shop.clock.advance(50_000)
        assert await finish(shop, payer, order) == [2]
        assert await list_blocked(shop.connection) == []
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 1

    in_shop(scenario)


def test_a_recipient_that_becomes_unpayable_while_its_transfer_waits_fails_nothing(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order, payer = shop.fake("sequenced"), await shop.order(), shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.set(fee=1_100, black=[parse_address("ERC20", order.address).hex()])
        assert await finish(shop, payer, order) == [1]
        assert [waiting.kind for waiting in await list_blocked(shop.connection)] == ["stuck"]
        # The transaction that was signed is mined after all.
        chain.set(fee=1_000)
        shop.clock.advance(50_000)
        assert await finish(shop, payer, order) == [2]

    in_shop(scenario)


def test_a_blacklisted_recipient_is_seen_before_anything_is_signed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.fake("sequenced"), await shop.order()
        chain.set(black=[parse_address("ERC20", order.address).hex()])
        assert await finish(shop, shop.payer(chains=shop.fakes()), order) == [6]
        assert await nonces(shop) == []
        assert await shop.rows("select count(*) from payout_signed") == [(0,)]

    in_shop(scenario)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unpayable("blacklisted a moment ago"), 6),
        (Blocked(Obstacle("fuel", "no gas")), 1),
        (ConnectionError("the node went away"), 1),
    ],
)
def test_an_unused_nonce_goes_to_the_next_order(in_shop: "InShop", error: Exception, status: int) -> None:
    async def scenario(shop: "Shop") -> None:
        first = await shop.order()
        errors: dict[int, Exception] = {first.order_id: error}
        payer = shop.payer(chains={"ERC20": FailingBuild(shop.folder / "sequenced", errors)})
        await shop.turn(payer)
        assert await nonces(shop) == [(0, "free")]
        assert await shop.status(first) == status
        second = await shop.order()
        assert await finish(shop, payer, second) == [2]
        assert await nonces(shop) in ([(0, "payout")], [(0, "payout"), (1, "free")])
        errors.clear()
        shop.clock.advance(50_000)
        assert await finish(shop, payer, first) == [2 if status == 1 else 6]
        paid = shop.fake("sequenced").paid()
        assert [len(paid.get(order.order_id, [])) for order in (first, second)] == [int(status == 1), 1]

    in_shop(scenario)


def test_a_nonce_gap_is_cancelled_and_lets_later_payouts_through(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.fake("sequenced")
        gaps = shop.gaps(shop.fakes(), grace_ms=60_000)
        first, second, payer = await leave_gap(shop, Unpayable("blacklisted a moment ago"))
        chain.mine(3)
        assert (chain.paid(), await gaps.cancel_gaps()) == ({}, 0)
        shop.clock.advance(60_000)
        assert await gaps.cancel_gaps() == 1
        # The same bytes are sent again as long as they are needed.
        chain.drop_pool()
        assert await gaps.cancel_gaps() == 1
        assert await shop.rows("select count(*) from cancel_signed") == [(1,)]
        assert await finish(shop, payer, second) == [2]
        assert await gaps.cancel_gaps() == 0
        assert await nonces(shop) == [(0, "cancel"), (1, "payout")]
        assert await shop.status(first) == 6

    in_shop(scenario)


def test_a_stuck_cancel_transaction_is_signed_again_with_a_higher_fee(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.fake("sequenced")
        gaps = shop.gaps(shop.fakes(), grace_ms=0)
        _, second, payer = await leave_gap(shop, Unpayable("blacklisted a moment ago"))
        await gaps.cancel_gaps()
        chain.set(fee=1_100)
        chain.mine(3)
        assert chain.paid() == {}
        shop.clock.advance(300_000)
        await gaps.cancel_gaps()
        assert await shop.rows("select count(*) from cancel_signed") == [(2,)]
        assert await finish(shop, payer, second) == [2]

    in_shop(scenario)


def test_a_nonce_of_a_killed_payer_is_taken_back_even_while_payouts_are_stopped(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.fake("sequenced")
        order, later, _ = await leave_gap(shop, ConnectionError("the node went away"))
        # As if the payer had been killed between reserving and signing.
        await shop.rows(
            "update wallet_nonce set purpose = 'payout', merchant_id = 1001, order_id = %s where nonce = 0",
            order.order_id,
        )
        await shop.rows(
            "insert into payout_reservation values (1001, %s, 'ERC20', %s, 0, 1, %s, null, %s)",
            *(order.order_id, chain.wallet, shop.clock.now_ms, b"r" * 20),
        )
        await stop_payouts(shop.connection, "ERC20", "operator", "a look at the books", shop.clock.now_ms)
        payer, gaps = shop.payer(chains=shop.fakes()), shop.gaps(shop.fakes(), grace_ms=60_000)
        assert await finish(shop, payer, later) == [1]
        shop.clock.advance(60_000)
        assert await gaps.cancel_gaps() == 1
        assert await finish(shop, payer, later) == [2]
        await resume_payouts(shop.connection, "ERC20", await read_stopped(shop.connection, "ERC20"))
        assert await finish(shop, payer, order) == [2]
        assert await nonces(shop) == [(0, "cancel"), (1, "payout"), (2, "payout")]

    in_shop(scenario)


def test_a_strangers_transaction_seen_before_signing_freezes_the_wallet(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("sequenced"), shop.payer(chains=shop.fakes())
        assert await finish(shop, payer, await shop.order()) == [2]
        chain.steal_nonce(1)
        shop.clock.advance(60_000)
        order = await shop.order()
        assert await finish(shop, payer, order) == [1]
        assert await shop.rows("select count(*) from payout_signed") == [(1,)]
        [wallet] = await list_wallets(shop.connection)
        assert "2 transactions of the hot wallet" in (wallet.frozen_cause or "")
        # An operator has checked the wallet: the stranger's nonce is left out.
        assert await thaw_wallet(shop.connection, "ERC20")
        shop.clock.advance(60_000)
        assert await finish(shop, payer, order) == [2]
        assert await nonces(shop) == [(0, "payout"), (2, "payout")]

    in_shop(scenario)


def test_a_nonce_used_by_a_stranger_fails_its_order_and_freezes_the_wallet(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("sequenced"), shop.payer(chains=shop.fakes())
        order = await shop.order()
        await shop.turn(payer)
        chain.steal_nonce(0)
        assert await finish(shop, payer, order) == [6]
        next_order = await shop.order()
        assert await finish(shop, payer, next_order) == [0]
        [wallet] = await list_wallets(shop.connection)
        assert "place 0 was used by stolen 0" in (wallet.frozen_cause or "")
        assert await thaw_wallet(shop.connection, "ERC20")
        assert await finish(shop, payer, next_order) == [2]
        assert chain.paid() == {next_order.order_id: [next_order.arrival_units]}

    in_shop(scenario)


def test_a_wallet_that_was_used_before_begins_after_what_it_has_sent(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, payer = shop.fake("sequenced"), shop.payer(chains=shop.fakes())
        chain.steal_nonce(0)
        chain.mine()
        assert await finish(shop, payer, await shop.order()) == [2]
        assert await nonces(shop) == [(1, "payout")]

    in_shop(scenario)


def test_a_reorganisation_that_forgets_the_transfer_makes_the_same_bytes_go_out_again(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order, payer = shop.fake("sequenced"), await shop.order(), shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.mine(2)
        chain.reorganise(2, keep=False)
        assert chain.paid() == {}
        assert await finish(shop, payer, order) == [2]
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 1
        assert chain.paid() == {order.order_id: [order.arrival_units]}

    in_shop(scenario)


class SlowBuild(EvmLikeFake):
    """The fake chain, but a built transaction is returned only when a test says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ERC20")
        self.building = asyncio.Event()
        self.go_on = asyncio.Event()

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        signed = await super().build(payout, earlier)
        self.building.set()
        await self.go_on.wait()
        return signed


def test_bytes_are_never_sent_for_a_nonce_that_another_payer_signed_meanwhile(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.fake("sequenced"), await shop.order()
        slow = SlowBuild(shop.folder / "sequenced")
        old = shop.payer(chains={"ERC20": slow}, claim_ms=1_000)
        await old.start_due()
        await slow.building.wait()
        shop.clock.advance(1_000)
        assert await finish(shop, shop.payer(chains=shop.fakes()), order) == [2]
        slow.go_on.set()
        await old.finish()
        assert chain.waiting() == []
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 1

    in_shop(scenario)
