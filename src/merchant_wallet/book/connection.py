"""One database connection of the writer: libpq in pipeline mode on the event loop.

psycopg's cursors cost more than the statements that the writer sends. So this class uses psycopg's libpq
layer (`pq`) directly. Rules:
- Statements are prepared once, by name. Parameters and results are text.
- `run` sends all its statements with one sync and one flush, then waits for all their results.
- One task uses a connection at a time. A run without `BEGIN` is a transaction of its own.
- After a failed statement the caller rolls back the transaction that it began.
- After `ConnectionLost` only `close()` may be called.
- A server that does not answer in `ANSWER_S` is not waited for: callers get an answer within 6 s. A commit
  that a loaded disk delays so long costs its session, and is looked up (`committer`). The server ends a
  session that was given up while it waits for a lock, so none piles up there.
"""

import asyncio
import select
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg.errors import ConnectionTimeout
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from merchant_wallet.base import db, sqlstates
from merchant_wallet.base.hosts import Session, choose

T = TypeVar("T")
StatementCall = tuple[bytes, Sequence[bytes | None]]

# A plan that was made while a table was empty must not scan the table after it has grown. Every statement of
# a batch has an index to use, and a scan is never better. A bitmap costs more than the one row that it finds.
# PostgreSQL planned one for the nonces of a day whose partition was not analyzed yet.
# The check of the client costs nothing that was measured: in 80 interleaved pairs of 4,000 transfers with and
# without it, the processor time of a transfer, ours and the server's, differed by less than the noise of 2 %.
SESSION = """
set lock_timeout = '10s'; set statement_timeout = '20s'; set idle_in_transaction_session_timeout = '30s';
set jit = off; set plan_cache_mode = force_generic_plan; set enable_indexscan = on; set enable_nestloop = on;
set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_memoize = off;
set enable_material = off; set enable_bitmapscan = off; set client_connection_check_interval = '1s';
"""

APPLICATION_NAME: Final = "merchant-wallet writer"
CONNECT_TIMEOUT_S: Final = 5
ANSWER_S: Final = 4.5
"""The longest that the statements of one run take together."""
LOCK_WAIT_S: Final = 10.0
"""A run with `LOCK_BOOK` takes this much longer: the `lock_timeout` above."""
CHECK_FAILED: Final = b"23514"
NUL_REFUSED: Final = "22021"
"""The SQLSTATE that PostgreSQL gives for a character that its encoding does not have."""

BEGIN, COMMIT, ROLLBACK = b"begin", b"commit", b"rollback"
LOCK_BOOK: Final = b"lock_book"
"""The statement that waits for a book's lock."""
_CONTROL = {BEGIN: b"begin", COMMIT: b"commit", ROLLBACK: b"rollback"}


class ConnectionLost(Exception):
    """The connection broke or did not answer in time. Its last statements may have been executed or not."""


class NoAnswer(ConnectionLost):
    """The server did not answer in time. It is not asked again for the same commands."""


class StatementFailed(Exception):
    """The database refused a statement; `sqlstate` says why.

    `ends_session`: the error ended the session too. PostgreSQL may report it after it has executed the
    statement.
    `lacks_partition`: a row fits no partition of its table.
    """

    def __init__(
        self, sqlstate: str, text: str, *, ends_session: bool = False, lacks_partition: bool = False
    ) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.ends_session = ends_session
        self.lacks_partition = lacks_partition


