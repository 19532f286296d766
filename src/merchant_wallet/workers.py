"""How the workers run: a turn of work, a pause, again, until told to stop.

Rules: a worker polls, so a wake-up may be missed; a turn that fails is logged with its worker's name and
tried again after a growing pause, never silently; a worker that was told to stop finishes its turn. A lost
database connection is opened anew when it is next needed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psycopg
import structlog

Connect = Callable[[], Awaitable[psycopg.AsyncConnection]]
Worker = Callable[[asyncio.Event], Awaitable[None]]

FIRST_RETRY_S: Final = 0.25
LAST_RETRY_S: Final = 30.0

log = structlog.get_logger(__name__)


class Line:
    """One database connection, opened when it is first needed and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: psycopg.AsyncConnection | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> psycopg.AsyncConnection:
        """The live connection. Raises `psycopg.OperationalError` when the database can't be reached."""
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect()
            return self._connection

    async def close(self) -> None:
        """Close the connection, if there is one."""
        async with self._opening:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None


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
    failures = 0
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        try:
            await turn()
            failures = 0
        except Exception:
            # The loop must outlive whatever a turn meets; the log keeps the trace and the retry is bounded.
            log.exception("worker's turn failed", worker=name, failures=failures + 1)
            failures += 1
        pause_s = retry_pause_s(failures - 1) if failures else interval_s
        await _pause(pause_s, stop, None if failures else wake)


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


def begin_after(ready: asyncio.Event, worker: Worker) -> Worker:
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
