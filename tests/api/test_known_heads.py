"""A head that is read without the parser means the same as with it."""

import asyncio
import re
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from tests.echo_server import PATH, EchoEndpoint, make_dependencies, post
from tests.rows import each_row

from merchant_wallet.api.admission import Admission, PageProtocol
from merchant_wallet.api.connection import ListenerState
from merchant_wallet.api.known_heads import MAX_HEADS, MAX_KNOWN_BYTES, MAX_MISSES, KnownHeads, RequestHead

HEAD = RequestHead(b"/merchant/echo", None, [])
START = b"POST /merchant/echo HTTP/1.1\r\nHost: a\r\n\r\n"
PROXY = ip_network("10.0.0.0/8")

# Requests that are read differently: by their headers, their path, their body, or their first line.
HEADERS = st.sampled_from(
    [
        "",
        "User-Agent: shop\r\n",
        "X-Forwarded-For: 198.51.100.1\r\n",
        "X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 203.0.113.7\r\n",
        "Expect: 100-continue\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: close\r\n",
        "Host: twice\r\n",
        "Content-Length: 3\r\n",
    ]
)
PATHS = st.sampled_from([PATH, f"{PATH}?a=1", "/merchant/other"])
BODIES = st.sampled_from([b"", b"{}", b"other", b"\r\n\r\n", post(b"inner")])
REQUESTS = st.one_of(
    st.builds(post, BODIES, HEADERS, PATHS),
    st.builds(lambda request: request.replace(b"HTTP/1.1", b"HTTP/1.0"), st.builds(post, BODIES, HEADERS)),
    st.just(
        b"POST /merchant/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    ),
    st.just(b"POST /merchant/echo HTTP/1.1\r\nHost: x\r\n\r\n"),
    st.just(b"POST /merchant/echo HTTP/1.1\r\n\r\n"),
)


class _Transport(asyncio.Transport):
    """Keeps what a connection writes."""

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1)})
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _NoneKnown(KnownHeads):
    """Stores nothing, so that each head is parsed."""

    def add(self, data: bytes, head: RequestHead, body_bytes: int) -> None:
        """Nothing."""


def _refuse_page() -> PageProtocol:
    raise AssertionError("no request here is for a page")


def _exchange(known_heads: KnownHeads, peer: str, chunks: Sequence[bytes]) -> tuple[object, ...]:
    """What the endpoint sees of chunks that two connections send in turn, and what is written back."""

    async def talk() -> tuple[object, ...]:
        echo = EchoEndpoint()
        endpoints = {PATH.encode(): echo}
        state = ListenerState(endpoints, make_dependencies((PROXY,)), _refuse_page, Admission(9, 9))
        state.known_heads = known_heads
        transports = [_Transport(peer), _Transport("192.0.2.1")]
        connections = [state.make_connection() for _ in transports]
        for connection, transport in zip(connections, transports, strict=True):
            connection.connection_made(transport)
        for chunk in chunks:
            for connection, transport in zip(connections, transports, strict=True):
                if not transport.closed:
                    connection.data_received(chunk)
            for _ in range(2 * len(chunks) + 2):
                await asyncio.sleep(0)
        seen = [(request.content_type, request.body, request.source) for _, request in echo.requests]
        written = [re.sub(rb"x-request-id: \w+", b"", transport.written) for transport in transports]
        return seen, written, [transport.closed for transport in transports]

    return asyncio.run(talk())


@given(st.lists(REQUESTS, min_size=1, max_size=4), st.integers(0, 400), st.sampled_from(["10.0.0.1", "::1"]))
def test_requests_are_answered_as_if_each_was_parsed(requests: list[bytes], cut: int, peer: str) -> None:
    sent = b"".join(requests)
    # Each alone, each again, all at once, and all in two pieces.
    chunks = [*requests, *requests, sent, sent[:cut], sent[cut:]]
    assert _exchange(KnownHeads(), peer, chunks) == _exchange(_NoneKnown(), peer, chunks)


def test_a_second_request_with_the_same_head_is_not_parsed() -> None:
    heads = KnownHeads()
    seen, *_ = _exchange(heads, "192.0.2.1", [post(b"{1}"), post(b"{2}")])
    assert len(heads) == 1
    assert [body for _, body, _ in cast(list[tuple[str, bytes, str]], seen)] == [b"{1}"] * 2 + [b"{2}"] * 2


def test_a_connection_that_always_sends_another_head_no_longer_adds_any() -> None:
    heads = KnownHeads()
    sent = [post(b"{}", f"Traceparent: {number}\r\n") for number in range(3 * MAX_MISSES)]
    seen, *_ = _exchange(heads, "192.0.2.1", sent)
    # The second connection finds the heads that the first has added, and then adds as many.
    assert len(heads) == 2 * MAX_MISSES
    assert len(cast(list[object], seen)) == 2 * len(sent)


def test_the_same_head_with_a_body_of_the_same_length_is_found() -> None:
    heads = KnownHeads()
    heads.add(START + b"body", HEAD, 4)
    assert heads.find(START + b"BODY") == (HEAD, b"BODY")


@each_row("data", [b"", START, START + b"bod", START + b"bodys", b"x" + START + b"body"])
def test_other_bytes_are_not_found(data: bytes) -> None:
    heads = KnownHeads()
    heads.add(START + b"body", HEAD, 4)
    assert heads.find(data) is None


@each_row(
    ("data", "body_bytes"),
    [
        (START + b"body" + START + b"body", 4),
        (START + b"body\r\n", 4),
        (START.replace(b"Host", b"Long: " + b"x" * MAX_KNOWN_BYTES + b"\r\nHost") + b"body", 4),
        (START.replace(b"Host", b"EXPECT: 100-continue\r\nHost") + b"body", 4),
        (START.replace(b"Host", b"Upgrade: h2c\r\nHost") + b"body", 4),
        (START.replace(b"Host", b"Transfer-Encoding: chunked\r\nHost") + b"0\r\n\r\n", 0),
    ],
)
def test_what_must_be_parsed_each_time_is_not_stored(data: bytes, body_bytes: int) -> None:
    heads = KnownHeads()
    heads.add(data, HEAD, body_bytes)
    assert len(heads) == 0


def test_the_number_of_heads_is_bounded() -> None:
    heads = KnownHeads()
    for number in range(3 * MAX_HEADS):
        heads.add(START.replace(b"Host", b"Number: %d\r\nHost" % number), HEAD, 0)
    assert 0 < len(heads) <= MAX_HEADS
