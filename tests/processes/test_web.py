"""The web side's process: ready when it answers, draining when it stops, gone with its parent."""

import asyncio
import os
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from psycopg import AsyncConnection
from tests.crash.client import CUT_SHORT, Client
from tests.crash.shop import FUNDS, MASTER_KEY, open_merchant, run
from tests.roles import as_web
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Adjust, Submission
from merchant_wallet.book.nonce_partitions import list_nonce_days
from merchant_wallet.book.writer import Writer
from merchant_wallet.processes import listening_socket, stop_signals
from merchant_wallet.processes import web as server
from merchant_wallet.processes.base import Base, make_base
from merchant_wallet.processes.listening_socket import CannotListen


def _make_base(url: str, folder: Path, **settings: str) -> Base:
    environment = {
        "WALLET_DATA": str(folder),
        "WALLET_MASTER_KEY": MASTER_KEY.hex(),
        "WALLET_PORT": "0",
        "WALLET_RATE_LIMIT": "0",
        "WALLET_LOG_LEVEL": "error",
        **settings,
    }
    return make_base(load_settings(environment), url)


class Running:
    """A server in this event loop, and a merchant's client that calls it."""

    def __init__(self, url: str, client: Client, stop: asyncio.Event, served: asyncio.Task[None]) -> None:
        self.url = url
        self.client = client
        self.stop = stop
        self.served = served


async def _run(base: Base, scenario: Callable[[Running], Awaitable[None]]) -> None:
    """Open a funded merchant, serve, run the scenario, stop."""
    opened = await open_merchant(base.url)
    writer = Writer(base.url)
    await writer.submit(opened.merchant.merchant_id, Submission(Adjust(KFB, FUNDS, "opening", "test", None)))
    await writer.close()
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    served = asyncio.create_task(server.serve(replace(base, url=as_web(base.url)), ready.set_result, stop))
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.wait((ready, served), return_when=asyncio.FIRST_COMPLETED)
        if served.done():
            await served
        client = Client(ready.result(), opened.merchant.app_key, opened.app_secret)
        await client.learn_address()
        try:
            await scenario(Running(ready.result(), client, stop, served))
        finally:
            stop.set()
            await served


async def _hold_book(connection: AsyncConnection) -> None:
    await connection.execute("update book set settings_version = settings_version")


async def _until_under_way(url: str) -> None:
    """Wait until the writer waits for the book's lock."""
    query = (
        "select 1 from pg_stat_activity where application_name = 'merchant-wallet writer'"
        " and datname = current_database() and wait_event_type = 'Lock'"
    )
    async with await connect(url) as connection:
        await eventually(lambda: _fetch(connection, query))


async def _fetch(connection: AsyncConnection, query: str) -> object:
    return await (await connection.execute(query.encode())).fetchone()


@pytest.mark.new_database
def test_it_answers_by_the_time_it_says_so_and_has_a_day_for_every_nonce(
    database_url: str, tmp_path: Path
) -> None:
    async def scenario(running: Running) -> None:
        assert (await running.client.ask_once("getMerchantBalance"))["code"] == 200
        async with await connect(database_url) as connection:
            today = now_ms() // DAY_MS
            assert set(await list_nonce_days(connection)) >= {today - 1, today, today + 1}

    run(_run(_make_base(database_url, tmp_path), scenario))


def test_told_to_stop_it_finishes_what_it_took_and_refuses_what_is_new(
    database_url: str, tmp_path: Path
) -> None:
    async def scenario(running: Running) -> None:
        client = running.client
        async with await connect(database_url) as holder, holder.transaction():
            await _hold_book(holder)
            taken = asyncio.create_task(client.credit_all(["taken"], until_answered=False))
            await _until_under_way(database_url)
            running.stop.set()
            # It is refused at once, and does not wait for the book.
            refused = await client.ask_once("getMerchantBalance")
            assert not taken.done()
            assert not running.served.done()
        assert refused["code"] == 50300
        await taken
        assert list(client.answers) == ["taken"]
        await running.served
        assert (await client.ask_once("getMerchantBalance"))["code"] == CUT_SHORT

    run(_run(_make_base(database_url, tmp_path), scenario))


