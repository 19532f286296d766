"""An upgrade from the release before, under load: the schema first, then one web process after the other.

`WALLET_TEST_RELEASE` names the installed `merchant-wallet` of that release. Without it this can't be tried:
the repository has no second version in it.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.crash.client import Client
from tests.crash.shop import MASTER_KEY, Shop, run
from tests.folders import make_folder
from tests.handover.load import NOTICED_S, Load
from tests.handover.platform import PROGRAM, WebProcess
from tests.handover.proxies import Proxy
from tests.tools import require_tool

from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE

RELEASE = os.environ.get("WALLET_TEST_RELEASE", "")
CONNECTIONS = 64
OPENING = "bank 1"
BETWEEN = 500
"""The answers between two steps."""
pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not RELEASE, reason="WALLET_TEST_RELEASE names no release before this one"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for data and logs."""
    require_tool("nginx")
    made = make_folder("merchant-wallet-upgrade-")
    yield made
    shutil.rmtree(made)


def _command(program: Path, url: str, *arguments: str) -> dict[str, Any]:
    """Run a command of a version, and return what it prints with `--json`."""
    environment = {
        "PATH": os.environ["PATH"],
        "WALLET_DATABASE_URL": url,
        "WALLET_SANDBOX": "true",
        "WALLET_MASTER_KEY": MASTER_KEY.hex(),
    }
    command = [str(program), *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(*arguments, done.stdout, done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _leaves_first(program: Path) -> bool:
    """Whether a version says that it leaves before it stops. It is as old as `--version`."""
    return subprocess.run([str(program), "--version"], capture_output=True, check=False).returncode == 0


def _migrate(program: Path, url: str, *arguments: str) -> dict[str, Any]:
    return _command(program, url, "migrate", "--web-role", WEB_ROLE, "--worker-role", WORKER_ROLE, *arguments)


def _furnish(program: Path, url: str) -> tuple[Shop, Client]:
    """A merchant with a million KFB, made by that version."""
    made = _command(program, url, "merchant", "create", "Shop")
    funding = ("--reason", "opening balance", "--ref", OPENING)
    _command(program, url, "book", "credit", "Shop", "KFB", "1000000", *funding)
    shop = Shop(url, made["merchantId"])
    return shop, Client("http://127.0.0.1:1", made["appKey"], made["appSecret"])


async def _upgrade(url: str, folder: Path, stack: ExitStack) -> None:
    old = Path(RELEASE)
    await asyncio.to_thread(_migrate, old, url)
    shop, client = await asyncio.to_thread(_furnish, old, url)
    settings = {"WALLET_TRUSTED_PROXIES": "127.0.0.1"}
    if leaves := _leaves_first(old):
        settings["WALLET_UNREADY_S"] = "2"
    serving = [WebProcess(url, folder / f"web{number}", **settings) for number in (1, 2)]
    for each in serving:
        each.program = old
        stack.callback(each.end)
        await asyncio.to_thread(each.start)
    proxy = Proxy("nginx", folder / "nginx", [each.port for each in serving])
    stack.callback(proxy.end)
    await asyncio.to_thread(proxy.start)
    client.port = serving[0].port
    await client.learn_address()
    load = Load(proxy.url, client, CONNECTIONS, proxy.trusted)
    load.start()
    await load.until_more(BETWEEN)
    await asyncio.to_thread(_migrate, PROGRAM, url, "--expand-only")
    await load.until_more(BETWEEN)
    assert not load.failures, load.failures
    print(len(load.answers), "answered without a failure while the schema was expanded")
    for each in serving:
        each.ask_to_stop()
        assert await asyncio.to_thread(each.wait) == 0
        each.program = PROGRAM
        each.environment["WALLET_UNREADY_S"] = "2"
        await asyncio.to_thread(each.start)
        await asyncio.sleep(NOTICED_S)
        await load.until_more(BETWEEN)
    print(dict(load.failures), "while the old programs stopped")
    assert not (leaves and load.failures)
    load.failures.clear()
    await asyncio.to_thread(_migrate, PROGRAM, url)
    await load.until_more(BETWEEN)
    await load.stop()
    assert not load.failures
    orders = await shop.orders()
    del orders[OPENING]
    assert orders == load.answers
    await shop.verify()


def test_an_upgrade_from_the_release_before_loses_nothing(empty_database_url: str, folder: Path) -> None:
    with ExitStack() as stack:
        run(_upgrade(empty_database_url, folder, stack))