class PipelineConnection:
    """A connection with its prepared statements."""

    def __init__(self, psycopg_connection: AsyncConnection[Any], timeout_s: float) -> None:
        self._psycopg_connection = psycopg_connection
        self._pgconn = psycopg_connection.pgconn
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._fd = self._pgconn.socket
        self._readiness = select.poll()
        self._readiness.register(self._fd, select.POLLIN)
        self._answered: asyncio.Future[None] | None = None
        self._results: list[PGresult] = []
        self._ended = False
        self._lost: BaseException | None = None
        self.is_broken = False
        self._session = Session(self._pgconn)

    @property
    def is_suspect(self) -> bool:
        """Whether a server at this address refused to write since it was opened. No new batches use it."""
        return self._session.is_suspect

    @classmethod
    async def open(
        cls,
        url: str,
        statements: Mapping[bytes, bytes],
        timeout_s: float = ANSWER_S,
        session: str = "",
        check: Callable[[AsyncConnection[Any]], Awaitable[None]] | None = None,
    ) -> "PipelineConnection":
        """Connect and prepare the statements, text by name. `session` overrides settings of `SESSION`,
        which come after those of every session.

        `check` looks at the new connection first. Raises ConnectionLost, and what `check` raises.
        """
        try:
            conninfo = db.complete_conninfo(url, APPLICATION_NAME, CONNECT_TIMEOUT_S)
            psycopg_connection = await AsyncConnection.connect(choose(conninfo), autocommit=True)
        except ConnectionTimeout as error:
            raise NoAnswer(str(error)) from error
        except OperationalError as error:
            raise ConnectionLost(str(error)) from error
        connection = cls(psycopg_connection, timeout_s)
        try:
            begun = connection._begin(conninfo, {**statements, **_CONTROL}, SESSION + session, check)
            await connection._with_deadline(begun)
        except NoAnswer as error:
            await connection.close()
            raise NoAnswer(f"{sqlstates.NO_SESSION} within {timeout_s:g} s") from error
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _begin(
        self,
        conninfo: str,
        statements: Mapping[bytes, bytes],
        session: str,
        check: Callable[[AsyncConnection[Any]], Awaitable[None]] | None,
    ) -> None:
        await db.begin_session(self._psycopg_connection, conninfo)
        await self._psycopg_connection.execute(session.encode())
        if check is not None:
            await check(self._psycopg_connection)
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._fd, self._read)
        await self._prepare(statements)

    async def close(self) -> None:
        """Close the connection. The database rolls back an open transaction."""
        self._lose(OperationalError("the connection was closed"))
        await self._psycopg_connection.close()

    def _expire(self) -> None:
        """The time is over. If this process stood still meanwhile, the answer may have come unread."""
        answered = self._answered
        if answered is not None and not answered.done():
            self._read()
        if answered is None or not answered.done():
            self._lose(TimeoutError("no answer in time"))

    def _lose(self, reason: BaseException) -> None:
        """Mark the connection as lost, and fail the run that waits.

        After libpq has closed the socket, another connection may reuse its number. So it is forgotten here.
        """
        self.is_broken = True
        self._lost = self._lost or reason
        if isinstance(reason, TimeoutError):
            # While a session begins, psycopg itself waits.
            self._session.cut()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._fd = -1
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(OperationalError(str(self._lost)))

    async def run(self, calls: Sequence[StatementCall]) -> list[PGresult]:
        """Send the statements in order and wait for their results.

        Without `BEGIN` they are one transaction, which commits after the last one (PostgreSQL's
        documentation, 54.2.4 Pipelining).
        Raises StatementFailed for the first statement that failed; the ones after it are not executed. Raises
        ConnectionLost when the connection breaks, and NoAnswer when the time runs out.
        """
        waits_s = LOCK_WAIT_S if any(name == LOCK_BOOK for name, _ in calls) else 0.0
        try:
            return await self._with_deadline(self._exchange(calls), waits_s)
        except StatementFailed as failure:
            if failure.sqlstate in sqlstates.SUSPECT:
                self._session.note_refusal()
            raise

    async def _with_deadline(self, work: Coroutine[object, object, T], waits_s: float = 0.0) -> T:
        limit_s = self._timeout_s + waits_s
        alarm = self._loop.call_later(limit_s, self._expire)
        try:
            return await work
        except (OperationalError, OSError) as error:
            self._lose(error)
            if isinstance(self._lost, TimeoutError):
                raise NoAnswer(str(error)) from error
            raise ConnectionLost(str(error)) from error
        except asyncio.CancelledError as error:
            self._lose(error)
            raise
        finally:
            alarm.cancel()

    async def _exchange(self, calls: Sequence[StatementCall]) -> list[PGresult]:
        for _, parameters in calls:
            # libpq would cut the text at the NUL.
            if b"\0" in b"".join(filter(None, parameters)):
                raise StatementFailed(NUL_REFUSED, "a parameter holds a NUL")
        for name, parameters in calls:
            self._pgconn.send_query_prepared(name, parameters)
        return _check(await self._sync())

    async def _prepare(self, statements: Mapping[bytes, bytes]) -> None:
        for name, text in statements.items():
            self._pgconn.send_prepare(name, text)
        _check(await self._sync())

    async def _sync(self) -> list[PGresult]:
        """Send the sync and wait for the results. Raises OperationalError once the connection is lost."""
        if self._lost is not None:
            raise OperationalError(str(self._lost))
        self._pgconn.pipeline_sync()
        self._results, self._answered = [], self._loop.create_future()
        self._flush()
        await self._answered
        return self._results

    def _flush(self) -> None:
        """Send what the socket takes. The rest is sent when the socket is writable again."""
        try:
            more = self._pgconn.flush()
        except OperationalError as error:
            self._lose(error)
            return
        if more:
            self._loop.add_writer(self._fd, self._flush)
        else:
            self._loop.remove_writer(self._fd)

    def _read(self) -> None:
        # Read everything that is there. uvloop reports a socket that ended with an error only once. The end
        # of the stream follows the server's last message, so it must be read now.
        try:
            self._pgconn.consume_input()
            while self._readiness.poll(0):
                self._pgconn.consume_input()
            self._collect()
        except OperationalError as error:
            self._lose(error)

    def _collect(self) -> None:
        """Take the results that have arrived. Raises OperationalError when the session has ended."""
        pgconn, answered = self._pgconn, self._answered
        while answered is not None and not answered.done() and not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                # The first None ends a statement's results. A second None without a sync means that nothing
                # more will come: the server's last message was that it ends the session.
                if self._ended:
                    raise OperationalError(_last_error(self._results))
                self._ended = True
                continue
            self._ended = False
            if result.status == ExecStatus.PIPELINE_SYNC:
                answered.set_result(None)
            else:
                self._results.append(result)


def _last_error(results: Sequence[PGresult]) -> str:
    said = results[-1].error_message.decode(errors="replace").strip() if results else ""
    return said or "the connection ended"


def _check(results: list[PGresult]) -> list[PGresult]:
    """Return the results. Raises StatementFailed if one is an error; those after it were not executed."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            sqlstate = result.error_field(DiagnosticField.SQLSTATE) or b""
            text = result.error_message.decode(errors="replace").strip()
            ends = result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) != b"ERROR"
            # A row without a partition is reported like a failed check, but without a constraint's name.
            named = result.error_field(DiagnosticField.CONSTRAINT_NAME)
            unrouted = sqlstate == CHECK_FAILED and not named
            raise StatementFailed(sqlstate.decode(), text, ends_session=ends, lacks_partition=unrouted)
    return results