def test_what_takes_longer_than_the_time_to_stop_is_not_waited_for(database_url: str, tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        async with await connect(database_url) as holder:
            async with holder.transaction():
                await _hold_book(holder)
                taken = asyncio.create_task(running.client.credit_all(["taken"], until_answered=False))
                await _until_under_way(database_url)
                running.stop.set()
                await _until_closed(running.url)
            await running.served
            await taken
        assert set(running.client.heard) <= {200, 50300, CUT_SHORT}

    run(_run(_make_base(database_url, tmp_path, WALLET_DRAIN_TIMEOUT_S="0"), scenario))


def test_with_time_to_be_unready_it_answers_everything_and_says_first_that_it_leaves(
    database_url: str, tmp_path: Path
) -> None:
    async def scenario(running: Running) -> None:
        url = running.url
        async with httpx.AsyncClient() as kept, httpx.AsyncClient() as pages:
            assert (await kept.get(f"{url}/readyz")).json() == {"status": "ready", "mode": "sandbox"}
            running.stop.set()
            await eventually(lambda: _says(pages, f"{url}/readyz", 503))
            health = await pages.get(f"{url}/healthz")
            assert (health.status_code, health.headers["connection"]) == (200, "close")
            # A connection that was kept, and a new one, are still answered.
            last = await kept.get(f"{url}/readyz")
            assert (last.status_code, last.headers["connection"]) == (503, "close")
            assert (await running.client.ask_once("getMerchantBalance"))["code"] == 200
        await running.served
        assert (await running.client.ask_once("getMerchantBalance"))["code"] == CUT_SHORT
        assert 50300 not in running.client.heard

    run(_run(_make_base(database_url, tmp_path, WALLET_UNREADY_S="1"), scenario))


def test_with_a_clock_an_hour_ahead_it_is_not_ready_and_still_answers(
    database_url: str, tmp_path: Path
) -> None:
    base = _make_base(database_url, tmp_path)

    async def scenario() -> None:
        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        served = asyncio.create_task(server.serve(base, ready.set_result, stop, lambda: now_ms() + 3_600_000))
        url = await ready
        async with httpx.AsyncClient() as pages:
            await eventually(lambda: _says(pages, f"{url}/readyz", 503))
            assert (await pages.get(f"{url}/readyz")).json() == {"status": "wrong clock", "mode": "sandbox"}
            assert await _says(pages, f"{url}/healthz", 200)
            page = (await pages.get(f"{url}/metrics")).text
            found = re.search(r'^wallet_clock_ahead_seconds{process="web"} (\S+)$', page, re.MULTILINE)
            assert found is not None
            assert abs(float(found[1]) - 3600) < 5
        stop.set()
        await served

    run(scenario())


async def _says(pages: httpx.AsyncClient, url: str, status: int) -> bool:
    return (await pages.get(url)).status_code == status


async def _until_closed(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return
        writer.close()
        await asyncio.sleep(0.02)


def test_a_port_in_use_is_waited_for() -> None:
    async def scenario() -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            waiting = asyncio.create_task(listening_socket.bind("127.0.0.1", port))
            await asyncio.sleep(0)
            assert not waiting.done()
        with await waiting as bound:
            assert bound.getsockname()[1] == port

    run(scenario())


def test_a_port_that_stays_in_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_socket, "BIND_RETRY_S", 0.0)

    async def scenario() -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            with pytest.raises(CannotListen, match=f"can't listen on 127.0.0.1 port {port}"):
                await listening_socket.bind("127.0.0.1", port)

    run(scenario())


def test_any_free_port_is_found_for_none() -> None:
    with run(listening_socket.bind("127.0.0.1", 0)) as bound:
        assert bound.getsockname()[1] > 0


def test_a_child_is_told_to_stop_when_its_parent_is_gone() -> None:
    async def scenario() -> None:
        ours, parents = os.pipe()
        stop = stop_signals.make_stop_event(ours)
        await asyncio.sleep(0)
        assert not stop.is_set()
        os.close(parents)
        async with asyncio.timeout(TIMEOUT_S):
            await stop.wait()
        os.close(ours)

    run(scenario())


def test_a_signal_tells_it_to_stop() -> None:
    async def scenario() -> None:
        for number in stop_signals.STOP_SIGNALS:
            stop = stop_signals.make_stop_event()
            os.kill(os.getpid(), number)
            async with asyncio.timeout(TIMEOUT_S):
                await stop.wait()

    run(scenario())
