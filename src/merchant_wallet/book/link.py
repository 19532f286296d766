"""One database connection of the writer: libpq in pipeline mode on the event loop.

psycopg's own cursors cost more than the statements they carry here, so this talks to psycopg's libpq layer
(`pq`) itself. Rules: statements are prepared once, by name; a call sends all its statements, one sync and one
flush, and waits for all their results; parameters and results are text. After an error the transaction is the
caller's to roll back; after `LinkLost` the link is good for nothing but `close`.
"""

import asyncio
import select
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from merchant_wallet.db import RELIABLY

T = TypeVar("T")
Call = tuple[bytes, Sequence[bytes | None]]

# A plan made while a table was empty must not go on reading a table that grew: every statement of a batch has
# an index to use, and a scan is never the better choice.
SESSION = """
set synchronous_commit = on; set jit = off;
set lock_timeout = '10s'; set statement_timeout = '20s'; set idle_in_transaction_session_timeout = '30s';
set plan_cache_mode = force_generic_plan;
set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
"""

BEGIN, COMMIT, ROLLBACK = b"begin", b"commit", b"rollback"
_CONTROL = {BEGIN: b"begin", COMMIT: b"commit", ROLLBACK: b"rollback"}


class LinkLost(Exception):
    """The connection is gone, or did not answer in time; what it was doing may or may not have been done."""


class StatementFailed(Exception):
    """The database refused a statement; `sqlstate` says why.

    `ends_session`: it ended the session too, and may say so of a statement that it had carried out.
    """

    def __init__(self, sqlstate: str, text: str, *, ends_session: bool = False) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.ends_session = ends_session


class Link:
    """A connection with its prepared statements; used by one caller at a time."""

    def __init__(self, connection: AsyncConnection[Any], timeout_s: float) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._fd = self._pgconn.socket
        self._readiness = select.poll()
        self._readiness.register(self._fd, select.POLLIN)
        self._waiting: asyncio.Future[None] | None = None
        self._lost: BaseException | None = None
        self.broken = False

    @classmethod
    async def open(cls, url: str, statements: Mapping[bytes, bytes], timeout_s: float = 30.0) -> "Link":
        """Connect and prepare the statements, text by name. Raises LinkLost when that can't be done."""
        try:
            reliably = {**RELIABLY, "application_name": "merchant-wallet writer", "connect_timeout": 5}
            connection = await AsyncConnection.connect(url, autocommit=True, **reliably)
        except OperationalError as error:
            raise LinkLost(str(error)) from error
        link = cls(connection, timeout_s)
        try:
            # psycopg waits by itself here, where the link's own alarm would wake nobody.
            async with asyncio.timeout(timeout_s):
                await link._guard(link._begin({**statements, **_CONTROL}))
        except BaseException as error:
            await link.close()
            if isinstance(error, TimeoutError):
                raise LinkLost("no answer in time") from error
            raise
        return link

    async def _begin(self, statements: Mapping[bytes, bytes]) -> None:
        await self._connection.execute(SESSION)
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._fd, self._read)
        await self._prepare(statements)

    async def close(self) -> None:
        """Close the connection; the database rolls back what it had open."""
        self._unwatch()
        await self._connection.close()

    def _unwatch(self) -> None:
        """Give the link up: the socket's number, once libpq has closed it, may be another link's."""
        self.broken = True
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._fd = -1

    async def run(self, calls: Sequence[Call]) -> list[PGresult]:
        """Send the statements, in order, and wait for their results.

        Raises StatementFailed for the first that failed (those after it were not run), LinkLost when the
        connection went away or the time ran out.
        """
        return await self._guard(self._exchange(calls))

    async def _guard(self, work: Coroutine[object, object, T]) -> T:
        alarm = self._loop.call_later(self._timeout_s, self._give_up)
        try:
            return await work
        except (OperationalError, OSError) as error:
            self._unwatch()
            raise LinkLost(str(error)) from error
        except asyncio.CancelledError:
            self._unwatch()
            raise
        finally:
            alarm.cancel()

    def _give_up(self) -> None:
        """The time is over: whoever waits for the database is told that it is lost."""
        self._lost = TimeoutError("no answer in time")
        self._unwatch()
        self._wake()

    async def _exchange(self, calls: Sequence[Call]) -> list[PGresult]:
        pgconn = self._pgconn
        for name, parameters in calls:
            pgconn.send_query_prepared(name, parameters)
        await self._sync()
        return _check(await self._results())

    async def _prepare(self, statements: Mapping[bytes, bytes]) -> None:
        for name, text in statements.items():
            self._pgconn.send_prepare(name, text)
        await self._sync()
        _check(await self._results())

    async def _sync(self) -> None:
        self._pgconn.pipeline_sync()
        while self._pgconn.flush():
            await self._wait_writable()

    async def _results(self) -> list[PGresult]:
        pgconn = self._pgconn
        results: list[PGresult] = []
        ended = False
        while True:
            while pgconn.is_busy():
                await self._wait_readable()
            result = pgconn.get_result()
            if result is None:
                # Once, it ends a statement's results. Twice, nothing more is coming although no sync was
                # answered: the database's last word was that it ends the session.
                if ended:
                    raise OperationalError(_last_words(results))
                ended = True
                continue
            ended = False
            if result.status == ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)

    def _read(self) -> None:
        # All there is, since of a socket that ended in error uvloop tells only once: behind the last words of
        # the database stands the end of the file, which must be seen now.
        try:
            self._pgconn.consume_input()
            while self._readiness.poll(0):
                self._pgconn.consume_input()
        except OperationalError as error:
            self._lost = error
            self._unwatch()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _wait_readable(self) -> None:
        """Wait for anything to have come in. Raises OperationalError once the connection is lost."""
        if self._lost is not None:
            raise OperationalError(str(self._lost))
        self._waiting = self._loop.create_future()
        await self._waiting

    async def _wait_writable(self) -> None:
        """Wait until more can be sent; what comes in meanwhile is read, lest both sides wait for ever."""
        self._loop.add_writer(self._fd, self._wake)
        try:
            await self._wait_readable()
        finally:
            if self._fd >= 0:
                self._loop.remove_writer(self._fd)


def _last_words(results: Sequence[PGresult]) -> str:
    said = results[-1].error_message.decode(errors="replace").strip() if results else ""
    return said or "the connection ended"


def _check(results: list[PGresult]) -> list[PGresult]:
    """The results, unless one is an error. Statements after it report that they were not run."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            sqlstate = result.error_field(DiagnosticField.SQLSTATE) or b""
            text = result.error_message.decode(errors="replace").strip()
            ends = result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) != b"ERROR"
            raise StatementFailed(sqlstate.decode(), text, ends_session=ends)
    return results
