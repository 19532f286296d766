"""Payouts on TRON: built, signed, broadcast and paid."""

from typing import Any

import pytest
from devnet.tron_network import TronNetwork, address_of
from tests.chains.tron_faults import both, drain, go_away, is_calm
from tests.chains.tron_scene import ORDER_UNITS, OTHER, RECIPIENT, KeySigner, TronScene, key_of, payout_of

from merchant_wallet.base.chains import TRC20
from merchant_wallet.chains.evm.transactions import parse_transfer_call
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    Expired,
    FinalRecord,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
)
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.chains.tron.proof import BLOCK_MS
from merchant_wallet.chains.tron.transactions import parse_envelope, parse_raw

PAYOUT = payout_of()


def test_a_payout_is_final_by_receipt_and_log_though_the_token_answers_false(tron: TronScene) -> None:
    async def steps() -> SignedTransfer:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        assert await tron.judge(PAYOUT, signed) == FinalRecord(PAYOUT.transfer, signed.tx_hash)
        return signed

    signed = tron.play(steps())
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS
    found = tron.network.fake.find(signed.tx_hash)
    assert found is not None
    assert found[2]["contractResult"] == ["0" * 64]


def test_nothing_is_final_before_its_block_is_solid(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        assert is_calm(await tron.judge(PAYOUT, signed))
        await tron.chain.broadcast(signed.raw)
        for blocks in range(tron.network.fake.solid_lag + 1, 1, -1):
            tron.network.mine()
            # It may be in the first or in the second block after its signature.
            assert await tron.judge(PAYOUT, signed) == Pending(blocks * BLOCK_MS)
        tron.network.mine()
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())


def test_one_node_is_enough_to_see_a_payout_paid_or_failed(lone: TronScene) -> None:
    async def steps() -> None:
        paid = await lone.pay(PAYOUT)
        failing = await lone.sign(payout_of(2))
        drain(lone)
        await lone.chain.broadcast(failing.raw)
        lone.network.settle()
        assert isinstance(await lone.judge(PAYOUT, paid), FinalRecord)
        assert isinstance(await lone.judge(payout_of(2), failing), ProvenUnpaid)

    lone.play(steps())


@pytest.mark.each_node
def test_the_same_bytes_pay_once_however_often_they_are_sent(tron: TronScene) -> None:
    held = tron.network.balance(RECIPIENT)

    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        for _ in range(3):
            await tron.chain.broadcast(signed.raw)
            tron.network.mine()
            await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        await tron.chain.broadcast(signed.raw)
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == held + ORDER_UNITS


def test_time_and_reference_come_from_the_chain(tron: TronScene) -> None:
    fake = tron.network.fake
    signed = tron.play(tron.sign(PAYOUT))
    transaction = parse_raw(parse_envelope(signed.raw)[0])
    solid = fake.blocks[fake.solid_number]
    assert fake.head.time_ms - 60_000 < transaction.timestamp_ms <= fake.head.time_ms
    assert transaction.expiration_ms == fake.head.time_ms + tron.rules.lifetime_ms
    assert (transaction.ref_block_bytes.hex(), transaction.ref_block_hash.hex()) == (
        solid.id[12:16],
        solid.id[16:32],
    )
    assert signed.built_at_block == solid.number


def test_the_signer_is_asked_for_exactly_the_order(tron: TronScene) -> None:
    signed = tron.play(tron.sign(PAYOUT))
    [request] = tron.signer.requests
    transaction = parse_raw(request.unsigned)
    assert (request.chain, request.purpose, request.payout_id) == (TRC20, "payout", 1)
    assert request.transfer == PAYOUT.transfer
    assert parse_envelope(signed.raw)[0] == request.unsigned
    assert (transaction.owner, transaction.contract) == (tron.wallet, tron.network.token)
    assert parse_transfer_call(transaction.call_data) == (RECIPIENT, ORDER_UNITS)


def test_a_signature_of_another_key_is_not_taken(tron: TronScene) -> None:
    signer = KeySigner(key_of("stranger"))
    stranger = TronChain(tron.rules, tron.chain.nodes, wallet=tron.wallet, signer=signer)
    with pytest.raises(ValueError, match="another key"):
        tron.play(stranger.build(PAYOUT, []))


def test_transactions_have_no_numbers_here(tron: TronScene) -> None:
    assert not tron.chain.has_nonces
    with pytest.raises(ValueError, match="has no nonces"):
        tron.play(tron.chain.next_nonce(None, is_first=True))
    with pytest.raises(ValueError, match="has no nonces"):
        tron.play(tron.chain.build_cancel(1, []))


@pytest.mark.each_node
def test_equal_payouts_of_one_moment_are_each_paid(tron: TronScene) -> None:
    held = tron.network.balance(RECIPIENT)
    payouts = [payout_of(number, amount_units=10) for number in range(1, 22)]

    async def steps() -> list[object]:
        signed = [await tron.sign(payout) for payout in payouts]
        for one in signed:
            await tron.chain.broadcast(one.raw)
        tron.network.settle()
        return [await tron.judge(payout, one) for payout, one in zip(payouts, signed, strict=True)]

    verdicts = tron.play(steps())
    final = [verdict for verdict in verdicts if isinstance(verdict, FinalRecord)]
    assert [verdict.transfer for verdict in final] == [payout.transfer for payout in payouts]
    assert len({verdict.tx_hash for verdict in final}) == len(payouts)
    assert tron.network.balance(RECIPIENT) == held + 210


