"""Sockets of the synchronous client, which threads share."""

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

import h11

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.connection_pool import ConnectionPool, has_input
from merchant_wallet_client.http1 import PROTOCOL_ERRORS, Http1Connection, RequestForm, Tunnel
from merchant_wallet_client.sending import MAX_CONNECTIONS, Collector, Origin, explain, make_tls_context
from merchant_wallet_client.wire import SignedRequest

ERRORS: Final = (*PROTOCOL_ERRORS, OSError)
PART_BYTES: Final = 65_536


class HttpTransport:
    """Sends requests to one origin, through its proxy if it has one."""

    def __init__(self, origin: Origin, timeouts: Timeouts) -> None:
        self._origin = origin
        self._timeouts = timeouts
        self._tls = make_tls_context() if origin.is_tls else None
        self._form = RequestForm(origin)
        self._slots = threading.Semaphore(MAX_CONNECTIONS)
        self._pool: ConnectionPool[Connection] = ConnectionPool()

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
        self._pool.close()

    def _exchange(self, request: SignedRequest) -> Reply:
        head, body = self._form.fill(request)
        connection = self._pool.take() or self._connect()
        is_kept = False
        try:
            reply = connection.exchange(head, body, self._timeouts.answer_s)
            is_kept = connection.begin_again()
        finally:
            if not is_kept:
                connection.close()
        if is_kept:
            self._pool.keep(connection)
        return reply

    def _connect(self) -> "Connection":
        origin, timeout_s = self._origin, self._timeouts.connect_s
        first = origin.proxy or origin
        opened = socket.create_connection((first.host, first.port), timeout_s)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                if origin.proxy:
                    _open_tunnel(opened, Tunnel(origin))
                opened = self._tls.wrap_socket(opened, server_hostname=origin.host)
        except BaseException:
            opened.close()
            raise
        return Connection(opened)


class Connection:
    """One connection."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._http = Http1Connection()

    def exchange(self, head: h11.Request, body: bytes, answer_s: float) -> Reply:
        """Send a request and read its answer. Raises ERRORS."""
        collector = Collector(answer_s)
        self._socket.settimeout(answer_s)
        self._socket.sendall(self._http.write(head, body))
        while True:
            reply = self._http.read(self._socket.recv(PART_BYTES), collector)
            if reply is not None:
                return reply
            self._socket.settimeout(collector.rest_s())

    def begin_again(self) -> bool:
        """Whether another exchange may follow."""
        return self._http.begin_again()

    def is_quiet(self) -> bool:
        """Whether nothing came on it, not even its end."""
        # What TLS has read already is not in the socket any more.
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        return not has_input(self._socket.fileno())

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _open_tunnel(opened: socket.socket, tunnel: Tunnel) -> None:
    opened.sendall(tunnel.write())
    while not tunnel.read(opened.recv(PART_BYTES)):
        pass
