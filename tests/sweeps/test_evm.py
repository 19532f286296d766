"""Sweeping on a real EVM node: what moves, what it costs to the wei, and what stands in its way."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.chains.node_proxy import NodeProxy
from tests.sweeps.evm_steps import coin, finish, open_it, pay_in, transfers_to_wallet
from tests.sweeps.yard import (
    NOW_MS,
    TERMS,
    USDT,
    Yard,
    address_of,
    open_evm,
)

from merchant_wallet.base.addresses import ERC20, TRC20
from merchant_wallet.chains.evm.transactions import parse_signed, recover_sender
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.plan import worth_units
from merchant_wallet.custody.sweeps.runner import SweepsLeft
from merchant_wallet.custody.sweeps.survey import OTHER_CHAIN
from merchant_wallet.withdrawals.nonce_gaps import NonceGapWorker

if TYPE_CHECKING:
    from tests.sweeps.conftest import InYard

GWEI = 10**9


def test_two_addresses_are_emptied_and_every_wei_is_accounted_for(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        paid = {
            await pay_in(yard, evm, index, units): units
            for index, units in ((0, 70 * USDT), (5, 333_333_333))
        }
        await pay_in(yard, evm, 6, 19 * USDT)
        before = coin(evm, WALLET)
        plan = await yard.plan(ERC20, runner.sweepers[ERC20])
        assert [one.verdict for one in plan] == ["sweep", "sweep", "small"]
        assert len(await yard.begin(runner)) == 2
        assert await finish(yard, evm, runner) == ["done", "done"]
        assert sorted(transfers_to_wallet(evm)) == sorted(paid.values())
        assert evm.token.balance(WALLET) == HELD + sum(paid.values())
        sweeps = await yard.shown()
        spent = sum(sweep.top_up + (sweep.top_up_fee or 0) for sweep in sweeps)
        assert before - coin(evm, WALLET) == spent
        for sweep in sweeps:
            assert evm.token.balance(sweep.address) == 0
            assert coin(evm, sweep.address) == sweep.top_up - (sweep.token_fee or 0)
            burnt = (sweep.top_up_fee or 0) + (sweep.token_fee or 0)
            assert worth_units(burnt, sweep.coin_price_units, 10**18) * 10 <= sweep.amount_units
        totals = await store.sum_sweeps(yard.connection, ERC20)
        assert (totals.moved_units, totals.open_units) == (sum(paid.values()), 0)
        assert totals.burnt + totals.topped_up == spent + sum(sweep.token_fee or 0 for sweep in sweeps)
        # Nothing is left to do, and nothing was left over that would be done again.
        assert await yard.begin(runner) == []

    in_yard(scenario)


def test_coin_that_an_address_has_is_used_and_no_top_up_is_sent(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(yard, evm, 0, 70 * USDT)
        evm.node.fund(address, 10**16)
        before = coin(evm, WALLET)
        await yard.begin(runner)
        assert await finish(yard, evm, runner) == ["done"]
        [sweep] = await yard.shown()
        assert (sweep.top_up, sweep.top_up_tx_hash) == (0, None)
        assert coin(evm, WALLET) == before
        # What comes later is swept by another, at the address's next place.
        await pay_in(yard, evm, 0, 80 * USDT)
        await yard.begin(runner)
        assert await finish(yard, evm, runner) == ["done", "done"]
        assert transfers_to_wallet(evm) == [70 * USDT, 80 * USDT]

    in_yard(scenario)


def test_two_who_sweep_at_once_move_everything_once(in_yard: "InYard", evm: EvmScene, tmp_path: Path) -> None:
    async def scenario(yard: Yard) -> None:
        runners = [yard.runner({ERC20: open_it(evm, tmp_path)}) for _ in range(2)]
        for index in range(3):
            await pay_in(yard, evm, index, (50 + index) * USDT)
        opened = [await yard.begin(runner) for runner in runners]
        assert list(map(len, opened)) == [3, 0]
        assert await finish(yard, evm, *runners) == ["done"] * 3
        assert sorted(transfers_to_wallet(evm)) == [50 * USDT, 51 * USDT, 52 * USDT]
        signed = await yard.rows("select kind, count(*) from sweep_signed group by kind order by kind")
        assert signed == [("token", 3), ("top_up", 3)]

    in_yard(scenario)


def test_a_top_up_takes_the_lowest_free_nonce_and_never_one_of_a_payout(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        for index in range(2):
            await pay_in(yard, evm, index, 70 * USDT)
        await yard.rows("insert into hot_wallet (chain, address, next_nonce) values ('ERC20', %s, 2)", WALLET)
        await yard.rows(
            "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
            " values ('ERC20', %s, 0, 'free', %s), ('ERC20', %s, 1, 'lost', %s)",
            *(WALLET, NOW_MS, WALLET, NOW_MS),
        )
        await yard.begin(runner)
        await runner.follow(with_unsigned=True)
        nonces = await yard.rows("select nonce, purpose from wallet_nonce order by nonce")
        assert nonces == [(0, "top_up"), (1, "lost"), (2, "top_up")]
        assert await yard.rows("select next_nonce from hot_wallet") == [(3,)]
        raws = await yard.rows("select raw from sweep_signed order by sweep_id")
        assert [parse_signed(bytes(raw))[0].nonce for (raw,) in raws] == [0, 2]
        assert {recover_sender(bytes(raw)) for (raw,) in raws} == {WALLET}

    in_yard(scenario)


def test_a_free_nonce_below_a_top_up_is_cancelled_so_that_it_goes_through(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)}, patience_ms=60_000)
        await pay_in(yard, evm, 0, 70 * USDT)
        await yard.rows("insert into hot_wallet (chain, address, next_nonce) values ('ERC20', %s, 1)", WALLET)
        await yard.begin(runner)
        await runner.follow(with_unsigned=True)
        # A payout gives its place back after the fuel was signed.
        await yard.rows(
            "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
            " values ('ERC20', %s, 0, 'free', %s)",
            *(WALLET, NOW_MS),
        )
        assert await finish(yard, evm, runner, rounds=3) == ["top_up"]
        yard.clock.now_ms += 60_000
        await runner.follow()
        async with evm.chain() as chain:
            cancel = NonceGapWorker(yard.connect, {ERC20: chain}, clock=yard.clock)
            assert await cancel.cancel_gaps() == 1
            evm.settle()
            assert await finish(yard, evm, runner) == ["done"]
            assert await cancel.cancel_gaps() == 0
            await cancel.close()

    in_yard(scenario)


def test_a_stuck_top_up_is_outbid_at_its_nonce_within_the_share(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 700 * USDT)
        await yard.begin(runner)
        await runner.follow(with_unsigned=True)
        [(first,)] = await yard.rows("select tx_hash from sweep_signed")
        evm.node.forget(first)
        evm.node.skip(5)
        await runner.follow()
        signed = await yard.rows("select raw from sweep_signed order by attempt_no")
        old, new = (parse_signed(bytes(raw))[0] for (raw,) in signed)
        assert old.nonce == new.nonce
        assert new.max_fee * 8 >= old.max_fee * 9
        [sweep] = await store.list_open(yard.connection, ERC20)
        assert new.max_fee * new.gas_limit <= sweep.top_up_fee_limit
        assert await finish(yard, evm, runner) == ["done"]

    in_yard(scenario)


def test_when_fees_rise_above_the_share_the_sweep_waits_and_nothing_is_burnt(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 70 * USDT)
        await yard.begin(runner)
        for _ in range(2):
            await runner.follow(with_unsigned=True)
            evm.settle()
        assert await yard.steps() == ["token"]
        evm.node.set_base_fee(500 * GWEI)
        evm.node.mine()
        await runner.follow()
        [sweep] = await yard.shown()
        assert "gas costs" in (sweep.obstacle or "")
        assert await yard.rows("select count(*) from sweep_signed where kind = 'token'") == [(0,)]
        # What was put there is judged anew once fees have fallen.
        evm.node.set_base_fee(GWEI // 10)
        evm.node.mine()
        assert await finish(yard, evm, runner) == ["done"]
        [sweep] = await yard.shown()
        assert sweep.obstacle is None

    in_yard(scenario)


@pytest.mark.parametrize("halt", ["frozen", "stopped"])
def test_nothing_leaves_a_hot_wallet_that_is_halted(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path, halt: str
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 70 * USDT)
        await yard.rows(
            "insert into hot_wallet (chain, address, frozen_cause, frozen_ms) values ('ERC20', %s, %s, %s)",
            *(WALLET, *(("odd", NOW_MS) if halt == "frozen" else (None, None))),
        )
        if halt == "stopped":
            await yard.rows("insert into payout_stop values ('ERC20', 'reconcile', 'odd', %s)", NOW_MS)
        await yard.begin(runner)
        await runner.follow(with_unsigned=True)
        [sweep] = await yard.shown()
        assert "odd" in (sweep.obstacle or "")
        assert await yard.rows("select count(*) from sweep_signed") == [(0,)]
        assert await yard.rows("select count(*) from wallet_nonce") == [(0,)]
        # It is given up after a while, and planned anew.
        yard.clock.now_ms += 600_000
        await runner.follow(with_unsigned=True)
        assert await yard.steps() == ["dropped"]
        await yard.rows("update hot_wallet set frozen_cause = null, frozen_ms = null")
        await yard.rows("delete from payout_stop")
        assert len(await yard.begin(runner)) == 1
        assert await finish(yard, evm, runner) == ["dropped", "done"]

    in_yard(scenario)


def test_the_hot_wallet_keeps_what_a_payout_may_cost(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 70 * USDT)
        evm.node.fund(WALLET, TERMS[ERC20].fee_cap)
        await yard.begin(runner)
        await runner.follow(with_unsigned=True)
        [sweep] = await yard.shown()
        assert "must keep" in (sweep.obstacle or "")
        assert await yard.rows("select count(*) from sweep_signed") == [(0,)]

    in_yard(scenario)


def test_an_address_that_the_token_refuses_is_hindered_and_costs_nothing(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(yard, evm, 0, 70 * USDT)
        evm.token.do("addBlackList(address)", address)
        [proposal] = await yard.plan(ERC20, runner.sweepers[ERC20])
        assert proposal.verdict == "hindered"
        assert await yard.begin(runner) == []
        evm.token.do("removeBlackList(address)", address)
        evm.token.do("addBlackList(address)", WALLET)
        [proposal] = await yard.plan(ERC20, runner.sweepers[ERC20])
        assert "hot wallet" in (proposal.holding.hindrance or "")

    in_yard(scenario)


def test_nothing_is_swept_while_the_token_takes_a_fee(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    """Neither planned, nor topped_up when it was begun before, nor signed when it was topped_up before."""

    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 70 * USDT)
        evm.token.do("setParams(uint256,uint256)", 10, 49)
        [proposal] = await yard.plan(ERC20, runner.sweepers[ERC20])
        assert (proposal.verdict, "takes a fee: 0.07 of 70" in str(proposal.holding.hindrance)) == (
            "hindered",
            True,
        )
        evm.token.do("setParams(uint256,uint256)", 0, 0)
        await yard.begin(runner)
        for signed in (0, 1):
            evm.token.do("setParams(uint256,uint256)", 10, 49)
            await runner.follow(with_unsigned=True)
            [sweep] = await yard.shown()
            assert "takes a fee" in (sweep.obstacle or "")
            assert await yard.rows("select count(*) from sweep_signed") == [(signed,)]
            evm.token.do("setParams(uint256,uint256)", 0, 0)
            # The fuel.
            await runner.follow(with_unsigned=True)
            evm.settle()
            if not signed:
                await runner.follow()
        assert await finish(yard, evm, runner) == ["done"]
        assert transfers_to_wallet(evm) == [70 * USDT]

    in_yard(scenario)


def test_a_fee_that_comes_after_signing_fails_the_sweep_and_the_cause_names_every_leg(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(yard, evm, 0, 70 * USDT)
        evm.node.fund(address, 10**16)
        await yard.begin(runner)
        # In the very block, before the sweep: the issuer offers more for its gas.
        await runner.follow(with_unsigned=True)
        switch = evm.token.call_data("setParams(uint256,uint256)", 10, 49)
        evm.node.send_as(evm.token.issuer, evm.token.address, switch)
        assert await finish(yard, evm, runner) == ["failed"]
        [sweep] = await yard.shown()
        assert "0.07 USDT from" in (sweep.cause or "")
        assert "69.93 USDT from" in (sweep.cause or "")

    in_yard(scenario)


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_that_lies_about_a_deposit_address_moves_no_nonce(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path, count: int
) -> None:
    async def scenario(yard: Yard) -> None:
        async with AsyncExitStack() as entered:
            proxies = [await entered.enter_async_context(NodeProxy(evm.node.url)) for _ in range(count)]
            urls = ",".join(proxy.url for proxy in proxies)
            runner = yard.runner({ERC20: open_evm(tmp_path, urls, evm.token.address)})
            address = await pay_in(yard, evm, 0, 70 * USDT)
            evm.node.fund(address, 10**16)
            proxies[0].always("eth_getTransactionCount", "0x3e8")
            await yard.begin(runner)
            await runner.follow(with_unsigned=True)
            assert await yard.rows("select token_nonce from sweep") == [(0,)]
            proxies[0].mend()
            assert await finish(yard, evm, runner) == ["done"]

    in_yard(scenario)


def test_a_sweep_that_reverts_fails_with_its_cost_and_is_tried_again_only_on_demand(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        address = await pay_in(yard, evm, 0, 70 * USDT)
        await yard.begin(runner)
        for _ in range(2):
            await runner.follow(with_unsigned=True)
            evm.settle()
        await runner.follow()
        # In the very block, before the sweep: the issuer offers more for its gas.
        evm.node.send_as(
            evm.token.issuer, evm.token.address, evm.token.call_data("addBlackList(address)", address)
        )
        assert await finish(yard, evm, runner) == ["failed"]
        [sweep] = await yard.shown()
        assert "reverted" in (sweep.cause or "")
        assert (sweep.token_fee or 0) > 0
        evm.token.do("removeBlackList(address)", address)
        assert await yard.begin(runner) == []
        assert len(await yard.begin(runner, again=True)) == 1
        assert await finish(yard, evm, runner) == ["failed", "done"]

    in_yard(scenario)


def test_what_is_not_final_or_not_ours_to_sign_is_no_candidate(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        sweeper = yard.runner({ERC20: open_it(evm, tmp_path)}).sweepers[ERC20]
        await yard.deposit(0, 70 * USDT, status="seen")
        assert await yard.plan(ERC20, sweeper) == []
        own = await yard.deposit(0, 40 * USDT, branch=1)
        evm.token.give(own, 40 * USDT)
        [small] = await yard.plan(ERC20, sweeper)
        assert (small.holding.address, small.verdict) == (address_of(0, branch=1), "small")
        evm.settle()
        [proposal] = await yard.plan(ERC20, sweeper)
        assert (proposal.verdict, proposal.holding.source.branch) == ("sweep", 1)
        await yard.rows("delete from account_pool")
        assert await yard.plan(ERC20, sweeper) == []

    in_yard(scenario)


def test_what_came_to_an_address_of_the_other_chain_is_shown_and_left_alone(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await yard.deposit(0, 70 * USDT)
        strange = address_of(0, TRC20)
        await yard.rows("update deposit set address = %s", strange)
        evm.token.give(strange, 70 * USDT)
        evm.settle()
        [proposal] = await yard.plan(ERC20, runner.sweepers[ERC20])
        assert (proposal.holding.address, proposal.holding.balance_units) == (strange, 70 * USDT)
        assert (proposal.verdict, proposal.holding.hindrance) == ("hindered", OTHER_CHAIN)
        assert await yard.begin(runner) == []

    in_yard(scenario)


def test_a_worker_follows_what_was_signed_and_begins_nothing(
    in_yard: "InYard", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(yard: Yard) -> None:
        command, worker = (yard.runner({ERC20: open_it(evm, tmp_path)}) for _ in range(2))
        for index in range(2):
            await pay_in(yard, evm, index, 70 * USDT)
        await yard.begin(command)
        assert await worker.follow() == 0
        assert await yard.rows("select count(*) from sweep_signed") == [(0,)]
        await command.follow(with_unsigned=True)
        stop = asyncio.Event()
        working = asyncio.create_task(worker.run(stop, interval_s=0.01))
        while await store.count_open(yard.connection, ERC20):
            await asyncio.to_thread(evm.settle)
        stop.set()
        await working
        assert await yard.steps() == ["done", "done"]
        assert sorted(transfers_to_wallet(evm)) == [70 * USDT, 70 * USDT]

    in_yard(scenario)


def test_a_node_that_is_away_stops_nothing_for_good(in_yard: "InYard", evm: EvmScene, tmp_path: Path) -> None:
    async def scenario(yard: Yard) -> None:
        runner = yard.runner({ERC20: open_it(evm, tmp_path)})
        await pay_in(yard, evm, 0, 70 * USDT)
        await yard.begin(runner)
        lost = yard.runner({ERC20: open_evm(tmp_path, "http://127.0.0.1:9", evm.token.address)})
        with pytest.raises(SweepsLeft):
            await lost.follow(with_unsigned=True)
        assert await finish(yard, evm, runner) == ["done"]

    in_yard(scenario)
