"""`merchant-wallet up` from start to stop: what it prints, what it leaves, who may run it, from where."""

import asyncio
import os
import pty
import queue
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.crash.client import CUT_SHORT, Client
from tests.crash.service import Service, alive, prepared_folder, service
from tests.crash.shop import run
from tests.folders import make_folder
from tests.waits import TIMEOUT_S, wait_until

from merchant_wallet.base.db import connect
from merchant_wallet.postgres.privileges import Account
from merchant_wallet.processes.side_users import SideUser
from merchant_wallet.processes.up import ChildProcess

__all__ = ["prepared_folder", "service"]

ORDERS = 1500
STOPPED_AFTER = 200


def ask_balance(service: Service) -> dict[str, object]:
    """The merchant's balance over HTTP."""
    client = Client(service.url, service.app_key, service.secret)
    return run(client.ask_once("getMerchantBalance"))


def insist_nothing_left(service: Service) -> None:
    """No process and no note of it is left."""
    wait_until(lambda: not service.leavings(), f"nothing is left running: {service.leavings()}")
    assert not (service.data / "runtime.json").exists()
    assert not (service.data / "postgres" / "postmaster.pid").exists()


def test_a_new_folder_becomes_a_service(new_service: Service) -> None:
    service = new_service
    service.start()

    assert ask_balance(service)["code"] == 40100
    assert stat.S_IMODE((service.data / "master.key").stat().st_mode) == 0o600
    # The line about the mode comes later, at no fixed position.
    told = dict(line.split(": ", 1) for line in service.said[:4])
    assert list(told) == ["operator", "password", "console", "ready"]
    assert (told["operator"], told["console"]) == ("admin", f"{service.url}/console")
    assert service.stop() == 0
    insist_nothing_left(service)


def _load_and_stop(service: Service) -> Client:
    """Stop it under load. Returns the merchant's client with what it got."""
    client = Client(service.url, service.app_key, service.secret)

    async def scenario() -> None:
        await client.learn_address()
        orders = [f"order-{n}" for n in range(ORDERS)]
        load = asyncio.create_task(client.credit_all(orders, until_answered=False))
        await client.until_answered(STOPPED_AFTER)
        assert await asyncio.to_thread(service.stop) == 0
        await load

    run(scenario())
    return client


def test_asked_to_stop_under_load_it_finishes_what_it_took_and_refuses_the_rest(service: Service) -> None:
    service.start()

    client = _load_and_stop(service)

    insist_nothing_left(service)
    # Each request gets its outcome, 50300 or a cut connection, and nothing else.
    assert set(client.heard) <= {200, 50300, CUT_SHORT}
    assert 50300 in client.heard
    assert STOPPED_AFTER <= len(client.answers) < ORDERS
    # The first start made an operator. The second one finds it and does not show its password again.
    assert service.said[0].startswith("operator: ")
    service.said.clear()
    service.start()
    assert service.said[0].startswith("ready: ")
    assert run(_orders(service)) == set(client.answers)
    assert service.stop() == 0


async def _orders(service: Service) -> set[str]:
    async with await connect(service.database_url()) as connection:
        cursor = await connection.execute("select mc_order_id from entry where mc_order_id is not null")
        return {row[0] for row in await cursor.fetchall()}


def test_the_terminals_interrupt_stops_it_in_order(service: Service) -> None:
    leader, follower = pty.openpty()
    # `setsid --ctty`: a session with this terminal. Its Ctrl-C goes to the foreground process group.
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *service.command()],
        env=service.environment(),
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    said = _Screen(leader)
    try:
        wait_until(lambda: "ready: http" in said.text, "ready on the terminal")
        service.process = process
        service.look()
        os.write(leader, b"\x03")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        said.end()
    wait_until(lambda: not service.leavings(), "nothing is left running")
    assert "Traceback" not in said.text


class _Screen:
    """The text on a terminal."""

    def __init__(self, leader: int) -> None:
        self.text = ""
        self._leader = leader
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                more = os.read(self._leader, 4096)
            except OSError:
                return  # Linux reports this when nobody has the terminal open any more.
            if not more:
                return
            self.text += more.decode(errors="replace")

    def end(self) -> None:
        self._reader.join(10)
        os.close(self._leader)


def test_a_killed_worker_side_is_started_again_and_the_sides_of_a_killed_up_end_by_themselves(
    service: Service,
) -> None:
    service.start()
    killed = service.side("work")
    os.kill(killed, signal.SIGKILL)
    assert ask_balance(service)["code"] == 200
    wait_until(lambda: service.side("work") != killed, "the worker is back")

    database, sides = service.postmaster(), {service.side("serve"), service.side("work")}
    service.kill_up()
    wait_until(lambda: not alive(sides), "the sides have seen their parent end")
    assert alive({database})

    # The next one takes the database over.
    service.start()
    assert service.postmaster() == database
    assert ask_balance(service)["code"] == 200
    assert service.stop() == 0
    insist_nothing_left(service)


def test_a_port_that_is_taken_is_named_and_waited_for(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        starting = threading.Thread(target=service.start, args=(port,))
        starting.start()
        wait_until(lambda: says(service, f"port {port}: trying"), "it names the port")
        wait_until(lambda: (service.data / "runtime.json").exists(), "its database runs")
    starting.join(TIMEOUT_S)
    assert service.port == port
    assert ask_balance(service)["code"] == 200
    assert service.stop() == 0


def says(service: Service, text: str) -> bool:
    """Whether it has printed this."""
    return (service.data.parent / "up.log").exists() and text in "\n".join([*service.said, service.errors()])


@pytest.fixture
def new_service() -> Iterator[Service]:
    """A service without a folder of data."""
    parent = make_folder("merchant-wallet-crash-")
    made = Service(parent / "data", "mk_nobody", "no secret")
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(parent)


def test_pauses_between_starts_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    child = ChildProcess("serve", queue.Queue())
    pauses = []
    for _ in range(9):
        monkeypatch.setattr(child, "_process", _Ended())
        monkeypatch.setattr(child, "_started_s", now_s[0])
        child.check_process({}, -1)
        pauses.append(child._due_s - now_s[0])
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]

    # After running well for a while the pause is short again.
    monkeypatch.setattr(child, "_process", _Ended())
    monkeypatch.setattr(child, "_started_s", now_s[0] - 31)
    child.check_process({}, -1)
    assert child._due_s - now_s[0] == 0.5


@dataclass(frozen=True)
class _Unreachable(SideUser):
    """A user that a process can't become."""

    def drop(self) -> Callable[[], None]:
        def fail() -> None:
            raise PermissionError("not here")

        return fail


def test_a_side_that_can_not_become_its_user_is_tried_again() -> None:
    child = ChildProcess("serve", queue.Queue())
    child.user = _Unreachable(Account(0, 0))
    child.check_process({}, 0)
    assert child._process is None
    assert child._due_s > 0
    # The next attempt waits until its pause is over.
    child.check_process({}, 0)
    assert child._process is None


class _Ended:
    """A process that ended by itself."""

    def poll(self) -> int:
        return 1
