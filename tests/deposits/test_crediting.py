"""Crediting: dust, missing rates, which callbacks are due, and a book that can't be asked."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from tests.deposits.conftest import (
    CAFE,
    COIN,
    FINAL_DEPTH,
    SHOP,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)

from merchant_wallet.book.commands import CreditDeposit, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.deposits.crediting import PAGE, RETRY_DELAY_MS, CreditingWorker
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.deposits import DepositFilter, list_deposits, sum_uncredited


async def arrive(scene: DepositScene, chain: FakeChainReader, *sent: tuple[str, int]) -> list[str]:
    """Let transfers arrive and become final. Returns their hashes."""
    hashes = chain.mine(*[(address(name, chain.name), units) for name, units in sent])
    chain.mine(blocks=FINAL_DEPTH)
    await scene.catch_up(scene.watcher(chain))
    return hashes


def test_a_wallet_of_kfb_gets_kfb_at_the_rate_of_the_moment(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        (sent,) = await arrive(scene, FakeChainReader("TRC20"), ("anna", 3 * COIN))
        await scene.crediting_worker().credit_due()
        shown = await scene.deposit(sent)
        assert (shown.currency, shown.credited_units, shown.rate_e8) == ("KFB", 21 * COIN, 7 * 10**8)
        assert (await scene.balances())["anna"] == 21 * COIN
        assert await scene.rows("select kind, rate_e8 from entry where entry_id = %s", shown.entry_id) == [
            ("deposit", 7 * 10**8)
        ]
        await scene.expect_sound()

    in_scene(scenario)


@pytest.mark.parametrize(
    ("rate", "cause"),
    [
        ((None, False), "no rate USDT:KFB is set"),
        ((7 * 10**8, True), "exchange USDT:KFB is paused"),
    ],
    ids=["none", "paused"],
)
def test_without_a_rate_a_deposit_waits_says_why_and_is_tried_again(
    in_scene: InScene, rate: tuple[int | None, bool], cause: str
) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.set_rate(rate[0], paused=rate[1])
        (anna, ulla) = await arrive(scene, FakeChainReader(), ("anna", 3 * COIN), ("ulla", COIN))
        crediting_worker = scene.crediting_worker()
        assert await crediting_worker.credit_due() == 1
        shown = await scene.deposit(anna)
        assert (shown.status, await scene.status_of(ulla)) == ("pending", "credited")
        assert shown.cause == cause
        await scene.set_rate(6 * 10**8)
        assert await crediting_worker.credit_due() == 0
        scene.clock.advance(RETRY_DELAY_MS)
        assert await crediting_worker.credit_due() == 1
        shown = await scene.deposit(anna)
        assert (shown.credited_units, shown.cause) == (18 * COIN, None)

    in_scene(scenario)


def test_a_rest_ends_though_the_clock_went_back(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.set_rate(None)
        await arrive(scene, FakeChainReader(), ("anna", 3 * COIN))
        crediting_worker = scene.crediting_worker()
        await crediting_worker.credit_due()
        await scene.set_rate(6 * 10**8)
        scene.clock.advance(-3_600_000)
        assert await crediting_worker.credit_due() == 1

    in_scene(scenario)


def test_a_suspended_merchant_is_credited_all_the_same(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.rows("update merchant set status = 'suspended'")
        await arrive(scene, FakeChainReader(), ("shop", 3 * COIN))
        assert await scene.crediting_worker().credit_due() == 1
        assert (await scene.balances())["merchant:USDT"] == 3 * COIN

    in_scene(scenario)


def test_dust_is_kept_until_what_lies_at_its_address_is_enough(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain, crediting_worker = FakeChainReader(), scene.crediting_worker()
        first = await arrive(scene, chain, ("ulla", COIN // 2), ("anna", COIN // 2), ("otto", COIN - 1))
        assert await crediting_worker.credit_due() == 0
        assert {await scene.status_of(sent) for sent in first} == {"dust"}
        assert await sum_uncredited(scene.connection) == {"ERC20": 2 * COIN - 1}
        assert (
            len(
                (
                    await list_deposits(
                        scene.home, reach_one(scene.connection), DepositFilter(statuses=("dust",))
                    )
                ).rows
            )
            == 3
        )
        (second,) = await arrive(scene, chain, ("ulla", COIN // 2))
        assert await crediting_worker.credit_due() == 2
        assert (await scene.balances())["ulla"] == COIN
        assert {await scene.status_of(sent) for sent in (first[0], second)} == {"credited"}
        assert {await scene.status_of(sent) for sent in first[1:]} == {"dust"}
        # Dust that was credited no longer counts.
        (third,) = await arrive(scene, chain, ("ulla", COIN // 2))
        assert await scene.status_of(third) == "dust"
        await scene.expect_sound()

    in_scene(scenario)


def test_dust_is_not_added_up_across_chains(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        for name in ("ERC20", "TRC20"):
            await arrive(scene, FakeChainReader(name), ("ulla", COIN // 2 + 1))
        assert await scene.crediting_worker().credit_due() == 0

    in_scene(scenario)


def test_a_lower_minimum_holds_for_dust_that_was_there_before(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await arrive(scene, chain, ("ulla", COIN // 2), ("otto", COIN // 4))
        await scene.watcher(chain, minimum_units=COIN // 2).follow()
        assert await scene.crediting_worker().credit_due() == 1
        assert await scene.balances(CAFE) == {}

    in_scene(scenario)


def test_a_large_deposit_takes_the_dust_before_it_along_only_when_that_is_enough(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (dust,) = await arrive(scene, chain, ("ulla", 1))
        (sent,) = await arrive(scene, chain, ("ulla", 5 * COIN))
        await scene.crediting_worker().credit_due()
        assert (await scene.status_of(dust), await scene.status_of(sent)) == ("dust", "credited")

    in_scene(scenario)


@pytest.mark.parametrize("url", [None, "https://shop.example/deposits"])
def test_a_callback_goes_where_the_merchants_setting_says(in_scene: InScene, url: str | None) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.rows("update merchant set deposit_notify_url = %s where merchant_id = %s", url, SHOP)
        (sent,) = await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
        await scene.crediting_worker().credit_due()
        entry_id = (await scene.deposit(sent)).entry_id
        told = await scene.rows("select order_id, status, event_id, event_type from callback")
        assert told == ([(entry_id, 0, f"evt_{entry_id}_deposit", "deposit")] if url else [])
        await scene.expect_sound()

    in_scene(scenario)


@dataclass
class FakeBook:
    """A book whose answers a test sets."""

    ask: Callable[[int, Submission], Awaitable[Outcome]]

    def submit(self, merchant_id: int, submission: Submission) -> Awaitable[Outcome]:
        return self.ask(merchant_id, submission)


def test_a_url_that_is_set_while_a_deposit_is_credited_is_heeded(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async def set_url_first(merchant_id: int, submission: Submission) -> Outcome:
            assert isinstance(submission.command, CreditDeposit)
            if not submission.command.wants_callback:
                await scene.rows("update merchant set deposit_notify_url = 'https://shop.example/n'")
                await scene.rows(
                    "update book set settings_version = settings_version + 1, version = gen_random_uuid()"
                )
            return await scene.book.submit(merchant_id, submission)

        await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
        crediting_worker = CreditingWorker(
            scene.connect, scene.connect, FakeBook(set_url_first), clock=scene.clock
        )
        assert await crediting_worker.credit_due() == 0
        assert crediting_worker.wake.is_set()
        assert await crediting_worker.credit_due() == 1
        await crediting_worker.close()
        assert await scene.rows("select count(*) from callback") == [(1,)]

    in_scene(scenario)


def test_a_book_that_can_not_be_asked_keeps_no_other_from_being_credited(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async def break_for_one(merchant_id: int, submission: Submission) -> Outcome:
            if merchant_id == CAFE:
                raise RuntimeError("out of order")
            return await scene.book.submit(merchant_id, submission)

        (otto, _) = await arrive(scene, FakeChainReader(), ("otto", COIN), ("ulla", COIN))
        crediting_worker = CreditingWorker(
            scene.connect, scene.connect, FakeBook(break_for_one), clock=scene.clock
        )
        assert await crediting_worker.credit_due() == 1
        await crediting_worker.close()
        assert "out of order" in ((await scene.deposit(otto)).cause or "")
        scene.clock.advance(RETRY_DELAY_MS)
        assert await scene.crediting_worker().credit_due() == 1

    in_scene(scenario)


def test_a_deposit_that_can_not_be_postponed_leaves_no_other_half_credited(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        told, failed = [scene.clock()], asyncio.Event()
        answered: list[int] = []

        def clock() -> int:
            if told:
                return told.pop()
            failed.set()
            raise OSError("no clock")

        async def ask(merchant_id: int, submission: Submission) -> Outcome:
            if merchant_id == CAFE:
                raise RuntimeError("out of order")
            await failed.wait()
            outcome = await scene.book.submit(merchant_id, submission)
            answered.append(merchant_id)
            return outcome

        await arrive(scene, FakeChainReader(), ("otto", COIN), ("ulla", COIN))
        crediting_worker = CreditingWorker(scene.connect, scene.connect, FakeBook(ask), clock=clock)
        with pytest.raises(OSError, match="no clock"):
            await crediting_worker.credit_due()
        await crediting_worker.close()
        # The turn ended after both answers: nothing of it runs beside the next turn.
        assert answered == [SHOP]

    in_scene(scenario)


def test_a_credit_whose_answer_was_lost_is_not_given_again(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async def lose_the_answer(merchant_id: int, submission: Submission) -> Outcome:
            await scene.book.submit(merchant_id, submission)
            raise ConnectionError("no answer")

        (sent,) = await arrive(scene, FakeChainReader(), ("ulla", COIN))
        crediting_worker = CreditingWorker(
            scene.connect, scene.connect, FakeBook(lose_the_answer), clock=scene.clock
        )
        assert await crediting_worker.credit_due() == 0
        await crediting_worker.close()
        scene.clock.advance(RETRY_DELAY_MS)
        assert await scene.crediting_worker().credit_due() == 0
        assert await scene.status_of(sent) == "credited"
        assert (await scene.balances())["ulla"] == COIN

    in_scene(scenario)


def test_more_than_a_page_is_credited_page_by_page_without_a_pause(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        await arrive(scene, FakeChainReader(), *[("ulla", COIN)] * (PAGE + 1))
        crediting_worker = scene.crediting_worker()
        assert await crediting_worker.credit_due() == PAGE
        assert crediting_worker.wake.is_set()
        assert await crediting_worker.credit_due() == 1

    in_scene(scenario)


@pytest.mark.parametrize("chain", ["ERC20", "TRC20"])
def test_each_chain_has_its_own_custody_account(in_scene: InScene, chain: str) -> None:
    async def scenario(scene: DepositScene) -> None:
        await arrive(scene, FakeChainReader(chain), ("ulla", COIN))
        await scene.crediting_worker().credit_due()
        assert await scene.balances() == {f"chain:{chain}:USDT": -COIN, "ulla": COIN}

    in_scene(scenario)


def test_what_arrives_at_a_tron_address_on_the_other_chain_is_credited_from_there(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader("ERC20")
        chain.mine((address("ulla", "TRC20"), COIN))
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        assert await scene.crediting_worker().credit_due() == 1
        assert await scene.balances() == {"chain:ERC20:USDT": -COIN, "ulla": COIN}

    in_scene(scenario)
