"""Two web processes behind nginx and HAProxy are restarted one after the other, under load: nothing is lost.

The proxies run with the settings of `deploy/`. The short form has both in front of the same two processes.
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
CONNECTIONS = 256


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


def _start_all(
    url: str, folder: Path, stack: ExitStack, names: Sequence[str], unready_s: int
) -> tuple[list[WebProcess], list[Proxy]]:
    settings = {"WALLET_UNREADY_S": str(unready_s), "WALLET_TRUSTED_PROXIES": "127.0.0.1"}
    serving = [WebProcess(url, folder / f"web{number}", **settings) for number in (1, 2)]
    for each in serving:
        stack.callback(each.end)
    with ThreadPoolExecutor() as starting:
        list(starting.map(WebProcess.start, serving))
    proxies = [Proxy(name, folder / name, [each.port for each in serving]) for name in names]
    for proxy in proxies:
        stack.callback(proxy.end)
        proxy.start()
    return serving, proxies


async def _restart_under_load(
    serving: Sequence[WebProcess], loads: Sequence[Load], rounds: int, between: int
) -> None:
    """Restart one process after the other, with this many answers of each load before and after each stop."""
    for load in loads:
        load.start()
    for _ in range(rounds):
        for each in serving:
            await asyncio.gather(*(load.until_more(between) for load in loads))
            assert await asyncio.to_thread(each.stop) == 0
            await asyncio.gather(*(load.until_more(between) for load in loads))
            await asyncio.to_thread(each.start)
            await asyncio.sleep(NOTICED_S)
    await asyncio.gather(*(load.until_more(between) for load in loads))
    for load in loads:
        await load.stop()


async def _lose_nothing(
    url: str,
    folder: Path,
    stack: ExitStack,
    names: Sequence[str],
    *,
    unready_s: int,
    rounds: int,
    pause_s: float,
) -> None:
    shop, client = await furnish(url)
    serving, proxies = await asyncio.to_thread(_start_all, url, folder, stack, names, unready_s)
    client.port = serving[0].port
    await client.learn_address()
    each = CONNECTIONS // len(proxies)
    loads = [Load(proxy.url, client, each, proxy.trusted, pause_s) for proxy in proxies]
    await _restart_under_load(serving, loads, rounds, between=each)
    for load, proxy in zip(loads, proxies, strict=True):
        assert not load.failures, (proxy.name, load.failures, proxy.said())
    answered = {order: entry for load in loads for order, entry in load.answers.items()}
    assert await shop.orders() == answered
    assert await shop.alice_units() == len(answered)
    await shop.verify()
    print(f"{', '.join(names)}: {len(answered)} answered, {sum(load.opened for load in loads)} connections")


def test_a_rolling_restart_behind_both_proxies_loses_no_request(
    database_url: str, folder: Path, stack: ExitStack
) -> None:
    run(_lose_nothing(database_url, folder, stack, PROXIES, unready_s=2, rounds=1, pause_s=1.0))


@pytest.mark.extended
@pytest.mark.parametrize("name", PROXIES)
def test_rolling_restarts_again_and_again_lose_no_request(
    database_url: str, folder: Path, stack: ExitStack, name: str
) -> None:
    run(_lose_nothing(database_url, folder, stack, [name], unready_s=5, rounds=3, pause_s=0.0))
