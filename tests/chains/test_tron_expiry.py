"""Proof on TRON that a signed transaction has expired, and what is no proof."""

import hashlib
from typing import Any

import pytest
from devnet.tron_api import TronServer
from tests.chains.tron_faults import (
    FAULTS,
    answer_nothing,
    both,
    fall_behind,
    follow_another_branch,
    forget,
    go_away,
    hide,
    is_alarmed,
    is_calm,
    prune,
    talk,
    without_records,
)
from tests.chains.tron_scene import ORDER_UNITS, RECIPIENT, TronScene, open_tron, payout_of

from merchant_wallet.chains.protocol import Blocked, ChainAway, Expired, FinalRecord, Pending, SignedTransfer
from merchant_wallet.chains.tron.proof import MAX_CONCURRENT_BODIES

PAYOUT = payout_of()


def test_what_two_nodes_show_expired_and_absent_may_be_built_again(tron: TronScene) -> None:
    async def steps() -> tuple[SignedTransfer, SignedTransfer]:
        first = await tron.sign(PAYOUT)
        tron.let_expire()
        assert isinstance(await tron.judge(PAYOUT, first), Expired)
        second = await tron.chain.build(PAYOUT, [first])
        assert is_calm(await tron.judge(PAYOUT, first, second))
        await tron.chain.broadcast(second.raw)
        with pytest.raises(ChainAway, match="EXPIRATION"):
            await tron.chain.broadcast(first.raw)
        tron.network.settle()
        assert await tron.judge(PAYOUT, first, second) == FinalRecord(PAYOUT.transfer, second.tx_hash)
        return first, second

    first, second = tron.play(steps())
    assert first.tx_hash != second.tx_hash
    assert tron.network.balance(RECIPIENT) == ORDER_UNITS


