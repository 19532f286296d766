"""The loop of a worker: a turn of work, a pause, and again, until it is told to stop.

Rules:
- A worker polls, so it may miss a wake-up.
- A failed turn is logged with the worker's name and repeated after a growing pause.
- A worker that is told to stop finishes its turn.
- A lost database connection is opened again when it is next needed.
- While the database is away, every worker tries again each second, so work continues soon after it is back.
  The log gets one line per worker every ten seconds.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
import structlog
from psycopg.pq import TransactionStatus
from structlog.contextvars import bound_contextvars

from merchant_wallet.base import db
from merchant_wallet.base.bell import Bell, current_bell
from merchant_wallet.base.db import is_database_away, is_transient_error
from merchant_wallet.base.sqlstates import explain, explain_refusal

Connect = Callable[[], Awaitable[psycopg.AsyncConnection]]
Worker = Callable[[asyncio.Event], Awaitable[None]]

FIRST_RETRY_S: Final = 0.25
LAST_RETRY_S: Final = 30.0
IDLE_TURNS: Final = 10
AWAY_RETRY_S: Final = 1.0
"""The longest pause while the database is away."""
AWAY_LOG_INTERVAL_S: Final = 10.0

log = structlog.get_logger(__name__)


class WorkerConnection:
    """One database connection. It is opened when it is first needed, and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: psycopg.AsyncConnection | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> psycopg.AsyncConnection:
        """The open connection. Raises `psycopg.OperationalError` if the database can't be reached."""
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
        """Close the connection, if it is open."""
        async with self._opening:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None


def _is_usable(connection: psycopg.AsyncConnection) -> bool:
    if connection.closed:
        return False
    # Several tasks may share the connection. While one of them uses it, it counts as usable.
    busy = connection.lock.locked() or connection.info.transaction_status != TransactionStatus.IDLE
    return busy or db.is_open(connection)


def log_failure(logger: Any, event: str, error: Exception, **facts: object) -> None:
    """Log an error, with its traceback unless it is transient or the database's."""
    if is_transient_error(error):
        text = describe_error(error)
        # What libpq says of a refused connection has no SQLSTATE.
        refusal = explain_refusal(text) if isinstance(error, psycopg.OperationalError) else None
        logger.warning(event, reason=str(refusal.quote(text)) if refusal else text, **facts)
    else:
        log_error(logger, event, error, **facts)


def log_error(logger: Any, event: str, error: BaseException, **facts: object) -> None:
    """Log an error: what it means, if rights, resources or the server of the database are its cause.

    Others are faults of ours, and have their traceback.
    """
    if found := explain(getattr(error, "sqlstate", None) or ""):
        logger.error(event, reason=str(found.quote(str(error))), **facts)
    else:
        logger.error(event, exc_info=error, **facts)


def describe_error(error: Exception) -> str:
    """What an operator reads about an error, in one line. The log has the rest."""
    text = " ".join(str(error).split())
    return text or ("timeout" if isinstance(error, TimeoutError) else type(error).__name__)


@asynccontextmanager
async def limit_time(timeout_s: float, what: str) -> AsyncIterator[None]:
    """Cancel what runs in the context after this time. Raises TimeoutError, whose text begins with `what`."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(f"{what} within {timeout_s:g} s") from error


def compute_retry_pause_s(failures: int) -> float:
    """How long to wait after this many failures in a row: doubling, up to half a minute."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * float(1 << min(failures, 16)))


async def repeat(
    name: str,
    turn: Callable[[], Awaitable[object]],
    *,
    stop: asyncio.Event,
    interval_s: float,
    wake: asyncio.Event | None = None,
    rest_s: float = 0.0,
) -> None:
    """Run `turn` every `interval_s` seconds, sooner if `wake` is set, until `stop` is set.

    With `rest_s` and a bell the pauses are that long while `turn` returns nothing that counts as true.
    Log lines of its turns, and of tasks that they start, have the worker's name.
    """
    bell = current_bell.get() if rest_s > interval_s else None
    rung = asyncio.Event()
    if bell is not None:
        bell.add(rung)
    try:
        with bound_contextvars(worker=name):
            await _repeat(FailureLog(name), turn, stop, Pauses(interval_s, rest_s, bell, rung), wake)
    finally:
        if bell is not None:
            bell.remove(rung)


