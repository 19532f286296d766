"""A merchant's endpoint: a real HTTP server on loopback that records requests and misbehaves on demand."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Writer = asyncio.StreamWriter
Behaviour = Callable[["Received", Writer], Awaitable[None]]


@dataclass(frozen=True)
class Received:
    """One request as it arrived. Header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """The body's fields."""
        fields: dict[str, Any] = json.loads(self.body)
        return fields

    @property
    def event_id(self) -> str:
        """The event's id."""
        return str(self.fields["eventId"])

    @property
    def host(self) -> str:
        """The host name of the request, without a port."""
        return self.headers["host"].partition(":")[0]


def answer(status: int = 200, body: bytes = b"success", extra: str = "") -> Behaviour:
    """Answers correctly with this status and body."""

    async def behave(request: Received, writer: Writer) -> None:
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        writer.write(head.encode() + body)

    return behave


async def hang(request: Received, writer: Writer) -> None:
    """Never answers."""
    await asyncio.Event().wait()


def raw(*pieces: bytes, again: bytes = b"") -> Behaviour:
    """Sends these bytes, then repeats one piece for ever if there is one."""

    async def behave(request: Received, writer: Writer) -> None:
        for piece in pieces:
            writer.write(piece)
        while again:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0.001)

    return behave


@dataclass
class Receiver:
    """The endpoint. It answers by `behaviours` of the host name, else by `behave`. `received` has every
    request.
    """

    port: int = 0
    behave: Behaviour = field(default_factory=answer)
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    running: Counter[str] = field(default_factory=Counter)
    max_running: Counter[str] = field(default_factory=Counter)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def events(self) -> list[str]:
        """The events' ids, in the order of arrival."""
        return [request.event_id for request in self.received]

    def url(self, host: str = "shop.test", path: str = "/notify") -> str:
        """A notifyUrl that leads here."""
        return f"http://{host}:{self.port}{path}"

    async def next_request(self, timeout_s: float = 0.2) -> None:
        """Wait until a request arrives, at most this long."""
        self.came.clear()
        try:
            await asyncio.wait_for(self.came.wait(), timeout_s)
        except TimeoutError:
            return

    async def handle(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        try:
            request = await _read(reader)
            self.received.append(request)
            self.came.set()
            host = request.host
            self.running[host] += 1
            self.max_running[host] = max(self.max_running[host], self.running[host])
            try:
                await self.behaviours.get(host, self.behave)(request, writer)
                await writer.drain()
            finally:
                self.running[host] -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # The other side went away, as it may.
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(line, headers, body)


@asynccontextmanager
async def open_receiver(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver that listens until the block ends. Connections that are open then are cut."""
    receiver = Receiver()
    async with listen(receiver.handle, tls) as receiver.port:
        yield receiver


@asynccontextmanager
async def listen(
    handle: Callable[[asyncio.StreamReader, Writer], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """The port of a server that listens until the block ends. Connections that are open then are cut."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handle(reader, writer)
        except asyncio.CancelledError:
            return  # The test is over.
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
