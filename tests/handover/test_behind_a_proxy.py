"""Two web processes behind nginx and HAProxy are restarted one after the other, under load: nothing is lost.

The proxies run with the settings of `deploy/`. Both are in front of the same two processes.
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.crash.shop import run
from tests.folders import make_folder
from tests.handover.load import NOTICED_S, Load
from tests.handover.platform import WebProcess, furnish
from tests.handover.proxies import Proxy
from tests.tools import require_tool

PROXIES = ("nginx", "haproxy")
CONNECTIONS = 128
PAUSE_S = 1.0
"""At most between an answer and the next request. So at each moment some requests are under way, and most
connections are idle, which a process must not close without a word.
"""


@pytest.fixture(scope="module", autouse=True)
def _proxies() -> None:
    """Without a proxy nothing is started."""
    for name in PROXIES:
        require_tool(name)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for data and logs."""
    made = make_folder("merchant-wallet-handover-")
    yield made
    shutil.rmtree(made)


@pytest.fixture
def stack(folder: Path) -> Iterator[ExitStack]:
    """Ends what a test started, in reverse order."""
    with ExitStack() as entered:
        yield entered


def _start_all(url: str, folder: Path, stack: ExitStack) -> tuple[list[WebProcess], list[Proxy]]:
    settings = {"WALLET_UNREADY_S": "2", "WALLET_TRUSTED_PROXIES": "127.0.0.1"}
    serving = [WebProcess(url, folder / f"web{number}", **settings) for number in (1, 2)]
    for each in serving:
        stack.callback(each.end)
    with ThreadPoolExecutor() as starting:
        list(starting.map(WebProcess.start, serving))
    proxies = [Proxy(name, folder / name, [each.port for each in serving]) for name in PROXIES]
    for proxy in proxies:
        stack.callback(proxy.end)
        proxy.start()
    return serving, proxies


async def _restart_under_load(serving: Sequence[WebProcess], loads: Sequence[Load], between: int) -> None:
    """Restart one process after the other, with this many answers of each load before and after each stop."""
    for load in loads:
        load.start()
    for each in serving:
        await asyncio.gather(*(load.until_more(between) for load in loads))
        assert await asyncio.to_thread(each.stop) == 0
        await asyncio.gather(*(load.until_more(between) for load in loads))
        await asyncio.to_thread(each.start)
        await asyncio.sleep(NOTICED_S)
    await asyncio.gather(*(load.until_more(between) for load in loads))
    for load in loads:
        await load.stop()


async def _lose_nothing(url: str, folder: Path, stack: ExitStack) -> None:
    shop, client = await furnish(url)
    serving, proxies = await asyncio.to_thread(_start_all, url, folder, stack)
    client.port = serving[0].port
    await client.learn_address()
    each = CONNECTIONS // len(proxies)
    loads = [Load(proxy.url, client, each, proxy.trusted, PAUSE_S) for proxy in proxies]
    await _restart_under_load(serving, loads, between=each)
    for load, proxy in zip(loads, proxies, strict=True):
        assert not load.failures, (proxy.name, load.failures, proxy.said())
    answered = {order: entry for load in loads for order, entry in load.answers.items()}
    assert await shop.orders() == answered
    assert await shop.alice_units() == len(answered)
    await shop.verify()
    print(f"{len(answered)} answered, {sum(load.opened for load in loads)} connections")


def test_rolling_restarts_behind_both_proxies_lose_no_request(
    database_url: str, folder: Path, stack: ExitStack
) -> None:
    run(_lose_nothing(database_url, folder, stack))
