"""Sweeping on the fake TRON network: TRX is sent and burnt, and a second signature needs proof."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.tron_scene import WALLET_SUN, WALLET_UNITS, TronScene
from tests.sweeps.sweep_scene import USDT, SweepScene, address_of, open_tron

from merchant_wallet.base.chains import TRC20
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.tron.sweeps import TronSweeper
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.plan import compute_worth_units
from merchant_wallet.custody.sweeps.worker import SweepsFailed, SweepWorker

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

ACCOUNT_SUN = 1_100_000
"""What a top-up burns that creates the account of its address."""


def make_runner(scene: SweepScene, tron: TronScene, folder: Path) -> SweepWorker:
    return scene.worker({TRC20: open_tron(folder, tron.network.urls, tron.rules)})


async def pay_in(scene: SweepScene, tron: TronScene, index: int, units: int) -> bytes:
    address = await scene.deposit(index, units, TRC20)
    tron.network.fund(address, units=units)
    tron.network.settle()
    return address


async def finish(scene: SweepScene, tron: TronScene, *workers: SweepWorker) -> list[str]:
    """Run the workers and mine blocks until no sweep is open."""
    for _ in range(12):
        for worker in workers:
            await worker.follow(with_unsigned=True)
        if not await store.count_open(scene.connection, TRC20):
            break
        tron.network.settle()
    return await scene.steps()


@pytest.mark.each_node
def test_addresses_without_an_account_are_topped_up_and_emptied(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        workers = [make_runner(scene, tron, tmp_path) for _ in range(2)]
        network, held = tron.network, (tron.network.balance(tron.wallet), tron.network.coins(tron.wallet))
        addresses = [await pay_in(scene, tron, index, (70 + index) * USDT) for index in range(3)]
        [*plan] = await scene.plan(TRC20, workers[0].sweepers[TRC20])
        # An address that never had TRX also costs the chain's fee for a new account.
        assert {(one.verdict, one.top_up_fee) for one in plan} == {("sweep", 270_000 + ACCOUNT_SUN)}
        await scene.begin(workers[0], TRC20)
        assert await finish(scene, tron, *workers) == ["done"] * 3
        assert network.balance(tron.wallet) == held[0] + 213 * USDT
        sweeps = await scene.shown()
        assert network.coins(tron.wallet) == held[1] - sum(sweep.top_up + ACCOUNT_SUN for sweep in sweeps)
        for sweep in sweeps:
            fees = (network.fee_of(sweep.top_up_tx_hash or ""), network.fee_of(sweep.token_tx_hash or ""))
            assert (sweep.top_up_fee, sweep.token_fee) == fees
            # The bytes of the token's transfer are free.
            assert fees[0] == ACCOUNT_SUN
            assert network.coins(sweep.address) == sweep.top_up - fees[1]
            assert network.balance(sweep.address) == 0
            assert (
                compute_worth_units(sweep.token_fee or 0, sweep.coin_price_units, 10**6) * 10
                <= sweep.amount_units
            )
        assert sorted(sweep.address for sweep in sweeps) == sorted(addresses)
        signed = await scene.rows("select kind, count(*) from sweep_signed group by kind order by kind")
        assert signed == [("token", 3), ("top_up", 3)]
        assert await scene.rows("select count(*) from wallet_nonce") == [(0,)]

    in_scene(scenario)


def test_transactions_that_expired_are_signed_again_and_counted_once(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, fake = make_runner(scene, tron, tmp_path), tron.network.fake
        await pay_in(scene, tron, 0, 70 * USDT)
        await scene.begin(worker, TRC20)
        for kind in ("top_up", "token"):
            fake.holds_back = True
            await worker.follow(with_unsigned=True)
            await worker.follow()
            assert await scene.rows("select count(*) from sweep_signed where kind = %s", kind) == [(1,)]
            tron.let_expire()
            fake.holds_back = False
            await worker.follow()
            assert await scene.rows("select count(*) from sweep_signed where kind = %s", kind) == [(2,)]
            tron.network.settle()
            await worker.follow()
        assert await scene.steps() == ["done"]
        [sweep] = await scene.shown()
        assert fake.coins[tron.wallet] == WALLET_SUN - sweep.top_up - ACCOUNT_SUN
        assert tron.network.balance(tron.wallet) == WALLET_UNITS + 70 * USDT

    in_scene(scenario)


def test_a_node_that_hides_a_top_up_does_not_make_it_look_void(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = make_runner(scene, tron, tmp_path)
        await pay_in(scene, tron, 0, 70 * USDT)
        await scene.begin(worker, TRC20)
        await worker.follow(with_unsigned=True)
        [(txid,)] = await scene.rows("select tx_hash from sweep_signed")
        hiding = tron.network.servers[1].api.switches
        hiding.hidden.add(txid)
        tron.network.settle()
        tron.let_expire()
        # It is sent again because a node lacks it. No node takes bytes that have expired, and one has them.
        await worker.follow()
        assert await scene.steps() == ["top_up"]
        assert await scene.rows("select count(*) from sweep_signed") == [(1,)]
        hiding.hidden.clear()
        assert await finish(scene, tron, worker) == ["done"]

    in_scene(scenario)


def test_a_dearer_energy_waits_at_the_address_until_it_is_cheaper(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, fake = make_runner(scene, tron, tmp_path), tron.network.fake
        address = await pay_in(scene, tron, 0, 70 * USDT)
        await scene.begin(worker, TRC20)
        await worker.follow(with_unsigned=True)
        tron.network.settle()
        await worker.follow()
        fake.energy_sun *= 2
        await worker.follow()
        [sweep] = await scene.shown()
        assert "for energy" in (sweep.obstacle or "")
        assert tron.network.balance(address) == 70 * USDT
        fake.energy_sun //= 2
        assert await finish(scene, tron, worker) == ["done"]

    in_scene(scenario)


def test_the_hot_wallet_keeps_what_payouts_on_their_way_may_burn(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = make_runner(scene, tron, tmp_path)
        await pay_in(scene, tron, 0, 70 * USDT)
        tron.network.fake.coins[tron.wallet] = 50_000_000
        await scene.begin(worker, TRC20)
        await worker.follow(with_unsigned=True)
        [sweep] = await scene.shown()
        assert "must keep" in (sweep.obstacle or "")
        assert await scene.rows("select count(*) from sweep_signed") == [(0,)]

    in_scene(scenario)


def test_a_transfer_that_fails_on_the_chain_fails_the_sweep_with_what_it_burnt(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, fake = make_runner(scene, tron, tmp_path), tron.network.fake
        await pay_in(scene, tron, 0, 70 * USDT)
        await scene.begin(worker, TRC20)
        await worker.follow(with_unsigned=True)
        tron.network.settle()
        await worker.follow()
        # The token is paused after the check and before the block.
        fake.holds_back = True
        await worker.follow()
        tron.network.pause()
        tron.network.mine()
        fake.holds_back = False
        assert await finish(scene, tron, worker) == ["failed"]
        [sweep] = await scene.shown()
        assert (sweep.token_fee or 0) > 0
        assert "failed on the chain" in (sweep.cause or "")
        assert tron.network.balance(address_of(0, TRC20)) == 70 * USDT

    in_scene(scenario)


def test_nothing_is_swept_while_the_token_takes_a_fee(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    """Neither planned, nor topped up if it was begun before, nor signed if it was topped up before."""

    async def scenario(scene: SweepScene) -> None:
        worker = make_runner(scene, tron, tmp_path)
        await pay_in(scene, tron, 0, 70 * USDT)
        tron.network.set_fee(10, 49)
        tron.network.mine()
        [planned] = await scene.plan(TRC20, worker.sweepers[TRC20])
        assert planned.verdict == "blocked"
        tron.network.set_fee(0, 0)
        tron.network.mine()
        await scene.begin(worker, TRC20)
        for signed in (0, 1):
            tron.network.set_fee(10, 49)
            tron.network.mine()
            await worker.follow(with_unsigned=True)
            [sweep] = await scene.shown()
            assert "takes a fee" in (sweep.obstacle or "")
            assert await scene.rows("select count(*) from sweep_signed") == [(signed,)]
            tron.network.set_fee(0, 0)
            tron.network.mine()
            await worker.follow(with_unsigned=True)
            tron.network.settle()
            if not signed:
                await worker.follow()
        assert await finish(scene, tron, worker) == ["done"]
        assert tron.network.balance(tron.wallet) == WALLET_UNITS + 70 * USDT

    in_scene(scenario)


class LosingSweeper(TronSweeper):
    """Its nodes accept every transaction, but the answer is lost."""

    async def broadcast(self, raw: bytes) -> None:
        await super().broadcast(raw)
        raise ChainAway("the answer was lost")


def test_a_broadcast_that_fails_after_it_was_taken_changes_nothing(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        sweeper = open_tron(tmp_path, tron.network.urls, tron.rules, kind=LosingSweeper)
        worker = scene.worker({TRC20: sweeper})
        await pay_in(scene, tron, 0, 70 * USDT)
        await scene.begin(worker, TRC20)
        for _ in ("top_up", "token"):
            for _ in ("signed", "sent again"):
                with pytest.raises(SweepsFailed):
                    await worker.follow(with_unsigned=True)
            [sweep] = await scene.shown()
            assert sweep.obstacle == "the answer was lost"
            tron.network.settle()
            await worker.follow()
        assert await scene.steps() == ["done"]
        assert await scene.rows("select count(*) from sweep_signed") == [(2,)]

    in_scene(scenario)