def test_nothing_is_built_anew_before_the_first_is_proven_void(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        with pytest.raises(Blocked):
            await tron.chain.build(PAYOUT, [signed])
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        with pytest.raises(Blocked):
            await tron.chain.build(PAYOUT, [signed])

    tron.play(steps())
    assert len(tron.signer.requests) == 1


def test_one_node_is_no_proof_of_absence(lone: TronScene) -> None:
    async def steps() -> None:
        signed = await lone.sign(PAYOUT)
        lone.let_expire()
        verdict = await lone.judge(PAYOUT, signed)
        assert is_alarmed(verdict)
        with pytest.raises(Blocked):
            await lone.chain.build(PAYOUT, [signed])

    lone.play(steps())


def test_one_node_configured_twice_is_still_one(lone: TronScene) -> None:
    url = lone.network.urls[0]
    nodes = type(lone.chain.nodes)([url, url + "/"], timeout_s=5)
    assert len(nodes.all) == 1
    assert nodes.quorum == 1


def test_expired_only_on_the_newest_blocks_is_not_expired(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.network.mine(interval_ms=tron.rules.lifetime_ms + tron.rules.grace_ms)
        tron.network.mine(tron.network.fake.solid_lag - 1)
        verdict = await tron.judge(PAYOUT, signed)
        assert is_calm(verdict)
        tron.network.mine()
        assert isinstance(await tron.judge(PAYOUT, signed), Expired)

    tron.play(steps())


def test_a_transaction_in_the_last_block_that_could_hold_it_is_found(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.network.mine(2 * MAX_CONCURRENT_BODIES)
        await tron.chain.broadcast(signed.raw)
        # No block for longer than its lifetime. The next block still takes it, although its own time is past
        # the expiration.
        tron.network.mine(interval_ms=tron.rules.lifetime_ms + tron.rules.grace_ms + 60_000)
        tron.network.settle()
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)
        for server in both(tron):
            server.switches.edit = without_records
        assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_node_never_makes_a_paid_order_look_expired_or_unpaid(tron: TronScene, fault: Any) -> None:
    first, second = tron.network.servers

    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.let_expire()
        for faulty in ([first], [second], [first, second]):
            for server in faulty:
                fault(server)
            # It has read no block yet.
            chain = tron.with_rules()
            verdict = await chain.judge(PAYOUT, [signed])
            assert isinstance(verdict, Pending), faulty
            assert not verdict.stuck
            with pytest.raises((Blocked, ChainAway)):
                await chain.build(PAYOUT, [signed])
            for server in faulty:
                server.switches.__init__()  # type: ignore[misc]  # every switch back to honest
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())
    assert len(tron.signer.requests) == 1


@pytest.mark.parametrize("fault", [prune, fall_behind, go_away, talk, answer_nothing, follow_another_branch])
def test_a_faulty_node_does_not_confirm_an_expiry(tron: TronScene, fault: Any) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.let_expire()
        fault(both(tron)[1])
        assert isinstance(await tron.judge(PAYOUT, signed), Pending)

    tron.play(steps())


def test_a_block_exchanged_for_an_empty_one_shows_in_the_parents(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        held = tron.network.fake.head

        def exchange(path: str, question: dict[str, Any], answer: Any) -> Any:
            if not path.endswith("getblockbynum") or question["num"] != held.number:
                return without_records(path, question, answer)
            numbers = {**answer["block_header"]["raw_data"], "txTrieRoot": "0" * 64}
            return {"blockID": held.id[:16] + "ef" * 24, "block_header": {"raw_data": numbers}}

        tron.let_expire()
        for server in both(tron):
            server.switches.edit = exchange
        assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_a_whole_branch_of_its_own_is_no_second_witness(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)

        def forge(block_id: str) -> str:
            is_later = int(block_id[:16], 16) > signed.built_at_block
            return (
                block_id[:16] + hashlib.sha256(block_id.encode()).hexdigest()[16:] if is_later else block_id
            )

        def branch(path: str, question: dict[str, Any], answer: Any) -> Any:
            if "blockID" not in answer:
                return answer
            numbers = answer["block_header"]["raw_data"]
            numbers = {**numbers, "parentHash": forge(numbers["parentHash"])}
            return {"blockID": forge(answer["blockID"]), "block_header": {"raw_data": numbers}}

        tron.let_expire()
        both(tron)[1].switches.edit = branch
        verdict = await tron.judge(PAYOUT, signed)
        assert is_alarmed(verdict)
        assert "different blocks" in str(verdict)

    tron.play(steps())


def test_a_reading_that_begins_too_late_proves_nothing(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.let_expire()
        for server in both(tron):
            server.switches.edit = without_records
        held = tron.network.fake.find(signed.tx_hash)
        assert held is not None
        late = SignedTransfer(signed.raw, signed.tx_hash, held[0].number + 1)
        assert is_alarmed(await tron.judge(PAYOUT, late))

    tron.play(steps())


def test_payouts_that_expire_together_read_each_block_once(tron: TronScene) -> None:
    payouts = [payout_of(number) for number in range(1, 6)]

    async def steps() -> None:
        signed = [await tron.sign(payout) for payout in payouts]
        tron.let_expire()
        for server in both(tron):
            server.api.asked.clear()
        for payout, one in zip(payouts, signed, strict=True):
            assert isinstance(await tron.judge(payout, one), Expired)
        for server in both(tron):
            read = server.api.asked.count("/walletsolidity/getblockbynum")
            assert read <= len(tron.network.fake.blocks) + len(payouts) * MAX_CONCURRENT_BODIES

    tron.play(steps())


def test_a_second_node_that_is_merely_behind_is_waited_for(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        both(tron)[1].switches.lag = 2
        assert is_calm(await tron.judge(PAYOUT, signed))
        tron.network.mine(2)
        assert isinstance(await tron.judge(PAYOUT, signed), FinalRecord)

    tron.play(steps())


def test_an_expiration_that_a_second_node_has_not_reached_is_waited_for(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.let_expire()
        both(tron)[1].switches.lag = 6
        assert is_calm(await tron.judge(PAYOUT, signed))
        tron.network.mine(6)
        assert isinstance(await tron.judge(PAYOUT, signed), Expired)

    tron.play(steps())


def test_a_second_node_that_lacks_or_says_nothing_is_reported(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.pay(PAYOUT)
        tron.network.settle()
        for fault in (forget, hide, go_away):
            both(tron)[1].switches.__init__()  # type: ignore[misc]  # every switch back to honest
            fault(both(tron)[1])
            assert is_alarmed(await tron.judge(PAYOUT, signed))

    tron.play(steps())


def test_a_faulty_node_among_three_stops_nothing_final() -> None:
    async def steps(scene: TronScene, server: TronServer) -> None:
        signed = await scene.pay(PAYOUT)
        lapsing = await scene.sign(payout_of(2))
        scene.let_expire()
        for fault in (forget, prune, fall_behind, hide, go_away, answer_nothing):
            fault(server)
            # It has read no block yet.
            chain = scene.with_rules()
            assert isinstance(await chain.judge(PAYOUT, [signed]), FinalRecord), fault
            assert isinstance(await chain.judge(payout_of(2), [lapsing]), Expired), fault
            server.switches.__init__()  # type: ignore[misc]  # every switch back to honest

    with open_tron(nodes=3) as scene:
        scene.play(steps(scene, scene.network.servers[0]))
