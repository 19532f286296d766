"""`serve` with several processes on one port: replaced under load, killed, limited and measured as one."""

import asyncio
import json
import os
import re
import signal
import socket
import threading
import urllib.request
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.crash.client import Client, Wire
from tests.crash.service import alive, descendants
from tests.crash.shop import Shop, run
from tests.handover.load import Load
from tests.handover.platform import PROGRAM, WebProcess, furnish
from tests.waits import TIMEOUT_S, eventually, wait_until

from merchant_wallet.base.codes import UNAVAILABLE
from merchant_wallet.processes.web_group import MAX_KILLED

CONNECTIONS = 128
BALANCE = "getMerchantBalance"
RunGroup = Callable[..., WebProcess]


@pytest.fixture
def group(database_url: str, tmp_path: Path) -> Iterator[RunGroup]:
    """Starts `serve` with several processes."""
    started: list[WebProcess] = []

    def start(*, program: Path = PROGRAM, **settings: str) -> WebProcess:
        made = WebProcess(database_url, tmp_path / "web", "--processes", "2", **settings)
        made.program = program
        started.append(made)
        return made.start()

    yield start
    for each in started:
        each.end()


async def _open_shop(url: str, web: WebProcess) -> tuple[Shop, Client]:
    shop, client = await furnish(url)
    client.port = web.port
    await client.learn_address()
    return shop, client


