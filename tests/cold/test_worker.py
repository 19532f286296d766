"""Money moves from the hot wallet to the cold one and back, on a real EVM node and the fake TRON network."""

from typing import TYPE_CHECKING

import pytest
from coincurve import PrivateKey
from tests.cold.cold_scene import COLD, HELD, HOT_KEYS, NOW_MS, USDT, ColdScene

from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.audit.rollback.signer_record import find_signer_evidence
from merchant_wallet.base.chains import ERC20, is_evm
from merchant_wallet.chains.keys.keystore import JOURNAL
from merchant_wallet.chains.protocol import Blocked, ChainAway, Payout, Transfer
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.limits import ELSEWHERE, RECORDED, TO_COLD, TO_HOT
from merchant_wallet.custody.cold.signatures import SignatureRefused, read_answer
from merchant_wallet.custody.cold.store import NewTransfer

if TYPE_CHECKING:
    from tests.cold.conftest import InScene

UNITS = 700 * USDT


def test_the_signer_moves_what_two_people_approved_to_the_cold_wallet(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(UNITS)
        ended = await scene.finish(scene.worker(), number)
        assert (ended.step, ended.cause, ended.obstacle) == ("done", None, None)
        assert scene.moved.balance(COLD) == UNITS
        assert scene.moved.balance(scene.moved.hot) == HELD - UNITS
        assert await scene.rows("select tx_hash, attempt_no from cold_signed") == [(ended.tx_hash, 1)]
        nonces = await scene.rows("select nonce, purpose from wallet_nonce")
        assert nonces == ([(0, "cold")] if is_evm(scene.moved.chain) else [])
        assert await scene.rows("select ended_payouts from hot_wallet") == [(1,)]

    in_scene(scenario)


def test_the_signer_refuses_a_cold_wallet_that_it_does_not_know(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(UNITS)
        for other in (None, b"Z" * 20):
            await scene.turn(scene.worker(scene.moved.open(cold=other)))
            waiting = await scene.shown(number)
            assert "name it in its WALLET_" in str(waiting.obstacle)
            # Nothing is kept from payouts meanwhile.
            assert (waiting.nonce, waiting.reserved_ms) == (None, None)
        assert scene.moved.balance(COLD) == 0
        # Once the signer knows it, the same transfer goes on.
        assert (await scene.finish(scene.worker(), number)).step == "done"
        assert scene.moved.balance(COLD) == UNITS

    in_scene(scenario)


def test_a_stop_of_payouts_stops_cold_money_too(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        chain = scene.moved.chain
        await scene.rows("insert into payout_stop values (%s, 'ann', 'a node lies', %s)", chain, NOW_MS)
        number = await scene.begin(UNITS)
        worker = scene.worker()
        await scene.turn(worker)
        assert "ann stopped payouts: a node lies" in str((await scene.shown(number)).obstacle)
        assert await scene.rows("select count(*) from cold_signed") == [(0,)]
        await scene.rows("delete from payout_stop")
        assert (await scene.finish(worker, number)).step == "done"

    in_scene(scenario)


def test_a_signature_from_elsewhere_is_not_taken_for_the_hot_wallet_while_payouts_are_stopped(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: ColdScene) -> None:
        chain, worker = scene.moved.chain, scene.worker()
        number = await scene.begin(UNITS, TO_COLD, ELSEWHERE)
        await scene.turn(worker)
        waiting = await scene.shown(number)
        key = PrivateKey(HOT_KEYS[chain])
        signed = read_answer(waiting, await scene.sign_elsewhere(number, key))
        await scene.rows("insert into payout_stop values (%s, 'ann', 'a node lies', %s)", chain, NOW_MS)
        with pytest.raises(Blocked, match="ann stopped payouts: a node lies"):
            await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert await scene.rows("select count(*) from cold_signed") == [(0,)]
        await scene.rows("delete from payout_stop")
        await scene.rows("update hot_wallet set frozen_cause = 'odd', frozen_ms = 1")
        with pytest.raises(Blocked, match="the wallet is frozen: odd"):
            await store.take_signature(scene.connection, waiting, signed, scene.clock())
        await scene.rows("update hot_wallet set frozen_cause = null, frozen_ms = null")
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert (await scene.finish(worker, number)).step == "done"

    in_scene(scenario)


def test_more_than_the_wallet_holds_waits_for_money(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number = await scene.begin(HELD + USDT)
        worker = scene.worker()
        await scene.turn(worker)
        assert "1000 USDT free, 1001 are needed" in str((await scene.shown(number)).obstacle)
        scene.moved.give(scene.moved.hot, USDT)
        scene.moved.settle()
        assert (await scene.finish(worker, number)).step == "done"
        assert (scene.moved.balance(scene.moved.hot), scene.moved.balance(COLD)) == (0, HELD + USDT)

    in_scene(scenario)


def test_after_a_rollback_of_the_database_nothing_moves(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        await scene.begin(UNITS)
        await scene.rows(
            "insert into rollback_evidence (merchant_id, subject, kind, cause, since_ms)"
            " values (0, 'audit', 'behind', 'restored', %s)",
            NOW_MS,
        )
        await scene.turn(scene.worker())
        assert await scene.rows("select version, reserved_ms from cold_transfer") == [(0, None)]

    in_scene(scenario)


def test_a_refill_is_signed_elsewhere_and_arrives(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved = scene.moved
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        number, worker = await scene.begin(UNITS, TO_HOT, ELSEWHERE), scene.worker()
        await scene.turn(worker)
        waiting = await scene.shown(number)
        assert (waiting.step, waiting.waits_for_signature) == ("unsigned", True)
        of_hot = await scene.sign_elsewhere(number, PrivateKey(HOT_KEYS[moved.chain]))
        with pytest.raises(SignatureRefused, match="It was signed by the key of"):
            read_answer(waiting, of_hot)
        signed = read_answer(waiting, await scene.sign_elsewhere(number))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert not await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert (await scene.finish(worker, number)).step == "done"
        assert (moved.balance(COLD), moved.balance(moved.hot)) == (0, HELD + UNITS)

    in_scene(scenario)


def test_the_hot_wallets_transfer_may_be_signed_elsewhere_with_its_own_nonce(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved = scene.moved
        number, worker = await scene.begin(UNITS, TO_COLD, ELSEWHERE), scene.worker()
        await scene.turn(worker)
        waiting = await scene.shown(number)
        assert waiting.reserved_ms is not None
        key = PrivateKey(HOT_KEYS[moved.chain])
        signed = read_answer(waiting, await scene.sign_elsewhere(number, key))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert (await scene.finish(worker, number)).step == "done"
        assert moved.balance(COLD) == UNITS

    in_scene(scenario)


def test_what_nobody_signs_in_time_is_given_up_and_its_nonce_is_cancelled(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number, worker = await scene.begin(UNITS, TO_COLD, ELSEWHERE), scene.worker()
        await scene.turn(worker, settles=False)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number, scene.moved.hot_key))
        scene.clock.now_ms += 1_800_000
        await scene.turn(worker, settles=False)
        assert not await store.take_signature(scene.connection, waiting, signed, scene.clock())
        if is_evm(scene.moved.chain):
            await scene.cancel_gaps()
            await scene.turn(worker)
        ended = await scene.shown(number)
        assert (ended.step, ended.cause) == ("dropped", "it was not signed in time")
        nonces = await scene.rows("select nonce, purpose, cancelled_ms is not null from wallet_nonce")
        assert nonces == ([(0, "cancel", True)] if is_evm(scene.moved.chain) else [])
        held = "select from cold_transfer where reserved_ms is not null and ended_no is null"
        assert await scene.rows(held) == []

    in_scene(scenario)


def test_a_transfer_made_elsewhere_is_recorded_only_if_the_nodes_show_exactly_it(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, chain = scene.moved, scene.moved.open()
        worker = scene.worker(chain)
        transfer = Transfer(moved.chain, "USDT", COLD, UNITS)
        nonce = 0 if chain.has_nonces else None
        made = await chain.build(Payout(77, transfer, nonce, "cold"), [])
        number = await scene.begin(UNITS, TO_COLD, RECORDED, tx_hash=made.tx_hash)
        await scene.turn(worker)
        assert (await scene.shown(number)).step == "open"
        await chain.broadcast(made.raw)
        moved.settle()
        assert (await scene.finish(worker, number)).step == "done"
        # The same transaction is not recorded twice. Another amount or another sender is not it.
        assert await scene.rows("select count(*) from cold_transfer") == [(1,)]
        for units, sender in ((UNITS - USDT, moved.hot), (UNITS, b"Z" * 20)):
            await scene.rows("delete from cold_transfer")
            wrong = NewTransfer(
                moved.chain, TO_COLD, RECORDED, sender, COLD, units, made.tx_hash, None, "ann"
            )
            opened = await store.open_transfer(scene.connection, wrong, scene.clock())
            assert opened is not None
            ended = await scene.finish(worker, opened)
            assert (ended.step, "moved 700 from" in str(ended.cause)) == ("failed", True)

    in_scene(scenario)


def test_a_person_gives_up_what_is_not_signed(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number, worker = await scene.begin(HELD * 2), scene.worker()
        await scene.turn(worker)
        assert await store.ask_drop(scene.connection, await scene.shown(number), "operator:bob")
        await scene.turn(worker)
        ended = await scene.shown(number)
        assert (ended.step, ended.cause) == ("dropped", "given up by operator:bob")
        # What has left may not be given up.
        number = await scene.begin(UNITS)
        await scene.turn(worker, settles=False)
        assert (await scene.shown(number)).step == "signed"
        assert not await store.ask_drop(scene.connection, await scene.shown(number), "operator:bob")
        assert (await scene.finish(worker, number)).step == "done"

    in_scene(scenario)


def test_a_signature_of_what_was_given_up_meanwhile_is_not_taken(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        number, worker = await scene.begin(UNITS, TO_COLD, ELSEWHERE), scene.worker()
        await scene.turn(worker)
        waiting = await scene.shown(number)
        key = PrivateKey(HOT_KEYS[scene.moved.chain])
        signed = read_answer(waiting, await scene.sign_elsewhere(number, key))
        assert await store.ask_drop(scene.connection, waiting, "operator:bob")
        assert not await store.take_signature(scene.connection, waiting, signed, scene.clock())
        await scene.turn(worker)
        if is_evm(scene.moved.chain):
            await scene.cancel_gaps()
        assert (await scene.finish(worker, number)).step == "dropped"
        assert await scene.rows("select * from cold_signed") == []
        assert scene.moved.balance(COLD) == 0

    in_scene(scenario)


def test_what_never_reached_the_chain_is_signed_again_and_moves_once(in_scene: "InScene") -> None:
    """On an EVM chain with a higher fee at the same nonce, on TRON after proof that the first has expired."""

    async def scenario(scene: ColdScene) -> None:
        # The fake chain has its own time. The signer must know that the first signature has expired.
        number, chain = await scene.begin(UNITS), scene.moved.open(signer_ahead_ms=5 * 10**12)
        worker = scene.worker(chain)

        async def lose(raw: bytes) -> None:
            """No node takes it."""
            raise ChainAway("every node is away")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "broadcast", lose)
            await scene.turn(worker)
        assert "every node is away" in str((await scene.shown(number)).obstacle)
        # The chain goes on without it: EVM blocks in which it could have been, on TRON its whole lifetime.
        scene.moved.pass_by()
        scene.clock.now_ms += 600_000
        ended = await scene.finish(worker, number)
        assert ended.step == "done"
        assert scene.moved.balance(COLD) == UNITS
        [(attempts,)] = await scene.rows("select count(*) from cold_signed")
        assert attempts <= 2
        assert await scene.rows("select count(*) from cold_signed where tx_hash = %s", ended.tx_hash) == [
            (1,)
        ]

    in_scene(scenario)


@pytest.mark.parametrize("moved", [ERC20], indirect=True)
def test_what_was_signed_elsewhere_and_is_stuck_is_replaced_at_its_nonce_and_stops_no_payout(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: ColdScene) -> None:
        moved = scene.moved
        number, chain = await scene.begin(UNITS, TO_COLD, ELSEWHERE), moved.open()
        worker = scene.worker(chain)
        await scene.turn(worker)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number, PrivateKey(HOT_KEYS[moved.chain])))
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        take = chain.broadcast

        async def refuse_first(raw: bytes) -> None:
            """Its fee is too low by now, so no block has it."""
            if raw != signed.raw:
                await take(raw)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "broadcast", refuse_first)
            await scene.turn(worker)
            moved.pass_by()
            ignorant = moved.open(cold=None)
            patch.setattr(ignorant, "broadcast", refuse_first)
            await scene.turn(scene.worker(ignorant))
            assert "name it in its WALLET_ERC20_COLD" in str((await scene.shown(number)).obstacle)
            ended = await scene.finish(worker, number)
        assert (ended.step, ended.tx_hash == signed.tx_hash) == ("done", False)
        assert moved.balance(COLD) == UNITS
        assert await scene.rows("select nonce, purpose from wallet_nonce") == [(0, "cold")]

    in_scene(scenario)


def test_a_signature_that_the_database_does_not_know_is_evidence_of_a_rollback(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        record = scene.moved.file.parent / JOURNAL
        cells = ReachedCells(scene.connection, {})

        async def look() -> str | None:
            found = await find_signer_evidence(scene.connection, cells, record, scene.clock())
            return None if found is None else found.cause

        number = await scene.begin(UNITS)
        assert (await scene.finish(scene.worker(), number)).step == "done"
        assert await look() is None
        # The database of yesterday is restored.
        await scene.rows("delete from cold_signed")
        await scene.rows("delete from cold_transfer")
        assert f"cold transfer {number} was signed at" in str(await look())

    in_scene(scenario)
