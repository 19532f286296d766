"""What the database refuses a payer whose claim was taken over: each check alone, without the others."""

from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.withdrawals.fake_chains import TronLikeFake

from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.hot_wallet.stops import freeze_wallet, stop_payouts
from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
from merchant_wallet.withdrawals import payouts, reservations
from merchant_wallet.withdrawals.payouts import Claim, ClaimLost, PayoutsStopped

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

TRON = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
WALLET = TronLikeFake.wallet


async def hold(shop: "Shop", order_id: int | None = None, by: str = "first") -> Claim:
    """A claim on an order. Without `order_id` it is a new order with a reservation."""
    is_new = order_id is None
    order_id = order_id if order_id is not None else (await shop.order(address=TRON)).order_id
    now_ms = shop.clock.now_ms
    await payouts.queue_new(shop.connection, shop.connection)
    held = await payouts.claim(
        shop.connection, (1001, order_id), claimed_by=by, now_ms=now_ms, until_ms=now_ms + 1_000
    )
    assert held is not None
    if is_new:
        await open_wallet(shop.connection, "TRC20", WALLET, 1)
        await shop.rows(
            "insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms,"
            " recipient) values (1001, %s, 'TRC20', %s, 1, 1, %s)",
            order_id,
            WALLET,
            b"r" * 20,
        )
    return held


async def overtake(shop: "Shop", held: Claim) -> Claim:
    """Another worker's claim on the same order, after the first has expired."""
    shop.clock.advance(1_000)
    return await hold(shop, held.order_id, "second")


async def store(shop: "Shop", held: Claim, attempt_no: int, name: str) -> None:
    signed = SignedTransfer(name.encode(), f"hash of {name}")
    await payouts.store_signed(shop.connection, held, "TRC20", WALLET, attempt_no, signed, shop.clock.now_ms)


async def stored(shop: "Shop") -> list[tuple[int, str]]:
    rows = await shop.rows("select attempt_no, tx_hash from payout_signed order by 1")
    counted = await shop.rows("select signed_no from payout")
    assert counted == [(len(rows),)]
    return [(number, tx_hash) for number, tx_hash in rows]


async def give_up(shop: "Shop", held: Claim, signed_no: int) -> None:
    await reservations.give_up(
        shop.connection, held, "a proof", shop.clock.now_ms, signed_no=signed_no, chain="TRC20"
    )


def test_signed_bytes_are_stored_only_under_the_newest_fence(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        old = await hold(shop)
        new = await overtake(shop, old)
        with pytest.raises(ClaimLost):
            await store(shop, old, 1, "the old worker's")
        assert await stored(shop) == []
        await store(shop, new, 1, "the new worker's")
        # Neither the used number nor the next one is accepted.
        for attempt_no in (1, 2):
            with pytest.raises(ClaimLost):
                await store(shop, old, attempt_no, "the old worker's")
        assert await stored(shop) == [(1, "hash of the new worker's")]

    in_shop(scenario)


@pytest.mark.parametrize("attempt_no", [0, 1, 3, 7])
def test_signed_bytes_are_stored_only_under_the_number_that_is_next(
    in_shop: "InShop", attempt_no: int
) -> None:
    """A worker that read one transfer too few would sign again what was judged already."""

    async def scenario(shop: "Shop") -> None:
        held = await hold(shop)
        await store(shop, held, 1, "one")
        with pytest.raises((ClaimLost, psycopg.IntegrityError)) as refused:
            await store(shop, held, attempt_no, "another")
        assert refused.type is ClaimLost
        assert await stored(shop) == [(1, "hash of one")]
        await store(shop, held, 2, "two")
        assert await stored(shop) == [(1, "hash of one"), (2, "hash of two")]

    in_shop(scenario)


def test_nothing_is_stored_for_an_order_that_was_given_up_or_frozen(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        held = await hold(shop)
        await store(shop, held, 1, "one")
        await give_up(shop, held, 1)
        with pytest.raises(ClaimLost):
            await store(shop, held, 2, "two")
        await shop.rows(
            "update payout set given_up_cause = null, given_up_ms = null, given_up_signed_no = null"
        )
        await reservations.freeze(shop.connection, held, "a look", 1, freezes_wallet=None)
        with pytest.raises(ClaimLost):
            await store(shop, held, 2, "two")
        assert await stored(shop) == [(1, "hash of one")]

    in_shop(scenario)


def test_an_order_is_given_up_only_by_a_proof_of_all_that_was_signed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        held = await hold(shop)
        await store(shop, held, 1, "one")
        await store(shop, held, 2, "two")
        for signed_no in (0, 1, 3):
            with pytest.raises(ClaimLost):
                await give_up(shop, held, signed_no)
            assert await shop.rows("select given_up_ms, given_up_signed_no from payout") == [(None, None)]
        await give_up(shop, held, 2)
        assert await shop.rows("select given_up_cause, given_up_signed_no from payout") == [("a proof", 2)]

    in_shop(scenario)


def test_an_order_is_given_up_only_under_the_newest_fence_and_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        old = await hold(shop)
        new = await overtake(shop, old)
        with pytest.raises(ClaimLost):
            await give_up(shop, old, 0)
        await give_up(shop, new, 0)
        assert await shop.rows("select * from payout_reservation") == []
        with pytest.raises(ClaimLost):
            await give_up(shop, new, 0)

    in_shop(scenario)


def test_a_claim_is_released_only_under_the_newest_fence(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        old = await hold(shop)
        new = await overtake(shop, old)
        now_ms = shop.clock.now_ms
        with pytest.raises(ClaimLost):
            await payouts.release(shop.connection, old, now_ms=now_ms, delay_ms=0, failures=3)
        assert await shop.rows("select claimed_until_ms, failures from payout") == [(now_ms + 1_000, 0)]
        await payouts.release(shop.connection, new, now_ms=now_ms, delay_ms=0, failures=1)
        assert await shop.rows("select claimed_until_ms, failures from payout") == [(now_ms, 1)]

    in_shop(scenario)


@pytest.mark.parametrize("claimed", [0, 1, 3])
def test_the_database_refuses_a_given_up_order_whose_proof_took_another_number_into_account(
    in_shop: "InShop", claimed: int
) -> None:
    async def scenario(shop: "Shop") -> None:
        held = await hold(shop)
        await store(shop, held, 1, "one")
        await store(shop, held, 2, "two")
        with pytest.raises(psycopg.errors.CheckViolation, match="payout_given_up"):
            await shop.rows(
                "update payout set given_up_cause = 'no', given_up_ms = 1, given_up_signed_no = %s", claimed
            )

    in_shop(scenario)


@pytest.mark.parametrize("how", ["stop", "freeze", "move"])
def test_what_keeps_bytes_from_being_stored_is_told_by_its_own_name(in_shop: "InShop", how: str) -> None:
    async def scenario(shop: "Shop") -> None:
        held, now_ms = await hold(shop), shop.clock.now_ms
        if how == "stop":
            await stop_payouts(shop.connection, "TRC20", "ann", "a look at the books", now_ms)
            expected: type[Exception] = PayoutsStopped
            text = "ann stopped payouts: a look at the books"
        elif how == "freeze":
            await freeze_wallet(shop.connection, "TRC20", "somebody has its key", now_ms)
            expected, text = PayoutsStopped, "the wallet is frozen: somebody has its key"
        else:
            await shop.rows("update hot_wallet set address = %s", bytes(range(20)))
            expected, text = WalletMoved, "is not TFTiupNt"
        with pytest.raises(expected, match=text):
            await store(shop, held, 1, "one")
        assert await stored(shop) == []

    in_shop(scenario)
