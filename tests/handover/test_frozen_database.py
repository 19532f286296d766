"""`serve` and `work` are asked to stop while their database answers nothing."""

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
from tests.crash.client import Wire
from tests.crash.service import alive
from tests.crash.shop import run
from tests.handover.platform import PROGRAM, WebProcess, furnish
from tests.roles import as_worker
from tests.waits import BLOCKED_BY, TIMEOUT_S, eventually, wait_until

BACKENDS = """
select pid from pg_stat_activity where datname = current_database() and usename <> current_user
"""

SESSIONS = 8
"""A `work` that has begun has more."""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_serve_ends_in_a_bounded_time_and_says_where_it_waited(
    database_url: str, tmp_path: Path, processes: str
) -> None:
    web = WebProcess(
        database_url, tmp_path / "web", WALLET_DRAIN_TIMEOUT_S="1", WALLET_PROCESSES=processes
    ).start()
    frozen: list[int] = []
    try:
        run(_freeze_with_an_order_under_way(database_url, web, frozen))
        # The supervisor of several has ended well itself.
        assert web.stop() == (1 if processes == "1" else 0)
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        web.end()
    assert not alive({web.pid})
    assert "did not stop in time and ends now" in web.errors()
    assert "in run_serve" in web.errors()


async def _freeze_with_an_order_under_way(url: str, web: WebProcess, frozen: list[int]) -> None:
    shop, client = await furnish(url)
    client.port = web.port
    await client.learn_address()
    wire = Wire(client)
    with psycopg.connect(url) as conn, psycopg.connect(url, autocommit=True) as observer:
        # The writer waits longer for a book's lock than for anything else.
        conn.execute("select from book where merchant_id = %s for update", [shop.merchant_id])
        order = asyncio.create_task(client.credit(wire, "while-frozen"))

        async def is_at_lock() -> bool:
            return bool(observer.execute(BLOCKED_BY, [conn.info.backend_pid]).fetchall())

        await eventually(is_at_lock)
        frozen.extend(pid for (pid,) in observer.execute(BACKENDS))
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
    order.cancel()
    wire.close()


def test_work_ends_in_a_bounded_time_and_says_where_it_waited(database_url: str, tmp_path: Path) -> None:
    run(furnish(database_url))
    errors = tmp_path / "work.log"
    settings = WebProcess(
        database_url,
        tmp_path / "work",
        WALLET_DATABASE_URL=as_worker(database_url),
        WALLET_DRAIN_TIMEOUT_S="1",
        WALLET_METRICS_PORT="0",
    )
    with errors.open("w") as log:
        process = subprocess.Popen(
            [str(PROGRAM), "work"],
            env=settings.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    frozen: list[int] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: "), errors.read_text()
        with psycopg.connect(database_url, autocommit=True) as conn:
            wait_until(lambda: len(conn.execute(BACKENDS).fetchall()) >= SESSIONS, "its workers work")
            frozen.extend(pid for (pid,) in conn.execute(BACKENDS))
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        # Its workers ask each second or more often.
        asks_s = time.monotonic() + 2
        wait_until(lambda: time.monotonic() > asks_s, "a worker waits for an answer")
        process.send_signal(signal.SIGTERM)
        status = process.wait(TIMEOUT_S)
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        process.kill()
        process.communicate()
    # What gives up by itself in time needs no end from outside.
    assert (status, "did not stop in time and ends now" in errors.read_text()) in ((0, False), (1, True))
    assert ("in run_work" in errors.read_text()) == (status == 1)
