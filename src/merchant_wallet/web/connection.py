"""The connection of a client that requests something other than an operation: uvicorn's protocol with
limits.

Rules:
- The head of a request is limited in size, and the whole request in time.
- A client that does not read its answer for a time is disconnected, which frees what the answer needs.
- Bytes that are not a request get an error in the interface's envelope, with a request id. An unknown method
  is answered as one that the path does not have.
- `Upgrade` requests are ignored, as in `api.connection`.
"""

import asyncio
import re
import socket
import struct
import time
from collections.abc import Collection, Sequence
from typing import Final, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from merchant_wallet.api.admission import Admission, ClientWait
from merchant_wallet.api.connection import (
    BAD_REQUEST,
    BAD_REQUEST_STATUS,
    HEAD_TOO_LONG,
    MAX_HEAD_BYTES,
    MAX_UNFINISHED_BYTES,
)
from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import ALLOW_POST, BODY_TIMEOUT_S, ONLY_POST, write_refusal
from merchant_wallet.api.framing import check_framing
from merchant_wallet.api.response import encode_response
from merchant_wallet.api.rewritten import HEAD_UNREADABLE
from merchant_wallet.api.upgrades import IgnoresUpgrades
from merchant_wallet.web.live import OPEN_ENDED

REQUEST_TIMEOUT_S: Final = 2 * BODY_TIMEOUT_S
"""Longer than an operation needs for its own time-out."""

WRITE_TIMEOUT_S: Final = 30.0
"""How long a client may leave its answer unread."""

_TCP_INFO_BYTES: Final = 128
_BYTES_ACKED_AT: Final = 120
"""The offset in `struct tcp_info` of the number of bytes that the other side has acknowledged
(linux/tcp.h).
"""

_match_start = re.compile(
    rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} (/[^ ?\r\n]*)(?:\?[^ \r\n]*)? HTTP/1\.[01]\r\n"
).match


