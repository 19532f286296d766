"""One client connection: reads requests for operations and writes their answers, without a web framework.

Rules:
- httptools (llhttp) parses HTTP/1.1. This module adds order and limits.
- A connection answers one request at a time, in the order they arrive. Pipelined requests wait.
- When the next request is not for an operation, the connection goes, with the bytes read so far, to
  `PageProtocol`, and stays there.
- A slow client can't keep a connection open for ever: see `check_timeouts`.
- `Upgrade` requests are ignored: the answer does not mention them (RFC 9110 section 7.8).
- Of a request only the path, two headers and the body are kept for the endpoint.
- Bytes that are not HTTP get HTTP 400 with an envelope, like every answer.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import httptools

from merchant_wallet.api.admission import Admission, ClientWait, PageProtocol
from merchant_wallet.api.dependencies import Dependencies, Header, OperationRequest
from merchant_wallet.api.endpoint import BODY_TIMEOUT_S, TOO_LATE, Endpoint, write_refusal
from merchant_wallet.api.framing import check_framing
from merchant_wallet.api.known_heads import MAX_MISSES, KnownHeads, RequestHead
from merchant_wallet.api.response import encode_response
from merchant_wallet.api.rewritten import HEAD_UNREADABLE, refuse_path
from merchant_wallet.api.turns import SHARED, find_turn
from merchant_wallet.api.upgrades import IgnoresUpgrades
from merchant_wallet.api.wire import MAX_BODY_BYTES, find_reader
from merchant_wallet.base.codes import BODY_MALFORMED, PATH_UNKNOWN, Refusal, Refused
from merchant_wallet.base.spans import TRACEPARENT

_PATH_PREFIX: Final = b"/merchant/"
OPERATION_START: Final = b"POST " + _PATH_PREFIX
MAX_HEAD_BYTES: Final = 32 * 1024
MAX_UNFINISHED_BYTES: Final = 512 * 1024
"""At most this much is read before the head is complete: more than one read from the socket."""
MAX_DISCARDED_BYTES: Final = 1024 * 1024
"""This much of a body that is too long is still read, so that the client gets the refusal, not a reset."""
MAX_PIPELINED: Final = 16
KEEP_ALIVE_S: Final = 75.0

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_KEPT_HEADERS: Final = frozenset(
    (b"content-length", b"transfer-encoding", b"connection", b"content-type", b"x-forwarded-for", b"host")
)
"""The headers that are kept to read a head again without its `Upgrade`."""
BAD_REQUEST_STATUS: Final = 400
BAD_REQUEST: Final = Refusal(BODY_MALFORMED, "these bytes can't be read as an HTTP/1.1 request")
HEAD_TOO_LONG: Final = Refusal(
    BODY_MALFORMED, f"a request's headers must have at most {MAX_HEAD_BYTES} bytes"
)


class ListenerState:
    """What all connections of a listener share, and the set of open ones.

    `welcome` is called with each new connection, if it is set.
    """

    def __init__(
        self,
        endpoints: Mapping[bytes, Endpoint],
        dependencies: Dependencies,
        make_page_connection: Callable[[], PageProtocol],
        admission: Admission,
    ) -> None:
        self.endpoints = endpoints
        self.dependencies = dependencies
        self.make_page_connection = make_page_connection
        self.admission = admission
        self.known_heads = KnownHeads()
        self.kept_headers = _KEPT_HEADERS
        if dependencies.tracer is not None:
            self.kept_headers = _KEPT_HEADERS | {TRACEPARENT}
        self.open: set[Connection] = set()
        self.date = b""
        self.closing = False
        self.welcome: Callable[[asyncio.Transport], None] | None = None

    def make_connection(self) -> "Connection":
        """The protocol for a new connection."""
        return Connection(self)


class Connection(IgnoresUpgrades, asyncio.Protocol):
    """See the module. `deadline_s` is on the monotonic clock; None while the client waits for our answer."""

    __slots__ = (
        "_answering",
        "_asks_first",
        "_body",
        "_body_bytes",
        "_closes",
        "_content_type",
        "_head_bytes",
        "_in_head",
        "_is_new",
        "_kept",
        "_misses",
        "_peer",
        "_pipelined",
        "_reading",
        "_start",
        "_state",
        "_transport",
        "_unfinished_bytes",
        "_url",
        "deadline_s",
    )

    def __init__(self, state: ListenerState) -> None:
        self._state = state
        self.parser = httptools.HttpRequestParser(self)
        self._pipelined: deque[tuple[OperationRequest, bytes]] = deque()
        self._answering = False
        self._reading = self._in_head = False
        self._closes = False
        self._is_new = True
        self._start = b""
        self._head_bytes = self._unfinished_bytes = self._misses = 0
        self.deadline_s: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        if self._state.welcome is not None:
            self._state.welcome(self._transport)
        peername = transport.get_extra_info("peername")
        self._peer = str(peername[0]) if peername else ""
        if self._state.closing or not self._state.admission.admit(self, self._peer):
            self._transport.close()
            return
        self._state.open.add(self)
        self.deadline_s = time.monotonic() + BODY_TIMEOUT_S

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone. A request that has begun is finished; nobody gets its answer."""
        self._state.open.discard(self)
        self._state.admission.release(self)
        self._pipelined.clear()

    def eof_received(self) -> bool:
        """The client sends nothing more. It may still read the answers to its requests."""
        self._closes = True
        return self._answering

    def pause_writing(self) -> None:
        """The client reads answers more slowly than it sends requests."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has caught up."""
        if len(self._pipelined) < MAX_PIPELINED and not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        if not self._reading:
            data = self._start + data
            if not data.startswith(OPERATION_START):
                self._hand_over(data)
                return
            self._start = b""
            self._begin_reading(data)
        else:
            self._feed(data)
        if self._in_head:
            self._unfinished_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES or self._unfinished_bytes > MAX_UNFINISHED_BYTES:
                self._abort(HEAD_TOO_LONG)

    def _begin_reading(self, data: bytes) -> None:
        """Read bytes that a request begins with. A known head saves the parser and its eight callbacks."""
        if self._closes or self._misses >= MAX_MISSES:
            self._feed(data)
            return
        known = self._state.known_heads.find(data)
        if known is not None:
            self._misses = 0
            self._enqueue(*known)
            return
        self._misses += 1
        self._feed(data)
        if not self._reading and not self._closes:
            self._state.known_heads.add(data, self._read_head(), self._body_bytes)

    def _has_ended(self) -> bool:
        return self._closes

    def _refuse_bytes(self, reason: str) -> None:
        self._state.dependencies.proxies.note_unreadable(HEAD_UNREADABLE, self._peer, reason)
        self._abort(BAD_REQUEST)

    def _latest_head(self) -> tuple[bytes, Sequence[Header]]:
        return self._url, self._kept

    def _hand_over(self, data: bytes) -> None:
        """Keep bytes that may become an operation's request. Hand all others over to `PageProtocol`."""
        if OPERATION_START.startswith(data):
            self._start = data
        elif self._answering or self._pipelined:
            # Its answer would have to wait for ours, and the other protocol can't wait.
            self._closes = True
        else:
            self._state.open.discard(self)
            page_connection = self._state.make_page_connection()
            self._state.admission.hand_over(self, page_connection)
            self._transport.set_protocol(cast(asyncio.Protocol, page_connection))
            page_connection.connection_made(self._transport)
            page_connection.data_received(data)

    # What the parser calls, in this order.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._reading = self._in_head = True
        self._url = b""
        self._content_type: str | None = None
        self._body: list[bytes] = []
        self._kept: list[Header] = []
        self._asks_first = False
        self._body_bytes = self._head_bytes = self._unfinished_bytes = 0
        if not self._answering:
            self.deadline_s = time.monotonic() + BODY_TIMEOUT_S

    def on_url(self, url: bytes) -> None:
        """A piece of the path."""
        self._url += url
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. Trailers after the body are ignored (RFC 9110 section 6.5.1)."""
        if not self._in_head:
            return
        self._head_bytes += len(name) + len(value)
        name = name.lower()
        if name not in self._state.kept_headers:
            if name == b"expect" and value.lower() == b"100-continue":
                self._asks_first = True
            return
        self._kept.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete. Raises FramingUnclear, which stops the parser."""
        self._in_head = False
        host_count, codings = 0, []
        for name, value in self._kept:
            if name == b"host":
                host_count += 1
            elif name == b"content-type":
                self._content_type = value.decode("latin-1")
            elif name == b"transfer-encoding":
                codings.append(value)
        version = self.parser.get_http_version()
        # Nearly every request passes here without a call of check_framing.
        if version != "1.1" or host_count != 1 or codings:
            check_framing(version, host_count, codings)
        if self._asks_first and not self._answering and self._url.startswith(_PATH_PREFIX):
            self._ask_for_body()

    def _ask_for_body(self) -> None:
        """Ask for the body. One that would be refused whatever it says is refused now, and never sent."""
        head = self._read_head()
        endpoint = self._state.endpoints.get(head.path)
        length = next((int(value) for name, value in self._kept if name == b"content-length"), 0)
        if endpoint is None:
            self._refuse_early()
            self._refuse_path(self._make_request(head, b""), head.path)
            return
        try:
            find_reader(head.content_type, length)
        except Refused as refused:
            self._refuse_early()
            endpoint.refuse_incomplete(self._make_request(head, b""), refused.refusal)
        else:
            self._transport.write(_CONTINUE)

    def _refuse_early(self) -> None:
        self._closes = self._answering = True
        self.deadline_s = None

    def on_body(self, body: bytes) -> None:
        """A piece of the body. Bytes over the limit are counted but not kept."""
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(body)
        self._body_bytes += len(body)
        if self._body_bytes > MAX_DISCARDED_BYTES and not self._closes:
            self._closes = True
            self._transport.pause_reading()
            self._enqueue_parsed()

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._closes or self.parser.should_upgrade():
            return
        self._reading = False
        if self._head_bytes > MAX_HEAD_BYTES:
            self._abort(HEAD_TOO_LONG)
        elif self.parser.get_method() != b"POST" or not self._url.startswith(_PATH_PREFIX):
            # It came behind an operation's request in the same bytes; see `_hand_over`.
            self._closes = True
        else:
            self._closes = not self.parser.should_keep_alive()
            self._enqueue_parsed()

    def _enqueue_parsed(self) -> None:
        self._enqueue(self._read_head(), self._body[0] if len(self._body) == 1 else b"".join(self._body))

    def _read_head(self) -> RequestHead:
        """What the parser has read so far of a head."""
        path = self._url.partition(b"?")[0] if b"?" in self._url else self._url
        forwarded, traceparent = [], ""
        for name, value in self._kept:
            if name == b"x-forwarded-for":
                forwarded.append(value.decode("latin-1"))
            elif name == TRACEPARENT:
                traceparent = value.decode("latin-1")
        return RequestHead(path, self._content_type, forwarded, traceparent)

    def _enqueue(self, head: RequestHead, body: bytes) -> None:
        """Give a complete request to the scheduler, or let it wait for those before it."""
        request, path = self._make_request(head, body), head.path
        if self._answering:
            self._pipelined.append((request, path))
            if len(self._pipelined) >= MAX_PIPELINED:
                self._transport.pause_reading()
        else:
            self.deadline_s = None
            self._schedule(request, path)

    def _make_request(self, head: RequestHead, body: bytes) -> OperationRequest:
        dependencies = self._state.dependencies
        proxies, source = dependencies.proxies, self._peer
        if proxies.networks or head.forwarded:
            source = proxies.find(source, head.forwarded)
        request_id = dependencies.request_ids.next()
        request = OperationRequest(head.content_type, body, source, request_id, self._reply)
        if head.traceparent:
            request.traceparent = head.traceparent
        return request

    def _schedule(self, request: OperationRequest, path: bytes) -> None:
        """Give a request to the scheduler."""
        self._answering = True
        endpoint, dependencies = self._state.endpoints.get(path), self._state.dependencies
        scheduler = dependencies.scheduler
        if endpoint is None:
            scheduler.schedule(SHARED, True, self._refuse_path, request, path)
        else:
            request.turn = find_turn(request.body, request.source, dependencies.merchant_cache)
            scheduler.schedule(request.turn, endpoint.only_reads, endpoint.handle, "POST", request)

    def _refuse_path(self, request: OperationRequest, path: bytes) -> None:
        foreign, operations = path.decode("latin-1"), [known.decode() for known in self._state.endpoints]
        status, body, headers = write_refusal(refuse_path(foreign, operations))
        self._state.dependencies.note_path(foreign, operations, request.request_id, request.source)
        self._state.dependencies.access_log.write_other(
            request.request_id, foreign, PATH_UNKNOWN, request.source
        )
        self._reply(status, body, request.request_id, headers)

    def _reply(self, status: int, body: bytes, request_id: str, headers: Sequence[Header]) -> None:
        """Write an answer, then schedule the next pipelined request."""
        if self._transport.is_closing():
            return
        state = self._state
        ends = self._closes or state.dependencies.in_flight.ending
        closes = state.closing or (ends and not self._pipelined)
        self._transport.write(encode_response(status, body, request_id, state.date, headers, closes=closes))
        self._answering = self._is_new = False
        if closes:
            self._transport.close()
        elif self._pipelined:
            self._schedule_next()
        else:
            self.deadline_s = time.monotonic() + (BODY_TIMEOUT_S if self._reading else KEEP_ALIVE_S)

    def _schedule_next(self) -> None:
        request, path = self._pipelined.popleft()
        if len(self._pipelined) == MAX_PIPELINED - 1 and not self._closes:
            self._transport.resume_reading()
        self._schedule(request, path)

    def check_timeouts(self, now_s: float) -> None:
        """Close the connection when its deadline has passed. A request that is half there gets an answer."""
        if self.deadline_s is None or now_s < self.deadline_s:
            return
        head = self._read_head() if self._reading else None
        endpoint = None if head is None else self._state.endpoints.get(head.path)
        if head is None or endpoint is None:
            self._transport.close()
            return
        self._closes = self._answering = True
        self.deadline_s = None
        endpoint.refuse_incomplete(self._make_request(head, b""), TOO_LATE)

    def client_wait(self) -> ClientWait | None:
        """Since when we wait for the client and whether its request has begun. None while it waits for us."""
        if self._answering or self.deadline_s is None:
            return None
        is_slow = self._reading or bool(self._start)
        timeout_s = BODY_TIMEOUT_S if self._reading or self._is_new else KEEP_ALIVE_S
        return ClientWait(is_slow, self.deadline_s - timeout_s)

    def evict(self) -> None:
        """Close at once, to make room for another connection."""
        self._transport.close()

    def close_if_idle(self) -> None:
        """Close the connection, unless a request is under way: then its answer closes it."""
        if not self._answering:
            self._transport.close()

    def _abort(self, refusal: Refusal) -> None:
        """Refuse bytes that are not a request, after the answer that is under way."""
        self._closes = True
        self._in_head = False
        self._pipelined.clear()
        if self._answering:
            self._transport.pause_reading()
            return
        request_id = self._state.dependencies.request_ids.next()
        self._state.dependencies.access_log.write_other(request_id, "", refusal.code, self._peer)
        _, body, headers = write_refusal(refusal)
        self._reply(BAD_REQUEST_STATUS, body, request_id, headers)
