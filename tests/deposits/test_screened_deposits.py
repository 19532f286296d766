"""Deposits before their credit: held and refused ones wait, released ones are credited once."""

from pathlib import Path

import pytest
from psycopg import AsyncConnection
from tests.callbacks.receiver import Receiver, open_receiver
from tests.deposits.conftest import (
    COIN,
    FINAL_DEPTH,
    SENDER,
    SHOP,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)
from tests.deposits.test_crediting import arrive
from tests.deposits.test_mined_again import break_finality, rescan
from tests.screening.provider import SECRET, is_signed, say

from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.deposits import deposit_store
from merchant_wallet.deposits.crediting import RETRY_DELAY_MS, CreditingWorker, Withheld
from merchant_wallet.deposits.deposit_store import DueDeposit
from merchant_wallet.processes.screening import DecisionFollower, make_deposit_screen
from merchant_wallet.screening import decisions, store
from merchant_wallet.screening.address_list import ListFile
from merchant_wallet.screening.hook import ScreeningHook
from merchant_wallet.screening.screener import Screener
from merchant_wallet.screening.store import Screening


def open_worker(
    scene: DepositScene, provider: Receiver | None = None, address_list: Path | None = None
) -> CreditingWorker:
    hook = None
    if provider is not None:
        url = f"http://127.0.0.1:{provider.port}/screen"
        hook = ScreeningHook(url, SECRET, timeout_ms=5000, clock=scene.clock, monotonic=lambda: 0.0)
        scene.closing.push_async_callback(hook.close)
    listed = None if address_list is None else ListFile(address_list)
    screener = Screener(listed, hook, clock=scene.clock)
    worker = CreditingWorker(
        scene.connect_home,
        scene.connect,
        scene.book,
        screen_deposit=make_deposit_screen(screener),
        clock=scene.clock,
    )
    scene.closing.push_async_callback(worker.close)
    return worker


async def follow(scene: DepositScene) -> int:
    connect_cell = scene.connect if scene.is_apart else scene.connect_home
    follower = DecisionFollower(scene.connect_home, connect_cell, DEFAULT_CELL_ID, clock=scene.clock)
    try:
        return await follower.follow()
    finally:
        await follower.close()


def ann(scene: DepositScene) -> Author:
    """Ann, who decides on a page."""
    return Author("operator:ann", "test", scene.clock())


async def find(scene: DepositScene, tx_hash: str) -> Screening:
    found = await store.find_deposit(scene.home, "ERC20", tx_hash, 0)
    assert found is not None
    return found


