"""HTTP/1.1 without I/O: the bytes of a request, and the answer in the bytes that come. h11 writes and parses.

Rules:
- A connection carries one exchange at a time, and is used again only after a whole answer.
- What follows from bytes is the same for both clients, whose transports only carry them.
"""

from typing import Final

import h11

from merchant_wallet_client.calls import Reply
from merchant_wallet_client.sending import Collector, Origin, UnusableAnswer, make_headers, quote_path
from merchant_wallet_client.wire import SignedRequest

MAX_HEAD_BYTES: Final = 64 * 1024
PROTOCOL_ERRORS: Final = (h11.ProtocolError, UnusableAnswer)


class RequestForm:
    """What all requests to an origin have in common."""

    def __init__(self, origin: Origin) -> None:
        headers = {"Host": origin.authority, **make_headers()}
        if origin.authorization:
            headers["Authorization"] = origin.authorization
        self._prefix = origin.path
        if origin.proxy and not origin.is_tls:
            # A proxy of plain HTTP gets the whole URL (RFC 9112, 3.2.2).
            self._prefix = origin.url
            headers |= _authorize(origin.proxy.authorization)
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    def fill(self, request: SignedRequest) -> tuple[h11.Request, bytes]:
        """Head and body of a request."""
        body = request.body.encode()
        headers = [*self._headers, (b"Content-Length", b"%d" % len(body))]
        return h11.Request(
            method="POST", target=self._prefix + quote_path(request.path), headers=headers
        ), body


class Http1Connection:
    """The state of one connection."""

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
        self._response: h11.Response | None = None

    def write(self, head: h11.Request, body: bytes) -> bytes:
        """The bytes of a request."""
        parts = (self._h11.send(event) for event in (head, h11.Data(data=body), h11.EndOfMessage()))
        return b"".join([part for part in parts if part])

    def read(self, data: bytes, collector: Collector) -> Reply | None:
        """The answer, if `data` ends it. No data is the end of the connection. Raises PROTOCOL_ERRORS."""
        self._h11.receive_data(data)
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                return None
            # Others are interim responses (1xx), behind which the answer comes.
            if isinstance(event, h11.Response):
                self._response = event
            elif isinstance(event, h11.Data):
                collector.take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                assert self._response is not None, "its head came first"
                headers = {
                    name.decode("ascii"): value.decode("latin-1") for name, value in self._response.headers
                }
                return collector.make_reply(self._response.status_code, headers)
            elif isinstance(event, h11.ConnectionClosed):
                raise UnusableAnswer("the connection was closed in place of an answer")

    def begin_again(self) -> bool:
        """Whether another exchange may follow. It may begin then."""
        is_done = self._h11.our_state is self._h11.their_state is h11.DONE
        if not is_done or self._h11.trailing_data[0]:
            return False
        self._h11.start_next_cycle()
        return True


class Tunnel:
    """CONNECT: a proxy that opens a tunnel to an origin."""

    def __init__(self, origin: Origin) -> None:
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        self._target = f"{host}:{origin.port}"
        self._authorization = origin.proxy.authorization if origin.proxy else None
        self._h11 = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)

    def write(self) -> bytes:
        """The bytes that ask for it."""
        headers = {"Host": self._target, **_authorize(self._authorization)}
        request = h11.Request(method="CONNECT", target=self._target, headers=list(headers.items()))
        return (self._h11.send(request) or b"") + (self._h11.send(h11.EndOfMessage()) or b"")

    def read(self, data: bytes) -> bool:
        """Whether the tunnel is open after `data`. Raises PROTOCOL_ERRORS, also if the proxy refuses."""
        self._h11.receive_data(data)
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                return False
            if isinstance(event, h11.Response):
                if 200 <= event.status_code < 300:
                    return True
                raise UnusableAnswer(f"the proxy answered HTTP {event.status_code}")
            if isinstance(event, h11.ConnectionClosed):
                raise UnusableAnswer("the proxy closed the connection")


def _authorize(authorization: str | None) -> dict[str, str]:
    return {"Proxy-Authorization": authorization} if authorization else {}
