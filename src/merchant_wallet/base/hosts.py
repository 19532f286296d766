"""The hosts of database URLs: which one new sessions lead to, and when open sessions are cut.

Rules:
- A host that leaves questions unanswered is silent: frozen, or cut off. It closes no socket, so its sessions
  are shut down here, and whoever waits for one gets an error at once.
- Of several hosts that accept writes the one with the highest timeline is the primary: each promotion raises
  it. A host that accepts writes on a lower timeline than was ever seen is left: its sessions are shut down,
  and no new one leads there. It lacks what was promoted, and what it commits is lost.
- New sessions lead to the primary first, and never to a silent host. If all are silent, they are refused.
- After a server refused to write, all sessions of this process to its host that were open then are suspect,
  and are replaced when they are next needed. So readers too follow to the new primary.
- Without a watch (`host_watch`) nothing is known, and the order of the URL decides: commands at the terminal.
"""

import os
import socket
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple
from weakref import WeakSet

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn

log = structlog.get_logger("database")

_PARAMETERS: Final = ("host", "hostaddr", "port")
_USUAL_PORT: Final = "5432"


class Host(NamedTuple):
    """One host of a URL: its name, address or folder of sockets, its port, and the address (`hostaddr`) if
    the URL gives one beside the name: two servers may have one name.
    """

    name: str
    port: str
    address: str = ""

    @property
    def is_remote(self) -> bool:
        """Whether it is reached over TCP."""
        return bool(self.name) and not self.name.startswith(("/", "@"))

    def __str__(self) -> str:
        return f"{self.name}:{self.port}" + (f" ({self.address})" if self.address else "")


class Answer(NamedTuple):
    """What a host answered. `timeline` is None if it accepts no writes. `reached`: a session could begin."""

    timeline: int | None = None
    reached: bool = True


class Hosts:
    """The hosts of one URL. All databases and users of the process share what is known of them."""

    _known: ClassVar[dict[tuple[Host, ...], "Hosts"]] = {}

    def __init__(self, hosts: tuple[Host, ...]) -> None:
        self.hosts = hosts
        self.silent: frozenset[Host] = frozenset()
        self.left: frozenset[Host] = frozenset()
        self.primary: Host | None = None
        self._timeline = 0

    @classmethod
    def of(cls, conninfo: str) -> "Hosts":
        """The hosts of a connection string. One that is named twice is one."""
        hosts = tuple(_name(place) for place in _split(conninfo))
        return cls._known.setdefault(hosts, cls(hosts))

    @property
    def is_watched(self) -> bool:
        """Whether a watch is of use. One server on this machine has no substitute, and no network to it."""
        return len(self.hosts) > 1 or self.hosts[0].is_remote

    def judge(self, answers: Mapping[Host, Answer | None]) -> None:
        """Take what each host answered last; None is silence. Cut the sessions that must end."""
        silent = frozenset(host for host, answer in answers.items() if answer is None)
        for host in silent - self.silent:
            log.error("a host of the database is silent", host=str(host))
        for host in self.silent - silent:
            log.info("a host of the database answers again", host=str(host))
        self.silent = silent
        if len(self.hosts) > 1:
            self._find_primary({host: answer for host, answer in answers.items() if answer})
        for host in self.silent | self.left:
            Session.cut_all(host)

    def forget(self) -> None:
        """Nobody watches these hosts any more, so nothing is known of them."""
        self.silent = self.left = frozenset()
        self.primary, self._timeline = None, 0

    def _find_primary(self, answers: Mapping[Host, Answer]) -> None:
        timelines = {host: answer.timeline for host, answer in answers.items() if answer.timeline}
        self._timeline = max([self._timeline, *timelines.values()])
        lower = {host for host, timeline in timelines.items() if timeline < self._timeline}
        # One that is down may come back as it was.
        returned = {host for host, answer in answers.items() if answer.reached}
        left = (self.left - returned) | lower
        for host in left - self.left:
            log.error(
                "a host of the database accepts writes on an old timeline and is not used",
                host=str(host),
                timeline=timelines[host],
                newest=self._timeline,
            )
        before, self.left = self.primary, frozenset(left)
        self.primary = next((host for host in timelines if host not in left), None)
        if self.primary not in (None, before):
            log.info("primary of the database", host=str(self.primary), timeline=self._timeline)


