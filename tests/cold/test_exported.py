"""Transfers exported to be signed elsewhere, and what wallet programs make of them: the chain decides."""

from typing import TYPE_CHECKING, Any

import pytest
from tests.cold.cold_scene import COLD, COLD_KEY, HELD, USDT, ColdScene

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.cold import InFlight
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.limits import ELSEWHERE, RECORDED, TO_COLD, TO_HOT
from merchant_wallet.custody.cold.signatures import read_answer
from merchant_wallet.custody.cold.transfer_steps import COLD_SIGNATURE_MS, HOT_SIGNATURE_MS
from merchant_wallet.custody.cold.worker import ColdWorker

if TYPE_CHECKING:
    from tests.cold.conftest import InScene

UNITS = 300 * USDT


async def export(scene: ColdScene, worker: ColdWorker, direction: Any = TO_COLD) -> int:
    """A transfer whose bytes somebody has."""
    number = await scene.begin(UNITS, direction, ELSEWHERE)
    await scene.turn(worker)
    assert (await scene.shown(number)).waits_for_signature
    return number


async def ask_drop(scene: ColdScene, number: int) -> None:
    assert await store.ask_drop(scene.connection, await scene.shown(number), "operator:bob")


async def be_away(*_: object) -> None:
    raise ChainAway("every node is away")


async def expect_next(scene: ColdScene, worker: ColdWorker) -> None:
    """The next one goes its way: nothing is frozen, and no nonce is counted twice."""
    number = await scene.begin(USDT)
    assert (await scene.finish(worker, number)).step == "done"
    assert await scene.rows("select frozen_cause from hot_wallet") == [(None,)]


def test_what_a_wallet_program_broadcasts_itself_is_noticed_while_it_waits(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        number = await export(scene, worker)
        await scene.broadcast(await scene.sign_elsewhere(number, scene.moved.hot_key))
        await scene.turn(worker, settles=False)
        assert "on its way and not final yet" in str((await scene.shown(number)).obstacle)
        moved.settle()
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.cause, ended.obstacle) == ("done", None, None)
        assert ended.tx_hash is not None
        assert (moved.balance(COLD), moved.balance(moved.hot)) == (UNITS, HELD - UNITS)
        assert await scene.rows("select ended_payouts from hot_wallet") == [(1,)]
        await expect_next(scene, worker)

    in_scene(scenario)


