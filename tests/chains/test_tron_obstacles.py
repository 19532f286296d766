"""What prevents a payout on TRON from being signed."""

from typing import Any

import msgspec
import pytest
from devnet.tron_costs import BANDWIDTH_SUN, ENERGY_SUN, FREE_BYTES, NEW_HOLDER_ENERGY, Usage
from tests.chains.tron_faults import both, talk
from tests.chains.tron_scene import ORDER_UNITS, OTHER, RECIPIENT, WALLET_UNITS, TronScene, payout_of

from merchant_wallet.base.chains import TRC20
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    FinalRecord,
    Payout,
    Transfer,
    TransferLog,
    Unpayable,
)
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.chains.tron.transactions import parse_envelope, parse_raw

PAYOUT = payout_of()


async def obstacle_of(chain: TronChain, payout: Payout = PAYOUT) -> str:
    with pytest.raises(Blocked) as blocked:
        await chain.check_payable(payout.transfer)
    with pytest.raises(Blocked) as at_building:
        await chain.build(payout, [])
    assert at_building.value.obstacle == blocked.value.obstacle
    return blocked.value.obstacle.kind


def test_a_blacklisted_recipient_is_never_signed_for(tron: TronScene) -> None:
    async def steps() -> None:
        tron.network.blacklist(RECIPIENT)
        tron.network.mine()
        assert await obstacle_of(tron.chain) == "node"
        tron.network.settle()
        with pytest.raises(Unpayable, match="recipient"):
            await tron.chain.check_payable(PAYOUT.transfer)
        with pytest.raises(Unpayable, match="recipient"):
            await tron.chain.build(PAYOUT, [])
        await tron.chain.check_payable(payout_of(2, OTHER).transfer)

    tron.play(steps())
    assert tron.signer.requests == []


def test_a_blacklisting_that_one_node_invents_makes_nobody_unpayable(tron: TronScene) -> None:
    selector = "isBlackListed(address)"

    def accuse(path: str, question: dict[str, Any], answer: Any) -> Any:
        if question.get("function_selector") == selector and RECIPIENT.hex() in question["parameter"]:
            return {**answer, "constant_result": [f"{1:064x}"]}
        return answer

    both(tron)[0].switches.edit = accuse
    assert tron.play(obstacle_of(tron.chain)) == "node"


def test_our_own_wallet_on_the_blacklist_is_a_wallet_obstacle(tron: TronScene) -> None:
    tron.network.blacklist(tron.wallet)
    tron.network.settle()
    assert tron.play(obstacle_of(tron.chain)) == "wallet"


def test_a_paused_token_is_an_obstacle_that_passes(tron: TronScene) -> None:
    async def steps() -> None:
        tron.network.pause()
        tron.network.mine()
        assert await obstacle_of(tron.chain) == "paused"
        tron.network.pause(is_paused=False)
        tron.network.mine()
        await tron.chain.check_payable(PAYOUT.transfer)

    tron.play(steps())


def test_too_few_tokens_are_an_obstacle(tron: TronScene) -> None:
    assert tron.play(obstacle_of(tron.chain, payout_of(amount_units=WALLET_UNITS + 1))) == "funds"
    assert tron.play(tron.chain.funds()) == WALLET_UNITS


def beside(*pending: bytes | None) -> Payout:
    return msgspec.structs.replace(PAYOUT, pending=pending)


async def may_build(tron: TronScene, *pending: bytes | None) -> bool:
    try:
        await tron.chain.build(beside(*pending), [])
    except Blocked as blocked:
        if blocked.obstacle.kind != "fuel":
            raise
        return False
    return True


def test_the_wallet_needs_trx_for_what_is_on_its_way_and_for_no_more(tron: TronScene) -> None:
    one_sun = NEW_HOLDER_ENERGY * ENERGY_SUN * 12 // 10 + BANDWIDTH_SUN * 345
    coins = tron.network.fake.coins
    tron.network.fake.energy_factor = 0
    tron.network.fake.usage[tron.wallet] = Usage(tron.network.fake.head.time_ms, free_bytes=FREE_BYTES)

    async def steps() -> None:
        other = payout_of(2, OTHER)
        first = await tron.sign(other)
        for raw in (first.raw, None):
            coins[tron.wallet] = 2 * one_sun
            assert await may_build(tron, raw)
            coins[tron.wallet] = 2 * one_sun - 1
            assert not await may_build(tron, raw)
        coins[tron.wallet] = one_sun
        assert await may_build(tron)
        # What is in a block has burnt its TRX already.
        coins[tron.wallet] = one_sun + NEW_HOLDER_ENERGY * ENERGY_SUN + BANDWIDTH_SUN * 345
        await tron.chain.broadcast(first.raw)
        assert not await may_build(tron, first.raw)
        tron.network.mine()
        assert coins[tron.wallet] == one_sun
        assert await may_build(tron, first.raw)
        # What has expired can burn nothing any more, although its order still waits.
        lost = await tron.sign(payout_of(3, OTHER))
        assert not await may_build(tron, lost.raw)
        tron.let_expire()
        assert await may_build(tron, lost.raw)

    tron.play(steps())
    tron.network.fake.coins[tron.wallet] = one_sun - 1
    assert tron.play(obstacle_of(tron.chain)) == "fuel"