def test_a_deposit_that_passes_is_credited_and_was_asked_about_once(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say("pass")
            (sent,) = await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
            worker = open_worker(scene, provider)
            assert await worker.credit_due() == 1
            (question,) = provider.received
            assert is_signed(question)
            assert question.fields == {
                "screeningId": question.headers["webhook-id"],
                "type": "deposit",
                "merchantId": SHOP,
                "chainType": "ERC20",
                "txHash": sent,
                "logIndex": 0,
                "sender": format_address("ERC20", SENDER),
                "address": format_address("ERC20", address("ulla")),
                "currency": "USDT",
                "amount": "5",
            }
            await scene.expect_sound()

    in_each_layout(scenario)


@pytest.mark.parametrize("verdict", ["hold", "refuse"])
def test_a_held_or_refused_deposit_is_credited_only_after_its_release(
    in_each_layout: InScene, verdict: str
) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say(verdict, "stolen")
            (sent,) = await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
            worker = open_worker(scene, provider)
            assert await worker.credit_due() == 0
            shown = await scene.deposit(sent)
            assert (shown.status, shown.cause) == ("held", "screening 1: hook: stolen")
            assert await scene.balances() == {}
            # A release for another reason, as after a reorganisation, does not get past screening.
            key = (sent, 0)
            await deposit_store.decide(
                scene.connection, "ERC20", key, is_released=True, actor="ann", now_ms=scene.clock()
            )
            assert await worker.credit_due() == 0
            assert await scene.status_of(sent) == "held"
            await decisions.release(
                scene.home, Author("operator:ann", "test", scene.clock()), await find(scene, sent)
            )
            assert await follow(scene) == 1
            assert await worker.credit_due() == 1
            assert (await scene.status_of(sent), len(provider.received)) == ("credited", 1)
            await scene.expect_sound()

    in_each_layout(scenario)


def test_a_release_before_the_deposit_is_noted_as_held_is_not_lost(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say("hold")
            (sent,) = await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
            hook = ScreeningHook(
                f"http://127.0.0.1:{provider.port}/screen", SECRET, timeout_ms=5000, clock=scene.clock
            )
            scene.closing.push_async_callback(hook.close)
            inner = make_deposit_screen(Screener(hook=hook, clock=scene.clock))

            async def screen(home: AsyncConnection, due: DueDeposit) -> Withheld | None:
                withheld = await inner(home, due)
                found = await find(scene, sent)
                if withheld is not None and found.decided_ms is None:
                    # Home knows that it is held, its cell does not know it yet.
                    await decisions.release(scene.home, ann(scene), found)
                    assert await follow(scene) == 1
                return withheld

            worker = CreditingWorker(
                scene.connect_home, scene.connect, scene.book, screen_deposit=screen, clock=scene.clock
            )
            scene.closing.push_async_callback(worker.close)
            assert await worker.credit_due() == 0
            assert await worker.credit_due() == 1
            assert await scene.status_of(sent) == "credited"
            await scene.expect_sound()

    in_each_layout(scenario)


def test_a_deposit_from_a_listed_sender_is_held_and_one_without_an_answer_waits(
    in_scene: InScene, tmp_path: Path
) -> None:
    async def scenario(scene: DepositScene) -> None:
        listed = tmp_path / "list.txt"
        (sent,) = await arrive(scene, FakeChainReader(), ("ulla", 5 * COIN))
        worker = open_worker(scene, address_list=listed)
        assert await worker.credit_due() == 0
        shown = await scene.deposit(sent)
        assert (shown.status, "can't be read" in (shown.cause or "")) == ("pending", True)
        listed.write_text(f"{format_address('TRC20', SENDER)} refuse thief\n")
        scene.clock.advance(RETRY_DELAY_MS)
        assert await open_worker(scene, address_list=listed).credit_due() == 0
        shown = await scene.deposit(sent)
        assert (shown.status, shown.cause) == ("held", "screening 1: list: thief")

    in_scene(scenario)


def test_a_deposit_that_is_held_for_another_reason_too_stays_held(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say("hold")
            chain = FakeChainReader()
            (sent,) = await arrive(scene, chain, ("ulla", 5 * COIN))
            worker = open_worker(scene, provider)
            await worker.credit_due()
            # Its final block leaves the chain.
            await scene.rows("update deposit set cause = 'its block 1 has left the chain'")
            await decisions.release(
                scene.home, Author("operator:ann", "test", scene.clock()), await find(scene, sent)
            )
            assert await follow(scene) == 1
            assert await scene.status_of(sent) == "held"
            await deposit_store.decide(
                scene.connection, "ERC20", (sent, 0), is_released=True, actor="ann", now_ms=scene.clock()
            )
            assert await worker.credit_due() == 1

    in_scene(scenario)


def test_many_deposits_at_once_are_each_asked_about_once(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say("pass")
            chain = FakeChainReader()
            for _ in range(3):
                chain.mine(*[(address("ulla"), COIN)] * 20)
            chain.mine(blocks=FINAL_DEPTH)
            await scene.catch_up(scene.watcher(chain))
            worker = open_worker(scene, provider)
            assert await worker.credit_due() == 60
            assert (
                len({one.headers["webhook-id"] for one in provider.received}) == len(provider.received) == 60
            )

    in_scene(scenario)


def test_a_held_deposit_whose_block_left_the_chain_is_not_credited_by_its_release_from_screening(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        async with open_receiver() as provider:
            provider.behave = say("hold")
            chain = FakeChainReader()
            (sent,) = await arrive(scene, chain, ("ulla", 5 * COIN))
            worker = open_worker(scene, provider)
            assert await worker.credit_due() == 0
            # Finality breaks: the transfer is gone, and the operator has the chain read again.
            await break_finality(chain)
            chain.mine(blocks=FINAL_DEPTH)
            await rescan(scene, chain)
            await rescan(scene, chain)
            shown = await scene.deposit(sent)
            assert (shown.status, "has left the chain" in (shown.cause or "")) == ("held", True)
            # Two people look at the sender alone and release it.
            await decisions.release(
                scene.home, Author("operator:ann", "test", scene.clock()), await find(scene, sent)
            )
            assert await follow(scene) == 1
            assert await worker.credit_due() == 0
            assert (await scene.status_of(sent), await scene.balances()) == ("held", {})
            await scene.expect_sound()

    in_each_layout(scenario)
