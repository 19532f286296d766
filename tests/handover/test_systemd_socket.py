"""A socket that systemd keeps open while `serve` restarts: requests wait meanwhile, and none fails."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest
from tests.crash.shop import run
from tests.handover.load import Load
from tests.handover.platform import PROGRAM, WebProcess, furnish

SYSTEMD = """#!/bin/sh
''':'
exec "{python}" "$0" "$@"
'''
import os, sys
os.dup2({fd}, 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
"""What systemd does before it executes a service (sd_listen_fds(3))."""


@pytest.mark.extended
def test_a_restart_on_a_socket_of_systemd_loses_no_request(database_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as kept:
        os.set_inheritable(kept.fileno(), True)
        script = tmp_path / "systemd"
        script.write_text(SYSTEMD.format(python=sys.executable, fd=kept.fileno(), program=str(PROGRAM)))
        script.chmod(0o755)
        web = WebProcess(database_url, tmp_path / "web", WALLET_UNREADY_S="1")
        web.program, web.inherits = script, True

        async def scenario() -> None:
            shop, client = await furnish(database_url)
            await asyncio.to_thread(web.start)
            assert web.port == kept.getsockname()[1]
            client.port = web.port
            await client.learn_address()
            load = Load(web.address, client, 128, pause_s=0.5)
            load.start()
            for _ in range(2):
                await load.until_more(200)
                assert await asyncio.to_thread(web.stop) == 0
                await asyncio.to_thread(web.start)
            await load.until_more(200)
            await load.stop()
            assert not load.failures, load.failures
            assert await shop.orders() == load.answers
            await shop.verify()

        try:
            run(scenario())
        finally:
            web.end()
