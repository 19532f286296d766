"""Programs that are killed or frozen at a step, inside the test's own process.

A step is a statement of a psycopg connection, and whatever else passes `around`. Each has two points, before
and after it. At the point of its death a program raises `Killed`, which no code of the product catches, and
its sockets are shut: PostgreSQL sees the same as after a kill. From then on each step raises `Killed`, so the
program's own clean-up does nothing. A frozen program waits at its point, with all that it began, until it is
resumed.

What a program awaits and starts belongs to it, by its context. The other tasks of the test do not notice. One
real SIGKILL for each state machine shows that a dead process leaves nothing else (see `fork_server`).
"""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
import pytest

from merchant_wallet.base import db
from merchant_wallet.base.session_settings import SETTINGS

Result = TypeVar("Result")
Work = Coroutine[Any, Any, object]
IsDue = Callable[[str, str], bool]
"""Asked at each point, in order: `before` or `after`, and the step. True where it ends or freezes."""


_SESSION_BEGINS: Final = f"select pg_catalog.set_config('{next(iter(SETTINGS))}', ".encode()
_READS: Final = re.compile(
    r"\s*(?:set |create temp |select (?!.*(?:add_|allocate|pg_create_|pg_drop_|pg_terminate_)))", re.DOTALL
)
"""Statements that leave nothing after a kill. Functions that change something have these names."""


class Killed(BaseException):
    """The program is dead."""


class Point(NamedTuple):
    """The point before a statement: a part of its text, and how often it was begun before."""

    text: str
    earlier: int = 0

    def __str__(self) -> str:
        return f"{self.text} ({self.earlier})"

    def make_test(self) -> IsDue:
        """Recognises the point."""
        begun = 0

        def is_due(when: str, step: str) -> bool:
            nonlocal begun
            begun += when == "before" and self.text in step
            return when == "before" and self.text in step and begun == self.earlier + 1

        return is_due


def before_change(number: int) -> IsDue:
    """Recognises the point before the statement of this number that changes something. The first is 1.

    A kill before a statement that only reads leaves the same as one before the next change.
    """
    begun = 0

    def is_due(when: str, step: str) -> bool:
        nonlocal begun
        if when == "after" or _READS.match(step):
            return False
        begun += 1
        return begun == number

    return is_due


def at_step(point: str) -> IsDue:
    """Recognises the point by the number of its step: `before 1`, `after 1`, `before 2` and so on."""
    begun = 0

    def is_due(when: str, _: str) -> bool:
        nonlocal begun
        begun += when == "before"
        return f"{when} {begun}" == point

    return is_due