def _read_metrics(web: WebProcess) -> str:
    """The page, read over a connection of its own. So any process may answer."""
    request = urllib.request.Request(f"{web.address}/metrics", headers={"connection": "close"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def _sum(page: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE))


def _replace(web: WebProcess) -> None:
    """Replace the processes, and wait until the new ones are ready."""
    os.kill(web.pid, signal.SIGHUP)
    assert web.read_line() == f"ready: {web.address}"
    assert web.read_line().startswith("mode: ")


def test_processes_are_replaced_under_load_serve_pages_together_and_stop_with_their_supervisor(
    database_url: str, group: RunGroup
) -> None:
    web = group(WALLET_LOG_LEVEL="info")
    members = descendants(web.pid)
    assert len(members) == 2
    client = run(replace_under_load(database_url, web))
    wait_until(lambda: not alive(members), lambda: f"{members} have ended: {_list_events(web)}")
    members = descendants(web.pid)
    assert len(members) == 2
    assert _sum(_read_metrics(web), "wallet_forwarded_commands_total") > 0
    run(a_page_its_session_and_its_stream_work_in_whichever_process_answers(web, client))
    os.kill(web.pid, signal.SIGKILL)
    wait_until(lambda: not alive(members), "the members have stopped")


def _list_events(web: WebProcess) -> list[str]:
    """What its log says beside requests."""
    return [line for line in web.errors().splitlines() if '"event"' in line and '"operation"' not in line][
        -40:
    ]


async def replace_under_load(database_url: str, web: WebProcess) -> Client:
    """No request fails meanwhile. Returns the shop's client."""
    shop, client = await _open_shop(database_url, web)
    idle = Wire(client)
    assert (await client.ask(idle, BALANCE))["code"] == 200
    load = Load(web.address, client, CONNECTIONS, pause_s=1.0)
    load.start()
    await load.until_more(CONNECTIONS)
    await asyncio.to_thread(_replace, web)
    await load.until_more(CONNECTIONS)
    await load.stop()
    assert not load.failures, load.failures
    # A connection that was idle meanwhile was not closed either.
    assert (await client.ask(idle, BALANCE))["code"] == 200
    idle.close()
    assert await shop.orders() == load.answers
    assert await shop.alice_units() == len(load.answers)
    await shop.verify()
    print(f"{len(load.answers)} answered")
    return client


async def a_page_its_session_and_its_stream_work_in_whichever_process_answers(
    web: WebProcess, client: Client
) -> None:
    """A customer follows a link, loads the page, and sees a transfer arrive."""
    link = (await client.ask_once("getMerchantCustomer", extUserId="alice"))["data"]["url"]
    async with httpx.AsyncClient(base_url=web.address, headers={"connection": "close"}) as browser:
        assert (await browser.get(httpx.URL(link).path)).status_code == 303
        # Each request has a connection of its own, so both processes answer.
        pages = [await browser.get("/wallet") for _ in range(12)]
        assert {page.status_code for page in pages} == {200}
        (found,) = set(re.findall(r'data-live-url="([^"]+)"', pages[0].text))
        streams = [_follow(browser, found.replace("&amp;", "&")) for _ in range(6)]
        firsts = [await anext(stream) for stream in streams]
        wire = Wire(client)
        assert (await client.credit(wire, "arrives")) == 200
        wire.close()
        told = [await anext(stream) for stream in streams]
        for stream in streams:
            await stream.aclose()
    ((before,), (after,)) = ({json.loads(said)["balance"] for said in heard} for heard in (firsts, told))
    assert Decimal(after) - Decimal(before) == Decimal("0.000001")


async def _follow(browser: httpx.AsyncClient, url: str) -> AsyncGenerator[str, None]:
    """The balances that a page's stream of events tells."""
    async with browser.stream("GET", url) as stream:
        lines = stream.aiter_lines()
        async for line in lines:
            if line == "event: balance":
                yield (await anext(lines)).removeprefix("data: ")


def test_members_that_are_killed_or_frozen_with_the_book_lose_no_acknowledged_transfer(
    database_url: str, group: RunGroup
) -> None:
    web = group()

    async def scenario() -> None:
        shop, client = await _open_shop(database_url, web)
        for number in (signal.SIGKILL, signal.SIGSTOP) * 2:
            # One of the two has the book.
            for member in sorted(descendants(web.pid)):
                before = len(client.answers)
                asking = asyncio.create_task(client.credit_all(f"o{before + each}" for each in range(1000)))
                await client.until_answered(before + 100)
                os.kill(member, number)
                if number == signal.SIGSTOP:
                    await eventually(partial(_answers, client))
                    os.kill(member, signal.SIGCONT)
                await asking
                assert len(client.answers) == before + 1000
                await eventually(partial(asyncio.to_thread, _has_two, web))
        # Each order once, however often it was asked.
        assert await shop.orders() == {order: ids[0] for order, ids in client.answers.items()}
        assert await shop.alice_units() == len(client.answers)
        assert UNAVAILABLE in client.heard
        await shop.verify()

    run(scenario())
    assert web.stop() == 0


async def _answers(client: Client) -> bool:
    """Whether a new connection gets its answer. A frozen process accepts none."""
    return bool((await client.ask_once(BALANCE))["code"] == 200)


def _has_two(web: WebProcess) -> bool:
    """Whether two processes run and answer."""
    return len(descendants(web.pid)) == 2 and _says_ready(web)


def test_a_new_version_takes_over_and_a_broken_one_does_not_and_systemd_hears_of_it(
    group: RunGroup, tmp_path: Path
) -> None:
    systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    systemd.bind(str(tmp_path / "notify"))
    systemd.settimeout(60)
    program, mark = tmp_path / "current", tmp_path / "new-version-ran"
    for version, line in (("old", ""), ("new", f"open({str(mark)!r}, 'a')"), ("broken", "import nothing")):
        script = tmp_path / version
        script.write_text(PROGRAM.read_text().replace("import sys\n", f"import sys\n{line}\n", 1))
        script.chmod(0o755)
    program.symlink_to("old")
    web = group(program=program, NOTIFY_SOCKET=str(tmp_path / "notify"))
    assert systemd.recv(200) == b"READY=1"
    members = descendants(web.pid)

    _switch(program, "broken")
    os.kill(web.pid, signal.SIGHUP)
    wait_until(lambda: "not replaced" in web.errors(), "it says that nothing is replaced")
    assert "No module named 'nothing'" in web.errors()
    assert alive(members) == members
    assert systemd.recv(200).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
    assert systemd.recv(200) == b"READY=1"

    _switch(program, "new")
    assert not mark.exists()
    _replace(web)
    assert mark.exists()
    assert systemd.recv(200).startswith(b"RELOADING=1\n")
    assert systemd.recv(200) == b"READY=1"
    wait_until(lambda: not alive(members), "the old processes have ended")
    assert web.stop() == 0
    assert systemd.recv(200) == b"STOPPING=1"
    systemd.close()


def _switch(program: Path, version: str) -> None:
    other = program.with_name("next")
    other.symlink_to(version)
    other.rename(program)


def test_figures_are_those_of_all_processes_also_of_killed_ones(database_url: str, group: RunGroup) -> None:
    web = group()

    async def ask(count: int) -> None:
        for _ in range(count):
            assert (await client.ask_once(BALANCE))["code"] == 200

    def counted() -> float:
        page = _read_metrics(web)
        # The platform's figures are there whichever process answers, and once.
        assert page.count("\nwallet_id_ranges_left ") == 1
        return _sum(page, f'wallet_requests_total{{code="200",operation="{BALANCE}"}}'.replace("{", "\\{"))

    _, client = run(_open_shop(database_url, web))
    run(ask(40))
    wait_until(lambda: counted() == 40, "40 requests are counted")
    assert {counted() for _ in range(10)} == {40}
    assert _sum(_read_metrics(web), "wallet_sandbox") == 2
    killed = min(descendants(web.pid))
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(descendants(web.pid)) == 2 and not alive({killed}), "another one was started")
    wait_until(lambda: _says_ready(web), "it answers")
    assert {counted() for _ in range(5)} == {40}
    _replace(web)
    run(ask(2))
    wait_until(lambda: counted() == 42, "42 requests are counted")


