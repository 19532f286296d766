"""Connections of the asyncio client.

Rule: each event loop has its own connections, also that of a second `asyncio.run` or of another thread.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import h11

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.connection_pool import ConnectionPool, has_input
from merchant_wallet_client.http1 import PROTOCOL_ERRORS, Http1Connection, RequestForm, Tunnel
from merchant_wallet_client.sending import (
    MAX_CONNECTIONS,
    Collector,
    Origin,
    UnusableAnswer,
    explain,
    make_tls_context,
)
from merchant_wallet_client.wire import SignedRequest

ERRORS: Final = (*PROTOCOL_ERRORS, OSError)
NEXT_ADDRESS_S: Final = 0.25
"""After this time a host's next address is tried too (RFC 8305, 8)."""


class _Opened(NamedTuple):
    """What belongs to one event loop."""

    pool: "ConnectionPool[Connection]"
    slots: asyncio.Semaphore


class AsyncHttpTransport:
    """Sends requests to one origin, through its proxy if it has one."""

    def __init__(self, origin: Origin, timeouts: Timeouts) -> None:
        self._origin = origin
        self._timeouts = timeouts
        self._tls = make_tls_context() if origin.is_tls else None
        self._form = RequestForm(origin)
        self._opened: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._is_closed = False

    async def post(self, prepare: Callable[[], SignedRequest]) -> Reply | Unanswered:
        """Send once what `prepare` returns when it is this call's turn. Raises what `prepare` raises."""
        opened = self._open()
        async with opened.slots:
            request = prepare()
            try:
                return await self._exchange(opened, request)
            except ERRORS as error:
                return explain(error)

    async def close(self) -> None:
        """Close the connections of this event loop. Those in use are closed after their answer."""
        self._is_closed = True
        if opened := self._opened.pop(asyncio.get_running_loop(), None):
            opened.pool.close()
            # They are told of it in the loop's next turn.
            await asyncio.sleep(0)

    def _open(self) -> _Opened:
        """What belongs to the running loop. Raises RuntimeError if the client is closed."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            for other in list(self._opened):
                if other.is_closed():
                    self._opened.pop(other, None)
            opened = self._opened[loop] = _Opened(ConnectionPool(), asyncio.Semaphore(MAX_CONNECTIONS))
        return opened

    async def _exchange(self, opened: _Opened, request: SignedRequest) -> Reply:
        head, body = self._form.fill(request)
        connection = opened.pool.take() or await self._connect(asyncio.get_running_loop())
        is_kept = False
        try:
            reply = await connection.exchange(head, body, self._timeouts.answer_s)
            is_kept = connection.begin_again()
        finally:
            if not is_kept:
                connection.close()
        if is_kept:
            opened.pool.keep(connection)
        return reply

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> "Connection":
        origin, proxy = self._origin, self._origin.proxy
        first = proxy or origin
        connection = Connection(loop)
        # uvloop does not know this option.
        options: dict[str, Any] = (
            {"happy_eyeballs_delay": NEXT_ADDRESS_S} if isinstance(loop, asyncio.BaseEventLoop) else {}
        )
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                await loop.create_connection(
                    lambda: connection,
                    first.host,
                    first.port,
                    ssl=None if proxy else self._tls,
                    **options,
                )
                if proxy and self._tls is not None:
                    await connection.open_tunnel(Tunnel(origin))
                    await connection.start_tls(self._tls, origin.host)
        except BaseException:
            connection.close()
            raise
        return connection


class Connection(asyncio.Protocol):
    """One connection. What comes is for the exchange that is under way, or it ends the connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._http = Http1Connection()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Any] | None = None
        self._read: Callable[[bytes], Any]

    async def exchange(self, head: h11.Request, body: bytes, answer_s: float) -> Reply:
        """Send a request and read its answer. Raises ERRORS."""
        collector = Collector(answer_s)
        async with asyncio.timeout(answer_s):
            reply: Reply = await self._ask(
                self._http.write(head, body), lambda data: self._http.read(data, collector)
            )
        return reply

    def begin_again(self) -> bool:
        """Whether another exchange may follow."""
        return self._http.begin_again()

    async def open_tunnel(self, tunnel: Tunnel) -> None:
        """Ask the proxy at the other end for a tunnel. Raises ERRORS."""
        await self._ask(tunnel.write(), tunnel.read)

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """Speak TLS with the host at the end of the tunnel. Raises OSError."""
        assert self._transport is not None, "the tunnel is open"
        self._transport = await self._loop.start_tls(self._transport, self, tls, server_hostname=host)

    async def _ask(self, data: bytes, read: Callable[[bytes], Any]) -> Any:
        """Send bytes, and return what `read` makes of the bytes that come, once it makes anything."""
        assert self._transport is not None, "it is connected"
        if self._transport.is_closing():
            raise UnusableAnswer("the connection was closed")
        self._waiter = self._loop.create_future()
        self._read = read
        self._transport.write(data)
        return await self._waiter

    def is_quiet(self) -> bool:
        """Whether nothing came on it, not even its end."""
        if self._transport is None or self._transport.is_closing():
            return False
        # An event loop that was busy has not read it yet.
        return not has_input(self._transport.get_extra_info("socket").fileno())

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()
            return
        try:
            came = self._read(data)
        except PROTOCOL_ERRORS as error:
            self._waiter.set_exception(error)
            return
        if came:
            self._waiter.set_result(came)

    def eof_received(self) -> None:
        self.data_received(b"")

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error or UnusableAnswer("the connection was closed"))
