"""What a call costs a merchant's program: `python -m bench.client_calls`, and with `--before CLONE` in pairs.

A process of its own answers balances, each signed for its request, and does nothing else. Clients call it
from other processes, with 1, 16, 64 and 256 calls at once: the Python client in both forms, and the one in
TypeScript if `node` is there.

Rules:
- Compared is the client's processor time for a call, all its threads together. A busy machine changes that
  much less than the time that passes.
- Each window is a new process. Connections are open before it counts.
- Which version of a pair comes first changes with each pair. Shown are medians.
"""

import argparse
import asyncio
import hmac
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
APP_KEY: Final = "mk_test_clientcalls1"
SECRET: Final = "0123456789abcdef0123456789abcdef"
AT_ONCE: Final = (1, 16, 64, 256)
FORMS: Final = ("sync", "async", "typescript")
CALLS: Final = 2000
PAIRS: Final = 5
NODE_PROGRAM: Final = """
const { MerchantWallet } = await import(process.argv[1]);
const [url, key, secret, atOnce, calls] = process.argv.slice(2);
const wallet = new MerchantWallet(url, key, secret);
const each = Math.ceil(calls / atOnce), took = [];
const run = async (count) => {
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    await wallet.getMerchantBalance();
    took.push(performance.now() - began);
  }
};
const all = (count) => Promise.all(Array.from({ length: Number(atOnce) }, () => run(count)));
await all(Math.ceil(300 / atOnce) + 1);
took.length = 0;
const before = process.cpuUsage();
await all(each);
const used = process.cpuUsage(before);
took.sort((a, b) => a - b);
console.log(JSON.stringify([(used.user + used.system) / 1000 / took.length, took[took.length >> 1], 0]));
"""

_find_nonce = re.compile(rb'"nonceStr":"([^"]+)"').search


class Figure(NamedTuple):
    """One window: processor time of a call, the median of what it took, and the process's peak memory."""

    cpu_ms: float
    p50_ms: float
    peak_mib: float


class BalanceServer(asyncio.Protocol):
    """Answers every request with one balance."""

    transport: asyncio.Transport
    _rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while True:
            head, end, rest = self._rest.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0] or 0)
            if not end or len(rest) < length:
                return
            body, self._rest = rest[:length], rest[length:]
            self.transport.write(_answer(body))


def _answer(body: bytes) -> bytes:
    found = _find_nonce(body)
    nonce = found[1].decode() if found else ""
    lines = ("code=200", "kfbBalance=77", "merchantId=17", f"nonceStr={nonce}", "usdtBalance=1000.5")
    text = "\n".join(["/merchant/getMerchantBalance", *lines])
    sign = hmac.digest(SECRET.encode(), text.encode(), "sha256").hex()[:32]
    data = f'{{"merchantId":17,"usdtBalance":1000.5,"kfbBalance":77,"sign":"{sign}"}}'
    sent = f'{{"code":200,"msg":"success","data":{data}}}'.encode()
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n"
        f"x-request-id: 0123456789abcdef\r\ncontent-length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent


async def serve() -> None:
    """Run the server, print its port, and end with standard input."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(BalanceServer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def serving() -> Iterator[str]:
    """The base URL of a running server."""
    words = [sys.executable, "-m", "bench.client_calls", "--serve"]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        # Leaving the block closes its standard input.


def drive_sync(url: str, at_once: int, calls: int) -> Figure:
    """A window of the synchronous client, with a thread for each call at once."""
    from merchant_wallet_client import MerchantWallet

    with MerchantWallet(url, APP_KEY, SECRET) as wallet:

        def window(each: int) -> list[float]:
            took: list[float] = []
            threads = [
                threading.Thread(target=_time_calls, args=(wallet.get_merchant_balance, each, took))
                for _ in range(at_once)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return took

        window(300 // at_once + 1)
        began_s = time.process_time()
        took = window(-(-calls // at_once))
        return _figure(time.process_time() - began_s, took)


def _time_calls(call: Callable[[], object], count: int, took: list[float]) -> None:
    for _ in range(count):
        began_s = time.perf_counter()
        call()
        took.append(time.perf_counter() - began_s)


async def drive_async(url: str, at_once: int, calls: int) -> Figure:
    """A window of the asyncio client."""
    from merchant_wallet_client import AsyncMerchantWallet

    async with AsyncMerchantWallet(url, APP_KEY, SECRET) as wallet:
        took: list[float] = []

        async def run(count: int) -> None:
            for _ in range(count):
                began_s = time.perf_counter()
                await wallet.get_merchant_balance()
                took.append(time.perf_counter() - began_s)

        await asyncio.gather(*[run(300 // at_once + 1) for _ in range(at_once)])
        took.clear()
        began_s = time.process_time()
        await asyncio.gather(*[run(-(-calls // at_once)) for _ in range(at_once)])
        return _figure(time.process_time() - began_s, took)


def _figure(cpu_s: float, took_s: list[float]) -> Figure:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return Figure(cpu_s * 1000 / len(took_s), statistics.median(took_s) * 1000, int(found[1]) / 1024)


def measure(clone: Path, form: str, url: str, at_once: int, calls: int) -> Figure:
    """A window in a new process, with the client of a clone. Raises CalledProcessError."""
    counts = (str(at_once), str(calls))
    environment = {**os.environ, "PYTHONPATH": str(clone / "client" / "src"), "NO_PROXY": "127.0.0.1"}
    if form == "typescript":
        module = (clone / "clients" / "typescript" / "dist" / "index.js").as_uri()
        words = ["node", "--input-type=module", "-e", NODE_PROGRAM, module, url, APP_KEY, SECRET, *counts]
    else:
        words = [sys.executable, "-m", "bench.client_calls", "--drive", form, url, *counts]
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return Figure(*json.loads(done.stdout))


def compare(clones: list[Path], forms: list[str], at_once: list[int], calls: int, pairs: int) -> None:
    """Print a line for each form and number of calls at once, with the medians of each version."""
    with serving() as url:
        for form in forms:
            for number in at_once:
                figures: dict[Path, list[Figure]] = {clone: [] for clone in clones}
                for pair in range(pairs):
                    for clone in clones[:: -1 if pair % 2 else 1]:
                        figures[clone].append(measure(clone, form, url, number, calls))
                shown = [_show(figures[clone]) for clone in clones]
                print(f"{form:10} {number:4} at once: " + "   before -> after   ".join(shown), flush=True)


def _show(figures: list[Figure]) -> str:
    cpu_ms, p50_ms, peak_mib = (statistics.median(column) for column in zip(*figures, strict=True))
    memory = f", {peak_mib:.0f} MiB" if peak_mib else ""
    return f"{cpu_ms:.3f} ms of processor, p50 {p50_ms:.2f} ms{memory}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.client_calls", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="CLONE", help="another version, which comes first")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=[*FORMS])
    parser.add_argument("--at-once", nargs="+", type=int, default=[*AT_ONCE])
    parser.add_argument("--calls", type=int, default=CALLS, help="in each window")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
    elif given.drive:
        form, url, at_once, calls = given.drive
        counts = (int(at_once), int(calls))
        figure = drive_sync(url, *counts) if form == "sync" else asyncio.run(drive_async(url, *counts))
        print(json.dumps(figure))
    else:
        forms = [form for form in given.forms if form != "typescript" or shutil.which("node")]
        clones = [given.before, ROOT] if given.before else [ROOT]
        compare([clone.absolute() for clone in clones], forms, given.at_once, given.calls, given.pairs)


if __name__ == "__main__":
    main()
