"""Heads of requests that were parsed before, so that the same bytes are not parsed again.

A client's requests differ in their bodies. Their heads are the same bytes, except for Content-Length.

Rules:
- A head is stored after the parser has read exactly one request: this head, its body, and nothing else.
- It is used only for the same bytes, followed by a body of the same length. So it means what the parser
  says.
- A head with `Expect`, `Upgrade` or `Transfer-Encoding` is parsed each time. So is a head that closes its
  connection.
- A connection whose latest `MAX_MISSES` heads were all unknown no longer asks: its client sends another head
  each time, for example with an id of the request.
- The memory is bounded: long heads are not stored, and when there are too many, all are forgotten.

Decision 0074 has the reasons and the figures.
"""

from typing import Final

import msgspec

MAX_HEADS: Final = 2048
MAX_KNOWN_BYTES: Final = 1024
MAX_MISSES: Final = 16
_HEAD_END: Final = b"\r\n\r\n"
_PARSED_EACH_TIME: Final = (b"expect", b"upgrade", b"transfer-encoding")


class RequestHead(msgspec.Struct, frozen=True):
    """What an operation needs of a head. `forwarded` are the values of X-Forwarded-For.

    `traceparent` is the caller's span, if there are traces.
    """

    path: bytes
    content_type: str | None
    forwarded: list[str]
    traceparent: str = ""


class KnownHeads:
    """See the module. One for all connections of a listener."""

    def __init__(self) -> None:
        self._heads: dict[bytes, tuple[RequestHead, int]] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """The head and the body of the request that these bytes are, if it is a known one."""
        # Without an end, this is 3, and no head is so short.
        end = data.find(_HEAD_END, 0, MAX_KNOWN_BYTES) + len(_HEAD_END)
        known = self._heads.get(data[:end])
        if known is None or known[1] != len(data) - end:
            return None
        return known[0], data[end:]

    def add(self, data: bytes, head: RequestHead, body_bytes: int) -> None:
        """Store the head of a request that the parser has read from these bytes."""
        end = len(data) - body_bytes
        start = data[:end]
        # Without the first check, a second request in the same bytes could be part of the head.
        if data.find(_HEAD_END, 0, MAX_KNOWN_BYTES) + len(_HEAD_END) != end:
            return
        lowered = start.lower()
        if any(word in lowered for word in _PARSED_EACH_TIME):
            return
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        self._heads[start] = (head, body_bytes)