def test_energy_for_one_payout_pays_one_and_bytes_are_free_once_a_day(tron: TronScene) -> None:
    tron.network.fake.energy_factor = 0
    energy = NEW_HOLDER_ENERGY * 12 // 10
    owned = {"EnergyLimit": energy, "freeNetLimit": 600, "freeNetUsed": 0}

    def own(path: str, question: dict[str, Any], answer: Any) -> Any:
        return {**answer, **owned} if path.endswith("getaccountresource") else answer

    for server in both(tron):
        server.switches.edit = own
    coins = tron.network.fake.coins

    async def steps() -> None:
        coins[tron.wallet] = 0
        assert await may_build(tron)
        # Too few free bytes are left for a whole transfer, so all its bytes are burnt.
        owned["freeNetUsed"] = 300
        assert not await may_build(tron)
        coins[tron.wallet] = BANDWIDTH_SUN * 345
        assert await may_build(tron)
        coins[tron.wallet] = 4_000_000
        assert await may_build(tron)
        assert not await may_build(tron, None)
        owned.update(EnergyLimit=2 * energy, NetLimit=2 * 345)
        coins[tron.wallet] = 0
        assert await may_build(tron, None)

    tron.play(steps())


def test_a_fee_above_the_cap_is_an_obstacle(tron: TronScene) -> None:
    assert tron.play(obstacle_of(tron.with_rules(fee_cap_sun=14_000_000))) == "fee"


def test_a_recipient_that_has_spent_its_last_token_is_still_paid(tron: TronScene) -> None:
    async def steps() -> None:
        await tron.pay(PAYOUT)
        signed = await tron.sign(payout_of(2))
        tron.network.fake.reorganise(1)
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        assert isinstance(await tron.judge(payout_of(2), signed), FinalRecord)

    tron.play(steps())


def test_no_payout_may_burn_more_than_the_cap(tron: TronScene) -> None:
    signed = tron.play(tron.with_rules(fee_cap_sun=15_000_000).build(PAYOUT, []))
    assert 14_000_000 < parse_raw(parse_envelope(signed.raw)[0]).fee_limit_sun <= 15_000_000


def test_a_fee_taking_token_is_not_paid_with(tron: TronScene) -> None:
    tron.network.set_fee(10, 5)
    tron.network.mine()
    assert tron.play(obstacle_of(tron.chain)) == "token_fee"
    assert tron.signer.requests == []


def test_one_node_that_tells_of_a_fee_or_a_pause_is_enough_to_wait(tron: TronScene) -> None:
    """The other node lags or lies. If it were believed, payouts would arrive short or fail."""

    def hide(path: str, question: dict[str, Any], answer: Any) -> Any:
        if question.get("function_selector") in ("basisPointsRate()", "paused()"):
            return {**answer, "constant_result": [f"{0:064x}"]}
        return answer

    both(tron)[0].switches.edit = hide
    tron.network.set_fee(10, 5)
    tron.network.mine()
    assert tron.play(obstacle_of(tron.chain)) == "token_fee"
    tron.network.set_fee(0, 0)
    tron.network.pause()
    tron.network.mine()
    assert tron.play(obstacle_of(tron.chain)) == "paused"


def test_a_fee_that_comes_after_signing_shows_in_what_was_moved(tron: TronScene) -> None:
    async def steps() -> None:
        signed = await tron.sign(PAYOUT)
        tron.network.set_fee(10, 5)
        tron.network.mine()
        await tron.chain.broadcast(signed.raw)
        tron.network.settle()
        arrived = ORDER_UNITS - ORDER_UNITS * 10 // 10_000
        expected = Transfer(TRC20, "USDT", RECIPIENT, arrived)
        transfer_logs = (
            TransferLog(tron.wallet, tron.network.owner, ORDER_UNITS - arrived),
            TransferLog(tron.wallet, RECIPIENT, arrived),
        )
        assert await tron.judge(PAYOUT, signed) == FinalRecord(expected, signed.tx_hash, transfer_logs)

    tron.play(steps())


def test_a_transfer_that_would_fail_is_not_signed(tron: TronScene) -> None:
    def revert(path: str, question: dict[str, Any], answer: Any) -> Any:
        if question.get("function_selector", "").startswith("transfer("):
            said = {"result": True, "message": b"REVERT opcode executed".hex()}
            return {"result": said, "constant_result": [""], "transaction": {"ret": [{"ret": "FAILED"}]}}
        return answer

    for server in both(tron):
        server.switches.edit = revert
    assert tron.play(obstacle_of(tron.chain)) == "node"


def test_a_payout_of_another_token_or_chain_is_refused(tron: TronScene) -> None:
    for transfer in (Transfer("ERC20", "USDT", RECIPIENT, 1), Transfer(TRC20, "TRX", RECIPIENT, 1)):
        with pytest.raises(ValueError, match="can't be paid here"):
            tron.play(tron.chain.build(Payout(1, transfer), []))


def test_nodes_far_apart_in_time_build_nothing(tron: TronScene) -> None:
    tron.network.mine(10, interval_ms=tron.rules.lifetime_ms)
    both(tron)[1].switches.lag = 5
    with pytest.raises(Blocked) as blocked:
        tron.play(tron.sign(PAYOUT))
    assert blocked.value.obstacle.kind == "node"


def test_a_node_that_talks_nonsense_is_passed_over_where_one_is_enough(tron: TronScene) -> None:
    talk(both(tron)[0])
    signed = tron.play(tron.pay(PAYOUT))
    assert tron.network.fake.find(signed.tx_hash) is not None
    talk(both(tron)[1])
    with pytest.raises(ChainAway, match="not a TRON answer"):
        tron.play(tron.chain.funds())
