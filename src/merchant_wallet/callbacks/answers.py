"""The result of one attempt to send a callback. Without an HTTP library: the console shows answers, and sends
nothing.
"""

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """The result of one attempt. `body` is the beginning of the answer's body. `error` says why there is no
    more.

    `http_status` is None without an answer. `address` is None without a connection.
    """

    latency_ms: int
    address: str | None = None
    http_status: int | None = None
    body: bytes = b""
    error: str | None = None
