"""What tests of sweeping do on the real EVM node: deposit, run workers, mine blocks, read."""

from pathlib import Path

from tests.chains.evm_scene import WALLET, EvmScene
from tests.sweeps.sweep_scene import SweepScene, open_evm

from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.sweeps import Sweeper
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.worker import SweepWorker


def coin(evm: EvmScene, address: bytes) -> int:
    return int(evm.node.ask("eth_getBalance", "0x" + address.hex(), "latest"), 16)


def open_it(evm: EvmScene, folder: Path) -> Sweeper:
    return open_evm(folder, evm.node.url, evm.token.address)


async def pay_in(scene: SweepScene, evm: EvmScene, index: int, units: int) -> bytes:
    """A deposit on the chain and in the books, final on both."""
    address = await scene.deposit(index, units)
    evm.token.give(address, units)
    evm.settle()
    return address


async def finish(scene: SweepScene, evm: EvmScene, *workers: SweepWorker, rounds: int = 12) -> list[str]:
    """Run the workers and mine blocks until no sweep is open."""
    for _ in range(rounds):
        for worker in workers:
            await worker.follow(with_unsigned=True)
        if not await store.count_open(scene.connection, ERC20):
            break
        evm.settle()
    return await scene.steps()


def transfers_to_wallet(evm: EvmScene) -> list[int]:
    """Every transfer to the hot wallet except the one that funded it."""
    wanted = {
        "fromBlock": "0x0",
        "address": "0x" + evm.token.address.hex(),
        "topics": [None, None, "0x" + WALLET.rjust(32, b"\0").hex()],
    }
    return [int(log["data"], 16) for log in evm.node.ask("eth_getLogs", wanted)][1:]
