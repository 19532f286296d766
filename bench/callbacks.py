"""Callbacks delivered a second: the sender as the worker side runs it, with its own database, and
endpoints in another process that accept everything at once. `python -m bench.callbacks` runs only this.

Rules: fsync is on. Every callback belongs to an order that was created and cancelled through the book's
writer. The clock runs from the first look at the queue until the last delivery is stored. TLS is not
included.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.writers import open_writer
from merchant_wallet import postgres
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.setting_types import LOOPBACK
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import Connect
from merchant_wallet.book.commands import Adjust, Cancel, Command, CreateWithdrawal, Submission
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.writer import Writer
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.callbacks.sender import MAX_CONCURRENT, CallbackSender
from merchant_wallet.callbacks.target_policy import TargetPolicy, make_resolver
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.observability import logs
from merchant_wallet.postgres.migrate import migrate

MERCHANTS: Final = 20
COUNT: Final = 4000
COIN: Final = 1_000_000
ADDRESS: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
KEYRING: Final = Keyring(bytes(32))
RECEIVER: Final = "receiver"
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nsuccess"
POLL_S: Final = 0.1

Say = Callable[[str], None]


class Delivered(msgspec.Struct, frozen=True):
    """The result: callbacks, seconds, and this process's CPU time in hundredths of one core."""

    callbacks: int
    seconds: float
    sender_cpu: float

    @property
    def rate(self) -> float:
        """Callbacks delivered a second."""
        return self.callbacks / self.seconds


def measure(folder: Path, callbacks: int = COUNT, say: Say = lambda _: None) -> Delivered:
    """Deliver this many callbacks, with a database in this folder."""
    logs.set_up("warning", None)
    say("callbacks: a database of their own")
    running = postgres.start(folder, lambda _: None)
    try:
        migrate(running.url, lambda _: None)
        with subprocess.Popen(
            [sys.executable, "-m", "bench.callbacks", RECEIVER], stdout=subprocess.PIPE, text=True
        ) as receiver:
            try:
                assert receiver.stdout is not None
                port = int(receiver.stdout.readline())
                return uvloop.run(_measure(running.url, port, callbacks, say))
            finally:
                receiver.terminate()
    finally:
        running.stop()


async def _measure(url: str, port: int, callbacks: int, say: Say) -> Delivered:
    connect = partial(db.connect, url)
    async with await connect() as connection, _callback_sender(connect) as sender:
        await ensure_nonce_partitions(connection, now_ms() // DAY_MS)
        say(f"callbacks: {callbacks:,} orders are made and cancelled")
        async with open_writer(url) as writer:
            for number in range(MERCHANTS):
                notify_url = f"http://{_endpoint(number)}:{port}/n"
                await _make_orders(connection, writer, notify_url, callbacks // MERCHANTS)
        stop = asyncio.Event()
        began_s, worked_s = time.monotonic(), time.process_time()
        running = asyncio.create_task(sender.run(stop))
        while await _count_left(connection):
            # Polling costs CPU too, so not too often.
            await asyncio.wait((running,), timeout=POLL_S)
        seconds, worked_s = time.monotonic() - began_s, time.process_time() - worked_s
        stop.set()
        await running
        return Delivered(callbacks // MERCHANTS * MERCHANTS, seconds, 100 * worked_s / seconds)


@asynccontextmanager
async def _callback_sender(connect: Connect) -> AsyncIterator[CallbackSender]:
    with ThreadPoolExecutor(MAX_CONCURRENT) as threads:
        policy = TargetPolicy(make_resolver(threads), LOOPBACK, http_allowed=True)
        sender = CallbackSender(connect, KEYRING, CallbackClient(policy))
        try:
            yield sender
        finally:
            await sender.close()


def _endpoint(number: int) -> str:
    """Each merchant's endpoint has its own host name."""
    return f"127.0.0.{number + 1}"


async def _make_orders(connection: store.Connection, writer: Writer, notify_url: str, count: int) -> None:
    seed = KEYRING.sandbox_seed()
    opened = await store.create(
        connection,
        KEYRING,
        f"bench {notify_url}",
        seed=seed,
        at_ms=now_ms(),
        settings={"approval-limit": "0"},
    )

    async def ask(commands: list[Command]) -> list[object]:
        futures = [writer.submit(opened.merchant.merchant_id, Submission(command)) for command in commands]
        return list(await asyncio.gather(*futures))

    await ask([Adjust(USDT, count * COIN, "funds for a measurement", "bench", None)])
    orders = await ask([_order(number, notify_url) for number in range(count)])
    await ask([Cancel(order.order_id, "bench") for order in orders if isinstance(order, Withdrawal)])


def _order(number: int, notify_url: str) -> CreateWithdrawal:
    return CreateWithdrawal(
        mc_order_id=str(number),
        amount_units=COIN,
        chain="TRC20",
        address=ADDRESS,
        notify_url=notify_url,
        fee_rate_e8=0,
        fee_minimum_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed=True,
        deadline_after_ms=DAY_MS,
    )


async def _count_left(connection: store.Connection) -> int:
    cursor = await connection.execute("select count(*) from callback where state = 'due'")
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def _receive() -> None:
    """Accept every callback. Prints the port on standard output."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"}')
        writer.write(ANSWER)
        writer.close()

    hosts = [_endpoint(number) for number in range(MERCHANTS)]
    first = await asyncio.start_server(take, hosts[0], 0)
    port = first.sockets[0].getsockname()[1]
    others = await asyncio.start_server(take, hosts[1:], port)
    print(port, flush=True)
    await asyncio.gather(first.serve_forever(), others.serve_forever())


def main() -> None:
    """Measure, and print what was found."""
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name:
        found = measure(Path(name) / "data", say=print)
    print(
        f"{found.callbacks:,} callbacks in {found.seconds:.1f} s: {found.rate:,.0f} delivered a second, "
        f"the callback sender at {found.sender_cpu:.0f} % of one core"
    )


if __name__ == "__main__":
    if sys.argv[1:] == [RECEIVER]:
        uvloop.run(_receive())
    else:
        main()
