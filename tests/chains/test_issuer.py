"""What each function of the token's owner does to payouts, sweeps and deposits, on both kinds of chains."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec
import pytest
from devnet.fake_tron import selector_of
from tests.chains import evm_scene
from tests.chains.evm_scene import EvmScene
from tests.chains.tron_scene import TronScene

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.sweeps import EvmSweeper
from merchant_wallet.chains.issuer import NOWHERE
from merchant_wallet.chains.protocol import (
    Blocked,
    FinalRecord,
    Payout,
    TokenTransfer,
    Transfer,
    Unpayable,
)
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.chains.tron.sweeps import TronSweeper

USDT = 1_000_000
DEPOSIT = bytes(range(201, 221))
"""One of our deposit addresses."""
FRIEND = bytes(range(101, 121))
HELD = 1_000 * USDT

Call = tuple[str, *tuple[int | bytes, ...]]


@dataclass
class Issued:
    """A token on one chain, its owner, and the product's chain with a hot wallet that holds 1000 USDT."""

    name: str
    wallet: bytes
    token: bytes
    call: Callable[[Call], object]
    give: Callable[[bytes, int], object]
    destroy: Callable[[bytes], str]
    """Blacklists an address and destroys its tokens. Returns the transaction."""
    replace: Callable[..., bytes]
    settle: Callable[[], object]
    open: Callable[[bytes], EvmChain | TronChain]
    """The product's chain with this contract as the token."""
    sweeper: Callable[[EvmChain | TronChain], EvmSweeper | TronSweeper]
    asked: Callable[[], int]
    """How often the signer was asked."""

    def payout(self, payout_id: int = 1) -> Payout:
        transfer = Transfer(self.name, "USDT", FRIEND, 25 * USDT)
        return Payout(payout_id, transfer, payout_id - 1 if self.name == ERC20 else None)


@pytest.fixture(params=[ERC20, TRC20])
def issued(request: pytest.FixtureRequest) -> Issued:
    """The token on a real EVM node, and on the simulated TRON network."""
    if request.param == ERC20:
        return open_evm(request.getfixturevalue("evm"))
    return open_tron(request.getfixturevalue("lone"))


def open_evm(evm: EvmScene) -> Issued:
    endpoints = Endpoints((evm.node.url,), timeout_s=60)

    def destroy(address: bytes) -> str:
        evm.token.do("addBlackList(address)", address)
        return str(evm.token.do("destroyBlackFunds(address)", address)["transactionHash"])

    def open_chain(token: bytes) -> EvmChain:
        rules = msgspec.structs.replace(evm.rules, token=token)
        return EvmChain(rules, endpoints, wallet=evm_scene.WALLET, signer=evm.signer)

    return Issued(
        name=ERC20,
        wallet=evm_scene.WALLET,
        token=evm.token.address,
        call=lambda call: evm.token.do(*call),
        give=evm.token.give,
        destroy=destroy,
        replace=lambda *holders: evm.token.replace(*holders).address,
        settle=evm.settle,
        open=open_chain,
        sweeper=lambda chain: EvmSweeper(chain, evm.signer),  # type: ignore[arg-type] # An EvmChain.
        asked=lambda: len(evm.signer.asked),
    )


def open_tron(tron: TronScene) -> Issued:
    network = tron.network

    def call(made: Call) -> None:
        words = (word if isinstance(word, bytes) else word.to_bytes(32, "big") for word in made[1:])
        network.operate(selector_of(made[0]) + b"".join(word.rjust(32, b"\0") for word in words))
        network.mine()

    def give(recipient: bytes, units: int) -> None:
        network.pay(network.owner_key, recipient, units)
        network.mine()

    return Issued(
        name=TRC20,
        wallet=tron.wallet,
        token=network.token,
        call=call,
        give=give,
        destroy=network.destroy,
        replace=network.replace,
        settle=network.settle,
        open=lambda token: tron.with_rules(token=token),
        sweeper=lambda chain: TronSweeper(chain, tron.signer),  # type: ignore[arg-type] # A TronChain.
        asked=lambda: len(tron.signer.requests),
    )


async def find_obstacle(steps: Awaitable[object]) -> str | None:
    """The kind of the obstacle that a check meets, or that it is certain that nothing can be paid."""
    try:
        await steps
    except Blocked as blocked:
        return blocked.obstacle.kind
    except Unpayable:
        return "unpayable"
    return None


async def read_from(chain: EvmChain | TronChain, first: int = 1) -> list[TokenTransfer]:
    return await chain.transfers(first, (await chain.final()).number)


class Story(msgspec.Struct, frozen=True):
    """The owner calls `calls`. Then payouts and sweeps meet these obstacles, and a deposit is seen or not.

    `undo` takes it back.
    """

    calls: tuple[Call, ...]
    payout: str | None = None
    sweep: str | None = None
    deposits: int = 1
    undo: tuple[Call, ...] = ()


