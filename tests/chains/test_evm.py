"""Payouts on a real EVM node: how they are built, what blocks them, and how their state is judged."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from coincurve import PrivateKey
from devnet.evm_node import COIN
from tests.chains.evm_scene import HELD, RECIPIENT, USDT, WALLET, EvmScene, payout, send, sign

from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.evm.transactions import parse_signed, parse_transfer_call, recover_sender
from merchant_wallet.chains.protocol import (
    Blocked,
    FinalRecord,
    Payout,
    Pending,
    ProvenUnpaid,
    Transfer,
    Unpayable,
)
from merchant_wallet.chains.signer import SigningRefused, SigningRequest
from merchant_wallet.chains.transport import NodeRefused

OTHER = b"\x77" * 20
GWEI = 10**9


async def obstacle_of(evm: EvmScene, ordered: Payout, **rules: Any) -> str:
    """The kind of obstacle. Both the check and the building must find it, and nothing may be signed."""
    async with evm.chain(**rules) as chain:
        with pytest.raises(Blocked) as looked:
            await chain.check_payable(ordered.transfer)
        with pytest.raises(Blocked) as built:
            await chain.build(ordered, [])
    assert looked.value.obstacle.kind == built.value.obstacle.kind
    assert not evm.signer.asked
    return built.value.obstacle.kind


@pytest.mark.each_node
def test_a_payout_is_final_once_its_block_is(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            await chain.check_payable(ordered.transfer)
            signed = await chain.build(ordered, [])
            assert await chain.judge(ordered, [signed]) == Pending()
            await chain.broadcast(signed.raw)
            assert await chain.next_nonce(1, is_first=False) == 1
            evm.node.mine()
            assert await chain.judge(ordered, [signed]) == Pending(is_mined=True)
            assert await chain.funds() == HELD
            evm.settle()
            assert await chain.judge(ordered, [signed]) == FinalRecord(ordered.transfer, signed.tx_hash)
            assert await chain.funds() == HELD - 25 * USDT
            assert await chain.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


def test_what_is_signed_says_exactly_what_was_ordered(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            height = evm.node.height()
            signed = await chain.build(payout(3, nonce=5), [])
        transaction, _ = parse_signed(signed.raw)
        assert recover_sender(signed.raw) == WALLET
        assert (transaction.nonce, transaction.value, transaction.to) == (5, 0, evm.token.address)
        assert parse_transfer_call(transaction.call_data) == (RECIPIENT, 3)
        assert signed.built_at_block == height
        assert evm.signer.asked[0].purpose == "payout"
        assert evm.signer.asked[0].transfer == payout(3).transfer
        assert 100_000 <= transaction.gas_limit <= 300_000

    asyncio.run(story())


@pytest.mark.each_node
def test_the_same_bytes_may_be_sent_at_any_time(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            signed = await send(chain, ordered)
            await chain.broadcast(signed.raw)
            evm.node.mine()
            await chain.broadcast(signed.raw)
            evm.settle()
            await chain.broadcast(signed.raw)
            assert await chain.judge(ordered, [signed]) == FinalRecord(ordered.transfer, signed.tx_hash)
            assert await chain.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


def test_bytes_that_the_chain_does_not_take_raise(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            signed = await chain.build(payout(), [])
            evm.node.fund(WALLET, 0)
            with pytest.raises(NodeRefused, match="Insufficient funds"):
                await chain.broadcast(signed.raw)

    asyncio.run(story())


def test_a_blacklisted_recipient_is_seen_before_anything_is_signed(evm: EvmScene) -> None:
    async def story() -> None:
        evm.token.do("addBlackList(address)", RECIPIENT)
        async with evm.chain() as chain:
            with pytest.raises(Unpayable, match="blacklisted the recipient"):
                await chain.check_payable(payout().transfer)
            with pytest.raises(Unpayable):
                await chain.build(payout(), [])
        assert not evm.signer.asked

    asyncio.run(story())


def test_our_own_blacklisted_wallet_is_the_wallets_trouble_not_the_orders(evm: EvmScene) -> None:
    evm.token.do("addBlackList(address)", WALLET)
    evm.token.do("addBlackList(address)", RECIPIENT)
    assert asyncio.run(obstacle_of(evm, payout())) == "wallet"


def test_a_paused_token_makes_orders_wait(evm: EvmScene) -> None:
    evm.token.do("pause()")
    assert asyncio.run(obstacle_of(evm, payout())) == "paused"


def test_too_little_money_makes_an_order_wait(evm: EvmScene) -> None:
    assert asyncio.run(obstacle_of(evm, payout(HELD + 1))) == "funds"


def test_too_few_coins_make_an_order_wait(evm: EvmScene) -> None:
    evm.node.fund(WALLET, COIN // 10**6)
    assert asyncio.run(obstacle_of(evm, payout())) == "fuel"


def test_a_chain_that_is_too_dear_makes_an_order_wait(evm: EvmScene) -> None:
    assert asyncio.run(obstacle_of(evm, payout(), fee_cap_wei=10**12)) == "fee"


def test_a_transfer_that_needs_too_much_gas_makes_an_order_wait(evm: EvmScene) -> None:
    assert asyncio.run(obstacle_of(evm, payout(), min_gas=90_000, max_gas=80_000)) == "fee"


def test_a_signers_refusal_makes_an_order_wait(evm: EvmScene) -> None:
    class Unwilling:
        async def wallets(self) -> Mapping[str, bytes]:
            return {ERC20: WALLET}

        async def sign(self, request: SigningRequest) -> bytes:
            raise SigningRefused("more than 10 USDT an hour")

    async def story() -> None:
        async with evm.chain() as chain:
            chain._signer = Unwilling()
            with pytest.raises(Blocked, match="more than 10 USDT an hour") as blocked:
                await chain.build(payout(), [])
            assert blocked.value.obstacle.kind == "limit"

    asyncio.run(story())


def test_a_signature_of_another_key_is_not_taken(evm: EvmScene) -> None:
    class Mistaken:
        async def wallets(self) -> Mapping[str, bytes]:
            return {ERC20: WALLET}

        async def sign(self, request: SigningRequest) -> bytes:
            return sign(request.unsigned, PrivateKey())

    async def story() -> None:
        async with evm.chain() as chain:
            chain._signer = Mistaken()
            with pytest.raises(ValueError, match="not the hot wallet's"):
                await chain.build(payout(), [])

    asyncio.run(story())


def test_another_currency_or_chain_is_refused(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            for chain_name, currency in ((ERC20, "KFB"), ("TRC20", "USDT")):
                with pytest.raises(ValueError, match="can't be paid"):
                    await chain.check_payable(Transfer(chain_name, currency, RECIPIENT, 1))

    asyncio.run(story())


@pytest.mark.each_node
def test_a_transfer_that_reverts_is_proven_unpaid_only_when_that_is_final(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            signed = await send(chain, ordered)
            # The token blacklists the wallet while its transaction is pending, so the transaction reverts.
            # The issuer's transaction offers a higher fee and is mined first.
            evm.token.do("addBlackList(address)", WALLET)
            evm.node.mine()
            verdict = await chain.judge(ordered, [signed])
            assert isinstance(verdict, Pending)
            assert verdict.is_mined
            evm.settle()
            verdict = await chain.judge(ordered, [signed])
            assert isinstance(verdict, ProvenUnpaid)
            assert f"{signed.tx_hash} reverted in block" in verdict.cause
            assert verdict.wallet_fault is None
            assert await chain.balance(RECIPIENT) == 0

    asyncio.run(story())


@pytest.mark.each_node
def test_a_stuck_payout_is_outbid_by_an_eighth_and_only_one_of_both_counts(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            first = await chain.build(ordered, [])
            # It was never broadcast, so no node has it in its mempool.
            evm.node.mine(4)
            assert await chain.judge(ordered, [first]) == Pending()
            evm.node.mine()
            assert await chain.judge(ordered, [first]) == Pending(stuck=True)
            await chain.broadcast(first.raw)
            second = await send(chain, ordered, [first])
            third = await send(chain, ordered, [first, second])
            transactions = [parse_signed(signed.raw)[0] for signed in (first, second, third)]
            for before, after in pairwise(transactions):
                assert after.nonce == before.nonce
                assert after.call_data == before.call_data
                assert after.max_priority_fee * 8 >= before.max_priority_fee * 9
                assert after.max_fee * 8 >= before.max_fee * 9
            assert await chain.judge(ordered, [first, second, third]) == Pending()
            evm.settle()
            verdict = await chain.judge(ordered, [first, second, third])
            assert verdict == FinalRecord(ordered.transfer, third.tx_hash)
            assert await chain.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


@pytest.mark.each_node
def test_the_first_of_two_may_be_the_one_that_counts(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            first = await send(chain, ordered)
            second = await chain.build(ordered, [first])
            evm.settle()
            await chain.broadcast(second.raw)
            evm.settle()
            verdict = await chain.judge(ordered, [first, second])
            assert verdict == FinalRecord(ordered.transfer, first.tx_hash)

    asyncio.run(story())


def test_a_replacement_stops_at_the_fee_cap(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered = payout()
            signed = [await chain.build(ordered, [])]
            cap = 100_000 * parse_signed(signed[0].raw)[0].max_fee * 5 // 4
        async with evm.chain(fee_cap_wei=cap) as chain:
            signed.append(await chain.build(ordered, signed))
            with pytest.raises(Blocked, match="above the cap") as blocked:
                await chain.build(ordered, signed)
            assert blocked.value.obstacle.kind == "fee"

    asyncio.run(story())


@pytest.mark.each_node
def test_a_payout_behind_another_is_not_stuck_itself(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            behind = payout(nonce=1, payout_id=2)
            signed = await send(chain, behind)
            evm.node.mine(9)
            assert await chain.judge(behind, [signed]) == Pending()
            # A cancel transaction uses the nonce before it. Then the payout can be mined.
            cancel = await chain.build_cancel(0, [])
            await chain.broadcast(cancel.raw)
            transaction, _ = parse_signed(cancel.raw)
            assert (transaction.to, transaction.value, transaction.call_data) == (WALLET, 0, b"")
            assert evm.signer.asked[-1].purpose == "cancel"
            evm.settle()
            assert await chain.judge(behind, [signed]) == FinalRecord(behind.transfer, signed.tx_hash)

    asyncio.run(story())


def test_a_cancel_transaction_is_outbid_like_a_payout(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            first = await chain.build_cancel(0, [])
            second = await chain.build_cancel(0, [first])
            offers = [parse_signed(signed.raw)[0].max_fee for signed in (first, second)]
            assert offers[1] * 8 >= offers[0] * 9
            with pytest.raises(ValueError, match="another nonce"):
                await chain.build_cancel(1, [first])

    asyncio.run(story())


@pytest.mark.each_node
def test_a_deep_reorganisation_takes_a_payout_back_and_the_same_bytes_pay_again_once(evm: EvmScene) -> None:
    async def story() -> None:
        # The operator's own rule: final with 12 blocks above it.
        async with evm.chain(finality=12) as chain:
            ordered = payout()
            evm.node.mine(12)
            signed = await send(chain, ordered)
            evm.node.mine(10)
            assert await chain.judge(ordered, [signed]) == Pending(is_mined=True)
            evm.node.reorganise(10)
            assert await chain.balance(RECIPIENT) == 0
            # The chain no longer has the transaction. That makes it stuck, and proves nothing.
            assert await chain.judge(ordered, [signed]) == Pending(stuck=True)
            await chain.broadcast(signed.raw)
            evm.node.mine(13)
            assert await chain.judge(ordered, [signed]) == FinalRecord(ordered.transfer, signed.tx_hash)
            assert await chain.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


@pytest.mark.each_node
def test_a_nonce_spent_by_an_unknown_transaction_is_proven_by_that_transaction(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain(finality=3) as chain:
            ordered = payout()
            signed = await send(chain, ordered)
            evm.node.mine()
            foreign = evm.foreign(0, OTHER)
            # A reorganisation. In the new branch a foreign transaction uses the wallet's nonce.
            evm.node.reorganise(1, [(foreign, 0)])
            # To send it again would be useless, and nothing is proven.
            assert await chain.judge(ordered, [signed]) == Pending(is_mined=True)
            evm.node.mine(5)
            verdict = await chain.judge(ordered, [signed])
            assert isinstance(verdict, ProvenUnpaid)
            assert verdict.wallet_fault is not None
            assert "nonce 0 was spent by 0x" in verdict.wallet_fault
            assert await chain.balance(RECIPIENT) == 0

    asyncio.run(story())


@pytest.mark.each_node
def test_a_nonce_spent_before_the_payout_was_built_is_found_too(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(0).hex())
            evm.node.mine(9)
            signed = await chain.build(payout(), [])
            evm.settle()
            verdict = await chain.judge(payout(), [signed])
            assert isinstance(verdict, ProvenUnpaid)
            assert verdict.wallet_fault

    asyncio.run(story())


@pytest.mark.each_node
def test_bytes_that_were_never_told_to_judge_count_as_unknown(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            ordered, other = payout(), payout(7 * USDT, payout_id=2)
            signed = await send(chain, other)
            evm.settle()
            verdict = await chain.judge(ordered, [await chain.build(ordered, [])])
            assert isinstance(verdict, ProvenUnpaid)
            assert verdict.wallet_fault is not None
            assert signed.tx_hash in verdict.wallet_fault

    asyncio.run(story())


def test_a_chain_that_is_only_read_pays_nothing(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            chain._signer = None
            with pytest.raises(ValueError, match="only read"):
                await chain.build(payout(), [])
            chain._wallet = None
            with pytest.raises(ValueError, match="only read"):
                await chain.next_nonce(None, is_first=True)

    asyncio.run(story())
