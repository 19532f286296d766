"""Payouts signed and stored a second on each chain: the payer as the worker side runs it, with a signer
that opens a keystore and keeps its journal, on the development nodes. `python -m bench.payouts` runs
only this.

Rules: fsync is on, for the database and for the signer's journal. The nodes run in a separate process and
mine no block meanwhile, so nothing becomes final. The clock runs from the payer's first look at the queue
until the last order's signed bytes are committed. Broadcasting is included, as always.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from bench.database import COIN, BenchDatabase, open_bench_database, open_database
from bench.meters import read_processor_s
from bench.service import ServiceFailed
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import CreateWithdrawal
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.processes.nodes import check_chains, open_chains
from merchant_wallet.processes.payout_workers import NODE_CLAIM_MS
from merchant_wallet.processes.signers import find_keys_folder, open_signer
from merchant_wallet.withdrawals.payer import Payer

CHAINS: Final = (ERC20, TRC20)
MERCHANTS: Final = 4
COUNT: Final = 200
POLL_S: Final = 0.05
TIMEOUT_S: Final = 600.0
NO_BLOCKS_S: Final = 1_000_000
PASSPHRASE: Final = "for a measurement alone"
QUICK_SCRYPT: Final = 1024

Say = Callable[[str], None]
_COUNT_SIGNED: Final = (
    b"select count(*) from payout_signed s join withdrawal w"
    b" on w.merchant_id = s.merchant_id and w.order_id = s.order_id where w.chain = %(chain)s::text"
)


class Signed(msgspec.Struct, frozen=True):
    """The result for one chain: payouts, seconds, and the payer's CPU time."""

    chain: str
    payouts: int
    seconds: float
    payer_cpu_s: float
    nodes_cpu_s: float

    @property
    def rate(self) -> float:
        """Payouts signed and stored a second."""
        return self.payouts / self.seconds

    @property
    def cost_ms(self) -> float:
        """The payer's CPU time for one payout, with the signer but without nodes and database."""
        return 1000 * self.payer_cpu_s / self.payouts

    @property
    def figures(self) -> dict[str, float]:
        """By name, for the report."""
        return {
            f"payouts/{self.chain}:signed and stored per second": self.rate,
            f"payouts/{self.chain}:payer's processor time for each, ms": self.cost_ms,
        }

    def describe(self) -> str:
        """One line about it."""
        nodes_cpu = 100 * self.nodes_cpu_s / self.seconds
        return (
            f"payouts on {self.chain}: {self.payouts:,} in {self.seconds:.1f} s, {self.rate:,.0f} signed and "
            f"stored a second; {self.cost_ms:.1f} ms of the payer's for each, "
            f"the nodes at {nodes_cpu:.0f} % of one core"
        )


def measure(
    folder: Path, chains: tuple[str, ...] = CHAINS, payouts: int = COUNT, say: Say = lambda _: None
) -> list[Signed]:
    """Sign this many payouts on each chain, with database, keys and journal in this folder."""
    say("payouts: a database and two development chains of their own")
    with open_database(folder / "data") as url, open_nodes() as (nodes, told):
        settings = make_settings(folder / "payer", told)
        return [uvloop.run(pay(url, settings, chain, payouts, nodes.pid, say)) for chain in chains]


@contextmanager
def open_nodes() -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The development chains as a user starts them, and what they print. Raises ServiceFailed."""
    command = [sys.executable, "-m", "devnet", "--json", "--block-time", str(NO_BLOCKS_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nodes:
        try:
            assert nodes.stdout is not None
            told = nodes.stdout.readline()
            if not told:
                raise ServiceFailed("The development chains did not start.")
            yield nodes, json.loads(told)
        finally:
            nodes.terminate()


def make_settings(data: Path, told: dict[str, Any]) -> Settings:
    """The settings of a worker side with these nodes and the keys in this data folder."""
    limits = {"WALLET_SIGNER_HOUR_LIMIT": "1000000000"}
    secret = {"WALLET_DATA": str(data), "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE}
    settings = load_settings({**told["settings"], **limits, **secret})
    key = bytes.fromhex(told["walletKey"])
    for name in (*CHAINS, SEED):
        store_key(find_keys_folder(settings), name, key, PASSPHRASE, cost=QUICK_SCRYPT)
    return settings


async def pay(
    url: str, settings: Settings, chain: str, payouts: int, nodes_pid: int, say: Say = lambda _: None
) -> Signed:
    """Sign, store and send this many orders on one chain. Raises ServiceFailed."""
    async with open_bench_database(url) as database:
        say(f"payouts: {payouts:,} orders on {chain}")
        for number in range(MERCHANTS):
            await make_orders(database, chain, number, payouts // MERCHANTS)
        real = await open_chains(settings, open_signer(settings))
        if wrong := await check_chains(real):
            raise ServiceFailed(wrong[0])
        payer = Payer(database.connect, database.writer, real, claim_ms=NODE_CLAIM_MS)
        try:
            return await _race(database, payer, chain, payouts // MERCHANTS * MERCHANTS, nodes_pid)
        finally:
            for each in real.values():
                await each.close()


async def _race(database: BenchDatabase, payer: Payer, chain: str, wanted: int, nodes_pid: int) -> Signed:
    stop, signed = asyncio.Event(), 0
    nodes_s, worked_s, began_s = read_processor_s(nodes_pid), time.process_time(), time.monotonic()
    running = asyncio.create_task(payer.run(stop))
    while signed < wanted and time.monotonic() - began_s < TIMEOUT_S:
        # Polling costs CPU too, so not too often.
        await asyncio.wait((running,), timeout=POLL_S)
        signed = await database.count(_COUNT_SIGNED, chain=chain)
    seconds, worked_s = time.monotonic() - began_s, time.process_time() - worked_s
    nodes_s = read_processor_s(nodes_pid) - nodes_s
    stop.set()
    await running
    if signed < wanted:
        raise ServiceFailed(f"Of {wanted} orders on {chain} only {signed} were signed in {seconds:.0f} s.")
    return Signed(chain, wanted, seconds, worked_s, nodes_s)


async def make_orders(database: BenchDatabase, chain: str, number: int, count: int) -> None:
    """So many orders of one coin each, of a merchant of their own."""
    merchant = await database.open_merchant(f"payouts {chain} {number}")
    await database.fund(merchant.merchant_id, count * COIN)
    orders = [_order(chain, order) for order in range(count)]
    await database.ask(merchant.merchant_id, orders)


def _order(chain: str, number: int) -> CreateWithdrawal:
    return CreateWithdrawal(
        mc_order_id=str(number),
        amount_units=COIN,
        chain=chain,
        address=format_address(chain, os.urandom(20)),
        notify_url="http://127.0.0.1:9/",
        fee_rate_e8=0,
        fee_minimum_units=0,
        approval_limit_units=COIN,
        daily_limit_units=None,
        allowed=True,
        deadline_after_ms=DAY_MS,
    )


def main() -> None:
    """Measure, and print what was found."""
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name:
        for found in measure(Path(name), say=print):
            print(found.describe())


if __name__ == "__main__":
    main()
