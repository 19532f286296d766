"""`up --processes 2`: two web processes on one port, with users of their own if root runs it."""

import os
import signal
from pathlib import Path

import pytest
from tests.crash.client import Client
from tests.crash.service import Service, alive, descendants, prepared_folder, service
from tests.crash.shop import run
from tests.waits import wait_until

__all__ = ["prepared_folder", "service"]


def test_up_runs_several_web_processes_and_starts_a_killed_one_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = service.command
    monkeypatch.setattr(service, "command", lambda port=0: [*command(port), "--processes", "2"])
    service.start()
    supervisor = service.side("serve")
    members = descendants(supervisor)
    assert len(members) == 2
    if os.geteuid() == 0:
        # They are not root, and their own user can't read their memory (proc(5)).
        assert all("Uid:\t0\t" not in Path(f"/proc/{pid}/status").read_text() for pid in members)
        assert {Path(f"/proc/{pid}/mem").stat().st_uid for pid in members} == {0}

    async def credit(first: int) -> None:
        client = Client(service.url, service.app_key, service.secret)
        await client.learn_address()
        await client.credit_all([f"c{number}" for number in range(first, first + 100)])
        assert len(client.answers) == 100

    run(credit(0))
    killed = min(members)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(descendants(supervisor)) == 2 and not alive({killed}), "another one was started")
    run(credit(100))
    assert service.stop() == 0
    assert not service.leavings()
