"""A sweeper killed at every step, or frozen and resumed: each address is topped up and emptied once."""

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from devnet.evm_node import Token
from devnet.fake_tron import selector_of
from tests.chains.evm_scene import HELD, WALLET, EvmScene, open_scene
from tests.chains.tron_scene import WALLET_UNITS, TronScene
from tests.evm_nodes import use_geth
from tests.fork_server import STOPPED, ForkedProcess, fork_program
from tests.node_kinds import GETH
from tests.sweeps.killable_sweeper import open_real
from tests.sweeps.sweep_scene import USDT, SweepScene

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.custody.sweeps import store

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

STEPS = ("after draft", "after sign", "before broadcast", "after broadcast", "after judge", "after fee_of")
POINTS = [f"{step.split()[0]} {kind} {step.split()[1]}" for kind in ("top_up", "token") for step in STEPS]
"""In order: decided, signed and not committed, committed, sent, judged, about to be stored."""
AMOUNTS = [70 * USDT, 80 * USDT]


@dataclass
class SweptChain:
    """A chain with deposits, EVM or TRON."""

    chain: str
    file: Path
    settle: Callable[[], object]
    held_by_wallet: Callable[[], int]
    give: Callable[[bytes, int], object]
    first_held: int
    give_other: Callable[[bytes, int], bytes]
    """Another token, of which an address gets an amount. Its contract."""
    other_balance: Callable[[bytes, bytes], int]
    """What an address holds of a contract's token."""


@pytest.fixture(params=[ERC20, TRC20, pytest.param(GETH, marks=pytest.mark.extended)])
def swept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SweptChain]:
    """A real EVM node or the fake TRON network."""
    file = tmp_path / "where.json"
    if request.param == GETH:
        with use_geth() as node:
            yield sweep_evm(open_scene(node), file)
    elif request.param == ERC20:
        yield sweep_evm(request.getfixturevalue("evm"), file)
    else:
        yield sweep_tron(request.getfixturevalue("tron"), file)


def sweep_evm(evm: EvmScene, file: Path) -> SweptChain:
    where = {"chain": ERC20, "urls": [evm.node.url], "token": evm.token.address.hex()}
    file.write_text(json.dumps(where))
    others: dict[bytes, Token] = {}

    def give_other(address: bytes, units: int) -> bytes:
        other = evm.node.deploy()
        other.give(address, units)
        others[other.address] = other
        return other.address

    return SweptChain(
        ERC20,
        file,
        evm.settle,
        lambda: evm.token.balance(WALLET),
        evm.token.give,
        HELD,
        give_other,
        lambda contract, address: others[contract].balance(address),
    )


def sweep_tron(tron: TronScene, file: Path) -> SweptChain:
    network = tron.network
    where = {"chain": TRC20, "urls": network.urls, "token": network.token.hex()}
    file.write_text(json.dumps(where | {"chain_id": tron.rules.chain_id}))

    def give_other(address: bytes, units: int) -> bytes:
        other = network.deploy()
        network.fake.operate(network.owner, other, encode_transfer_call(address, units))
        return other

    def other_balance(contract: bytes, address: bytes) -> int:
        call_data = selector_of("balanceOf(address)") + address.rjust(32, b"\0")
        return int.from_bytes(network.fake.evm.call(network.owner, contract, call_data, "latest"), "big")

    return SweptChain(
        TRC20,
        file,
        # Quick blocks, so that nothing expires while a process starts.
        lambda: network.settle(interval_ms=10),
        lambda: network.balance(tron.wallet),
        lambda address, units: network.fund(address, units=units),
        WALLET_UNITS,
        give_other,
        other_balance,
    )


async def pay_in(scene: SweepScene, swept: SweptChain) -> None:
    for index, units in enumerate(AMOUNTS):
        swept.give(await scene.deposit(index, units, swept.chain), units)
    swept.settle()


async def meet(scene: SweepScene, swept: SweptChain, point: str, sent: str) -> ForkedProcess:
    """Start a sweeper and mine blocks until it reaches its point."""
    child = fork_program("tests.sweeps.killable_sweeper", scene.url, point, sent, str(swept.file))
    scene.closing.callback(child.end)
    finished = asyncio.create_task(asyncio.to_thread(child.wait_for_state))
    while not finished.done():
        await asyncio.to_thread(swept.settle)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(finished), 0.05)
    wanted = STOPPED if sent == "SIGSTOP" else -signal.Signals[sent]
    assert finished.result() == wanted, f"it never came to {point}"
    return child


async def finish(scene: SweepScene, swept: SweptChain) -> None:
    """Another sweeper finishes everything."""
    chain, sweeper = open_real(json.loads(swept.file.read_text()), swept.file.parent)
    worker = scene.worker({chain: sweeper})
    await scene.begin(worker, chain)
    for _ in range(12):
        await worker.follow(with_unsigned=True)
        if not await store.count_open(scene.connection, chain):
            return
        swept.settle()


async def see_swept_once(scene: SweepScene, swept: SweptChain) -> None:
    """Everything arrived, each step was signed once, and the wallet's nonces have no gap."""
    assert swept.held_by_wallet() == swept.first_held + sum(AMOUNTS)
    assert await scene.steps() == ["done"] * len(AMOUNTS)
    signed = await scene.rows("select kind, count(*) from sweep_signed group by kind order by kind")
    assert signed == [("token", len(AMOUNTS)), ("top_up", len(AMOUNTS))]
    nonces = await scene.rows("select nonce from wallet_nonce where purpose = 'top_up' order by nonce")
    assert nonces == ([(0,), (1,)] if swept.chain == ERC20 else [])


def test_a_sweeper_killed_at_every_step_moves_everything_once(in_scene: "InScene", swept: SweptChain) -> None:
    async def scenario(scene: SweepScene) -> None:
        await pay_in(scene, swept)
        for point in POINTS:
            await meet(scene, swept, point, "SIGKILL")
        await finish(scene, swept)
        await see_swept_once(scene, swept)

    in_scene(scenario)


@pytest.mark.parametrize("point", ["after top_up draft", "before top_up broadcast", "before token fee_of"])
def test_a_frozen_sweeper_that_wakes_up_late_changes_nothing(
    in_scene: "InScene", swept: SweptChain, point: str
) -> None:
    async def scenario(scene: SweepScene) -> None:
        await pay_in(scene, swept)
        child = await meet(scene, swept, point, "SIGSTOP")
        await finish(scene, swept)
        child.resume()
        assert await asyncio.to_thread(child.wait_for_state) == 0
        swept.settle()
        await see_swept_once(scene, swept)

    in_scene(scenario)
