"""`serve` is asked to stop while its database answers nothing."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from tests.crash.client import Wire
from tests.crash.service import alive
from tests.crash.shop import run
from tests.handover.platform import WebProcess, furnish

BACKENDS = """
select pid from pg_stat_activity where datname = current_database() and usename <> current_user
"""


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
    _, client = await furnish(url)
    client.port = web.port
    await client.learn_address()
    with psycopg.connect(url, autocommit=True) as conn:
        frozen.extend(pid for (pid,) in conn.execute(BACKENDS))
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    # It must have a turn in the writer before the process stops.
    wire = Wire(client)
    with suppress(TimeoutError):
        await asyncio.wait_for(client.credit(wire, "while-frozen"), 2)
    wire.close()
