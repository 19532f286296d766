"""How the workers run: a turn of work, a pause, again, until told to stop.

Rules: a worker polls, so a wake-up may be missed; a turn that fails is logged with its worker's name and
tried again after a growing pause, never silently; a worker that was told to stop finishes its turn. A lost
database connection is opened anew when it is next needed. While the database is away every worker asks again
each second, so that all work goes on soon after it is back; the log has a line of each every ten seconds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import psycopg
import structlog
from psycopg.pq import TransactionStatus

from merchant_wallet.base import db
from merchant_wallet.base.db import is_database_away, is_transient_error

Connect = Callable[[], Awaitable[psycopg.AsyncConnection]]
Worker = Callable[[asyncio.Event], Awaitable[None]]

FIRST_RETRY_S: Final = 0.25
LAST_RETRY_S: Final = 30.0
AWAY_RETRY_S: Final = 1.0
"""The longest pause while the database is away."""
AWAY_LOG_INTERVAL_S: Final = 10.0

log = structlog.get_logger(__name__)


class WorkerConnection:
    """One database connection, opened when it is first needed and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: psycopg.AsyncConnection | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> psycopg.AsyncConnection:
        """The live connection. Raises `psycopg.OperationalError` when the database can't be reached."""
        async with self._opening:
            kept = self._connection
            if kept is None or not _is_usable(kept):
                self._connection = None
                if kept is not None:
                    await kept.close()
                self._connection = await self._connect()
            assert self._connection is not None
            return self._connection

    async def close(self) -> None:
        """Close the connection, if there is one."""
        async with self._opening:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None


def _is_usable(connection: psycopg.AsyncConnection) -> bool:
    if connection.closed:
        return False
    # A line may be shared: while another task is at work on the connection, it is that task's.
    busy = connection.lock.locked() or connection.info.transaction_status != TransactionStatus.IDLE
    return busy or db.is_open(connection)


def log_failure(logger: Any, event: str, error: Exception, **facts: object) -> None:
    """Log an error: with its trace, unless it passes by itself."""
    if is_transient_error(error):
        logger.warning(event, reason=" ".join(str(error).split()), **facts)
    else:
        logger.error(event, exc_info=error, **facts)


def retry_pause_s(failures: int) -> float:
    """How long to wait after this many failures in a row: doubling, up to half a minute."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * float(1 << min(failures, 16)))


async def repeat(
    name: str,
    turn: Callable[[], Awaitable[object]],
    *,
    stop: asyncio.Event,
    interval_s: float,
    wake: asyncio.Event | None = None,
) -> None:
    """Do `turn` every `interval_s` seconds, sooner when `wake` is set, until `stop` is set."""
    failures = FailureLog(name)
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        try:
            await turn()
        except Exception as error:
            # The loop must outlive whatever a turn meets; the log keeps the trace and the retry is bounded.
            await _pause(failures.note(error), stop)
        else:
            failures.end()
            await _pause(interval_s, stop, wake)


class FailureLog:
    """The failures in a row of one worker: how long to pause after each, and which to log."""

    def __init__(self, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._monotonic = monotonic
        self._count = 0
        self._away_logged_s: float | None = None

    def end(self) -> None:
        """The worker's turn succeeded."""
        if self._away_logged_s is not None:
            log.info("worker's turn succeeded again", worker=self._name, failures=self._count)
        self._count, self._away_logged_s = 0, None

    def note(self, error: Exception) -> float:
        """Log a failed turn, now and then while the database is away; gives the pause before the next."""
        self._count += 1
        away, now_s = is_database_away(error), self._monotonic()
        logged_s = self._away_logged_s
        if not away or logged_s is None or now_s - logged_s >= AWAY_LOG_INTERVAL_S:
            log_failure(log, "worker's turn failed", error, worker=self._name, failures=self._count)
            self._away_logged_s = now_s if away else None
        pause_s = retry_pause_s(self._count - 1)
        return min(AWAY_RETRY_S, pause_s) if away else pause_s


async def run_workers(workers: Sequence[Worker], stop: asyncio.Event) -> None:
    """Run workers side by side until all have stopped. One that raises stops the others; then that is raised.

    Raises ExceptionGroup when more than one raised.
    """
    errors = [
        error for error in await asyncio.gather(*(_run_one(worker, stop) for worker in workers)) if error
    ]
    if len(errors) > 1:
        raise ExceptionGroup("workers ended", errors)
    if errors:
        raise errors[0]


def start_after(ready: asyncio.Event, worker: Worker) -> Worker:
    """The worker, which begins when `ready` is set."""

    async def run(stop: asyncio.Event) -> None:
        stopped, begun = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(ready.wait())
        try:
            await asyncio.wait((stopped, begun), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            begun.cancel()
        if not stop.is_set():
            await worker(stop)

    return run


async def _run_one(worker: Worker, stop: asyncio.Event) -> Exception | None:
    try:
        await worker(stop)
    except Exception as error:
        # The others are stopped, not cancelled: they may be between a commit and what follows it.
        stop.set()
        return error
    return None


async def _pause(timeout_s: float, *events: asyncio.Event | None) -> None:
    """Wait until one of the events is set or the time is over."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events if event is not None]
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiting:
            waiter.cancel()
