"""Connections of the synchronous client, kept alive and shared by threads, over the standard library's HTTP.

Rules:
- A connection carries one exchange at a time. It is kept only after a whole answer.
- A kept connection that has something to read is closed: the server ended it, or sent what was not asked for.
- The connection that was used last is used first, so those that are not needed grow old and are closed.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.sending import (
    KEEP_ALIVE_S,
    MAX_CONNECTIONS,
    Collector,
    Origin,
    UnusableAnswer,
    explain,
    make_headers,
    make_tls_context,
)
from merchant_wallet_client.wire import SignedRequest

ERRORS: Final = (HTTPException, OSError, UnusableAnswer)
PART_BYTES: Final = 65_536


class _Idle(NamedTuple):
    connection: HTTPConnection
    until_s: float


class HttpTransport:
    """Sends requests to one origin, through its proxy if it has one."""

    def __init__(self, origin: Origin, timeouts: Timeouts) -> None:
        self._origin = origin
        self._timeouts = timeouts
        self._tls = make_tls_context() if origin.is_tls else None
        self._headers = {**make_headers(), "Host": origin.authority}
        if origin.authorization:
            self._headers["Authorization"] = origin.authorization
        self._prefix = origin.path
        if origin.proxy and not origin.is_tls:
            self._prefix = origin.url
            self._headers |= _authorize(origin.proxy.authorization)
        self._slots = threading.Semaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._is_closed = False

    def post(self, prepare: Callable[[], SignedRequest]) -> Reply | Unanswered:
        """Send once what `prepare` returns when it is this call's turn. Raises what `prepare` raises."""
        with self._slots:
            request = prepare()
            try:
                return self._exchange(request)
            except ERRORS as error:
                return explain(error)

    def close(self) -> None:
        """Close the connections. Those in use are closed after their answer."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.connection.close()

    def _exchange(self, request: SignedRequest) -> Reply:
        collector = Collector(self._timeouts)
        connection = self._take() or self._connect()
        is_whole = False
        try:
            connection.request("POST", self._prefix + request.path, request.body.encode(), self._headers)
            with connection.getresponse() as response:
                if response.status < 200:
                    raise UnusableAnswer(f"HTTP {response.status} in place of an answer")
                while part := response.read1(PART_BYTES):
                    collector.take(part)
                if response.length:
                    raise UnusableAnswer(f"the answer ended {response.length} bytes early")
                reply = collector.make_reply(response.status, response.headers)
            is_whole = True
            return reply
        finally:
            if is_whole:
                self._keep(connection)
            else:
                connection.close()

    def _take(self) -> HTTPConnection | None:
        """An idle connection that can be used, or None."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise RuntimeError("the client is closed")
                if not self._idle:
                    return None
                connection, until_s = self._idle.pop()
            if time.monotonic() < until_s and not _is_readable(connection.sock):
                return connection
            connection.close()

    def _keep(self, connection: HTTPConnection) -> None:
        """Keep a connection for the next call, unless it ended. Close the oldest one if it is too old."""
        # After `Connection: close` the library has closed it.
        if connection.sock is None:
            return
        now_s = time.monotonic()
        with self._lock:
            unused = self._idle.pop(0).connection if self._idle and self._idle[0].until_s < now_s else None
            if self._is_closed:
                unused = connection
            else:
                self._idle.append(_Idle(connection, now_s + KEEP_ALIVE_S))
        if unused is not None:
            unused.close()

    def _connect(self) -> HTTPConnection:
        connection = self._make_connection()
        try:
            connection.connect()
            connection.sock.settimeout(self._timeouts.answer_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_connection(self) -> HTTPConnection:
        """A connection that is not open yet, with the time-out of opening it."""
        origin, proxy = self._origin, self._origin.proxy
        host, port = (proxy.host, proxy.port) if proxy else (origin.host, origin.port)
        if self._tls is None:
            return HTTPConnection(host, port, timeout=self._timeouts.connect_s)
        connection = HTTPSConnection(host, port, timeout=self._timeouts.connect_s, context=self._tls)
        if proxy:
            connection.set_tunnel(origin.host, origin.port, _authorize(proxy.authorization))
        return connection


def _authorize(authorization: str | None) -> dict[str, str]:
    return {"Proxy-Authorization": authorization} if authorization else {}


def _is_readable(sock: socket.socket) -> bool:
    # Windows has no poll. Elsewhere select knows only the first 1,024 files.
    if not hasattr(select, "poll"):
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
