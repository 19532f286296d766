"""Server-sent events: one query for all open pages, which are told about changes.

Rules:
- A stream ends when the server stops, when the browser leaves, when its session ends, and after `LIFETIME_S`.
  Then the browser reconnects.
- Sessions are checked every `CHECK_S`, all in one query.
- A heartbeat every `BEAT_S` says that the page shows the present state. There is none while its state can't
  be queried: a page that misses two says that it is not live.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from enum import Enum
from typing import Final, Generic, TypeVar

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from merchant_wallet.web.connections import Away

log = structlog.get_logger("live")

Key = TypeVar("Key", bound=Hashable)
State = TypeVar("State")
Ticket = TypeVar("Ticket", bound=Hashable)

LIFETIME_S: Final = 300.0
BEAT_S: Final = 5.0
"""The interval of heartbeats while the database answers."""
CHECK_S: Final = 5.0
"""A stream ends at most this long after its session, while the database answers."""
MAX_STREAMS: Final = 2_000
MAX_OF_ONE: Final = 16
"""The most streams of one key, so that nobody alone takes all streams."""

OPEN_ENDED: Final = "merchant_wallet.open_ended"
"""Marks, in its scope, a request whose answer goes on until the client leaves."""


class TooManyStreams(Exception):
    """This process follows as many pages as it can."""


class SessionEnded(Exception):
    """The session of a stream has ended."""


class _End(Enum):
    """Why the server ends a stream."""

    CLOSED = "closed"
    OVER = "over"


def write_event(name: str, text: str) -> str:
    """One event in the format of the stream."""
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {name}\n{lines}\n"


class Hub(Generic[Key, State, Ticket]):
    """Queries the state of all open pages every `interval_s`, and tells each page whose state has changed.

    `look` returns the present state of many keys together, without those that can't be queried now. `check`
    returns which of many tickets (what let the pages in) are still valid. When `is_ending` says that the
    server stops, every stream ends.
    """

    def __init__(
        self,
        look: Callable[[Sequence[Key]], Awaitable[Mapping[Key, State]]],
        check: Callable[[Sequence[Ticket]], Awaitable[Collection[Ticket]]],
        is_ending: Callable[[], bool],
        interval_s: float = 1.0,
    ) -> None:
        self._look = look
        self._check = check
        self._is_ending = is_ending
        self._interval_s = interval_s
        self._followers: dict[Key, dict[asyncio.Queue[State | _End], Ticket]] = {}
        self._known: dict[Key, State] = {}
        self._count = 0
        self._polling: asyncio.Task[None] | None = None
        self._polled_s: dict[Key, float] = {}
        self._closed = False

    def __len__(self) -> int:
        return self._count

    def follow(self, key: Key, ticket: Ticket) -> AsyncGenerator[State | None, None]:
        """The state now and whenever it changes. None is a heartbeat. Raises TooManyStreams before anything
        is sent.

        A heartbeat says that the last state is still true. Without a successful query there is none.

        Ends after `LIFETIME_S` and when the hub closes. Raises SessionEnded when the ticket is no
        longer valid. A caller that leaves earlier closes the generator.
        """
        if self._closed or self._count >= MAX_STREAMS or len(self._followers.get(key, ())) >= MAX_OF_ONE:
            raise TooManyStreams("as many pages are open as are followed here")
        return self._follow(key, ticket)

    async def _follow(self, key: Key, ticket: Ticket) -> AsyncGenerator[State | None, None]:
        queue: asyncio.Queue[State | _End] = asyncio.Queue(8)
        self._followers.setdefault(key, {})[queue] = ticket
        self._count += 1
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())
        if key in self._known and self._is_fresh(key):
            queue.put_nowait(self._known[key])
        ends = asyncio.get_running_loop().time() + LIFETIME_S
        was_told = False
        try:
            while asyncio.get_running_loop().time() < ends:
                try:
                    told = await asyncio.wait_for(queue.get(), BEAT_S)
                except TimeoutError:
                    if was_told and self._is_fresh(key):
                        yield None
                    continue
                if told is _End.OVER:
                    raise SessionEnded
                if isinstance(told, _End):
                    return
                was_told = True
                yield told
        finally:
            self._leave(key, queue)

    def _is_fresh(self, key: Key) -> bool:
        """Whether the last successful query of a key is at most one heartbeat old."""
        polled_s = self._polled_s.get(key)
        now_s = asyncio.get_running_loop().time()
        return polled_s is not None and now_s - polled_s <= BEAT_S + self._interval_s

    def _note_poll(self, keys: Iterable[Key]) -> None:
        """After a successful query of these keys: if there was a gap, send the state to the pages again."""
        now_s = asyncio.get_running_loop().time()
        for key in keys:
            if not self._is_fresh(key):
                self._known.pop(key, None)
            self._polled_s[key] = now_s

    def _leave(self, key: Key, queue: "asyncio.Queue[State | _End]") -> None:
        self._count -= 1
        del self._followers[key][queue]
        if not self._followers[key]:
            del self._followers[key]
            self._known.pop(key, None)
            self._polled_s.pop(key, None)

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        checked_s = loop.time()
        try:
            while self._followers:
                if self._is_ending():
                    self._end()
                    return
                try:
                    if loop.time() - checked_s >= CHECK_S:
                        await self._end_those_over()
                        checked_s = loop.time()
                    states = await self._look(list(self._followers))
                    self._note_poll(self._followers.keys() & states.keys())
                    self._publish(states)
                except Away as error:
                    self._polled_s.clear()
                    log.warning("open pages could not be told; trying again", reason=str(error))
                except Exception:
                    self._polled_s.clear()
                    log.exception("open pages could not be told; trying again")
                await asyncio.sleep(self._interval_s)
        finally:
            self._polling = None

    async def _end_those_over(self) -> None:
        asked = {ticket for queues in self._followers.values() for ticket in queues.values()}
        over = asked.difference(await self._check(list(asked)))
        for queues in self._followers.values():
            for queue, ticket in queues.items():
                if ticket in over:
                    _put(queue, _End.OVER)

    def _publish(self, states: Mapping[Key, State]) -> None:
        for key, state in states.items():
            if self._known.get(key) == state or key not in self._followers:
                continue
            self._known[key] = state
            for queue in self._followers[key]:
                _put(queue, state)

    def _end(self) -> None:
        self._closed = True
        for queues in self._followers.values():
            for queue in queues:
                _put(queue, _End.CLOSED)

    async def close(self) -> None:
        """End every stream."""
        self._end()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)


def _put(queue: asyncio.Queue[State | _End], told: State | _End) -> None:
    if queue.full():
        # A slow page needs only the newest state.
        queue.get_nowait()
    queue.put_nowait(told)


class EventStream(StreamingResponse):
    """A stream of events as a response. It ends when the client leaves."""

    def __init__(self, events: AsyncIterator[str], headers: Mapping[str, str]) -> None:
        super().__init__(
            events,
            headers={**headers, "x-accel-buffering": "no"},
            media_type="text/event-stream",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the events or the client end."""
        scope[OPEN_ENDED] = True
        await super().__call__(scope, receive, send)