def list_stories(wallet: bytes) -> list[Story]:
    """Every function of the owner except those that destroy funds or deprecate the token."""
    return [
        Story((("pause()",),), "paused", "token", deposits=0, undo=(("unpause()",),)),
        Story(
            (("addBlackList(address)", wallet),),
            "wallet",
            "wallet",
            undo=(("removeBlackList(address)", wallet),),
        ),
        Story(
            (("addBlackList(address)", DEPOSIT),),
            sweep="token",
            undo=(("removeBlackList(address)", DEPOSIT),),
        ),
        Story(
            (("addBlackList(address)", FRIEND),),
            "unpayable",
            undo=(("removeBlackList(address)", FRIEND),),
        ),
        Story(
            (("setParams(uint256,uint256)", 10, 49),),
            "token_fee",
            "token_fee",
            # The fee is a transfer of its own, to the issuer.
            undo=(("setParams(uint256,uint256)", 0, 0),),
        ),
        Story((("issue(uint256)", 10**12),)),
        Story((("redeem(uint256)", 10**12),)),
    ]


def test_each_function_of_the_owner_stops_what_it_must_and_nothing_more(issued: Issued) -> None:
    async def play() -> None:
        async with AsyncExitStack() as closing:
            chain = issued.open(issued.token)
            closing.push_async_callback(chain.close)
            sweeper, transfer = issued.sweeper(chain), issued.payout().transfer
            issued.give(DEPOSIT, 70 * USDT)
            for story in list_stories(issued.wallet):
                for call in story.calls:
                    issued.call(call)
                issued.settle()
                before = await chain.final()
                seen = (
                    await find_obstacle(chain.check_payable(transfer)),
                    await find_obstacle(sweeper.quote(DEPOSIT, 70 * USDT)),
                )
                issued.give(DEPOSIT, USDT)
                issued.settle()
                seen_since = await read_from(chain, before.number + 1)
                came = [each for each in seen_since if each.recipient == DEPOSIT]
                assert (*seen, len(came)) == (story.payout, story.sweep, story.deposits), story.calls
                for call in story.undo:
                    issued.call(call)
            issued.settle()
            assert await find_obstacle(chain.build(issued.payout(), [])) is None

    asyncio.run(play())


def test_destroyed_funds_are_read_as_a_transfer_to_nobody(issued: Issued) -> None:
    async def play() -> None:
        async with AsyncExitStack() as closing:
            chain = issued.open(issued.token)
            closing.push_async_callback(chain.close)
            issued.give(DEPOSIT, 70 * USDT)
            tx_hashes = [issued.destroy(DEPOSIT), issued.destroy(issued.wallet)]
            issued.settle()
            issued.call(("removeBlackList(address)", issued.wallet))
            issued.settle()
            destroyed = [each for each in await read_from(chain) if each.recipient == NOWHERE]
            assert [(each.tx_hash, each.sender, each.amount_units) for each in destroyed] == [
                (tx_hashes[0], DEPOSIT, 70 * USDT),
                (tx_hashes[1], issued.wallet, HELD),
            ]
            assert await find_obstacle(chain.check_payable(issued.payout().transfer)) == "funds"
            assert await find_obstacle(issued.sweeper(chain).quote(DEPOSIT, 70 * USDT)) == "token"

    asyncio.run(play())


def test_nothing_is_signed_for_a_deprecated_token_and_the_obstacle_names_the_new_one(issued: Issued) -> None:
    async def play() -> None:
        async with AsyncExitStack() as closing:
            chain = issued.open(issued.token)
            closing.push_async_callback(chain.close)
            sweeper, ordered = issued.sweeper(chain), issued.payout(2)
            issued.give(DEPOSIT, 70 * USDT)
            assert await chain.successor() is None
            # One transfer is signed before, and reaches a block afterwards.
            sent = await chain.build(issued.payout(), [])
            signatures = issued.asked()
            new = issued.replace(issued.wallet, DEPOSIT)
            issued.settle()
            named = format_address(issued.name, new)
            assert await chain.successor() == named
            with pytest.raises(Blocked, match=named) as blocked:
                await chain.build(ordered, [])
            assert blocked.value.obstacle.kind == "deprecated"
            cold = Transfer(issued.name, "USDT", FRIEND, USDT)
            assert [
                await find_obstacle(chain.check_payable(ordered.transfer)),
                await find_obstacle(sweeper.quote(DEPOSIT, 70 * USDT)),
                await find_obstacle(chain.build_unsigned(issued.wallet, cold, None, 60_000)),
            ] == ["deprecated"] * 3
            assert issued.asked() == signatures
            # What goes through the old contract is logged by the new one alone.
            await chain.broadcast(sent.raw)
            issued.give(DEPOSIT, USDT)
            issued.settle()
            paid = FinalRecord(issued.payout().transfer, sent.tx_hash)
            assert await chain.judge(issued.payout(), [sent]) != paid
            assert [each.amount_units for each in await read_from(chain) if each.recipient == DEPOSIT] == [
                70 * USDT
            ]
            # With the new contract in the settings both are seen, and payouts go on.
            moved_on = issued.open(new)
            closing.push_async_callback(moved_on.close)
            assert await moved_on.judge(issued.payout(), [sent]) == paid
            came = [each.amount_units for each in await read_from(moved_on) if each.recipient == DEPOSIT]
            assert came[-1] == USDT
            await moved_on.check_payable(ordered.transfer)
            assert (await moved_on.build(ordered, [])).tx_hash

    asyncio.run(play())
