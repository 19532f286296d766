"""Sweeping on a real EVM node: what moves, what it costs to the wei, and what blocks it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.sweeps.evm_steps import coin, finish, open_it, pay_in, transfers_to_wallet
from tests.sweeps.sweep_scene import NOW_MS, POLICY, USDT, SweepScene, address_of, open_evm

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.plan import compute_worth_units
from merchant_wallet.custody.sweeps.survey import OTHER_CHAIN
from merchant_wallet.custody.sweeps.worker import SweepsFailed

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

GWEI = 10**9


@pytest.mark.each_node
def test_two_addresses_are_emptied_and_every_wei_is_accounted_for(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        paid = {
            await pay_in(scene, evm, index, units): units
            for index, units in ((0, 70 * USDT), (5, 333_333_333))
        }
        await pay_in(scene, evm, 6, 19 * USDT)
        before = coin(evm, WALLET)
        plan = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert [one.verdict for one in plan] == ["sweep", "sweep", "small"]
        assert len(await scene.begin(worker)) == 2
        assert await finish(scene, evm, worker) == ["done", "done"]
        assert sorted(transfers_to_wallet(evm)) == sorted(paid.values())
        assert evm.token.balance(WALLET) == HELD + sum(paid.values())
        sweeps = await scene.shown()
        spent = sum(sweep.top_up + (sweep.top_up_fee or 0) for sweep in sweeps)
        assert before - coin(evm, WALLET) == spent
        for sweep in sweeps:
            assert evm.token.balance(sweep.address) == 0
            assert coin(evm, sweep.address) == sweep.top_up - (sweep.token_fee or 0)
            burnt = (sweep.top_up_fee or 0) + (sweep.token_fee or 0)
            assert compute_worth_units(burnt, sweep.coin_price_units, 10**18) * 10 <= sweep.amount_units
        totals = await store.sum_sweeps(scene.connection, ERC20)
        assert (totals.moved_units, totals.open_units) == (sum(paid.values()), 0)
        assert totals.burnt + totals.topped_up == spent + sum(sweep.token_fee or 0 for sweep in sweeps)
        # Nothing is left to sweep.
        assert await scene.begin(worker) == []

    in_scene(scenario)


@pytest.mark.each_node
def test_coin_that_an_address_has_is_used_and_no_top_up_is_sent(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(scene, evm, 0, 70 * USDT)
        evm.node.fund(address, 10**16)
        before = coin(evm, WALLET)
        await scene.begin(worker)
        assert await finish(scene, evm, worker) == ["done"]
        [sweep] = await scene.shown()
        assert (sweep.top_up, sweep.top_up_tx_hash) == (0, None)
        assert coin(evm, WALLET) == before
        # A later deposit is swept by a new sweep, with the address's next nonce.
        await pay_in(scene, evm, 0, 80 * USDT)
        await scene.begin(worker)
        assert await finish(scene, evm, worker) == ["done", "done"]
        assert transfers_to_wallet(evm) == [70 * USDT, 80 * USDT]

    in_scene(scenario)


@pytest.mark.each_node
def test_two_who_sweep_at_once_move_everything_once(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        workers = [scene.worker({ERC20: open_it(evm, tmp_path)}) for _ in range(2)]
        for index in range(3):
            await pay_in(scene, evm, index, (50 + index) * USDT)
        opened = [await scene.begin(worker) for worker in workers]
        assert list(map(len, opened)) == [3, 0]
        assert await finish(scene, evm, *workers) == ["done"] * 3
        assert sorted(transfers_to_wallet(evm)) == [50 * USDT, 51 * USDT, 52 * USDT]
        signed = await scene.rows("select kind, count(*) from sweep_signed group by kind order by kind")
        assert signed == [("token", 3), ("top_up", 3)]

    in_scene(scenario)


def test_when_fees_rise_above_the_share_the_sweep_waits_and_nothing_is_burnt(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        await scene.begin(worker)
        for _ in range(2):
            await worker.follow(with_unsigned=True)
            evm.settle()
        assert await scene.steps() == ["token"]
        evm.node.set_base_fee(500 * GWEI)
        evm.node.mine()
        await worker.follow()
        [sweep] = await scene.shown()
        assert "a unit of gas costs 437600000000 wei (437500000000 and a tip of 100000000), and the" in str(
            sweep.obstacle
        )
        assert await scene.rows("select count(*) from sweep_signed where kind = 'token'") == [(0,)]
        # The sweep is judged again once fees have fallen.
        evm.node.set_base_fee(GWEI // 10)
        evm.node.mine()
        assert await finish(scene, evm, worker) == ["done"]
        [sweep] = await scene.shown()
        assert sweep.obstacle is None

    in_scene(scenario)


@pytest.mark.parametrize("stop", ["frozen", "stopped"])
def test_nothing_leaves_a_hot_wallet_that_is_stopped(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path, stop: str
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        await scene.rows(
            "insert into hot_wallet (chain, address, frozen_cause, frozen_ms) values ('ERC20', %s, %s, %s)",
            *(WALLET, *(("odd", NOW_MS) if stop == "frozen" else (None, None))),
        )
        if stop == "stopped":
            await scene.rows("insert into payout_stop values ('ERC20', 'reconcile', 'odd', %s)", NOW_MS)
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        [sweep] = await scene.shown()
        assert "odd" in (sweep.obstacle or "")
        assert await scene.rows("select count(*) from sweep_signed") == [(0,)]
        assert await scene.rows("select count(*) from wallet_nonce") == [(0,)]
        # The sweep is dropped after a while, and planned again.
        scene.clock.now_ms += 600_000
        await worker.follow(with_unsigned=True)
        assert await scene.steps() == ["dropped"]
        await scene.rows("update hot_wallet set frozen_cause = null, frozen_ms = null")
        await scene.rows("delete from payout_stop")
        assert len(await scene.begin(worker)) == 1
        assert await finish(scene, evm, worker) == ["dropped", "done"]

    in_scene(scenario)


def test_the_hot_wallet_keeps_what_a_payout_may_cost(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        evm.node.fund(WALLET, POLICY[ERC20].fee_cap)
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        [sweep] = await scene.shown()
        assert "must keep" in (sweep.obstacle or "")
        assert await scene.rows("select count(*) from sweep_signed") == [(0,)]

    in_scene(scenario)


def test_an_address_that_the_token_refuses_is_blocked_and_costs_nothing(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(scene, evm, 0, 70 * USDT)
        evm.token.do("addBlackList(address)", address)
        [planned] = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert planned.verdict == "blocked"
        assert await scene.begin(worker) == []
        evm.token.do("removeBlackList(address)", address)
        evm.token.do("addBlackList(address)", WALLET)
        [planned] = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert "hot wallet" in (planned.candidate.blocked_by or "")

    in_scene(scenario)


def test_nothing_is_swept_while_the_token_takes_a_fee(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    """Neither planned, nor topped up if it was begun before, nor signed if it was topped up before."""

    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        evm.token.do("setParams(uint256,uint256)", 10, 49)
        [planned] = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert (planned.verdict, "takes a fee: 0.07 of 70" in str(planned.candidate.blocked_by)) == (
            "blocked",
            True,
        )
        evm.token.do("setParams(uint256,uint256)", 0, 0)
        await scene.begin(worker)
        for signed in (0, 1):
            evm.token.do("setParams(uint256,uint256)", 10, 49)
            await worker.follow(with_unsigned=True)
            [sweep] = await scene.shown()
            assert "takes a fee" in (sweep.obstacle or "")
            assert await scene.rows("select count(*) from sweep_signed") == [(signed,)]
            evm.token.do("setParams(uint256,uint256)", 0, 0)
            # The top-up.
            await worker.follow(with_unsigned=True)
            evm.settle()
            if not signed:
                await worker.follow()
        assert await finish(scene, evm, worker) == ["done"]
        assert transfers_to_wallet(evm) == [70 * USDT]

    in_scene(scenario)


def test_a_fee_that_comes_after_signing_fails_the_sweep_and_the_cause_names_every_leg(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(scene, evm, 0, 70 * USDT)
        evm.node.fund(address, 10**16)
        await scene.begin(worker)
        # In the same block, before the sweep: the issuer pays more for gas.
        await worker.follow(with_unsigned=True)
        switch = evm.token.call_data("setParams(uint256,uint256)", 10, 49)
        evm.node.send_as(evm.token.issuer, evm.token.address, switch)
        assert await finish(scene, evm, worker) == ["failed"]
        [sweep] = await scene.shown()
        assert "0.07 USDT from" in (sweep.cause or "")
        assert "69.93 USDT from" in (sweep.cause or "")

    in_scene(scenario)


@pytest.mark.each_node
def test_a_sweep_that_reverts_fails_with_its_cost_and_is_tried_again_only_on_demand(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(scene, evm, 0, 70 * USDT)
        await scene.begin(worker)
        for _ in range(2):
            await worker.follow(with_unsigned=True)
            evm.settle()
        await worker.follow()
        # In the same block, before the sweep: the issuer pays more for gas.
        evm.node.send_as(
            evm.token.issuer, evm.token.address, evm.token.call_data("addBlackList(address)", address)
        )
        assert await finish(scene, evm, worker) == ["failed"]
        [sweep] = await scene.shown()
        assert "reverted" in (sweep.cause or "")
        assert (sweep.token_fee or 0) > 0
        evm.token.do("removeBlackList(address)", address)
        assert await scene.begin(worker) == []
        assert len(await scene.begin(worker, again=True)) == 1
        assert await finish(scene, evm, worker) == ["failed", "done"]

    in_scene(scenario)


def test_what_is_not_final_or_not_ours_to_sign_is_no_candidate(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        sweeper = scene.worker({ERC20: open_it(evm, tmp_path)}).sweepers[ERC20]
        await scene.deposit(0, 70 * USDT, status="seen")
        assert await scene.plan(ERC20, sweeper) == []
        own = await scene.deposit(0, 40 * USDT, branch=1)
        evm.token.give(own, 40 * USDT)
        [small] = await scene.plan(ERC20, sweeper)
        assert (small.candidate.address, small.verdict) == (address_of(0, branch=1), "small")
        evm.settle()
        [planned] = await scene.plan(ERC20, sweeper)
        assert (planned.verdict, planned.candidate.source.branch) == ("sweep", 1)
        await scene.rows("delete from xpub_pool")
        assert await scene.plan(ERC20, sweeper) == []

    in_scene(scenario)


def test_what_came_to_an_address_of_the_other_chain_is_shown_and_left_alone(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await scene.deposit(0, 70 * USDT)
        strange = address_of(0, TRC20)
        await scene.rows("update deposit set address = %s", strange)
        evm.token.give(strange, 70 * USDT)
        evm.settle()
        [planned] = await scene.plan(ERC20, worker.sweepers[ERC20])
        assert (planned.candidate.address, planned.candidate.balance_units) == (strange, 70 * USDT)
        assert (planned.verdict, planned.candidate.blocked_by) == ("blocked", OTHER_CHAIN)
        assert await scene.begin(worker) == []

    in_scene(scenario)


def test_a_worker_follows_what_was_signed_and_begins_nothing(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        command, worker = (scene.worker({ERC20: open_it(evm, tmp_path)}) for _ in range(2))
        for index in range(2):
            await pay_in(scene, evm, index, 70 * USDT)
        await scene.begin(command)
        assert await worker.follow() == 0
        assert await scene.rows("select count(*) from sweep_signed") == [(0,)]
        await command.follow(with_unsigned=True)
        stop = asyncio.Event()
        working = asyncio.create_task(worker.run(stop, interval_s=0.01))
        while await store.count_open(scene.connection, ERC20):
            await asyncio.to_thread(evm.settle)
        stop.set()
        await working
        assert await scene.steps() == ["done", "done"]
        assert sorted(transfers_to_wallet(evm)) == [70 * USDT, 70 * USDT]

    in_scene(scenario)


def test_a_node_that_is_away_stops_nothing_for_good(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        await scene.begin(worker)
        lost = scene.worker({ERC20: open_evm(tmp_path, "http://127.0.0.1:9", evm.token.address)})
        with pytest.raises(SweepsFailed):
            await lost.follow(with_unsigned=True)
        assert await finish(scene, evm, worker) == ["done"]

    in_scene(scenario)
