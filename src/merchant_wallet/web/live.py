"""Server-sent events: a page is told while it is open, by one look at the database for all that are open.

Rules: a stream ends when the server stops, when the browser leaves, when the session that opened it is over,
and by itself after `LIFETIME_S`; the browser then comes back by itself. Sessions are looked at every
`CHECK_S`, all in one question. A beat tells every `BEAT_S` that what the page shows is as it is now. There is
none while nothing can be looked at: a page that misses two says that it is not live.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
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
"""A page hears a beat this often while the service can look at the database."""
CHECK_S: Final = 5.0
"""So long after a session's end at most a stream goes on, while the database answers."""
MAX_STREAMS: Final = 2_000
MAX_OF_ONE: Final = 16
"""So many pages of one key are followed, so that nobody alone takes all streams."""

OPEN_ENDED: Final = "merchant_wallet.open_ended"
"""Stands in the scope of a request whose answer goes on until the client leaves."""


class TooMany(Exception):
    """As many pages are open as this process follows."""


class Over(Exception):
    """The session that opened a stream is over."""


class _End(Enum):
    """Why a stream ends that nobody has left."""

    CLOSED = "closed"
    OVER = "over"


def write_event(name: str, text: str) -> str:
    """One event in the stream's form."""
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {name}\n{lines}\n"


class Hub(Generic[Key, State, Ticket]):
    """Looks every `interval_s` at all that open pages show, and tells each page whose state has changed.

    `look` gives the present state of many keys in one question, `check` which of many tickets, what let the
    pages in, still hold. Once `is_ending` says that the server stops, every stream ends.
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
        self._looking: asyncio.Task[None] | None = None
        self._looked_s: float | None = None
        self._closed = False

    def __len__(self) -> int:
        return self._count

    def follow(self, key: Key, ticket: Ticket) -> AsyncGenerator[State | None, None]:
        """The state now and whenever it changes; None is a beat. Raises TooMany, before anything is answered.

        A beat says that the last state still holds; without a look that succeeded there is none.

        Ends after `LIFETIME_S` and when the hub closes, and raises Over once the ticket holds no more;
        whoever leaves before that closes it.
        """
        if self._closed or self._count >= MAX_STREAMS or len(self._followers.get(key, ())) >= MAX_OF_ONE:
            raise TooMany("as many pages are open as are followed here")
        return self._follow(key, ticket)

    async def _follow(self, key: Key, ticket: Ticket) -> AsyncGenerator[State | None, None]:
        queue: asyncio.Queue[State | _End] = asyncio.Queue(8)
        self._followers.setdefault(key, {})[queue] = ticket
        self._count += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking())
        if key in self._known and self._is_fresh():
            queue.put_nowait(self._known[key])
        ends = asyncio.get_running_loop().time() + LIFETIME_S
        was_told = False
        try:
            while asyncio.get_running_loop().time() < ends:
                try:
                    told = await asyncio.wait_for(queue.get(), BEAT_S)
                except TimeoutError:
                    if was_told and self._is_fresh():
                        yield None
                    continue
                if told is _End.OVER:
                    raise Over
                if isinstance(told, _End):
                    return
                was_told = True
                yield told
        finally:
            self._leave(key, queue)

    def _is_fresh(self) -> bool:
        """Whether what is known was looked at within the last beat."""
        now_s = asyncio.get_running_loop().time()
        return self._looked_s is not None and now_s - self._looked_s <= BEAT_S + self._interval_s

    def _note_look(self) -> None:
        """A look succeeded. After a gap everybody is told again: who came meanwhile was told nothing."""
        if not self._is_fresh():
            self._known.clear()
        self._looked_s = asyncio.get_running_loop().time()

    def _leave(self, key: Key, queue: "asyncio.Queue[State | _End]") -> None:
        self._count -= 1
        del self._followers[key][queue]
        if not self._followers[key]:
            del self._followers[key]
            self._known.pop(key, None)

    async def _keep_looking(self) -> None:
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
                    self._note_look()
                    self._tell(states)
                except Away as error:
                    self._looked_s = None
                    log.warning("open pages could not be told; trying again", reason=str(error))
                except Exception:
                    self._looked_s = None
                    log.exception("open pages could not be told; trying again")
                await asyncio.sleep(self._interval_s)
        finally:
            self._looking = None

    async def _end_those_over(self) -> None:
        asked = {ticket for queues in self._followers.values() for ticket in queues.values()}
        over = asked.difference(await self._check(list(asked)))
        for queues in self._followers.values():
            for queue, ticket in queues.items():
                if ticket in over:
                    _put(queue, _End.OVER)

    def _tell(self, states: Mapping[Key, State]) -> None:
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
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)


def _put(queue: asyncio.Queue[State | _End], told: State | _End) -> None:
    if queue.full():
        # Whoever is behind needs the newest, not every one.
        queue.get_nowait()
    queue.put_nowait(told)


class EventStream(StreamingResponse):
    """A stream of events as an answer; nobody is waited for who has left."""

    def __init__(self, events: AsyncIterator[str], headers: Mapping[str, str]) -> None:
        super().__init__(
            events,
            headers={**headers, "x-accel-buffering": "no"},
            media_type="text/event-stream",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer until the events or the client end."""
        scope[OPEN_ENDED] = True
        await super().__call__(scope, receive, send)
