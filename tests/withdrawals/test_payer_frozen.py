"""An order that differs from the journal, or from what the chain shows, is frozen and moves nothing."""

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.chains.protocol import Blocked, FinalRecord, Obstacle, Transfer
from merchant_wallet.hot_wallet.stops import thaw_wallet
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.withdrawals import payouts

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
ADDRESSES = {
    "ERC20": "0x742d35cc6634c0532925a3b844bc454e4438f44e",
    "TRC20": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
}


@pytest.fixture
def in_shop(in_each_layout: "InShop") -> "InShop":
    """Each test runs in both layouts."""
    return in_each_layout


def test_a_transfer_of_another_amount_freezes_the_order_and_its_chains_new_payouts(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        recipient = parse_address("ERC20", ADDRESSES["ERC20"])
        chain = shop.scripted(FinalRecord(Transfer("ERC20", "USDT", recipient, 9 * COIN - 1), "another"))
        wrong = await shop.order(10 * COIN, fee=COIN)
        payer = shop.payer(chains={"ERC20": chain, "TRC20": shop.chains()["TRC20"]})
        with capture_logs() as logs:
            await shop.turn(payer)
        assert [(line["order_id"], line["log_level"]) for line in logs][-1:] == [(wrong.order_id, "critical")]
        same_chain, other_chain = await shop.order(), await shop.order(address=ADDRESSES["TRC20"])
        assert await shop.pay(payer, other_chain) == 2
        assert (await shop.status(wrong), await shop.status(same_chain)) == (1, 0)
        [frozen] = await payouts.list_frozen(shop.connection)
        assert frozen.order_id == wrong.order_id
        assert "8.999999 USDT" in frozen.cause
        [wallet] = [row for row in await list_wallets(shop.connection) if row.frozen_ms is not None]
        assert (wallet.chain, wallet.frozen_cause) == ("ERC20", frozen.cause)
        chain.verdict = chain.final()
        await shop.thaw(frozen.order_id)
        assert not await payouts.thaw(shop.connection, frozen.merchant_id, frozen.order_id)
        assert await shop.pay(payer, wrong) == 2
        assert await shop.pay(payer, same_chain) == 0
        assert await thaw_wallet(shop.connection, "ERC20")
        assert not await thaw_wallet(shop.connection, "ERC20")
        chain.verdict = None
        await shop.turn(payer)
        chain.verdict = chain.final_record_of(same_chain.order_id)
        assert await shop.pay(payer, same_chain) == 2

    in_shop(scenario)


@pytest.mark.parametrize(
    "tampering",
    [
        "update withdrawal set amount = amount + 1",
        "update withdrawal set fee = fee - 1",
        "update withdrawal set address = '0x00000000000000000000000000000000000000aa'",
        "update withdrawal set chain = 'TRC20', address = 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC'",
        "update withdrawal set mc_order_id = 'another'",
        "update posting set amount = amount + 1 where entry_id = (select order_id from withdrawal)",
        "update entry set hash = sha256('') where entry_id = (select order_id from withdrawal)",
        "update entry set hash = sha256('') where entry_id < (select order_id from withdrawal)",
        "delete from entry where entry_id = (select order_id from withdrawal)",
    ],
)
def test_an_order_that_differs_from_the_journal_is_frozen_and_nothing_is_signed(
    in_shop: "InShop", tampering: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(), shop.scripted()
        await shop.connection.execute(tampering.encode())
        await shop.turn(shop.payer(chain))
        assert await shop.rows("select status from withdrawal") == [(1,)]
        [frozen] = await payouts.list_frozen(shop.connection)
        assert frozen.order_id == order.order_id
        assert [row.frozen_ms for row in await list_wallets(shop.connection)] in ([], [None])
        assert (chain.built, chain.broadcasts) == ([], [])

    in_shop(scenario)


def test_an_approval_from_before_its_persons_word_counted_is_frozen_and_nothing_is_signed(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(200 * COIN), shop.scripted()
        await shop.approve(order)
        await shop.connection.execute(
            "insert into operator_wait select 'operator', approved_ms, approved_ms + 1, 'reset'"
            " from withdrawal"
        )
        await shop.turn(shop.payer(chain))
        [frozen] = await payouts.list_frozen(shop.connection)
        assert frozen.order_id == order.order_id
        assert "did not count" in frozen.cause
        assert (chain.built, chain.broadcasts) == ([], [])

    in_shop(scenario)


def test_an_early_approval_that_is_found_after_the_order_was_taken_up_freezes_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, chain = await shop.order(200 * COIN), shop.scripted()
        await shop.approve(order)
        chain.check_error = Blocked(Obstacle("fuel", "no coin for the fee"))
        payer = shop.payer(chain)
        await shop.turn(payer)
        assert await shop.status(order) == 1
        await shop.connection.execute(
            "insert into operator_wait select 'operator', approved_ms, approved_ms + 1, 'reset'"
            " from withdrawal"
        )
        chain.check_error = None
        shop.clock.advance(50_000)
        await shop.turn(payer)
        assert [frozen.order_id for frozen in await payouts.list_frozen(shop.connection)] == [order.order_id]
        assert (chain.built, chain.broadcasts) == ([], [])

    in_shop(scenario)


def test_an_operator_called_limit_freezes_nothing_that_the_limit_lets_go(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, payer = await shop.order(), shop.payer()
        await shop.connection.execute(
            "insert into operator_wait values ('limit', 0, 9000000000000, 'created')"
        )
        assert await shop.pay(payer, order) == 2

    in_shop(scenario)