class Pauses:
    """The pauses of a worker: after `IDLE_TURNS` turns that found nothing, it rests until the bell rings."""

    def __init__(self, interval_s: float, rest_s: float, bell: Bell | None, rung: asyncio.Event) -> None:
        self.interval_s = interval_s
        self.rung = rung
        self._rest_s = rest_s
        self._bell = bell
        self._idle_turns = 0

    def find_rest_s(self, has_worked: bool) -> float:
        """How much longer than the interval to pause after a turn."""
        if has_worked or self.rung.is_set() or self._bell is None or not self._bell.is_heard:
            self._idle_turns = 0
        else:
            self._idle_turns += 1
        return self._rest_s - self.interval_s if self._idle_turns >= IDLE_TURNS else 0.0


async def _repeat(
    failures: "FailureLog",
    turn: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    pauses: Pauses,
    wake: asyncio.Event | None,
) -> None:
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        pauses.rung.clear()
        try:
            has_worked = bool(await turn())
        except Exception as error:
            # The loop must survive any error of a turn. The log gets the traceback, and the retry is delayed.
            await wait_for_any(stop, timeout_s=failures.note(error))
        else:
            failures.end()
            await wait_for_any(stop, wake, timeout_s=pauses.interval_s)
            rest_s = pauses.find_rest_s(has_worked)
            if rest_s > 0 and not (wake is not None and wake.is_set()):
                await wait_for_any(stop, wake, pauses.rung, timeout_s=rest_s)


async def repeat_until(
    name: str, turn: Callable[[], Awaitable[bool]], *, stop: asyncio.Event, interval_s: float
) -> None:
    """Run `turn` every `interval_s` seconds until it returns True, or `stop` is set."""
    done = asyncio.Event()

    async def look() -> None:
        if await turn():
            done.set()

    async def pass_on() -> None:
        await stop.wait()
        done.set()

    passing = asyncio.create_task(pass_on())
    try:
        await repeat(name, look, stop=done, interval_s=interval_s)
    finally:
        passing.cancel()


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
        """Log a failed turn and return the pause. While the database is away, log only from time to time."""
        self._count += 1
        away, now_s = is_database_away(error), self._monotonic()
        logged_s = self._away_logged_s
        if not away or logged_s is None or now_s - logged_s >= AWAY_LOG_INTERVAL_S:
            log_failure(log, "worker's turn failed", error, worker=self._name, failures=self._count)
            self._away_logged_s = now_s if away else None
        pause_s = compute_retry_pause_s(self._count - 1)
        return min(AWAY_RETRY_S, pause_s) if away else pause_s


async def run_workers(workers: Sequence[Worker], stop: asyncio.Event) -> None:
    """Run workers concurrently until all have stopped. If one raises, the others stop, then it is raised.

    Raises ExceptionGroup if more than one raised.
    """
    errors = [
        error for error in await asyncio.gather(*(_run_one(worker, stop) for worker in workers)) if error
    ]
    if len(errors) > 1:
        raise ExceptionGroup("workers ended", errors)
    if errors:
        raise errors[0]


def start_after(ready: asyncio.Event, worker: Worker) -> Worker:
    """A worker that starts when `ready` is set."""

    async def run(stop: asyncio.Event) -> None:
        await wait_for_any(stop, ready)
        if not stop.is_set():
            await worker(stop)

    return run


async def _run_one(worker: Worker, stop: asyncio.Event) -> Exception | None:
    try:
        await worker(stop)
    except Exception as error:
        # The others are stopped, not cancelled: one may be between a commit and what follows it.
        stop.set()
        return error
    return None


async def wait_for_any(*events: asyncio.Event | None, timeout_s: float | None = None) -> None:
    """Wait until one of the events is set, or the time has passed."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events if event is not None]
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiting:
            waiter.cancel()