class Program:
    """A program in this process, up to its end or its point."""

    def __init__(self, is_due: IsDue) -> None:
        self.is_dead = False
        self._is_due = is_due
        self._connections: list[psycopg.AsyncConnection[Any]] = []
        self._frozen: asyncio.Event | None = None
        self._resumed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def run_to_death(self, work: Work) -> bool:
        """Run it until it is killed. False if it came to its end before."""
        with _steps_are_watched():
            self._task = asyncio.create_task(self._own(work))
            try:
                await self._task
            except BaseException:
                if not self.is_dead:
                    raise
            finally:
                await self._close()
        return self.is_dead

    def run_command(self, command: Callable[[], object]) -> bool:
        """Run a command, with its event loops, until it is killed. False if it came to its end before."""
        with _steps_are_watched():
            try:
                copy_context().run(lambda: (_program.set(self), command()))
            except BaseException:
                if not self.is_dead:
                    raise
            finally:
                for connection in self._connections:
                    connection.pgconn.finish()
        return self.is_dead

    @asynccontextmanager
    async def frozen(self, work: Work) -> AsyncIterator["Program"]:
        """Run it until it is frozen. It is killed at the end, unless it was resumed."""
        self._frozen = asyncio.Event()
        with _steps_are_watched():
            self._task = asyncio.create_task(self._own(work))
            try:
                reached = asyncio.create_task(self._frozen.wait())
                await asyncio.wait([self._task, reached], return_when=asyncio.FIRST_COMPLETED)
                assert self._frozen.is_set(), "the program never came to its point"
                yield self
            finally:
                reached.cancel()
                self.is_dead = True
                await self.resume()
                await self._close()

    async def resume(self) -> BaseException | None:
        """Let a frozen program go on. Returns the error that ended it, if one did."""
        assert self._task is not None
        self._resumed.set()
        await asyncio.wait([self._task])
        return self._task.exception()

    async def around(self, step: str, take: Callable[[], Awaitable[Result]]) -> Result:
        """Take a step. Raises Killed."""
        await self._reach("before", step)
        done = await take()
        await self._reach("after", step)
        return done

    def take(self, step: str, take: Callable[[], Result]) -> Result:
        """Take a step of code that is not asynchronous. Raises Killed."""
        self._die_if_due("before", step)
        done = take()
        self._die_if_due("after", step)
        return done

    def own(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """The connection is the program's."""
        if connection not in self._connections:
            self._connections.append(connection)

    def require_life(self) -> None:
        """Raises Killed if the program is dead."""
        if self.is_dead:
            raise Killed

    async def _own(self, work: Work) -> None:
        _program.set(self)
        await work

    async def _reach(self, when: str, step: str) -> None:
        if self._frozen is None:
            self._die_if_due(when, step)
            return
        if not self._frozen.is_set() and self._is_due(when, step):
            self._frozen.set()
        if self._frozen.is_set():
            await self._resumed.wait()
        self.require_life()

    def _die_if_due(self, when: str, step: str) -> None:
        if not self.is_dead and self._is_due(when, step):
            self._die()
        self.require_life()

    def _die(self) -> None:
        self.is_dead = True
        for connection in self._connections:
            _shut(connection)

    async def _close(self) -> None:
        for connection in self._connections:
            await connection.close()


class OwnProcess(Program):
    """A program with a process of its own, which kills itself."""

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


_program: ContextVar[Program | None] = ContextVar("_program", default=None)


def find_program() -> Program | None:
    """The program that runs this code."""
    return _program.get()


async def around(step: str, take: Callable[[], Awaitable[Result]]) -> Result:
    """Take a step of the program that runs this. Raises Killed."""
    program = find_program()
    assert program is not None
    return await program.around(step, take)


def make_step(step: str, do: Callable[..., Awaitable[Result]]) -> Callable[..., Awaitable[Result]]:
    """A function whose calls are a step of the program that runs them."""

    async def take(*given: Any, **named: Any) -> Result:
        return await around(step, partial(do, *given, **named))

    return take


@contextmanager
def no_steps() -> Iterator[None]:
    """What a program does first, and is not tried."""
    token = _program.set(None)
    try:
        yield
    finally:
        _program.reset(token)


async def run_killed(work: Work, is_due: IsDue) -> bool:
    """Run a program that is killed at its point. False if it came to its end before."""
    return await Program(is_due).run_to_death(work)


def _shut(connection: psycopg.AsyncConnection[Any]) -> None:
    """End the connection as the system does it for a process that is killed."""
    if connection.closed:
        return
    with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def _steps_are_watched() -> Iterator[None]:
    execute = db.Cursor.execute

    async def step(self: db.Cursor, query: Any, *arguments: Any, **options: Any) -> db.Cursor:
        program = find_program()
        if program is None:
            return await execute(self, query, *arguments, **options)
        program.own(self.connection)
        if isinstance(query, bytes) and query.startswith(_SESSION_BEGINS):
            # Opening a connection is no step. The dead open none.
            program.require_life()
            return await execute(self, query, *arguments, **options)
        text = read_text(query, self.connection)
        return await program.around(text, lambda: execute(self, query, *arguments, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(db.Cursor, "execute", step)
        yield


def read_text(query: Any, connection: Any) -> str:
    """The text of a statement."""
    if isinstance(query, bytes):
        return query.decode()
    return query if isinstance(query, str) else str(query.as_string(connection))
