"""Sessions of tests stay open after their connection is closed, and the next connect to the same place takes
them over, as behind a pooler in session mode.

A new session costs PostgreSQL more than what most tests ask of it: a process, and the catalogs that it reads
anew. Rules:
- A session is kept only between transactions, after DISCARD ALL. Anything else really ends it.
- It is kept for the same connection string only, so for the same user, database and settings.
- Only databases of tests on the run's server have kept sessions, not what leads there through a proxy. The
  sessions end before their database is dropped.
- A test that counts or kills sessions has the marker `new_sessions`: it gets new ones, and none is kept.
"""

import os
import select
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any, ClassVar, Final

import psycopg
import pytest
from psycopg import generators
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn

MOST: Final = 12
"""So many sessions of a worker are kept at most for one connection string."""
PREFIX: Final = "test_"
"""The names of databases whose sessions are kept begin so."""
KEPT: Final = "kept session"
"""The application name of a session that waits for the next connect."""
RESET: Final = (b"discard all", b"set application_name = '" + KEPT.encode() + b"'")
RESET_TIMEOUT_S: Final = 5.0

_connect: Final = generators.connect


class ClosedSession:
    """What a closed connection has in place of the session that was kept."""

    status: ClassVar = ConnStatus.BAD
    transaction_status: ClassVar = TransactionStatus.UNKNOWN
    pipeline_status: ClassVar = PipelineStatus.OFF

    def finish(self) -> None:
        """Nothing is left to end."""


class KeptSessions:
    """The sessions that this process keeps, by connection string, and the strings of those in use.

    `host` is the run's server. A service in the tests' process connects in a thread of its own, so no method
    looks first and takes then.
    """

    def __init__(self) -> None:
        self.is_on = True
        self.host: str | None = None
        self._waiting: dict[str, list[PGconn]] = defaultdict(list)
        self._in_use: dict[PGconn, str] = {}

    def connect(self, conninfo: str, **options: Any) -> Generator[Any, Any, PGconn]:
        """As psycopg's own: a session that waits, or a new one."""
        pgconn = self._take(conninfo)
        if pgconn is None:
            pgconn = yield from _connect(conninfo, **options)
        if self.is_on and self._is_ours(conninfo):
            self._in_use[pgconn] = conninfo
        return pgconn

    def end(self, pgconn: PGconn) -> bool:
        """Keep the session of a connection that is being closed. False: the caller must end it."""
        conninfo = self._in_use.pop(pgconn, None)
        if conninfo is None or not self.is_on or len(self._waiting[conninfo]) >= MOST:
            return False
        if not _reset(pgconn):
            return False
        self._waiting[conninfo].append(pgconn)
        return True

    def end_all(self, database: str) -> None:
        """End the sessions of a database that wait."""
        for conninfo in list(self._waiting):
            if _find_place(conninfo)[1] == database:
                _finish_all(self._waiting.pop(conninfo))

    def forget_ended(self) -> None:
        """Forget the sessions in use that have ended without a close."""
        for pgconn in list(self._in_use):
            if pgconn.status != ConnStatus.OK:
                self._in_use.pop(pgconn, None)

    def list_pids(self) -> list[int]:
        """The servers' processes of the sessions that wait."""
        return [pgconn.backend_pid for waiting in list(self._waiting.values()) for pgconn in list(waiting)]

    def leave_to_parent(self) -> None:
        """In a forked process: use none of the sessions and don't end them, since they are the parent's."""
        self._inherited = (self._waiting, self._in_use)
        self._waiting, self._in_use = defaultdict(list), {}
        self.is_on = False

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """Keep nothing."""
        for waiting in list(self._waiting.values()):
            _finish_all(waiting)
        self._in_use.clear()
        self.is_on = False
        try:
            yield
        finally:
            self.is_on = True

    def _is_ours(self, conninfo: str) -> bool:
        host, database = _find_place(conninfo)
        return host == self.host and database.startswith(PREFIX)

    def _take(self, conninfo: str) -> PGconn | None:
        waiting = self._waiting.get(conninfo, [])
        while (pgconn := _pop(waiting)) is not None:
            if is_alive(pgconn) and _run(pgconn, b"reset application_name"):
                pgconn.nonblocking = 1
                return pgconn
            pgconn.finish()
        return None


SESSIONS: Final = KeptSessions()
"""Those of this process."""
os.register_at_fork(after_in_child=SESSIONS.leave_to_parent)


@lru_cache(maxsize=256)
def _find_place(conninfo: str) -> tuple[str, str]:
    """The host and the database of a connection string."""
    place = conninfo_to_dict(conninfo)
    return str(place.get("host")), str(place.get("dbname"))


def _pop(waiting: list[PGconn]) -> PGconn | None:
    """The session that waits shortest, or None."""
    try:
        return waiting.pop()
    except IndexError:
        return None


def _finish_all(waiting: list[PGconn]) -> None:
    while (pgconn := _pop(waiting)) is not None:
        pgconn.finish()


def is_alive(pgconn: PGconn) -> bool:
    """Whether the server has sent nothing since: it has not ended the session."""
    readiness = select.poll()
    readiness.register(pgconn.socket, select.POLLIN)
    return pgconn.status == ConnStatus.OK and not readiness.poll(0)


def _reset(pgconn: PGconn) -> bool:
    """Make a session as new. False if that is not possible."""
    if pgconn.status != ConnStatus.OK or pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    if not is_alive(pgconn):
        return False
    pgconn.notice_handler = pgconn.notify_handler = None
    try:
        if pgconn.pipeline_status != PipelineStatus.OFF:
            pgconn.exit_pipeline_mode()
    except psycopg.Error:
        # Results that nobody has fetched.
        return False
    return all(_run(pgconn, statement) for statement in RESET)


def _run(pgconn: PGconn, statement: bytes) -> bool:
    """Run one statement. False if it fails, or if the server does not answer for some seconds."""
    pgconn.nonblocking = 1
    readiness = select.poll()
    readiness.register(pgconn.socket, select.POLLIN)
    try:
        pgconn.send_query(statement)
        while pgconn.flush():
            pass
        while pgconn.is_busy():
            if not readiness.poll(RESET_TIMEOUT_S * 1000):
                return False
            pgconn.consume_input()
        result = pgconn.get_result()
        return result is not None and result.status == ExecStatus.COMMAND_OK and pgconn.get_result() is None
    except psycopg.Error:
        # The session has just ended.
        return False


def _finish(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        return
    connection._closed = True
    pgconn = connection.pgconn
    if SESSIONS.end(pgconn):
        connection.pgconn = ClosedSession()  # type: ignore[assignment]
    else:
        pgconn.finish()


def _close(self: psycopg.Connection[Any]) -> None:
    _finish(self)


async def _close_async(self: psycopg.AsyncConnection[Any]) -> None:
    _finish(self)


@pytest.fixture(scope="session", autouse=True)
def sessions_are_kept() -> Iterator[None]:
    """For the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generators, "connect", SESSIONS.connect)
        patch.setattr(psycopg.Connection, "close", _close)
        patch.setattr(psycopg.AsyncConnection, "close", _close_async)
        yield
        with SESSIONS.switched_off():
            pass


@pytest.fixture(autouse=True)
def sessions_are_new(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a test says `new_sessions`."""
    is_on = request.node.get_closest_marker("new_sessions") is None
    with nullcontext() if is_on else SESSIONS.switched_off():
        yield
    SESSIONS.forget_ended()
