"""A proxy between the service and PostgreSQL that cuts connections at an exact message.

It parses both directions message by message (PostgreSQL's frontend/backend protocol, version 3), listens on a
unix socket in its own folder, and follows its orders in sequence, one for each matching statement.
"""

import asyncio
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

Act = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Order:
    """Cut at the next execution of a prepared statement: before the server sees it, or after it was done.

    A run of `write_books` alone commits at its sync, which is the `commit` of this run.
    `first` is awaited right before the cut. So many executions pass before, on any connection: `passing`.
    """

    statement: bytes = b"commit"
    done: bool = False
    first: Act | None = None
    passing: int = 0


class CuttingProxy:
    """`url` leads to the database through the proxy. `cut` gives it orders."""

    def __init__(self, url: str, folder: Path) -> None:
        host = parse_qs(urlsplit(url).query)["host"][0]
        self._target = f"{host}/.s.PGSQL.5432"
        self._path = folder / ".s.PGSQL.5432"
        self.url = url.replace(quote(host, safe=""), quote(str(folder), safe=""))
        self._orders: deque[Order] = deque()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.cuts = 0

    def freeze(self) -> None:
        """Accept connections and carry nothing, as a server that stands still."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Carry again what waits."""
        self._flowing.set()

    async def until_flowing(self) -> None:
        """Wait until messages are carried."""
        await self._flowing.wait()

    def cut(self, *orders: Order) -> None:
        """Add orders, to be followed after the earlier ones."""
        self._orders.extend(orders)

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def refuse(self) -> None:
        """Accept no more connections, as if nothing listened. Open ones stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Accept no more connections, and end the open ones."""
        await self.refuse()
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        wire = _Wire(self, reader, writer, server_reader, server_writer)
        self._writers |= {writer, server_writer}
        try:
            await wire.run()
            if wire.order is not None:
                self.cuts += 1
                if wire.order.first is not None:
                    await wire.order.first()
        finally:
            for end in (writer, server_writer):
                end.close()
                with suppress(OSError):
                    await end.wait_closed()
                self._writers.discard(end)

    def match(self, statement: bytes) -> Order | None:
        """Take the next order if it is about this statement."""
        if not self._orders or self._orders[0].statement != statement:
            return None
        order = self._orders.popleft()
        if order.passing:
            self._orders.appendleft(replace(order, passing=order.passing - 1))
            return None
        return order


class _Wire:
    """One connection through the proxy."""

    def __init__(
        self,
        proxy: CuttingProxy,
        client_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
    ) -> None:
        self._cutter = proxy
        self._client_in, self._client_out = client_in, client_out
        self._server_in, self._server_out = server_in, server_out
        self.order: Order | None = None

    async def run(self) -> None:
        """Forward messages both ways until either side ends or an order was followed."""
        ways = {asyncio.create_task(self._carry_up()), asyncio.create_task(self._carry_down())}
        _, waiting = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        if self.order is not None and self.order.done and waiting:
            # The statement is on its way to the server. The other direction ends after the server's answer.
            _, waiting = await asyncio.wait(ways)
        for way in waiting:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _carry_up(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await self._client_in.readexactly(4)
            rest = await self._client_in.readexactly(int.from_bytes(head, "big") - 4)
            await self._cutter.until_flowing()
            self._server_out.write(head + rest)
            bound = b""
            while True:
                kind, message = await _read_message(self._client_in)
                await self._cutter.until_flowing()
                statement = None
                if kind == b"B":
                    bound = statement = _statement_of(message)
                elif kind == b"S" and bound == b"write_books":
                    statement = b"commit"
                if statement is not None and (order := self._cutter.match(statement)):
                    self.order = order
                    if not order.done:
                        await self._server_out.drain()
                        return
                self._server_out.write(message)
                if self.order is not None and kind == b"S":
                    return

    async def _carry_down(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                kind, message = await _read_message(self._server_in)
                await self._cutter.until_flowing()
                if self.order is None:
                    self._client_out.write(message)
                elif kind == b"Z":
                    return


async def _read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


def _statement_of(bind: bytes) -> bytes:
    """The name of the prepared statement in a Bind message: it follows the portal's name."""
    return bind[5:].split(b"\0", 2)[1]


@asynccontextmanager
async def cutting(url: str) -> AsyncIterator[CuttingProxy]:
    """A proxy in front of the database of `url`."""
    folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-cut-"))
    proxy = CuttingProxy(url, folder)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
        await asyncio.sleep(0)
        shutil.rmtree(folder)
