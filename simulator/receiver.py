"""The merchants' receiver of callbacks, which verifies each, and also refuses, hangs and answers oddly.

Rules: whatever it answers, it hands every genuine callback on. One that is not genuine is a finding. What was
not accepted must come again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final

from merchant_wallet_client import BadCallbackError, verify_callback
from merchant_wallet_client.callbacks import AnyCallback
from simulator.failure import Contradiction

HANG_S: Final = 12.0
"""Longer than the service waits."""
REFUSED_SHARE: Final = 0.12
BUSY: Final = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nbusy"
ACCEPTED: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsuccess"
ODD: Final = (
    BUSY,
    # More than it announces: what is left over must not answer the next callback on the connection.
    BUSY + ACCEPTED,
    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsuc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nsuccess: no!",
    b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 7\r\n\r\nsuccess",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"success\r\n\r\n",
)
"""Answers that accept nothing."""
Hear = Callable[[str, AnyCallback], None]


class Receiver:
    """Receives while it is open. `url(name)` is a merchant's notifyUrl."""

    def __init__(self, secrets: Mapping[str, str], hear: Hear, random: Random) -> None:
        """`secrets` are the merchants' callback secrets by name."""
        self._secrets = secrets
        self._hear = hear
        self._random = random
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self.is_honest = False
        """Whether it accepts everything at once."""
        self._refused: set[str] = set()
        self.owed: set[str] = set()
        """Events that were not accepted yet."""
        self.fault: Contradiction | None = None
        self.received = 0

    async def open(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    def url(self, name: str) -> str:
        """A merchant's notifyUrl."""
        assert self._server is not None, "open before it has a URL"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{name}"

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._handlers:
            task.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            # The sender may hang up at any time; it is a world of kills.
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Receive one callback. Returns whether the connection stays open."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in named}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self._receive(first.split(" ")[1].strip("/"), headers, body)
        event_id = headers.get("webhook-id", "")
        respond = self._choose_response(event_id)
        if respond == self._accept_it:
            self.owed.discard(event_id)
        else:
            self.owed.add(event_id)
        return await respond(writer)

    def _receive(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        self.received += 1
        try:
            self._hear(name, verify_callback(body, headers, self._secrets[name]))
        except BadCallbackError as error:
            self.fault = self.fault or Contradiction(f"a callback to {name} is not genuine: {error}")
        except Contradiction as error:
            self.fault = self.fault or error

    def _choose_response(self, event_id: str) -> Callable[[asyncio.StreamWriter], Awaitable[bool]]:
        """Each event is refused once at most: the service waits longer after each refusal."""
        chance = self._random.random()
        if self.is_honest or event_id in self._refused or chance >= REFUSED_SHARE:
            return self._accept_it
        self._refused.add(event_id)
        return (self._hang, self._hang_up, self._answer_oddly)[int(chance / REFUSED_SHARE * 3)]

    async def _accept_it(self, writer: asyncio.StreamWriter) -> bool:
        writer.write(ACCEPTED)
        await writer.drain()
        return True

    async def _answer_oddly(self, writer: asyncio.StreamWriter) -> bool:
        odd = self._random.choice(ODD)
        writer.write(odd)
        await writer.drain()
        # Of the others the sender can't know where they end.
        return odd.startswith(BUSY)

    async def _hang(self, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(HANG_S)
        return False

    async def _hang_up(self, writer: asyncio.StreamWriter) -> bool:
        writer.transport.abort()
        return False