def test_what_was_broadcast_elsewhere_is_not_dropped(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        moved.fuel(COLD)
        for direction, key in ((TO_COLD, scene.moved.hot_key), (TO_HOT, COLD_KEY)):
            number = await export(scene, worker, direction)
            await scene.broadcast(await scene.sign_elsewhere(number, key))
            await ask_drop(scene, number)
            await scene.turn(worker, settles=False)
            assert (await scene.shown(number)).ended_ms is None
            moved.settle()
            ended = await scene.finish(worker, number)
            assert (ended.step, ended.cause, ended.tx_hash is not None) == ("done", None, True)
        assert (moved.balance(COLD), moved.balance(moved.hot)) == (0, HELD)
        await expect_next(scene, worker)

    in_scene(scenario)


def test_a_refill_that_was_sent_is_not_dropped_before_the_chain_was_asked(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        number = await export(scene, worker, TO_HOT)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        await scene.turn(worker, settles=False)
        await ask_drop(scene, number)
        await scene.turn(worker, settles=False)
        assert (await scene.shown(number)).ended_ms is None
        moved.settle()
        assert (await scene.finish(worker, number)).step == "done"

    in_scene(scenario)


def test_no_exported_transfer_is_dropped_while_no_node_answers(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, chain = scene.moved, scene.moved.open()
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        worker = scene.worker(chain)
        number = await export(scene, worker, TO_HOT)
        await ask_drop(scene, number)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "find_execution", be_away)
            await scene.turn(worker)
            assert "every node is away" in str((await scene.shown(number)).obstacle)
        assert (await scene.finish(worker, number)).step == "dropped"

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_an_exported_nonce_is_cancelled_before_its_transfer_is_dropped(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, chain = scene.moved, scene.moved.open()
        worker = scene.worker(chain)
        number = await export(scene, worker)
        signed = await scene.sign_elsewhere(number, scene.moved.hot_key)
        await ask_drop(scene, number)
        await scene.turn(worker)
        assert "nonce 0 is being cancelled" in str((await scene.shown(number)).obstacle)
        await scene.cancel_gaps()
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.cause) == ("dropped", "given up by operator:bob")
        # Now the signature is worth nothing.
        await scene.broadcast(signed)
        moved.settle()
        assert moved.balance(COLD) == 0
        nonces = "select nonce, purpose, cancelled_ms is not null from wallet_nonce order by nonce"
        assert await scene.rows(nonces) == [(0, "cancel", True)]
        await expect_next(scene, worker)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_transfer_that_was_faster_than_the_cancellation_of_its_nonce_is_done(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        worker = scene.worker()
        number = await export(scene, worker)
        signed = await scene.sign_elsewhere(number, scene.moved.hot_key)
        await ask_drop(scene, number)
        await scene.turn(worker)
        await scene.broadcast(signed)
        scene.moved.settle()
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.cause) == ("done", None)
        assert scene.moved.balance(COLD) == UNITS
        await expect_next(scene, worker)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_wallet_program_may_choose_other_fees(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        worker, key = scene.worker(), scene.moved.hot_key
        number = await export(scene, worker)
        other = await scene.resign(number, key, gas_limit=123_456)
        await scene.broadcast(other)
        scene.moved.settle()
        assert (await scene.finish(worker, number)).step == "done"
        # Also if the signature of the other fees was brought back before.
        number = await export(scene, worker)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number, key))
        await scene.broadcast(await scene.resign(number, key, gas_limit=123_456))
        scene.moved.mine()
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.tx_hash == signed.tx_hash) == ("done", False)
        assert scene.moved.balance(COLD) == 2 * UNITS
        await expect_next(scene, worker)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_signature_is_sent_although_the_chain_cannot_say_who_used_the_nonce(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, chain = scene.moved, scene.moved.open()
        worker = scene.worker(chain)
        number = await export(scene, worker)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number, moved.hot_key))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "find_execution", be_away)
            ended = await scene.finish(worker, number)
        assert (ended.step, ended.tx_hash) == ("done", signed.tx_hash)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_refill_that_came_back_signed_is_judged_by_its_hash(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, chain = scene.moved, scene.moved.open()
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        worker = scene.worker(chain)
        number = await export(scene, worker, TO_HOT)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())

        async def not_shown(*_: object) -> InFlight:
            return InFlight("a node says that nonce 0 is used, and does not show by what")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "find_execution", not_shown)
            ended = await scene.finish(worker, number)
        assert (ended.step, ended.tx_hash) == ("done", signed.tx_hash)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_one_node_delays_a_drop_no_longer_than_the_time_to_sign(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        chain = scene.moved.open()
        worker = scene.worker(chain)

        async def lie(*_: object) -> InFlight:
            return InFlight("one node says so")

        scene.moved.give(COLD, UNITS)
        scene.moved.fuel(COLD)
        scene.moved.settle()
        refill = await export(scene, worker, TO_HOT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "find_execution", lie)
            await ask_drop(scene, refill)
            await scene.turn(worker)
            assert (await scene.shown(refill)).obstacle == "it is not given up yet: one node says so"
            scene.clock.now_ms += COLD_SIGNATURE_MS
            assert (await scene.finish(worker, refill)).step == "dropped"
            # Payouts wait for the nonce of the hot wallet, so nobody has to ask for this one.
            number = await export(scene, worker)
            await scene.turn(worker)
            assert (await scene.shown(number)).obstacle == "one node says so"
            scene.clock.now_ms += HOT_SIGNATURE_MS
            await scene.turn(worker)
            assert (await scene.shown(number)).obstacle == "nonce 0 is being cancelled; one node says so"
            await scene.cancel_gaps()
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.cause) == ("dropped", "it was not signed in time")
        await expect_next(scene, worker)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_signature_that_is_taken_while_the_worker_asks_the_chain_is_kept(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        chain = scene.moved.open()
        worker = scene.worker(chain)
        number = await export(scene, worker)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number, scene.moved.hot_key))
        scene.clock.now_ms += HOT_SIGNATURE_MS

        async def take_meanwhile(*_: object) -> None:
            assert await store.take_signature(scene.connection, waiting, signed, scene.clock())

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "find_execution", take_meanwhile)
            await scene.turn(worker, settles=False)
        ended = await scene.finish(worker, number)
        assert (ended.step, ended.drop_asked_by, ended.tx_hash) == ("done", None, signed.tx_hash)

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_a_recorded_transfer_is_dropped_unless_it_is_final(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        chain = scene.moved.open()
        worker = scene.worker(chain)
        number = await scene.begin(UNITS, TO_COLD, RECORDED, tx_hash="0x" + "ab" * 32)

        async def knows(_tx_hash: str) -> bool:
            return True

        async def disagree(_tx_hash: str) -> int | None:
            raise ChainDisagrees("nodes show it in different blocks")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "knows", knows)
            patch.setattr(chain, "find_block", disagree)
            await scene.turn(worker)
            assert "different blocks" in str((await scene.shown(number)).obstacle)
            await ask_drop(scene, number)
            assert (await scene.finish(worker, number)).step == "dropped"

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_another_transaction_with_the_nonce_ends_the_transfer(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        other = encode_transfer_call(b"Z" * 20, USDT)
        number = await export(scene, worker, TO_HOT)
        await scene.broadcast(await scene.resign(number, COLD_KEY, call_data=other))
        moved.settle()
        ended = await scene.finish(worker, number)
        assert (ended.step, "which is not this transfer" in str(ended.cause)) == ("failed", True)
        assert await scene.rows("select frozen_cause from hot_wallet") == [(None,)]
        # With the hot wallet's key somebody else could do the same: nothing more is signed.
        number = await export(scene, worker)
        await scene.broadcast(await scene.resign(number, scene.moved.hot_key, call_data=other))
        moved.settle()
        ended = await scene.finish(worker, number)
        assert (ended.step, "its nonce was used by 0x" in str(ended.cause)) == ("failed", True)
        assert await scene.rows("select frozen_cause from hot_wallet") == [(ended.cause,)]

    in_scene(scenario)


@pytest.mark.parametrize("moved", [TRC20], indirect=True)
def test_a_transfer_that_fails_on_the_chain_has_failed(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        number = await export(scene, worker, TO_HOT)
        # Meanwhile the tokens have left the wallet.
        moved.pay(COLD_KEY, b"Z" * 20, UNITS)
        await scene.broadcast(await scene.sign_elsewhere(number))
        moved.settle()
        ended = await scene.finish(worker, number)
        assert (ended.step, f"{ended.tx_hash} moved nothing" in str(ended.cause)) == ("failed", True)

    in_scene(scenario)


def test_a_recorded_hash_that_no_node_knows_is_shown_at_once(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        mistyped = "ab" * 32 if moved.chain == TRC20 else "0x" + "ab" * 32
        number = await scene.begin(UNITS, TO_COLD, RECORDED, tx_hash=mistyped)
        await scene.turn(worker)
        assert f"no node knows {mistyped}: is the hash right?" in str((await scene.shown(number)).obstacle)
        await ask_drop(scene, number)
        assert (await scene.finish(worker, number)).step == "dropped"

    in_scene(scenario)


def test_the_recorded_transaction_of_somebody_else_is_named_as_its_chain_writes_it(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, worker = scene.moved, scene.worker()
        moved.pay_hot(b"Z" * 20, USDT)
        moved.settle()
        reader = moved.open()
        last = (await reader.final()).number
        [theirs] = [each for each in await reader.transfers(0, last) if each.recipient == b"Z" * 20]
        await reader.close()
        number = await scene.begin(UNITS, TO_COLD, RECORDED, tx_hash=theirs.tx_hash)
        await ask_drop(scene, number)
        ended = await scene.finish(worker, number)
        named = format_address(moved.chain, b"Z" * 20)
        assert (ended.step, f"to {named}, which is not this" in str(ended.cause)) == ("failed", True)

    in_scene(scenario)


def test_a_hot_wallet_whose_key_is_not_here_is_named_as_its_chain_writes_it(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(UNITS)
        await scene.rows("update cold_transfer set hot = %s", b"Z" * 20)
        await scene.turn(scene.worker())
        named = format_address(scene.moved.chain, b"Z" * 20)
        assert f"no key here of its hot wallet, {named}" in str((await scene.shown(number)).obstacle)

    in_scene(scenario)
