"""How often an idle worker side asks its nodes, by what it asks for: `python -m bench.node_calls`.

Rules: one node for each chain, blocks as far apart as on the main network, and a transfer of the token in
each. The count begins after a minute and takes as long as one comparison with the books is from the next, so
it has one. Each request of a batch counts, since providers count so.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop
from devnet.chains import HOT_KEY, Devnet, open_side
from devnet.evm_node import CHAIN_ID, EvmDevnet
from devnet.tron_network import run_network

from bench.database import open_database
from bench.payouts import PASSPHRASE, QUICK_SCRYPT
from merchant_wallet.base.chains import CHAINS, ERC20, TRC20
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.start_checks import prepare
from merchant_wallet.processes.worker import work

DAY_S: Final = 86_400
FIRST_S: Final = 60.0
COUNTED_S: Final = 600.0
SOLID_LAG: Final = 19


class CountedCalls:
    """Counts what is sent to nodes, by host and name, and the bytes of the answers."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.answer_bytes: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count while the context lasts. Every request to a node goes through `Endpoints.post`."""
        post = Endpoints.post

        async def counted(endpoints: Endpoints, node: int, body: bytes, **options: Any) -> bytes:
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
def run_chains() -> Iterator[Devnet]:
    """One node of each family that makes a block with a transfer as often as its main network does."""
    with ExitStack() as stack:
        node = stack.enter_context(EvmDevnet(chain_id=CHAIN_ID))
        tron = stack.enter_context(run_network(1, solid_lag=SOLID_LAG, clock=now_ms))
        devnet = Devnet({ERC20: open_side(ERC20, node)}, tron)
        stop = threading.Event()
        for chain, mine in ((ERC20, node.mine), (TRC20, tron.mine)):
            thread = threading.Thread(target=_make_blocks, args=(devnet, chain, mine, stop), daemon=True)
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        yield devnet


def _make_blocks(devnet: Devnet, chain: str, mine: Any, stop: threading.Event) -> None:
    while not stop.wait(CHAINS[chain].block_s):
        devnet.send(chain, os.urandom(20), 1)
        mine()


async def measure(settings: Settings, url: str, seconds: float) -> CountedCalls:
    """Run the worker side and count its requests."""
    counted, stop = CountedCalls(), asyncio.Event()
    base = await prepare(settings, url, stop)
    assert base is not None, "nothing stops it"
    working = asyncio.create_task(work(base, lambda: None, stop))
    await asyncio.sleep(FIRST_S)
    with counted.count():
        await asyncio.sleep(seconds)
    stop.set()
    await working
    return counted


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.node_calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=COUNTED_S)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name, ExitStack() as stack:
        url = stack.enter_context(open_database(Path(name) / "data"))
        devnet = stack.enter_context(run_chains())
        secrets = {
            "WALLET_DATA": name,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
            "WALLET_MASTER_KEY": "11" * 32,
        }
        settings = load_settings({**devnet.settings, **secrets})
        for key in (ERC20, TRC20, SEED):
            store_key(find_keys_folder(settings), key, HOT_KEY.secret, PASSPHRASE, cost=QUICK_SCRYPT)
        counted = uvloop.run(measure(settings, url, seconds))
    a_day = DAY_S / seconds
    for host in sorted({host for host, _ in counted.calls}):
        of_host = {name: count for (each, name), count in counted.calls.items() if each == host}
        print(f"{host}: {sum(of_host.values()) * a_day:,.0f} calls a day")
        for name, count in sorted(of_host.items(), key=lambda item: -item[1]):
            answered = counted.answer_bytes[host, name] / count
            print(f"  {name}: {count * a_day:,.0f} a day, {answered:,.0f} bytes each")


if __name__ == "__main__":
    main()