def choose(conninfo: str) -> str:
    """The connection string with the hosts that may be used, the primary first.

    Raises psycopg.OperationalError if none may be.
    """
    known = Hosts.of(conninfo)
    if not (known.silent or known.left or known.primary):
        return conninfo
    usable = [
        (host != known.primary, place)
        for host, place in zip(known.hosts, _split(conninfo), strict=True)
        if host not in known.silent and host not in known.left
    ]
    if not usable:
        raise psycopg.OperationalError("no host of the database answers")
    places = [place for _, place in sorted(usable, key=lambda each: each[0])]
    return make_conninfo("", **{**conninfo_to_dict(conninfo), **_join(places)})


def only(conninfo: str, host: Host) -> str:
    """The connection string with one of its hosts alone."""
    hosts = Hosts.of(conninfo).hosts
    place = _split(conninfo)[hosts.index(host)]
    return make_conninfo("", **{**conninfo_to_dict(conninfo), **_join([place])})


def _split(conninfo: str) -> list[dict[str, str]]:
    """The parameters of each host, once. libpq takes one port for all or one for each, and refuses others."""
    given: dict[str, Any] = conninfo_to_dict(conninfo)
    host, hostaddr, port = (str(given.get(name) or "").split(",") for name in _PARAMETERS)
    count = max(len(host), len(hostaddr))
    ports = [each or os.environ.get("PGPORT", _USUAL_PORT) for each in port]
    parts = (part * count if len(part) == 1 else part for part in (host, hostaddr, ports))
    places = dict.fromkeys(zip(*parts, strict=False))
    return [dict(zip(_PARAMETERS, each, strict=True)) for each in places]


def _name(place: Mapping[str, str]) -> Host:
    name, address = place["host"], place["hostaddr"]
    return Host(name, place["port"], address) if name else Host(address, place["port"])


def _join(places: list[dict[str, str]]) -> dict[str, str | None]:
    """The parameters of these hosts together. A parameter that none has is left out."""
    return {
        name: ",".join(place[name] for place in places) if any(place[name] for place in places) else None
        for name in _PARAMETERS
    }


class Session:
    """One open session of this process, and the host that it leads to: by name, and by name and address."""

    _open: ClassVar[defaultdict[Host, "WeakSet[Session]"]] = defaultdict(WeakSet)
    _refusals: ClassVar[Counter[Host]] = Counter()

    def __init__(self, pgconn: PGconn) -> None:
        self.host = Host(pgconn.host.decode(), pgconn.port.decode())
        self._pgconn = pgconn
        self._seen = self._refusals[self.host]
        for host in (self.host, self.host._replace(address=pgconn.hostaddr.decode())):
            self._open[host].add(self)

    @property
    def is_suspect(self) -> bool:
        """Whether its host refused to write since the session was opened."""
        return self._seen != self._refusals[self.host]

    def note_refusal(self) -> None:
        """Count one refusal to write. This session and all older ones to the host are suspect now."""
        self._refusals[self.host] += 1

    def cut(self) -> None:
        """End what waits for this session."""
        shut_down(self._pgconn)

    @classmethod
    def cut_all(cls, host: Host) -> None:
        """End what waits for a host."""
        for session in list(cls._open.pop(host, ())):
            session.cut()


def shut_down(pgconn: PGconn) -> None:
    """Shut down a connection's socket: libpq reads the end of the stream, and raises OperationalError.

    To cancel the task that waits would take 5 s more: psycopg asks the server first to cancel the query.
    """
    try:
        with socket.socket(fileno=os.dup(pgconn.socket)) as ours:
            ours.shutdown(socket.SHUT_RDWR)
    except (psycopg.OperationalError, OSError):
        # It is closed already, on this side or the other.
        return