class PageConnection(IgnoresUpgrades, HttpToolsProtocol):
    """See the module. `deadline_s` is on the monotonic clock; None while no request is arriving.

    `_taken_s`, on the same clock: when the client had last read everything, or more than before. `_taken`:
    how many bytes it had read then, and how many were waiting.
    """

    def __init__(
        self,
        config: Config,
        others: ServerState,
        dependencies: Dependencies,
        paths: Collection[bytes],
        admission: Admission,
    ) -> None:
        super().__init__(config, others, {})
        self._admission = admission
        self._idle_since_s = 0.0
        self._dependencies = dependencies
        self._paths = paths
        self._in_head = False
        self._head_bytes = self._unfinished_bytes = 0
        self._latest = b""
        self._taken, self._taken_s = (0, 0), 0.0
        self.deadline_s: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """A client has connected."""
        super().connection_made(transport)
        self.deadline_s = time.monotonic() + REQUEST_TIMEOUT_S

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._admission.release(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """A request was answered."""
        self._idle_since_s = time.monotonic()
        super().on_response_complete()

    def client_wait(self) -> ClientWait | None:
        """Since when we wait for the client, and whether a part of its request has arrived. None while the
        client waits for us.
        """
        cycle = self._current_cycle()
        if self.deadline_s is not None and (cycle is None or self._is_unread(cycle)):
            return ClientWait(is_slow=True, since_s=self.deadline_s - REQUEST_TIMEOUT_S)
        return ClientWait(is_slow=False, since_s=self._idle_since_s) if cycle is None else None

    def evict(self) -> None:
        """Close at once, to make room for another connection."""
        self.transport.abort()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps what it could
        """The client will send nothing more. It may still read a running answer, but not an endless
        stream.
        """
        cycle = self._current_cycle()
        if cycle is None or self.deadline_s is not None or cycle.scope.get(OPEN_ENDED):
            return False
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Bytes of one or several requests."""
        self._latest = data
        self._unset_keepalive_if_required()
        self._feed(data)
        self._latest = b""
        if self._in_head:
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > MAX_UNFINISHED_BYTES:
                self.send_400_response(HEAD_TOO_LONG.msg)

    def _has_ended(self) -> bool:
        return self.transport.is_closing()

    def _refuse_bytes(self, reason: str) -> None:
        peer = self.client[0] if self.client else ""
        self._dependencies.proxies.note_unreadable(HEAD_UNREADABLE, peer, reason)
        self.send_400_response(BAD_REQUEST.msg)

    def _latest_head(self) -> tuple[bytes, Sequence[tuple[bytes, bytes]]]:
        return self.url, self.headers

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = self._unfinished_bytes = 0
        self.deadline_s = time.monotonic() + REQUEST_TIMEOUT_S

    def on_url(self, url: bytes) -> None:
        """A part of the path."""
        super().on_url(url)
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. Headers after a body are ignored (RFC 9110 section 6.5.1)."""
        if self._in_head:
            super().on_header(name, value)
            self._head_bytes += len(name) + len(value)

    def on_headers_complete(self) -> None:
        """The head is complete. Raises ValueError if it is too long or ambiguous."""
        self._in_head = False
        if self._head_bytes > MAX_HEAD_BYTES:
            raise ValueError(HEAD_TOO_LONG.msg)
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        host_count = sum(name == b"host" for name, _ in self.headers)
        check_framing(self.parser.get_http_version(), host_count, codings)
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self.deadline_s = None

    def send_400_response(self, msg: str) -> None:
        """Answer that these bytes are not a request, or that the path does not have this method."""
        self._in_head = False
        cycle = self._current_cycle()
        if cycle is not None and self._is_unread(cycle):
            # The body of this request can't be read: nobody must wait for the rest of it.
            cycle.disconnected = True
            cycle.message_event.set()
            self._refuse()
        elif cycle is not None:
            # The client must not take this for the answer to the request before.
            cycle.keep_alive = False
            self.flow.pause_reading()
        elif not self.transport.is_closing():
            self._refuse()

    def _is_unread(self, cycle: RequestResponseCycle) -> bool:
        """Whether the latest request is still arriving, and none before it is being answered."""
        return cycle.more_body and not cycle.response_started and not self.pipeline

    def _current_cycle(self) -> RequestResponseCycle | None:
        """The latest request, if it is not answered yet."""
        latest = cast(RequestResponseCycle | None, self.cycle)
        return None if latest is None or latest.response_complete else latest

    def _refuse(self) -> None:
        start = _match_start(self._latest)
        foreign = start is not None and start[1] in self._paths
        refusal, headers = (ONLY_POST, ALLOW_POST) if foreign else (BAD_REQUEST, ())
        status, body, headers = write_refusal(refusal, headers)
        request_id, peer = self._dependencies.request_ids.next(), self.client
        path = start[1].decode("latin-1") if start is not None else ""
        self._dependencies.access_log.write_other(request_id, path, refusal.code, peer[0] if peer else "")
        date = dict(self.server_state.default_headers)[b"date"]
        status = status if foreign else BAD_REQUEST_STATUS
        self.transport.write(encode_response(status, body, request_id, date, headers, closes=True))
        self.transport.close()

    def check_timeouts(self, now_s: float) -> None:
        """Close the connection if its request arrives too slowly, or its answer is read too slowly."""
        if self.deadline_s is not None and now_s >= self.deadline_s:
            self.transport.close()
        waiting_bytes = self.transport.get_write_buffer_size()
        if not waiting_bytes:
            self._taken_s = now_s
            return
        taken = (self._count_taken(), waiting_bytes)
        if taken != self._taken:
            self._taken, self._taken_s = taken, now_s
        elif now_s - self._taken_s >= WRITE_TIMEOUT_S:
            # `close` would wait for the client to read the rest.
            self.transport.abort()

    def _count_taken(self) -> int:
        """How many bytes the client has read in all. The size of our buffer alone says nothing while the
        answer still grows.

        0 if the kernel does not tell. Then only the buffer's size counts.
        """
        client = self.transport.get_extra_info("socket")
        told = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        if len(told) < _BYTES_ACKED_AT + 8:
            return 0
        return int(struct.unpack_from("=Q", told, _BYTES_ACKED_AT)[0])
