"""A scan of 100,000 transfers on each chain, of which one in 20 reaches one of our addresses, and the
crediting of those. Watcher and crediting run as on the worker side, with a node that answers from a
record. `python -m bench.deposits` runs only this.

Rules: fsync is on. The node is a separate process (see `recorded_nodes`). The scan's clock runs from the
first request until the last final block is stored, the crediting's from then until all deposits are credited.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.database import COIN, BenchDatabase, open_bench_database, open_database
from bench.recorded_nodes import TOKEN, Record
from bench.service import ServiceFailed
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.commands import Register
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.final_ranges import Reader
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.merchants.issued_addresses import issue_address
from merchant_wallet.processes.nodes import open_chain_readers

CHAINS: Final = (ERC20, TRC20)
TRANSFERS: Final = 100_000
IN_A_BLOCK: Final = {ERC20: 40, TRC20: 100}
"""About as many as a block of the real chain has."""
OURS: Final = 20
"""One transfer in this many is ours."""
MERCHANTS: Final = 10
SUB_USERS: Final = 200
SEED: Final = 7

Say = Callable[[str], None]
_COUNT_CREDITED: Final = b"select count(*) from deposit_credit where chain = %(chain)s::text"


class Scanned(msgspec.Struct, frozen=True):
    """The result for one chain: transfers read, credits made, and this process's CPU time for each."""

    chain: str
    transfers: int
    scan_s: float
    scan_cpu_s: float
    credits: int
    credit_s: float
    credit_cpu_s: float

    @property
    def rate(self) -> float:
        """Transfers read a second."""
        return self.transfers / self.scan_s

    @property
    def credit_rate(self) -> float:
        """Deposits credited a second."""
        return self.credits / self.credit_s

    @property
    def figures(self) -> dict[str, float]:
        """By name, for the report."""
        return {
            f"deposits/{self.chain}:transfers read per second": self.rate,
            f"deposits/{self.chain}:seconds for {self.transfers:,} transfers": self.scan_s,
            f"deposits/{self.chain}:credited per second": self.credit_rate,
        }

    def describe(self) -> str:
        """One line about it."""
        return (
            f"deposits on {self.chain}: {self.transfers:,} transfers in {self.scan_s:.1f} s, "
            f"{self.rate:,.0f} read a second, the watcher at {100 * self.scan_cpu_s / self.scan_s:.0f} % "
            f"of one core; {self.credits:,} ours, {self.credit_rate:,.0f} credited a second, "
            f"the crediting worker at {100 * self.credit_cpu_s / self.credit_s:.0f} %"
        )


def measure(
    folder: Path, chains: tuple[str, ...] = CHAINS, transfers: int = TRANSFERS, say: Say = lambda _: None
) -> list[Scanned]:
    """Scan so many transfers on each chain, with a database in this folder."""
    say("deposits: a database of their own")
    with open_database(folder / "data") as url:
        return uvloop.run(_measure(url, folder, chains, transfers, say))


async def _measure(
    url: str, folder: Path, chains: tuple[str, ...], transfers: int, say: Say
) -> list[Scanned]:
    async with open_bench_database(url) as database:
        say(f"deposits: {MERCHANTS * SUB_USERS:,} sub-users of {MERCHANTS} merchants")
        addresses = [
            pair for number in range(MERCHANTS) for pair in await open_merchant(database, number, SUB_USERS)
        ]
        found = []
        for place, chain in enumerate(chains):
            say(f"deposits: {transfers:,} transfers on {chain}")
            record = make_record(chain, [pair[chain == TRC20] for pair in addresses], transfers)
            path = folder / f"record {place}"
            path.write_bytes(msgspec.msgpack.encode(record))
            with _open_node(path) as port:
                found.append(await scan(database, record, port))
        return found


async def open_merchant(database: BenchDatabase, number: int, sub_users: int) -> list[tuple[bytes, bytes]]:
    """A merchant whose sub-users have USDT wallets. Returns their EVM and TRON addresses."""
    merchant = await database.open_merchant(f"deposits {number}")
    pairs = []
    for _ in range(sub_users):
        pairs.append(await issue_address(database.connection, merchant.merchant_id, merchant.account_xpubs))
    registrations = [Register(f"u{index}", USDT, index, evm, tron) for index, evm, tron in pairs]
    await database.ask(merchant.merchant_id, registrations)
    return [(evm, tron) for _, evm, tron in pairs]


def make_record(chain: str, ours: list[bytes], transfers: int) -> Record:
    """Blocks with this many transfers, some of them to these addresses."""
    dice, size = random.Random(SEED), IN_A_BLOCK[chain]
    sent = [
        (dice.choice(ours) if number % OURS == 0 else dice.randbytes(20), COIN + number)
        for number in range(transfers)
    ]
    return Record(chain, [sent[start : start + size] for start in range(0, transfers, size)], now_ms())


@contextmanager
def _open_node(path: Path) -> Iterator[int]:
    """A node that answers from a record. Yields its port."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.recorded_nodes", str(path)], stdout=subprocess.PIPE, text=True
    ) as node:
        try:
            assert node.stdout is not None
            yield int(node.stdout.readline())
        finally:
            node.terminate()


def make_settings(chain: str, port: int) -> Settings:
    """Settings with one chain, whose node listens on this port."""
    names = {"RPC": f"http://127.0.0.1:{port}", "TOKEN": format_address(chain, TOKEN)}
    return load_settings({f"WALLET_{chain}_{name}": value for name, value in names.items()})


async def scan(database: BenchDatabase, record: Record, port: int) -> Scanned:
    """Read all transfers of a record and credit ours. Raises ServiceFailed."""
    chain = record.chain
    settings = make_settings(chain, port)
    reader: Reader = open_chain_readers(settings)[chain]
    watcher = Watcher(
        database.connect, database.connect, chain, reader, minimum_units=settings.deposit_minimum
    )
    crediting_worker = CreditingWorker(database.connect, database.connect, database.writer)
    try:
        scan_s, scan_cpu_s = time.monotonic(), time.process_time()
        while await watcher.follow():
            pass
        scan_s, scan_cpu_s = time.monotonic() - scan_s, time.process_time() - scan_cpu_s
        credit_s, credit_cpu_s = time.monotonic(), time.process_time()
        while await crediting_worker.credit_due():
            pass
        credit_s, credit_cpu_s = time.monotonic() - credit_s, time.process_time() - credit_cpu_s
    finally:
        await watcher.close()
        await crediting_worker.close()
    transfers = sum(map(len, record.blocks))
    credits = await database.count(_COUNT_CREDITED, chain=chain)
    if credits != len(range(0, transfers, OURS)):
        raise ServiceFailed(f"Of {transfers} transfers on {chain} {credits} were credited.")
    return Scanned(chain, transfers, scan_s, scan_cpu_s, credits, credit_s, credit_cpu_s)


def main() -> None:
    """Measure, and print what was found."""
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name:
        for found in measure(Path(name), say=print):
            print(found.describe())


if __name__ == "__main__":
    main()
