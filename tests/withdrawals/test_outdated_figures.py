"""Funds of a hot wallet that are too old to use are reported as such, and never as a shortage."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waits import eventually
from tests.withdrawals.fake_chains import TronLikeFake

from merchant_wallet.hot_wallet.funds import (
    BALANCE_MAX_AGE_MS,
    Outdated,
    Reservation,
    Shortage,
    Wanted,
    record_chain_state,
)
from merchant_wallet.hot_wallet.store import list_wallets, open_wallet
from merchant_wallet.hot_wallet.wallet import HotWallet
from merchant_wallet.withdrawals.payouts import Claim, claim, list_blocked, queue_new
from merchant_wallet.withdrawals.reservations import reserve

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
TRON = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
PLENTY = 999_999_978 * COIN
WALLET = TronLikeFake.wallet
RECIPIENT = bytes(range(200, 220))


class Counting(TronLikeFake):
    """It counts how often it is asked for the funds, and answers when it may."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "TRC20")
        self.asked = 0
        self.may_answer = asyncio.Event()

    async def funds(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        return PLENTY


class Overwritten(TronLikeFake):
    """Whenever this payer reads the funds, another payer stores its own figures, with its own clock."""

    def __init__(self, path: Path, shop: "Shop", its_clock_ms: int) -> None:
        super().__init__(path, "TRC20")
        self.shop = shop
        self.its_clock_ms = its_clock_ms

    async def funds(self) -> int:
        await self.shop.rows(
            "update hot_wallet set funds = %s, ended_payouts = ended_payouts + 1,"
            " funds_ended_payouts = ended_payouts + 1, checked_ms = %s",
            PLENTY,
            self.shop.clock.now_ms + self.its_clock_ms,
        )
        return PLENTY


@pytest.mark.parametrize(
    ("its_clock_ms", "kind", "text"),
    [
        (
            3_600_000,
            "clock",
            "by a clock that is 3600 s ahead of this one: compare the clocks of all machines",
        ),
        (-11_000, "stale", "is 11 s old, and at most 10 s are trusted"),
    ],
)
def test_a_wallet_full_of_money_is_not_said_to_lack_it(
    in_shop: "InShop", its_clock_ms: int, kind: str, text: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = Overwritten(shop.folder / "chain", shop, its_clock_ms), await shop.order(address=TRON)
        payer = shop.payer(chains={"TRC20": chain})
        await shop.turn(payer)
        [waiting] = await list_blocked(shop.connection)
        assert (waiting.order_id, waiting.kind) == (order.order_id, kind)
        assert text in waiting.cause
        assert "free" not in waiting.cause
        [wallet] = await list_wallets(shop.connection)
        assert (wallet.funds_units, chain.waiting()) == (PLENTY, [])
        # Once the clocks agree, payouts go on by themselves.
        chain.its_clock_ms = 0
        shop.clock.advance(50_000)
        await shop.turn(payer)
        assert await list_blocked(shop.connection) == []
        assert len(chain.waiting()) == 1

    in_shop(scenario)


async def note_funds(shop: "Shop", funds_units: int, ended: int) -> None:
    """The chain's answer about the wallet, asked for after so many reservations had ended."""
    await record_chain_state(
        shop.connection,
        "TRC20",
        WALLET,
        ended_payouts=ended,
        funds_units=funds_units,
        nonce=None,
        now_ms=shop.clock.now_ms,
    )


async def hold(shop: "Shop") -> Claim:
    """A claim on a new order, whose hot wallet is stored."""
    order = await shop.order(address=TRON)
    await queue_new(shop.connection, shop.connection)
    held = await claim(
        shop.connection,
        (1001, order.order_id),
        claimed_by="test",
        now_ms=shop.clock.now_ms,
        until_ms=shop.clock.now_ms + 60_000,
    )
    assert held is not None
    await open_wallet(shop.connection, "TRC20", WALLET, 1)
    return held


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [
        (-1, Outdated(-1)),
        (0, None),
        (BALANCE_MAX_AGE_MS, None),
        (BALANCE_MAX_AGE_MS + 1, Outdated(BALANCE_MAX_AGE_MS + 1)),
        (-3_600_000, Outdated(-3_600_000)),
    ],
)
@pytest.mark.parametrize("funds_units", [0, 100 * COIN])
def test_figures_count_from_the_moment_they_were_written_until_they_are_too_old(
    in_shop: "InShop", age_ms: int, expected: Outdated | None, funds_units: int
) -> None:
    """With funds or without: a shortage is reported only from figures that can be used."""

    async def scenario(shop: "Shop") -> None:
        held, now_ms = await hold(shop), shop.clock.now_ms
        await shop.rows(
            "update hot_wallet set funds = %s, funds_ended_payouts = 0, checked_ms = %s",
            funds_units,
            now_ms - age_ms,
        )
        found = await reserve(
            shop.connection, held, Wanted("TRC20", WALLET, False, 10 * COIN, RECIPIENT), now_ms
        )
        fresh = Reservation(WALLET, None) if funds_units else Shortage(0, settled=age_ms <= 2_000)
        assert found == (fresh if expected is None else expected)

    in_shop(scenario)


def test_figures_that_were_never_asked_for_are_no_shortage(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        held, wanted = await hold(shop), Wanted("TRC20", WALLET, False, 10 * COIN, RECIPIENT)
        assert await reserve(shop.connection, held, wanted, shop.clock.now_ms) == Outdated(None)

    in_shop(scenario)


def test_an_answer_to_an_older_request_for_the_balance_replaces_no_newer_one(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await open_wallet(shop.connection, "TRC20", WALLET, 1)
        await shop.rows("update hot_wallet set ended_payouts = 2")
        kept = []
        for ended, funds_units in [(2, 50 * COIN), (1, 90 * COIN), (2, 40 * COIN)]:
            await note_funds(shop, funds_units, ended)
            kept += await shop.rows("select funds, funds_ended_payouts from hot_wallet")
        assert kept == [(50 * COIN, 2), (50 * COIN, 2), (40 * COIN, 2)]

    in_shop(scenario)


def test_who_needs_the_funds_at_once_shares_one_request_and_not_its_cancellation(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = Counting(shop.folder / "chain")
        wallet = HotWallet("TRC20", chain, shop.clock)
        await wallet.open(shop.connection)
        first, second, third = [asyncio.create_task(wallet.refresh(shop.connection)) for _ in range(3)]

        async def is_asked() -> bool:
            return chain.asked == 1

        await eventually(is_asked)
        first.cancel()
        await asyncio.wait((first,))
        chain.may_answer.set()
        await asyncio.gather(second, third)
        assert chain.asked == 2
        assert [shown.funds_units for shown in await list_wallets(shop.connection)] == [PLENTY]

    in_shop(scenario)
