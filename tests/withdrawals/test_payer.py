"""The payer on a real database with real commits. Time moves only when a test moves it."""

from typing import TYPE_CHECKING, Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from merchant_wallet.base.addresses import SANDBOX_FAILING, SANDBOX_SLOW, format_address, parse_address
from merchant_wallet.book.commands import Cancel, Submission, TakeUp
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.chains.protocol import Pending, ProvenUnpaid, Unpayable

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
ADDRESSES = {
    "ERC20": "0x742d35cc6634c0532925a3b844bc454e4438f44e",
    "TRC20": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
}
CHAINS = pytest.mark.parametrize("chain", ["ERC20", "TRC20"])


def events(logs: list[Any], order: Withdrawal) -> list[str]:
    return [line["event"] for line in logs if line.get("order_id") == order.order_id]


@CHAINS
def test_an_order_within_the_limit_is_paid_once_and_settled(in_shop: "InShop", chain: str) -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(10 * COIN, ADDRESSES[chain], fee=COIN)
        payer = shop.payer()
        await shop.turn(payer)
        assert await shop.status(order) == 1
        shop.clock.advance(1_500)
        await shop.turn(payer)
        assert await shop.status(order) == 2
        [(on_chain, recipient, amount, tx_hash)] = await shop.transfers()
        assert (on_chain, bytes(recipient), amount) == (
            chain,
            parse_address(chain, ADDRESSES[chain]),
            9 * COIN,
        )
        assert await shop.rows("select tx_hash from withdrawal") == [(tx_hash,)]
        assert await shop.balances() == {
            "merchant:USDT": 990 * COIN,
            "fees:USDT": COIN,
            f"chain:{chain}:USDT": 9 * COIN,
            "adjustment:USDT": -1000 * COIN,
        }
        assert await shop.turn(payer) == 0

    in_shop(scenario)


