"""What is reserved for a lost order ends when the chain has proven what became of its signed transfers."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.conftest import ERC20_ADDRESS, MERCHANT_ID
from tests.withdrawals.fake_chains import EXPIRES_AFTER, FINALITY, FakeChain
from tests.withdrawals.test_reserves import TRON

from merchant_wallet.audit.records import list_entries
from merchant_wallet.chains.protocol import ChainAway, Payout, SignedTransfer, Verdict
from merchant_wallet.withdrawals.lost_payouts import END, EXPIRED_MS, LostPayoutWorker, NotJudged
from merchant_wallet.withdrawals.nonce_gaps import LOST_MS

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

    from merchant_wallet.book.outcomes import Withdrawal

CLOSE = "update payout set phase = 'closed'"
RESERVE = """with made as (
    insert into payout (merchant_id, order_id, fence, claimed_until_ms, chain, phase)
    values (%s, 777, 0, 0, 'TRC20', 'closed') returning merchant_id, order_id)
insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms, recipient)
select merchant_id, order_id, 'TRC20', %s, 1, %s, repeat('r', 20)::bytea from made"""
ROLL_BACK = """insert into rollback_evidence (merchant_id, subject, kind, cause, since_ms)
 values (0, 'home', 'behind', 'home was rolled back', 0)"""


async def lose(shop: "Shop", address: str) -> "Withdrawal":
    """An order that was signed and sent. Its book begins anew."""
    order = await shop.order(10_000_000, address)
    await shop.turn(shop.payer(chains=shop.fakes()))
    await shop.rows(CLOSE)
    return order


async def list_open(shop: "Shop") -> list[tuple[int, ...]]:
    return await shop.rows("select order_id from payout_reservation where ended_no is null order by 1")


async def list_outcomes(shop: "Shop") -> list[str]:
    entries = await list_entries(shop.connection, action=END, merchant_id=MERCHANT_ID, limit=10)
    return [(entry.after or {})["outcome"] for entry in entries]


@pytest.mark.parametrize(("kind", "address"), [("sequenced", ERC20_ADDRESS), ("expiring", TRON)])
def test_a_lost_order_whose_transfer_is_final_reserves_nothing(
    in_shop: "InShop", kind: str, address: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        order, worker = await lose(shop, address), LostPayoutWorker(shop.connect, shop.fakes())
        shop.fake(kind).mine()
        assert await worker.end_proven() == 0
        assert await list_open(shop) == [(order.order_id,)]
        for _ in range(FINALITY):
            shop.fake(kind).mine()
        await shop.rows(ROLL_BACK)
        assert await worker.end_proven() == 0
        await shop.rows("delete from rollback_evidence")
        assert await worker.end_proven() == 1
        assert await list_open(shop) == []
        [outcome] = await list_outcomes(shop)
        assert outcome.startswith("transaction ")
        assert await worker.end_proven() == 0

    in_shop(scenario)


@pytest.mark.parametrize(("kind", "address"), [("sequenced", ERC20_ADDRESS), ("expiring", TRON)])
def test_a_lost_order_whose_transfers_are_void_reserves_nothing(
    in_shop: "InShop", kind: str, address: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        await lose(shop, address)
        chain = shop.fake(kind)
        chain.drop_pool()
        if kind == "sequenced":
            # What home signed in the lost time used the nonce.
            chain.steal_nonce(0)
        chain.mine(EXPIRES_AFTER + FINALITY + 1)
        assert await LostPayoutWorker(shop.connect, shop.fakes()).end_proven() == 1
        assert await list_open(shop) == []
        [outcome] = await list_outcomes(shop)
        assert outcome.startswith("nothing was paid: ")
        assert await shop.rows("select frozen_cause from hot_wallet where frozen_cause is not null") == []

    in_shop(scenario)


def test_the_nonce_of_a_lost_order_that_nobody_sends_is_cancelled_after_an_hour(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        lost, chain = await lose(shop, ERC20_ADDRESS), shop.fake("sequenced")
        chain.drop_pool()
        later, payer = await shop.order(10_000_000), shop.payer(chains=shop.fakes())
        await shop.turn(payer)
        chain.mine(FINALITY + 1)
        assert chain.paid() == {}
        gaps, worker = shop.gaps(shop.fakes()), LostPayoutWorker(shop.connect, shop.fakes())
        shop.clock.advance(LOST_MS - 1)
        assert await gaps.cancel_gaps() == 0
        shop.clock.advance(1)
        assert await gaps.cancel_gaps() == 1
        [(signed,), (cancel,)] = await shop.rows(
            "(select raw from payout_signed where order_id = %s) union all select raw from cancel_signed",
            lost.order_id,
        )
        assert json.loads(cancel)["fee"] > json.loads(signed)["fee"], "a node may still have the payout"
        chain.mine(FINALITY + 1)
        assert await worker.end_proven() == 1
        [outcome] = await list_outcomes(shop)
        assert outcome.startswith("nothing was paid: ")
        assert await gaps.cancel_gaps() == 0
        await shop.turn(payer)
        chain.mine(FINALITY + 1)
        assert await shop.pay(payer, later) == 2

    in_shop(scenario)


def test_a_node_that_is_away_delays_its_own_lost_orders_only(in_shop: "InShop") -> None:
    class Away(FakeChain):
        async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
            raise ChainAway("nobody answers")

    async def scenario(shop: "Shop") -> None:
        waits = await lose(shop, ERC20_ADDRESS)
        await lose(shop, TRON)
        shop.fake("expiring").mine(FINALITY + 1)
        chains = {**shop.fakes(), "ERC20": Away(shop.folder / "sequenced", "ERC20")}
        with pytest.raises(NotJudged, match="1 lost payout could"):
            await LostPayoutWorker(shop.connect, chains).end_proven()
        assert await list_open(shop) == [(waits.order_id,)]

    in_shop(scenario)


def test_an_unsigned_lost_order_without_a_nonce_reserves_nothing_after_a_day(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.fake("expiring")
        await shop.rows(RESERVE, MERCHANT_ID, chain.wallet, shop.clock.now_ms)
        worker = LostPayoutWorker(shop.connect, shop.fakes(), clock=shop.clock)
        shop.clock.advance(EXPIRED_MS)
        assert await worker.end_proven() == 0
        shop.clock.advance(1)
        assert await worker.end_proven() == 1
        assert await shop.rows("select from payout_reservation") == []

    in_shop(scenario)
