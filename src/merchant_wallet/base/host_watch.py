"""Asks each host of a database, again and again, whether it answers and whether it is the primary.

Rules:
- Each host has one session of its own for this, so none waits for another.
- A host that leaves two questions in a row unanswered is silent. The second one takes a new session, and has
  longer if the last one began slowly. A loaded server answers: the question needs no disk and no lock.
- Where no session was open, a host is silent if none begins in `BEGIN_S`. Names may be looked up slowly, and
  passwords may be checked elsewhere.
- A question that fails is an answer as well: the server or its kernel lives. What refuses sessions is found
  out by those who need one. That there is no way to a host was answered by this machine or a router: silence.
- What this process could not read because it stood still itself is not unanswered yet.
"""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg.conninfo import make_conninfo

from merchant_wallet.base import db
from merchant_wallet.base.cells import Cells
from merchant_wallet.base.hosts import Answer, Host, Hosts, only, shut_down
from merchant_wallet.base.workers import log_failure

log = structlog.get_logger("database")

QUERIES: Final = db.Queries(Path(__file__).with_name("hosts.sql"))
_READ_TIMELINE: Final = QUERIES["read_timeline"].text.encode()
_READ_SYNCHRONOUS: Final = QUERIES["read_synchronous"].text.encode()

INTERVAL_S: Final = 1.0
"""The pause between two questions to a host."""
SEARCH_INTERVAL_S: Final = 0.25
"""As `INTERVAL_S`, while no primary is known."""
ANSWER_S: Final = 1.5
"""Two unanswered questions are silence: with the pause, after 4 s at the latest."""
BEGIN_S: Final = 4.5
"""The longest that a session of the watch needs to begin, if no other one was open just before."""
LATE_S: Final = 0.2
"""If a wait for an answer took this much longer than asked for, this process stood still."""
FIRST_ANSWERS_S: Final = 5.0
"""A start waits this long for the first answers."""
APPLICATION_NAME: Final = "merchant-wallet host watch"
_NO_WAY: Final = [
    os.strerror(number)
    for number in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.ETIMEDOUT)
]
"""What libpq says when nothing of the host answered."""


