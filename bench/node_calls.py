"""How often the worker side asks its nodes, by what it asks for: while it is idle (`python -m
bench.node_calls`), or for payouts (`--payouts 60`).

Rules: blocks are as far apart as on the main network and become final as late, with a transfer of the token
in each. Each request of a batch counts, since providers count so.
- Idle: the count begins after a minute and takes as long as one comparison with the books is from the next,
  so it has one.
- Payouts: so many orders on each chain at the same moment. What payouts ask counts until the last one is
  settled; what reads the chain does not. On an EVM chain the second node is the first one under another name.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop
from devnet.chains import HOT_KEY, Devnet, open_side
from devnet.evm_node import CHAIN_ID, EvmDevnet
from devnet.tron_network import address_of, run_network

from bench.database import open_bench_database, open_database
from bench.payouts import PASSPHRASE, QUICK_SCRYPT, make_orders
from merchant_wallet.base.chains import CHAINS, ERC20, TRC20
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.start_checks import prepare
from merchant_wallet.processes.worker import work

DAY_S: Final = 86_400
FIRST_S: Final = 60.0
COUNTED_S: Final = 600.0
SOLID_LAG: Final = 19
SLOTS_IN_AN_EPOCH: Final = 32
POLL_S: Final = 1.0
_COUNT_SETTLED: Final = b"select count(*) from withdrawal where status = 2"


class CountedCalls:
    """Counts what is sent to nodes for these purposes, by host and name, and the bytes of the answers.

    Without purposes everything counts.
    """

    def __init__(self, *purposes: Purpose) -> None:
        self._purposes = purposes or tuple(Purpose)
        self.calls: Counter[tuple[str, str]] = Counter()
        self.answer_bytes: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count while the context lasts. Every request to a node goes through `Endpoints.post`."""
        post = Endpoints.post

        async def counted(endpoints: Endpoints, node: int, body: bytes, **options: Any) -> bytes:
            if endpoints.purpose not in self._purposes:
                return await post(endpoints, node, body, **options)
            asked = json.loads(body)
            named = [
                each["method"] for each in (asked if isinstance(asked, list) else [asked]) if "method" in each
            ]
            host = endpoints.names[node]
            self.calls.update((host, name) for name in named or [options["path"]])
            answer = await post(endpoints, node, body, **options)
            self.answer_bytes[host, (named or [options["path"]])[0]] += len(answer)
            return answer

        # No class is made for this: whatever opens a chain makes its own endpoints.
        Endpoints.post = counted  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Endpoints.post = post  # type: ignore[method-assign]


@contextmanager
def run_chains(nodes: int) -> Iterator[Devnet]:
    """Nodes of each family that make a block with a transfer as often as its main network does."""
    with ExitStack() as stack:
        evm_node = EvmDevnet(chain_id=CHAIN_ID, slots_in_an_epoch=SLOTS_IN_AN_EPOCH)
        node = stack.enter_context(evm_node)
        tron = stack.enter_context(run_network(nodes, solid_lag=SOLID_LAG, clock=now_ms))
        devnet = Devnet({ERC20: open_side(ERC20, node)}, tron)
        stop = threading.Event()
        for chain, mine in ((ERC20, node.mine), (TRC20, tron.mine)):
            thread = threading.Thread(target=_make_blocks, args=(devnet, chain, mine, stop), daemon=True)
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        for chain in devnet.codes:
            devnet.fund(chain, address_of(HOT_KEY))
        node.mine(2 * SLOTS_IN_AN_EPOCH)
        tron.settle()
        yield devnet


def _make_blocks(devnet: Devnet, chain: str, mine: Any, stop: threading.Event) -> None:
    while not stop.wait(CHAINS[chain].block_s):
        devnet.send(chain, os.urandom(20), 1)
        mine()


async def measure(settings: Settings, url: str, seconds: float) -> CountedCalls:
    """Run the idle worker side and count its requests."""
    counted = CountedCalls()
    async with _working(settings, url):
        with counted.count():
            await asyncio.sleep(seconds)
    return counted


async def measure_payouts(settings: Settings, url: str, payouts: int) -> CountedCalls:
    """Run the worker side, give it so many orders on each chain at once, and count what payouts ask."""
    counted = CountedCalls(*(purpose for purpose in Purpose if purpose is not Purpose.READING))
    async with _working(settings, url), open_bench_database(url) as database:
        with counted.count():
            for number, chain in enumerate((ERC20, TRC20)):
                await make_orders(database, chain, number, payouts)
            # No event says that another process has settled an order.
            while await database.count(_COUNT_SETTLED) < 2 * payouts:  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
    return counted


@asynccontextmanager
async def _working(settings: Settings, url: str) -> AsyncIterator[None]:
    stop = asyncio.Event()
    base = await prepare(settings, url, stop)
    assert base is not None, "nothing stops it"
    working = asyncio.create_task(work(base, lambda: None, stop))
    try:
        await asyncio.sleep(FIRST_S)
        yield
    finally:
        stop.set()
        await working


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.node_calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=COUNTED_S)
    parser.add_argument("--payouts", type=int, default=0)
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name, ExitStack() as stack:
        url = stack.enter_context(open_database(Path(name) / "data"))
        devnet = stack.enter_context(run_chains(options.nodes))
        secrets = {
            "WALLET_DATA": name,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
            "WALLET_MASTER_KEY": "00" * 32,
        }
        evm_urls = (devnet.evm.url, devnet.evm.url.replace("127.0.0.1", "localhost"))
        nodes = {f"WALLET_{ERC20}_RPC": ",".join(evm_urls[: options.nodes])}
        settings = load_settings({**devnet.settings, **nodes, **secrets})
        for key in (ERC20, TRC20, SEED):
            store_key(find_keys_folder(settings), key, HOT_KEY.secret, PASSPHRASE, cost=QUICK_SCRYPT)
        if options.payouts:
            counted = uvloop.run(measure_payouts(settings, url, options.payouts))
            _print(counted, 1 / options.payouts, "a payout")
        else:
            counted = uvloop.run(measure(settings, url, options.seconds))
            _print(counted, DAY_S / options.seconds, "a day")


def _print(counted: CountedCalls, share: float, what: str) -> None:
    for host in sorted({host for host, _ in counted.calls}):
        of_host = {name: count for (each, name), count in counted.calls.items() if each == host}
        print(f"{host}: {sum(of_host.values()) * share:,.2f} calls {what}")
        for name, count in sorted(of_host.items(), key=lambda item: -item[1]):
            answered = counted.answer_bytes[host, name] / count
            print(f"  {name}: {count * share:,.2f} {what}, {answered:,.0f} bytes each")


if __name__ == "__main__":
    main()
