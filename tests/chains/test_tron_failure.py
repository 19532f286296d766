"""Proof on TRON that a transfer failed, and receipts that prove nothing."""

from typing import Any

import pytest
from tests.chains.tron_faults import both, drain, go_away, is_alarmed, is_calm
from tests.chains.tron_scene import ORDER_UNITS, OTHER, RECIPIENT, WALLET_SUN, TronScene, payout_of

from merchant_wallet.chains.protocol import Blocked, Expired, FinalRecord, ProvenUnpaid, SignedTransfer
from merchant_wallet.chains.tron.chain import TronChain

PAYOUT = payout_of()


def test_a_failed_receipt_in_a_final_block_is_proven_unpaid_with_its_cause(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        drain(tron)
        await tron.chain.broadcast(signed.raw)
        tron.network.mine()
        assert is_calm(await tron.judge(PAYOUT, signed))
        tron.network.settle()
        verdict = await tron.judge(PAYOUT, signed)
        assert isinstance(verdict, ProvenUnpaid)
        assert verdict.wallet_fault is None
        assert "REVERT opcode executed" in verdict.cause

    tron.play(steps())


def test_a_transfer_that_ran_out_of_energy_is_void_and_is_paid_by_a_second_one(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.network.fake.coins[tron.wallet] = 1_000_000
        await tron.chain.broadcast(signed.raw)
        tron.network.mine()
        assert is_calm(await tron.judge(PAYOUT, signed))
        tron.network.settle()
        verdict = await tron.judge(PAYOUT, signed)
        assert isinstance(verdict, Expired)
        assert "OUT_OF_ENERGY" in verdict.cause
        assert await obstacle_of(tron, signed) == "fuel"
        tron.network.fund(tron.wallet, sun=WALLET_SUN)
        # The signer only knows that the first one has not expired yet.
        assert await obstacle_of(tron, signed) == "lapsed"
        tron.let_expire()
        again = await tron.chain.build(PAYOUT, [signed])
        await tron.chain.broadcast(again.raw)
        tron.network.settle()
        assert await tron.judge(PAYOUT, signed, again) == FinalRecord(PAYOUT.transfer, again.tx_hash)

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS


async def obstacle_of(tron: TronScene, *signed: SignedTransfer) -> str:
    with pytest.raises(Blocked) as blocked:
        await tron.chain.build(PAYOUT, signed)
    return blocked.value.obstacle.kind


def test_what_an_overloaded_producer_stopped_is_void_only_where_two_nodes_show_it(tron: TronScene) -> None:
    def stop(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path.endswith("gettransactioninfobyid") and answer:
            return {**answer, "result": "FAILED", "receipt": {"result": "OUT_OF_TIME"}, "log": []}
        return answer

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        both(tron)[0].switches.edit = stop
        assert is_alarmed(await tron.judge(PAYOUT, signed))
        both(tron)[1].switches.edit = stop
        assert isinstance(await tron.judge(PAYOUT, signed), Expired)

    tron.play(steps())


def test_a_failure_that_only_one_node_tells_is_no_proof(tron: TronScene) -> None:
    def fail(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path.endswith("gettransactioninfobyid") and answer:
            return {**answer, "result": "FAILED", "receipt": {"result": "REVERT"}, "log": []}
        return answer

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        both(tron)[1].switches.edit = fail
        assert is_alarmed(await tron.judge(PAYOUT, signed))
        go_away(both(tron)[0])
        assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_two_nodes_that_tell_of_different_amounts_prove_nothing(tron: TronScene) -> None:
    def exaggerate(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path.endswith("gettransactioninfobyid") and answer:
            log = {**answer["log"][0], "data": f"{ORDER_UNITS * 2:064x}"}
            return {**answer, "log": [log]}
        return answer

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        both(tron)[0].switches.edit = exaggerate
        assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_a_receipt_without_the_tokens_log_is_not_paid(tron: TronScene) -> None:
    def strip(path: str, question: dict[str, Any], answer: Any) -> Any:
        return {**answer, "log": []} if path.endswith("gettransactioninfobyid") and answer else answer

    def mistake(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path.endswith("gettransactioninfobyid") and answer:
            return {**answer, "log": [{**answer["log"][0], "address": "99" * 20}]}
        return answer

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        for edit in (strip, mistake):
            for server in both(tron):
                server.switches.edit = edit
            assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_a_node_may_write_anything_into_a_cause_and_only_text_is_kept(tron: TronScene) -> None:
    def scrawl(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("gettransactioninfobyid") or not answer:
            return answer
        message = b"no \x00 energy \xff\n".hex() + "41" * 10_000
        return {**answer, "result": "FAILED", "receipt": {"result": "REVERT"}, "resMessage": message}

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        for server in both(tron):
            server.switches.edit = scrawl
        verdict = await tron.judge(PAYOUT, signed)
        assert isinstance(verdict, ProvenUnpaid)
        assert verdict.cause.isprintable()
        assert "no energy" in verdict.cause
        assert len(verdict.cause) < 300

    tron.play(steps())


def test_bytes_of_another_id_are_not_judged(tron: TronScene) -> None:
    async def steps() -> None:
        first, second = await tron.sign(PAYOUT), await tron.sign(payout_of(2))
        with pytest.raises(ValueError, match="not the id of its bytes"):
            await tron.judge(PAYOUT, SignedTransfer(first.raw, second.tx_hash, first.built_at_block))

    tron.play(steps())


def test_what_an_earlier_hot_wallet_paid_is_still_seen(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        successor = TronChain(tron.rules, tron.chain.nodes, wallet=OTHER, signer=tron.signer)
        assert isinstance(await successor.judge(PAYOUT, [signed]), FinalRecord)

    tron.play(steps())