def test_an_order_above_the_limit_waits_for_its_approval(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, payer = await shop.order(200 * COIN), shop.payer()
        assert await shop.pay(payer, order) == 0
        await shop.approve(order)
        assert await shop.pay(payer, order) == 2

    in_shop(scenario)


def test_a_cancelled_order_is_never_paid(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        await shop.ask(Cancel(order.order_id, "operator"))
        assert await shop.pay(shop.payer(), order) == 4
        assert await shop.transfers() == []

    in_shop(scenario)


def test_a_suspended_merchants_pending_orders_wait_and_those_taken_up_go_on(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        payer, taken_up = shop.payer(), await shop.order()
        await shop.turn(payer)
        waiting = await shop.order()
        await shop.suspend()
        assert await shop.pay(payer, taken_up) == 2
        assert await shop.pay(payer, waiting) == 0
        await shop.suspend("active")
        assert await shop.pay(payer, waiting) == 2

    in_shop(scenario)


class LateSuspension:
    """The book, but the merchant is suspended between the payer's read and its `TakeUp`."""

    def __init__(self, shop: "Shop") -> None:
        self.shop = shop

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        if isinstance(submission.command, TakeUp):
            await self.shop.suspend()
        return await self.shop.book.submit(merchant_id, submission)


def test_a_merchant_suspended_at_the_last_moment_keeps_its_order_pending(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        payer = shop.payer(book=LateSuspension(shop))
        assert await shop.turn(payer) == 1
        assert await shop.status(order) == 0
        assert await shop.transfers() == []

    in_shop(scenario)


@CHAINS
def test_an_order_that_fails_for_good_is_refunded_in_full(in_shop: "InShop", chain: str) -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(address=format_address(chain, SANDBOX_FAILING))
        assert await shop.pay(shop.payer(), order) == 6
        assert [
            row[0] for row in await shop.rows("select to_status from withdrawal_step order by step_no")
        ] == [0, 1, 3, 6]
        assert await shop.rows("select status from callback order by status") == [(3,), (6,)]
        assert await shop.balances() == {"merchant:USDT": 1000 * COIN, "adjustment:USDT": -1000 * COIN}

    in_shop(scenario)


def test_a_refund_is_kept_back_while_the_setting_says_so(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(address=format_address("TRC20", SANDBOX_FAILING))
        careful = shop.payer(hold_refunds=True)
        assert await shop.pay(careful, order) == 3
        assert await shop.turn(careful) == 0
        assert await shop.pay(shop.payer(), order) == 6

    in_shop(scenario)


def test_a_slow_recipient_is_paid_after_a_minute(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(address=format_address("ERC20", SANDBOX_SLOW))
        payer = shop.payer()
        await shop.turn(payer)
        shop.clock.advance(59_999)
        await shop.turn(payer)
        assert await shop.status(order) == 1
        shop.clock.advance(1)
        await shop.turn(payer)
        assert await shop.status(order) == 2

    in_shop(scenario)


def test_a_transfer_is_sent_twice_before_the_chain_can_answer_and_then_when_it_can(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted(Pending(check_after_ms=60_000))
        await shop.order()
        payer = shop.payer(chain)
        sent = []
        for rest_ms in (0, 14_999, 1, 59_999, 1):
            shop.clock.advance(rest_ms)
            await shop.turn(payer)
            sent.append(len(chain.broadcasts))
        assert sent == [1, 1, 2, 2, 3]

    in_shop(scenario)


def test_a_transfer_in_a_block_is_not_sent_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        order, payer = await shop.order(), shop.payer(chain)
        await shop.turn(payer)
        chain.verdict = Pending(is_mined=True)
        shop.clock.advance(60_000)
        await shop.turn(payer)
        assert (len(chain.judged), len(chain.broadcasts)) == (2, 1)
        chain.verdict = chain.final()
        shop.clock.advance(60_000)
        await shop.turn(payer)
        assert await shop.status(order) == 2

    in_shop(scenario)


def test_the_signed_bytes_are_committed_before_they_are_broadcast(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()

        async def look(raw: bytes) -> None:
            assert await shop.rows("select raw from payout_signed") == [(raw,)]
            seen.append(raw)

        seen: list[bytes] = []
        chain.on_broadcast = look
        await shop.order()
        await shop.turn(shop.payer(chain))
        assert len(seen) == 1

    in_shop(scenario)


def test_the_same_bytes_are_sent_until_the_chain_has_spoken(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        first, second = shop.payer(chain), shop.payer(chain)
        for payer in (first, second, first):
            await shop.turn(payer)
            shop.clock.advance(5_000)
        assert len(chain.built) == 1
        assert chain.broadcasts == [chain.broadcasts[0]] * 3
        chain.verdict = chain.final()
        assert await shop.pay(second, order) == 2

    in_shop(scenario)


def test_orders_that_wait_for_their_chain_do_not_keep_a_new_one_from_being_signed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        payer = shop.payer(chain, max_concurrent=1)
        await shop.order()
        await shop.turn(payer)
        shop.clock.advance(1_000)
        new = await shop.order()
        shop.clock.advance(60_000)
        assert await shop.turn(payer) == 1
        assert [payout.payout_id for payout in chain.built][1:] == [new.order_id]

    in_shop(scenario)


def test_a_transfer_that_is_pending_for_long_is_asked_about_and_sent_more_rarely(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        payer, signed_ms = shop.payer(chain), shop.clock.now_ms
        await shop.order()
        await shop.turn(payer)
        for age_ms, delay_ms in ((80_000, 10_000), (320_000, 40_000)):
            shop.clock.now_ms = signed_ms + age_ms
            assert await shop.turn(payer) == 1
            shop.clock.advance(delay_ms - 1)
            assert await shop.turn(payer) == 0
            shop.clock.advance(1)
            assert await shop.turn(payer) == 1
        assert len(chain.broadcasts) == 5
        # New bytes are judged after they are sent, stored bytes before.
        assert len(chain.judged) == 5

    in_shop(scenario)


def test_a_broadcast_that_fails_proves_nothing_and_is_tried_again_later_and_later(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()

        async def fail(_: bytes) -> None:
            raise ConnectionError("the node is away")

        chain.on_broadcast = fail
        payer = shop.payer(chain)
        for delay_ms in (250, 500, 1_000):
            with capture_logs(processors=[merge_contextvars]) as logs:
                await shop.turn(payer)
            assert events(logs, order)[-1] == "payout attempt failed"
            shop.clock.advance(delay_ms - 1)
            assert await shop.turn(payer) == 0
            shop.clock.advance(1)
        assert await shop.status(order) == 1
        chain.on_broadcast, chain.verdict = None, chain.final()
        assert await shop.pay(payer, order) == 2

    in_shop(scenario)


def test_a_recipient_that_cannot_be_paid_fails_the_order_without_any_bytes(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        chain.build_error = Unpayable("the token's contract refuses this recipient")
        assert await shop.pay(shop.payer(chain), order) == 6
        assert await shop.rows("select cause from withdrawal_step where to_status = 3") == [
            (str(chain.build_error),)
        ]
        assert chain.broadcasts == []

    in_shop(scenario)


def test_a_proof_that_nothing_was_paid_fails_the_order_with_the_chains_cause(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        chain = shop.scripted(ProvenUnpaid("reverted in a finalized block"))
        assert await shop.pay(shop.payer(chain), order) == 6
        causes = await shop.rows("select cause from withdrawal_step where to_status = 3")
        assert causes == [("reverted in a finalized block",)]

    in_shop(scenario)