def test_a_duplicate_answer_proves_nothing(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        for server in both(tron):
            server.switches.refuses, server.switches.caches_ids = "SERVER_BUSY", True
        with pytest.raises(ChainAway, match="SERVER_BUSY"):
            await tron.chain.broadcast(signed.raw)
        # The same nodes now answer that they have it, but no node has.
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        assert is_calm(await tron.judge(PAYOUT, signed))

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == 0


def test_a_node_that_keeps_transactions_to_itself_is_got_round(tron: TronScene) -> None:
    first, _ = both(tron)
    first.switches.is_isolated = True

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        assert tron.network.fake.find(signed.tx_hash) is None
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())


def test_a_lost_answer_to_a_broadcast_pays_once(tron: TronScene) -> None:
    for server in both(tron):
        server.switches.loses_answers_of.add("/wallet/broadcasthex")

    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        with pytest.raises(ChainAway):
            await tron.chain.broadcast(signed.raw)
        for server in both(tron):
            server.switches.loses_answers_of.clear()
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS


def test_a_refusal_by_every_node_is_reported_and_is_no_verdict(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.network.fake.coins.pop(tron.wallet)
        with pytest.raises(Blocked, match=r"account \[T\w+\] does not exist") as blocked:
            await tron.chain.broadcast(signed.raw)
        assert blocked.value.obstacle.kind == "fuel"
        assert is_calm(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_a_lack_of_trx_at_the_broadcast_is_fuel_and_any_other_refusal_is_the_nodes(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        for server in both(tron):
            server.switches.refuses = "BANDWITH_ERROR"
        with pytest.raises(Blocked) as blocked:
            await tron.chain.broadcast(signed.raw)
        assert blocked.value.obstacle.kind == "fuel"
        for server in both(tron):
            server.switches.refuses = "SERVER_BUSY"
        with pytest.raises(ChainAway, match="SERVER_BUSY"):
            await tron.chain.broadcast(signed.raw)

    tron.play(steps())


def test_a_node_that_has_the_transfer_may_refuse_it_with_any_code(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        for server in both(tron):
            server.switches.refuses = "OTHER_ERROR"
        await tron.chain.broadcast(signed.raw)

    tron.play(steps())


def test_a_payout_whose_block_is_taken_back_is_pending_and_then_paid_once(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.mine()
        tron.network.fake.reorganise(2, is_repooled=True)
        assert tron.network.balance(RECIPIENT) == 0
        assert is_calm(await tron.judge(PAYOUT, signed))
        tron.network.settle()
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS


def test_a_payout_that_a_reorganisation_loses_is_sent_again_or_expires(tron: TronScene) -> None:
    async def steps() -> None:
        lost, again = await tron.pay(PAYOUT), await tron.pay(payout_of(2))
        tron.network.mine()
        tron.network.fake.reorganise(3)
        await tron.chain.broadcast(again.raw)
        tron.let_expire()
        assert isinstance(await tron.judge(payout_of(2), again), FinalRecord)
        assert isinstance(await tron.judge(PAYOUT, lost), Expired)

    tron.play(steps())
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS


def test_a_right_setup_is_said_to_be_right(tron: TronScene) -> None:
    now_ms = tron.network.fake.head.time_ms
    assert tron.play(tron.chain.check_setup(lambda: now_ms + 59_000)) == []


def test_what_is_wrong_with_the_setup_is_said_in_sentences(tron: TronScene) -> None:
    now_ms = tron.network.fake.head.time_ms
    other_chain = tron.play(tron.with_rules(chain_id=1).check_setup(lambda: now_ms))
    assert ["the chain id is 728126428, the setting says 1" in one for one in other_chain] == [True, True]
    no_token = tron.play(tron.with_rules(token=OTHER).check_setup(lambda: now_ms))
    assert ["there is no contract at the token's address" in one for one in no_token] == [True, True]
    late = tron.play(tron.chain.check_setup(lambda: now_ms + 3_600_000))
    assert ["the newest block is 3600 s behind" in one for one in late] == [True, True]
    early = tron.play(tron.chain.check_setup(lambda: now_ms - 3_600_000))
    assert ["the newest block is 3600 s ahead of" in one for one in early] == [True, True]
    go_away(both(tron)[1])
    [away] = tron.play(tron.chain.check_setup(lambda: now_ms))
    assert "not a TRON answer" in away


def test_a_token_of_other_decimals_is_noticed(tron: TronScene) -> None:
    def inflate(path: str, question: dict[str, Any], answer: Any) -> Any:
        is_asked = question.get("function_selector") == "decimals()"
        return {**answer, "constant_result": [f"{18:064x}"]} if is_asked else answer

    both(tron)[0].switches.edit = inflate
    now_ms = tron.network.fake.head.time_ms
    [sentence] = tron.play(tron.chain.check_setup(lambda: now_ms))
    assert "18 decimals and must have 6" in sentence


def test_the_wallet_is_the_signers(tron: TronScene) -> None:
    assert tron.chain.wallet == address_of(tron.signer.key)
    assert isinstance(tron.network, TronNetwork)
