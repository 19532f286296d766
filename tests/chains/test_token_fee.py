"""A fee that the token's issuer can switch on: nothing is signed while any node reports it."""

import asyncio
from typing import Any

import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import RECIPIENT, USDT, WALLET, EvmScene, payout, send
from tests.chains.node_proxy import NO_BATCHES, Forward, NodeProxy, Raw, Refusal
from tests.rows import each_row

from merchant_wallet.chains.evm import node as evm_node
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.issuer import compute_fee_units, require_no_fee
from merchant_wallet.chains.protocol import Blocked, FinalRecord, Obstacle, Payout, Transfer, TransferLog
from merchant_wallet.chains.transfer_logs import describe_final, make_final_record

ORDERED = payout()
SET_FEE = "setParams(uint256,uint256)"
BASIS_POINTS_RATE = "0xdd644f72"
MAXIMUM_FEE = "0x35390714"


async def obstacle_of(chain: EvmChain, ordered: Payout = ORDERED) -> Obstacle:
    """What blocks a payout. The check and the building must find the same obstacle."""
    with pytest.raises(Blocked) as blocked:
        await chain.check_payable(ordered.transfer)
    with pytest.raises(Blocked) as at_building:
        await chain.build(ordered, [])
    assert at_building.value.obstacle == blocked.value.obstacle
    return blocked.value.obstacle


@each_row(
    ("amount_units", "basis_points", "max_units", "expected"),
    [
        (25 * USDT, None, None, 0),
        (25 * USDT, 0, 50 * USDT, 0),
        (25 * USDT, 10, 50 * USDT, 25_000),
        (25 * USDT, 10, None, 25_000),
        (1_000_000 * USDT, 10, 50 * USDT, 50 * USDT),
        (25 * USDT, 10, 0, 0),
        # The contract rounds down, so the smallest amounts pay no fee.
        (999, 10, 50 * USDT, 0),
        (1_000, 10, 50 * USDT, 1),
    ],
)
def test_the_fee_is_what_the_contract_would_keep(
    amount_units: int, basis_points: int | None, max_units: int | None, expected: int
) -> None:
    assert compute_fee_units(amount_units, basis_points, max_units) == expected


def test_the_obstacle_says_what_would_not_arrive() -> None:
    require_no_fee(25 * USDT, 0)
    with pytest.raises(Blocked, match=r"0\.025 of 25 USDT would not arrive") as blocked:
        require_no_fee(25 * USDT, 25_000)
    assert blocked.value.obstacle.kind == "token_fee"


def test_a_fee_in_force_is_an_obstacle_and_nothing_is_signed(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            await chain.check_payable(ORDERED.transfer)
            evm.token.do(SET_FEE, 10, 49)
            obstacle = await obstacle_of(chain)
            assert obstacle.kind == "token_fee"
            assert "0.025 of 25 USDT would not arrive" in obstacle.cause
            assert evm.signer.asked == []
            # With a maximum of zero the rate takes nothing.
            evm.token.do(SET_FEE, 10, 0)
            assert (await send(chain, ORDERED)).tx_hash
            evm.settle()
            assert evm.token.balance(RECIPIENT) == 25 * USDT

    asyncio.run(story())


def test_a_replacement_is_not_signed_either_while_a_fee_is_in_force(evm: EvmScene) -> None:
    async def story() -> None:
        async with evm.chain() as chain:
            first = await chain.build(ORDERED, [])
            evm.token.do(SET_FEE, 10, 49)
            with pytest.raises(Blocked) as blocked:
                await chain.build(ORDERED, [first])
            assert blocked.value.obstacle.kind == "token_fee"
            assert len(evm.signer.asked) == 1

    asyncio.run(story())


@pytest.mark.parametrize("liar", [0, 1])
def test_one_of_two_nodes_that_hides_the_fee_gets_nothing_signed(evm: EvmScene, liar: int) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        evm.token.do(SET_FEE, 10, 49)

        async def call(forward: Forward, params: list[Any]) -> Any:
            if params[0]["data"] == BASIS_POINTS_RATE:
                return "0x" + "0" * 64
            return await forward("eth_call", *params)

        proxies[liar].behaviours["eth_call"] = call
        assert (await obstacle_of(chain)).kind == "token_fee"

    play(evm, 2, story)


def test_a_token_without_a_fee_function_takes_none(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        async def call(forward: Forward, params: list[Any]) -> Any:
            if params[0]["data"] in (BASIS_POINTS_RATE, MAXIMUM_FEE):
                raise Refusal(3, "execution reverted")
            return await forward("eth_call", *params)

        proxies[0].behaviours["eth_call"] = call
        await chain.check_payable(ORDERED.transfer)

    play(evm, 1, story)


def test_a_fee_that_comes_after_signing_shows_every_transfer_of_the_transaction(evm: EvmScene) -> None:
    """The fee is switched on after the last check and before the block: less than ordered arrives."""

    async def story() -> None:
        async with evm.chain() as chain:
            signed = await chain.build(ORDERED, [])
            evm.token.do(SET_FEE, 10, 49)
            await chain.broadcast(signed.raw)
            evm.settle()
            seen = await chain.judge(ORDERED, [signed])
            arrived = Transfer("ERC20", "USDT", RECIPIENT, 24_975_000)
            transfer_logs = (
                TransferLog(WALLET, evm.token.issuer, 25_000),
                TransferLog(WALLET, RECIPIENT, 24_975_000),
            )
            assert seen == FinalRecord(arrived, signed.tx_hash, transfer_logs)
            assert isinstance(seen, FinalRecord)
            assert not seen.is_exactly(ORDERED.transfer)
            told = describe_final(seen)
            assert "0.025 USDT from" in told
            assert "24.975 USDT from" in told

    asyncio.run(story())


def test_a_transaction_without_a_transfer_is_described_as_none() -> None:
    ordered = ORDERED.transfer
    seen = make_final_record(ordered, WALLET, [], "0xt1")
    assert not seen.is_exactly(ordered)
    assert describe_final(seen) == "no USDT on ERC20 (0xt1)"


def test_a_node_is_asked_about_the_token_in_one_question(evm: EvmScene) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        await chain.check_payable(ORDERED.transfer)
        for proxy in proxies:
            assert proxy.batches == [["eth_call"] * 6]

    play(evm, 2, story)


@pytest.mark.parametrize("refusal", NO_BATCHES)
def test_a_node_that_takes_no_batches_is_asked_one_by_one_for_a_while(
    evm: EvmScene, refusal: Raw | Refusal
) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[0].refuses_batches = refusal
        await chain.check_payable(ORDERED.transfer)
        evm.token.do(SET_FEE, 10, 49)
        assert (await obstacle_of(chain)).kind == "token_fee"
        assert len(proxies[0].batches) == 1

    play(evm, 1, story)


def test_one_failed_batch_does_not_end_batches_for_ever(
    evm: EvmScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evm_node, "SINGLE_S", 0.0)

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[0].refuses_batches = Raw(b"bad gateway", 502)
        await chain.check_payable(ORDERED.transfer)
        proxies[0].refuses_batches = None
        asked_before = len(proxies[0].batches)
        await chain.check_payable(ORDERED.transfer)
        assert proxies[0].batches[asked_before:] == [["eth_call"] * 6]
        singles_before = proxies[0].singles.count("eth_call")
        await chain.check_payable(ORDERED.transfer)
        # The recipient's place on the blacklist is a request of its own.
        assert proxies[0].singles.count("eth_call") == singles_before + 1

    play(evm, 1, story)