def _says_ready(web: WebProcess) -> bool:
    return _sum(_read_metrics(web), "wallet_sandbox") == 2


@pytest.mark.extended
def test_a_group_starts_though_its_first_members_are_killed(database_url: str, tmp_path: Path) -> None:
    web = WebProcess(database_url, tmp_path / "web", "--processes", "2")
    killed: set[int] = set()
    stopping = threading.Event()

    def kill_each() -> None:
        # At whatever moment of their start they are seen.
        while len(killed) < MAX_KILLED - 1 and not stopping.is_set():
            for pid in descendants(web.pid) - killed if web.is_started else ():
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)

    killer = threading.Thread(target=kill_each, daemon=True)
    killer.start()
    try:
        web.start()
        killer.join(TIMEOUT_S)
        assert not alive(killed)
        assert len(descendants(web.pid)) == 2
        assert web.stop() == 0
    finally:
        stopping.set()
        web.end()


def test_limits_hold_over_all_processes(database_url: str, group: RunGroup) -> None:
    web = group(WALLET_RATE_LIMIT="5", WALLET_FAILED_AUTH_LIMIT="5", WALLET_SOURCE_CONNECTIONS="0")

    async def scenario() -> None:
        _, client = await _open_shop(database_url, web)
        await asyncio.sleep(1.0)
        answers = await asyncio.gather(*(client.ask_once(BALANCE) for _ in range(100)))
        codes = Counter(answer["code"] for answer in answers)
        # Ten at once, and five more for each second that it took.
        assert set(codes) == {200, 42900}
        assert 10 <= codes[200] <= 20
        client.secret = b"wrong"
        failed = Counter([(await client.ask_once(BALANCE))["code"] for _ in range(12)])
        assert failed == {40101: 5, 42900: 7}

    run(scenario())


def test_the_connections_of_a_source_count_over_all_processes(database_url: str, group: RunGroup) -> None:
    web = group(WALLET_SOURCE_CONNECTIONS="20")
    address = ("127.0.0.1", web.port)
    opened = [socket.create_connection(address) for _ in range(40)]
    # None of them is idle for long enough to be closed for another one.
    wait_until(lambda: sum(_is_closed(each) for each in opened) >= 20, "20 are refused")
    assert sum(_is_closed(each) for each in opened) == 20
    for each in opened:
        each.close()


def _is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
