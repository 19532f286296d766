"""Sweeps that can't go on: topped up again within their budget, or ended with a reason."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from devnet.tron_costs import FACTOR_SCALE
from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.chains.tron_scene import WALLET_SUN, WALLET_UNITS, TronScene
from tests.sweeps.evm_steps import coin, finish, open_it, pay_in, transfers_to_wallet
from tests.sweeps.sweep_scene import NOW_MS, USDT, SweepScene, end
from tests.sweeps.test_tron import finish as finish_tron
from tests.sweeps.test_tron import make_runner
from tests.sweeps.test_tron import pay_in as pay_in_tron

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.custody.balances import CustodyReader
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.manual_end import NotEnded
from merchant_wallet.custody.sweeps.plan import Terms
from merchant_wallet.custody.sweeps.stalls import STALLED_MS, TOP_UP_AGAIN_MS
from merchant_wallet.custody.sweeps.worker import SweepWorker
from merchant_wallet.custody.treasury import record_treasury
from merchant_wallet.hot_wallet.store import open_wallet
from merchant_wallet.processes.reconciliation import Reconciler
from merchant_wallet.reporting.finance.network_fees import read_coins_spent
from merchant_wallet.reporting.finance.periods import Period

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

GWEI = 10**9
TODAY = NOW_MS // 86_400_000


async def begin_token(scene: SweepScene, evm: EvmScene, folder: Path) -> tuple[SweepWorker, bytes]:
    """A sweep whose top-up is final and whose token transfer is not signed."""
    worker = scene.worker({ERC20: open_it(evm, folder)})
    address = await pay_in(scene, evm, 0, 70 * USDT)
    await scene.begin(worker)
    await worker.follow(with_unsigned=True)
    evm.settle()
    await worker.follow()
    assert await scene.steps() == ["token"]
    assert await scene.rows("select count(*) from sweep_signed where kind = 'token'") == [(0,)]
    return worker, address


async def begin_tron_token(scene: SweepScene, tron: TronScene, folder: Path) -> tuple[SweepWorker, bytes]:
    """The same on TRON."""
    worker = make_runner(scene, tron, folder)
    address = await pay_in_tron(scene, tron, 0, 70 * USDT)
    await scene.begin(worker, TRC20)
    await worker.follow(with_unsigned=True)
    tron.network.settle()
    await worker.follow()
    return worker, address


async def read_lost(scene: SweepScene) -> int:
    """What the finance report says that the hot wallet has lost of its coin."""
    spent = await read_coins_spent(scene.connection, Period("day", TODAY, TODAY + 1))
    [wallet] = spent.hot_wallets
    return wallet.lost


def test_when_gas_gets_dearer_within_the_share_more_is_sent_and_every_wei_is_accounted_for(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        before = coin(evm, WALLET)
        worker, address = await begin_token(scene, evm, tmp_path)
        evm.node.set_base_fee(8 * GWEI)
        evm.node.mine()
        await worker.follow()
        # It waits a while first: fees go up and down.
        assert await scene.steps() == ["token"]
        scene.clock.now_ms += TOP_UP_AGAIN_MS
        await worker.follow()
        assert await scene.steps() == ["continued", "top_up"]
        assert await finish(scene, evm, worker) == ["continued", "done"]
        first, second = await scene.shown()
        assert "fees have risen" in (first.cause or "")
        assert (second.continues, second.amount_units) == (first.sweep_id, 70 * USDT)
        assert transfers_to_wallet(evm) == [70 * USDT]
        sent = first.top_up + second.top_up
        assert coin(evm, address) == sent - (second.token_fee or 0)
        assert before - coin(evm, WALLET) == sent + (first.top_up_fee or 0) + (second.top_up_fee or 0)
        assert before - coin(evm, WALLET) == await read_lost(scene)
        totals = await store.sum_sweeps(scene.connection, ERC20)
        assert (totals.moved_units, totals.topped_up) == (70 * USDT, sent)
        # A tenth of 70 USDT is the most that both together may burn.
        assert totals.burnt * 3_000 * 10 <= 70 * 10**18

    in_scene(scenario)


def test_a_second_top_up_that_cannot_be_sent_fails_and_is_not_tried_again_unasked(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_token(scene, evm, tmp_path)
        evm.node.set_base_fee(8 * GWEI)
        evm.node.mine()
        await worker.follow()
        scene.clock.now_ms += TOP_UP_AGAIN_MS
        await worker.follow()
        evm.node.fund(WALLET, 0)
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        assert await scene.steps() == ["continued", "failed"]
        evm.node.fund(WALLET, 10**18)
        [planned] = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert planned.verdict == "failed"

    in_scene(scenario)


def test_books_and_chain_agree_after_another_top_up_and_after_a_failed_sweep(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await open_wallet(scene.connection, ERC20, WALLET, 1)
        for index in range(2):
            # The book has no entry of it, so it must not be credited.
            evm.token.give(await scene.deposit(index, 70 * USDT, status="pending"), 70 * USDT)
        evm.settle()
        filling = partial(record_treasury, tx_hash="before", reason="first filling", actor="op", now_ms=1)
        await filling(scene.connection, ERC20, "IN", HELD)
        async with evm.chain() as chain:
            custody_reader = CustodyReader(chain, keeps_past=True)
            reconciler = Reconciler(scene.connect, lambda _: {ERC20: custody_reader}, clock=scene.clock)
            scene.closing.push_async_callback(reconciler.close)

            async def compare() -> tuple[str, str, str]:
                [found] = (await reconciler.reconcile())["chains"]
                return found["unexplained"], found["hotWallets"], found["unswept"]

            assert await compare() == ("0", "1000", "140")
            await scene.begin(worker)
            for _ in range(2):
                await worker.follow(with_unsigned=True)
                evm.settle()
            evm.node.set_base_fee(8 * GWEI)
            evm.node.mine()
            [_, lost] = await scene.shown()
            evm.node.fund(lost.address, 0)
            await worker.follow()
            scene.clock.now_ms += TOP_UP_AGAIN_MS
            await worker.follow()
            assert await scene.steps() == ["continued", "token", "top_up"]
            assert await compare() == ("0", "1000", "140")
            await worker.follow()
            scene.clock.now_ms += STALLED_MS
            assert await finish(scene, evm, worker) == ["continued", "failed", "done"]
            assert await compare() == ("0", "1070", "70")

    in_scene(scenario)


def test_coin_that_left_the_address_is_not_sent_again_and_the_sweep_ends_unless_it_comes_back(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        before = coin(evm, WALLET)
        worker, address = await begin_token(scene, evm, tmp_path)
        evm.node.fund(address, 0)
        await worker.follow()
        scene.clock.now_ms += STALLED_MS - 1
        await worker.follow()
        assert await scene.steps() == ["token"]
        scene.clock.now_ms += 1
        await worker.follow()
        assert await scene.steps() == ["failed"]
        [sweep] = await scene.shown()
        assert "coin has left the address" in (sweep.cause or "")
        assert before - coin(evm, WALLET) == await read_lost(scene)
        # Its place is free, and an operator must ask for another try.
        assert await store.count_open(scene.connection, ERC20) == 0
        assert await scene.begin(worker) == []
        assert len(await scene.begin(worker, again=True)) == 1
        for _ in range(2):
            await worker.follow(with_unsigned=True)
            evm.settle()
        # The coin leaves and comes back: the sweep goes on.
        sent = coin(evm, address)
        evm.node.fund(address, 0)
        await worker.follow()
        await worker.follow()
        [_, waiting] = await scene.shown()
        evm.node.fund(address, sent)
        assert await finish(scene, evm, worker) == ["failed", "done"]
        assert "coin has left" in (waiting.obstacle or "")
        assert transfers_to_wallet(evm) == [70 * USDT]
        assert before - coin(evm, WALLET) == await read_lost(scene)

    in_scene(scenario)


def test_a_signed_transfer_that_is_stuck_goes_through_when_somebody_sends_coin(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin_token(scene, evm, tmp_path)
        await worker.follow()
        evm.node.set_base_fee(8 * GWEI)
        evm.node.mine()
        evm.node.skip(5)
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        # What is signed may still count, so it does not fail.
        [sweep] = await scene.shown()
        assert (sweep.step, "gas costs" in (sweep.obstacle or "")) == ("token", True)
        with pytest.raises(NotEnded, match="send some there"):
            await end(scene.connection, worker.sweepers, sweep.sweep_id)
        evm.node.fund(address, 10**16)
        assert await finish(scene, evm, worker) == ["done"]
        assert transfers_to_wallet(evm) == [70 * USDT]
        assert await scene.rows("select count(*) from sweep_signed where kind = 'token'") == [(2,)]

    in_scene(scenario)


def test_tokens_that_the_issuer_destroyed_end_the_sweep_at_once(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin_token(scene, evm, tmp_path)
        evm.token.do("addBlackList(address)", address)
        evm.token.do("destroyBlackFunds(address)", address)
        await worker.follow()
        # Only a final balance proves it.
        assert await scene.steps() == ["token"]
        evm.settle()
        await worker.follow()
        assert await scene.steps() == ["failed"]
        [sweep] = await scene.shown()
        assert "tokens have left the address: it holds 0 of 70 USDT" in (sweep.cause or "")
        assert (sweep.token_fee, sweep.token_tx_hash) == (None, None)

    in_scene(scenario)


def test_energy_that_gets_a_little_dearer_delays_no_sweep(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_tron_token(scene, tron, tmp_path)
        tron.network.fake.energy_sun = tron.network.fake.energy_sun * 115 // 100
        await worker.follow()
        [sweep] = await scene.shown()
        assert sweep.obstacle is None
        assert await finish_tron(scene, tron, worker) == ["done"]

    in_scene(scenario)


@pytest.mark.parametrize("what", ["energy_sun", "energy_factor"], ids=["price", "penalty"])
def test_energy_that_doubles_is_paid_with_more_trx_and_every_sun_is_accounted_for(
    in_scene: "InScene", tron: TronScene, tmp_path: Path, what: str
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin_tron_token(scene, tron, tmp_path)
        fake, coins = tron.network.fake, tron.network.fake.coins
        doubled = {"energy_sun": 2 * fake.energy_sun, "energy_factor": 2 * fake.energy_factor + FACTOR_SCALE}
        setattr(fake, what, doubled[what])
        await worker.follow()
        scene.clock.now_ms += TOP_UP_AGAIN_MS
        await worker.follow()
        assert await finish_tron(scene, tron, worker) == ["continued", "done"]
        first, second = await scene.shown()
        assert tron.network.balance(tron.wallet) == WALLET_UNITS + 70 * USDT
        fees = sum(sweep.top_up_fee or 0 for sweep in (first, second))
        assert coins[tron.wallet] == WALLET_SUN - first.top_up - second.top_up - fees
        assert coins[address] == first.top_up + second.top_up - (second.token_fee or 0)
        assert await read_lost(scene) == WALLET_SUN - coins[tron.wallet]

    in_scene(scenario)


def test_trx_that_somebody_sent_pays_for_dearer_energy(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin_tron_token(scene, tron, tmp_path)
        tron.network.fake.energy_sun *= 2
        tron.network.fund(address, sun=20_000_000)
        await worker.follow()
        assert await finish_tron(scene, tron, worker) == ["done"]
        [sweep] = await scene.shown()
        assert (sweep.token_fee or 0) > sweep.top_up

    in_scene(scenario)


def test_energy_dearer_than_the_share_ends_the_sweep_after_a_while(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin_tron_token(scene, tron, tmp_path)
        tron.network.fake.energy_sun *= 9
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        assert await scene.steps() == ["failed"]
        [sweep] = await scene.shown()
        assert "could not go on for 10 minutes" in (sweep.cause or "")
        assert tron.network.balance(address) == 70 * USDT
        # The TRX that was sent serves the next try.
        tron.network.fake.energy_sun //= 9
        assert len(await scene.begin(worker, TRC20, again=True)) == 1
        assert await finish_tron(scene, tron, worker) == ["failed", "done"]
        _, second = await scene.shown()
        assert second.top_up == 0

    in_scene(scenario)


def test_transfers_that_keep_expiring_end_the_sweep(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_tron_token(scene, tron, tmp_path)
        tron.network.fake.holds_back = True
        for _ in range(5):
            await worker.follow()
            tron.let_expire()
        await worker.follow()
        assert await scene.steps() == ["failed"]
        [sweep] = await scene.shown()
        assert "5 transfers in a row came to nothing" in (sweep.cause or "")

    in_scene(scenario)


def test_a_sweep_has_one_successor_and_the_database_refuses_another(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        await begin_token(scene, evm, tmp_path)
        [sweep] = await store.list_open(scene.connection, ERC20)
        budget = sweep.budget_left
        terms = Terms(5, 6, 7, budget)
        sweep_id = await store.continue_sweep(scene.connection, sweep, terms, "dear", NOW_MS)
        [after] = await store.list_open(scene.connection, ERC20)
        assert (after.sweep_id, after.is_begun, after.step) == (sweep_id, True, "top_up")
        assert (after.top_up, after.budget_left) == (5, budget - 6)
        columns = (
            "chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price,"
            " top_up, top_up_fee_limit, token_fee_limit, actor, opened_ms"
        )
        copy = (
            f"insert into sweep ({columns}, step, cause, ended_ms, continues, budget)"
            f" select {columns}, 'failed', 'x', 1,"
        )
        with pytest.raises(psycopg.errors.UniqueViolation):
            await scene.rows(copy + " continues, budget from sweep where sweep_id = %s", sweep_id)
        with pytest.raises(psycopg.errors.CheckViolation):
            await scene.rows(copy + " null, 12 from sweep where sweep_id = %s", sweep_id)
        with pytest.raises(psycopg.errors.CheckViolation):
            await scene.rows("update sweep set token_fee = 1 where step = 'continued'")

    in_scene(scenario)