class HostWatch:
    """Watches the hosts of home, of every cell, and of the coordinators of Citus."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._answers: dict[Hosts, dict[Host, Answer | None]] = {}
        self._tasks: dict[Hosts, list[asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Begin, and wait until each host answered or is silent."""
        self._look()
        with suppress(TimeoutError):
            # Then what is known must do.
            async with asyncio.timeout(FIRST_ANSWERS_S):
                while any(len(told) < len(known.hosts) for known, told in self._answers.items()):
                    self._changed.clear()
                    await self._changed.wait()

    async def run(self) -> None:
        """Follow the list of cells."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            self._look()

    async def close(self) -> None:
        """Ask no more, and forget what was answered."""
        ending = [task for known in list(self._tasks) for task in self._end(known)]
        await asyncio.gather(*ending, return_exceptions=True)

    def _look(self) -> None:
        urls = [url for cell in self._cells.list() for url in (cell.url, cell.table_url)]
        wanted = {known: url for url in urls if (known := Hosts.of(url)).is_watched}
        for known in self._tasks.keys() - wanted.keys():
            self._end(known)
        for known, url in wanted.items():
            if known not in self._tasks:
                self._answers[known] = {}
                self._tasks[known] = [
                    asyncio.create_task(self._ask(url, known, host)) for host in known.hosts
                ]

    def _end(self, known: Hosts) -> list[asyncio.Task[None]]:
        tasks = self._tasks.pop(known)
        for task in tasks:
            task.cancel()
        del self._answers[known]
        known.forget()
        return tasks

    async def _ask(self, url: str, known: Hosts, host: Host) -> None:
        line = _Line(url, host)
        told = self._answers[known]
        try:
            while True:
                try:
                    told[host] = await line.ask()
                except Exception as error:
                    # The other hosts' answers must still count, and this one is asked again.
                    log_failure(log, "a host of the database can't be asked", error, host=str(host))
                    told[host] = Answer(reached=False)
                known.judge(told)
                self._changed.set()
                is_found = known.primary is not None or len(known.hosts) == 1
                await asyncio.sleep(INTERVAL_S if is_found else SEARCH_INTERVAL_S)
        finally:
            await line.close()


@asynccontextmanager
async def watching(cells: Cells) -> AsyncIterator[None]:
    """Watch the hosts of home and of every cell. The first answers are there when it begins."""
    watch = HostWatch(cells)
    try:
        await watch.start()
        following = asyncio.create_task(watch.run())
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    finally:
        await watch.close()


@asynccontextmanager
async def commits_alone(url: str, host: Host) -> AsyncIterator[psycopg.AsyncConnection[Any] | None]:
    """A session with one of a URL's hosts whose commits wait for no standby, also with one that was left.

    None if they wait. Raises psycopg.Error.
    """
    conninfo = _name_host(url, host)
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await db.begin_session(connection, conninfo)
        row = await (await connection.execute(_READ_SYNCHRONOUS)).fetchone()
        yield None if row == (True,) else connection


def _name_host(url: str, host: Host) -> str:
    conninfo = db.complete_conninfo(only(url, host), APPLICATION_NAME)
    return make_conninfo(conninfo, target_session_attrs="any")


class _Line:
    """The session with one host."""

    def __init__(self, url: str, host: Host) -> None:
        self._conninfo = _name_host(url, host)
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._begun_s = 0.0
        self._is_refused = False

    async def ask(self) -> Answer | None:
        """The host's answer, or None for silence."""
        if not self._is_open():
            return await self._ask_in(BEGIN_S)
        answer = await self._ask_in(ANSWER_S)
        if self._is_open():
            return answer
        # Whoever waits for a silent host waits for the second question, too.
        short_s = min(BEGIN_S, max(ANSWER_S, 2 * self._begun_s))
        return await self._ask_in(short_s if answer is None else BEGIN_S)

    def _is_open(self) -> bool:
        return self._connection is not None

    async def _ask_in(self, limit_s: float) -> Answer | None:
        """Ask once. Without an answer the session is closed."""
        asking = asyncio.create_task(self._ask_once())
        answer = None
        try:
            if await _is_done_in_time(asking, limit_s):
                return asking.result()
        except psycopg.Error as error:
            if self._connection is not None and not self._connection.closed:
                return self._note_refusal(error)
            answer = None if any(text in str(error) for text in _NO_WAY) else Answer(reached=False)
        finally:
            if not asking.done():
                await self._give_up(asking)
        await self.close()
        return answer

    def _note_refusal(self, error: psycopg.Error) -> Answer:
        """The server answers, but a provider or a pooler forbids this question. The session is good."""
        if not self._is_refused:
            log.warning("a host of the database does not tell its timeline", reason=str(error))
        self._is_refused = True
        return Answer(reached=False)

    async def _give_up(self, asking: "asyncio.Task[Answer]") -> None:
        if self._connection is None:
            asking.cancel()
        else:
            shut_down(self._connection.pgconn)
        await asyncio.gather(asking, return_exceptions=True)

    async def _ask_once(self) -> Answer:
        if self._connection is None:
            before_s = time.monotonic()
            self._connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
            self._begun_s = time.monotonic() - before_s
        row = await (await self._connection.execute(_READ_TIMELINE)).fetchone()
        return Answer(None if row is None or row[0] is None else int(row[0], 16))

    async def close(self) -> None:
        """Close the session, if it is open."""
        kept, self._connection = self._connection, None
        if kept is not None:
            await kept.close()


async def _is_done_in_time(asking: "asyncio.Task[Answer]", limit_s: float) -> bool:
    """Wait for an answer, and once more if this process stood still meanwhile: it may have come."""
    for _ in range(2):
        begun_s = time.monotonic()
        await asyncio.wait({asking}, timeout=limit_s)
        if asking.done() or time.monotonic() - begun_s < limit_s + LATE_S:
            break
    return asking.done()
