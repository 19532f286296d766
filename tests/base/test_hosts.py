"""The hosts of a URL: which one new sessions lead to, and which sessions are cut."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import cast

import psycopg
import pytest
import uvloop
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn
from tests.crash.cutting_proxy import CuttingProxy, cutting
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base import host_watch
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.db import connect, connect_sync, is_database_away
from merchant_wallet.base.host_watch import watching
from merchant_wallet.base.hosts import Answer, Host, Hosts, Session, choose, only
from merchant_wallet.merchants.cells.directory import Directory

NUMBERS = count()
STANDBY, DOWN, SILENT = Answer(), Answer(reached=False), None


class Watched:
    """Three hosts that nobody else knows, and what they answer."""

    def __init__(self) -> None:
        number = next(NUMBERS)
        self.names = [f"db{place}.{number}.example" for place in "abc"]
        self.url = f"postgresql://u@{','.join(self.names)}/wallet"

    def judge(self, *answers: Answer | None) -> None:
        hosts = [Host(name, "5432") for name in self.names]
        Hosts.of(self.url).judge(dict(zip(hosts, answers, strict=True)))

    def chosen(self) -> str:
        """The letters of the hosts that new sessions lead to, in order."""
        named = str(conninfo_to_dict(choose(self.url))["host"])
        return "".join(name[2] for name in named.split(","))


@pytest.fixture
def watched() -> Iterator[Watched]:
    scene = Watched()
    yield scene
    Hosts.of(scene.url).forget()


def test_new_sessions_lead_to_the_primary_first_and_never_to_a_silent_host(watched: Watched) -> None:
    assert watched.chosen() == "abc"
    watched.judge(STANDBY, STANDBY, Answer(1))
    assert watched.chosen() == "cab"
    watched.judge(STANDBY, SILENT, Answer(1))
    assert watched.chosen() == "ca"
    watched.judge(STANDBY, STANDBY, SILENT)
    assert watched.chosen() == "ab"


def test_if_all_hosts_are_silent_a_session_is_refused_at_once(watched: Watched) -> None:
    watched.judge(SILENT, SILENT, SILENT)
    with pytest.raises(psycopg.OperationalError, match="no host") as refused:
        watched.chosen()
    assert is_database_away(refused.value)
    watched.judge(SILENT, Answer(3), SILENT)
    assert watched.chosen() == "b"


def test_a_host_that_writes_on_an_older_timeline_is_not_used_even_alone(watched: Watched) -> None:
    watched.judge(Answer(4), STANDBY, STANDBY)
    watched.judge(Answer(4), Answer(5), STANDBY)
    assert watched.chosen() == "bc"
    # What was promoted is gone, and the older one lacks what it committed.
    watched.judge(Answer(4), SILENT, STANDBY)
    assert watched.chosen() == "c"
    # One that is down may come back as it was. One that is a standby has followed.
    watched.judge(DOWN, Answer(5), STANDBY)
    assert watched.chosen() == "bc"
    watched.judge(STANDBY, Answer(5), STANDBY)
    assert watched.chosen() == "bac"


def test_addresses_and_ports_stay_with_their_hosts() -> None:
    url = "postgresql://u@a,b:7/wallet?hostaddr=10.9.8.1,10.9.8.2"
    a, b = Host("a", "5432", "10.9.8.1"), Host("b", "7", "10.9.8.2")
    Hosts.of(url).judge({a: STANDBY, b: Answer(1)})
    found = conninfo_to_dict(choose(url))
    Hosts.of(url).forget()
    assert (found["host"], found["hostaddr"], found["port"]) == ("b,a", "10.9.8.2,10.9.8.1", "7,5432")


def test_a_host_that_is_named_twice_is_one_and_two_addresses_of_one_name_are_two() -> None:
    twice = "postgresql://u@a,b,a/twice"
    assert Hosts.of(twice).hosts == (Host("a", "5432"), Host("b", "5432"))
    Hosts.of(twice).judge({Host("a", "5432"): SILENT, Host("b", "5432"): Answer(1)})
    assert conninfo_to_dict(choose(twice))["host"] == "b"
    Hosts.of(twice).forget()
    url = "postgresql://u@db,db/wallet?hostaddr=10.9.8.1,10.9.8.2"
    first, second = (Host("db", "5432", f"10.9.8.{number}") for number in (1, 2))
    Hosts.of(url).judge({first: SILENT, second: Answer(1)})
    assert conninfo_to_dict(choose(url))["hostaddr"] == "10.9.8.2"
    assert conninfo_to_dict(only(url, second))["hostaddr"] == "10.9.8.2"
    Hosts.of(url).forget()


class Reached:
    """What a session reads of libpq: its host, the address that the host's name led to, and the socket."""

    def __init__(self, address: bytes) -> None:
        self.host, self.port, self.hostaddr = b"db", b"5432", address
        self._ours, self._theirs = socket.socketpair()
        self.socket = self._ours.fileno()

    def is_cut(self) -> bool:
        self._theirs.setblocking(False)
        try:
            return self._theirs.recv(1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


def test_of_one_name_the_sessions_of_the_silent_address_alone_are_cut() -> None:
    url = "postgresql://u@db,db/wallet?hostaddr=10.9.7.1,10.9.7.2"
    first, second = Hosts.of(url).hosts
    with closing(Reached(b"10.9.7.1")) as one, closing(Reached(b"10.9.7.2")) as other:
        sessions = [Session(cast(PGconn, reached)) for reached in (one, other)]
        Hosts.of(url).judge({first: SILENT, second: Answer(1)})
        assert [one.is_cut(), other.is_cut()] == [True, False]
        # For another URL, which gives no addresses, all that the name leads to is silent.
        Session.cut_all(Host("db", "5432"))
        assert other.is_cut()
        assert len(sessions) == 2
    Hosts.of(url).forget()


@pytest.mark.parametrize("ports", ["1,2", "1,2,3", "1,2,3,4"])
def test_a_url_whose_ports_do_not_match_its_hosts_is_refused_by_libpq(ports: str) -> None:
    url = f"host=a,b{',c' if ports == '1,2' else ''} port={ports}"
    with pytest.raises(psycopg.OperationalError, match="could not match"):
        connect_sync(url)


@pytest.mark.parametrize(
    ("url", "is_watched"),
    [
        ("postgresql:///wallet?host=/run/postgresql", False),
        ("postgresql:///wallet", False),
        ("postgresql:///wallet?host=/run/a,/run/b", True),
        ("postgresql://db.internal/wallet", True),
    ],
)
def test_a_lone_server_of_this_machine_is_not_watched(url: str, is_watched: bool) -> None:
    assert Hosts.of(url).is_watched is is_watched


class OneCell(Directory):
    """Home alone, at this URL."""

    def __init__(self, url: str, coordinator: str | None = None) -> None:
        super().__init__(url)
        self._only = Cell(0, "main", url, admin_url=coordinator)

    def list(self) -> tuple[Cell]:
        return (self._only,)


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit_s in (("INTERVAL_S", 0.02), ("SEARCH_INTERVAL_S", 0.02), ("ANSWER_S", 0.2)):
        monkeypatch.setattr(host_watch, name, limit_s)


def test_the_hosts_of_a_coordinator_are_watched_too(database_url: str) -> None:
    socket = str(conninfo_to_dict(database_url)["host"])
    coordinator = make_conninfo(database_url, host=f"/nowhere,{socket}", port="5432,5432")

    async def scenario() -> None:
        assert conninfo_to_dict(choose(coordinator))["host"] == f"/nowhere,{socket}"
        async with watching(OneCell(database_url, coordinator)):
            assert conninfo_to_dict(choose(coordinator))["host"] == f"{socket},/nowhere"

    asyncio.run(scenario())


@pytest.mark.usefixtures("short_limits")
def test_who_waits_for_a_host_that_has_fallen_silent_gets_an_error_and_nobody_waits_for_it_again(
    database_url: str,
) -> None:
    async def scenario() -> None:
        async with cutting(database_url) as proxy:
            # The other host does not exist.
            host = str(conninfo_to_dict(proxy.url)["host"])
            url = proxy.url.replace(host.replace("/", "%2F"), f"{host},/nowhere".replace("/", "%2F"))
            async with watching(OneCell(url)):
                await _fall_silent(proxy, url)

    asyncio.run(scenario())


async def _fall_silent(proxy: CuttingProxy, url: str) -> None:
    async with await connect(url) as waiting:
        sleeping = asyncio.create_task(waiting.execute("select pg_sleep(2)"))
        proxy.freeze()
        with pytest.raises(psycopg.OperationalError) as lost:
            await asyncio.wait_for(sleeping, 10)
    assert is_database_away(lost.value)
    with pytest.raises(psycopg.OperationalError):
        await asyncio.wait_for(connect(url), 10)
    proxy.thaw()

    async def is_back() -> bool:
        return not Hosts.of(url).silent

    await eventually(is_back)
    async with await connect(url) as again:
        assert (await (await again.execute("select 1")).fetchone()) == (1,)


def test_an_answer_that_came_while_this_process_stood_still_counts(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        line = host_watch._Line(database_url, Hosts.of(database_url).hosts[0])
        await line.ask()
        session = line._connection
        monkeypatch.setattr(host_watch, "ANSWER_S", 0.05)
        monkeypatch.setattr(host_watch, "LATE_S", 0.02)
        asking = asyncio.create_task(line.ask())
        while not asking.done():
            await asyncio.sleep(0)
            time.sleep(0.1)  # noqa: ASYNC251 - the process stands still.
        assert await asking is not None
        assert line._connection is session
        await line.close()

    uvloop.run(scenario())


@pytest.mark.parametrize("was_open", [False, True])
def test_a_host_whose_sessions_begin_slowly_is_not_silent(
    database_url: str, monkeypatch: pytest.MonkeyPatch, was_open: bool
) -> None:
    monkeypatch.setattr(host_watch, "ANSWER_S", 0.05)
    monkeypatch.setattr(host_watch, "BEGIN_S", TIMEOUT_S)

    async def scenario() -> None:
        async with cutting(database_url) as proxy:
            line = host_watch._Line(proxy.url, Hosts.of(proxy.url).hosts[0])
            if was_open:
                await line.ask()
                # So long the session needed to begin.
                line._begun_s = TIMEOUT_S
            proxy.freeze()
            asking = asyncio.create_task(line.ask())
            # Two answers would have to have come by now.
            await asyncio.wait({asking}, timeout=0.15)
            assert not asking.done()
            proxy.thaw()
            answer = await asking
            assert answer is not None
            assert answer.reached
            await line.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("number", "answer"),
    [(errno.EHOSTUNREACH, SILENT), (errno.ENETUNREACH, SILENT), (errno.ECONNREFUSED, DOWN)],
)
def test_a_host_that_there_is_no_way_to_is_silent_and_one_that_refuses_is_not(
    number: int, answer: Answer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise psycopg.OperationalError(f"connection failed: {os.strerror(number)}\n\tIs the server running?")

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", fail)
    url = "postgresql://u@gone.example/wallet"
    assert asyncio.run(host_watch._Line(url, Hosts.of(url).hosts[0]).ask()) == answer


def test_a_server_that_may_not_tell_its_timeline_keeps_the_session(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_watch, "_READ_TIMELINE", b"select wal_position_of_a_provider()")

    async def scenario() -> None:
        line = host_watch._Line(database_url, Hosts.of(database_url).hosts[0])
        assert await line.ask() == DOWN
        session = line._connection
        assert session is not None
        assert await line.ask() == DOWN
        assert line._connection is session
        await line.close()

    asyncio.run(scenario())
