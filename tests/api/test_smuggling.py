"""Requests whose end is ambiguous are refused, and their connection is closed."""

import json

import pytest
from tests.echo_server import PATH, Client, EchoServer, post, run_server
from tests.rows import each_row

from merchant_wallet.api.framing import FramingUnclear, check_framing

CHUNKS = "\r\n2\r\n{}\r\n0\r\n\r\n"
UNCLEAR = {
    "length and coding": f"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n{CHUNKS}",
    "coding and length": f"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n{CHUNKS}",
    "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "the same length twice": "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": "Content-Length: 2, 2\r\n\r\n{}",
    "a length with a sign": "Content-Length: +2\r\n\r\n{}",
    "a length below zero": "Content-Length: -2\r\n\r\n{}",
    "a hexadecimal length": "Content-Length: 0x2\r\n\r\n{}",
    "an empty length": "Content-Length: \r\n\r\n{}",
    "a length beyond 64 bits": "Content-Length: 18446744073709551618\r\n\r\n{}",
    "a space before the colon of the length": "Content-Length : 2\r\n\r\n{}",
    "a space within the length": "Content-Length: 2 2\r\n\r\n{}",
    "gzip, then chunked": f"Transfer-Encoding: gzip, chunked\r\n{CHUNKS}",
    "gzip and chunked in two fields": f"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n{CHUNKS}",
    "chunked twice": f"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n{CHUNKS}",
    "a list of chunked": f"Transfer-Encoding: chunked, chunked\r\n{CHUNKS}",
    "chunked, then gzip": f"Transfer-Encoding: chunked, gzip\r\n{CHUNKS}",
    "an empty coding, then chunked": f"Transfer-Encoding: ,chunked\r\n{CHUNKS}",
    "an unknown coding": f"Transfer-Encoding: xchunked\r\n{CHUNKS}",
    "identity": "Transfer-Encoding: identity\r\n\r\n",
    "identity and a length": "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}",
    "chunked with a parameter": f"Transfer-Encoding: chunked;q=1\r\n{CHUNKS}",
    "a space before the colon of the coding": f"Transfer-Encoding : chunked\r\n{CHUNKS}",
    "a vertical tab before the coding": f"Transfer-Encoding: \x0bchunked\r\n{CHUNKS}",
    "an empty coding": "Transfer-Encoding: \r\nContent-Length: 2\r\n\r\n{}",
    "a coding in quotes": 'Transfer-Encoding: "chunked"\r\nContent-Length: 2\r\n\r\n{}',
    "a continued line": "X-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\n{}",
    "a continued length": "Content-Length:\r\n 2\r\n\r\n{}",
    "a continued coding": f"Transfer-Encoding:\r\n chunked\r\n{CHUNKS}",
    "a line that begins with a space": " X-A: 1\r\nContent-Length: 2\r\n\r\n{}",
    "lines without CR": "X-A: 1\nContent-Length: 2\n\n{}",
    "one line without CR": "X-A: 1\nContent-Length: 2\r\n\r\n{}",
    "a last line without CR": "Content-Length: 2\r\n\n{}",
    "a CR within a line": "X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a null within a line": "X-A: 1\x002\r\nContent-Length: 2\r\n\r\n{}",
    "a hexadecimal sign before a chunk's size": "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a space behind a chunk's size": "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
    "a chunk's size without CR": "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
    "a chunk's extension without CR": "Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n0\r\n\r\n",
    "a chunk without its end": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
    "a chunk's size beyond 64 bits": "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    "a chunk without a size": "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
    "a length behind the body": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a second Host": "Host: y\r\nContent-Length: 2\r\n\r\n{}",
    "an offer of another protocol": (
        f"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: gzip, chunked\r\n{CHUNKS}"
    ),
}
CLEAR = {
    "a length": "Content-Length: 2\r\n\r\n{}",
    "a tab before the length": "Content-Length:\t2\r\n\r\n{}",
    "chunked": f"Transfer-Encoding: chunked\r\n{CHUNKS}",
    "chunked in capitals and spaces": f"Transfer-Encoding:  CHUNKED \r\n{CHUNKS}",
    "a chunk's extension": "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
}
PATHS = (PATH, "/page")
NEXT = post(b"smuggled")


def request(path: str, rest: str, version: str = "1.1") -> bytes:
    """A request's start, followed by `rest` unchanged."""
    return f"POST {path} HTTP/{version}\r\nHost: x\r\n{rest}".encode()


async def is_refused(client: Client) -> bool:
    """Whether the client gets a refusal, and nothing after it is read."""
    status, headers, body = await client.read_answer()
    assert json.loads(body)["code"] == 40000
    return status == 400 and headers["connection"] == "close" and await client.is_closed()


@each_row("what", UNCLEAR)
@each_row("path", PATHS)
def test_an_unclear_request_is_refused_and_what_follows_is_not_read(path: str, what: str) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(request(path, UNCLEAR[what]) + NEXT)
        assert await is_refused(client)
        assert [call.body for _, call in server.echo.requests] == []

    run_server(scenario)


@pytest.mark.parametrize("what", CLEAR)
@pytest.mark.parametrize("path", PATHS)
def test_a_clear_request_is_answered_and_the_next_one_too(path: str, what: str) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        for _ in range(2):
            await client.send(request(path, CLEAR[what]))
            status, _, body = await client.read_answer()
            assert (status, body) == (200, b"{}" if path == PATH else b"page {}")

    run_server(scenario)


@each_row("path", PATHS)
@each_row("version", ["0.9", "1.2", "2.0", "3.0"])
def test_other_versions_are_refused(path: str, version: str) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(request(path, CLEAR["a length"], version))
        assert await is_refused(client)
        assert server.echo.requests == []

    run_server(scenario)


@pytest.mark.parametrize("path", PATHS)
def test_http_1_0_has_neither_chunks_nor_must_it_name_a_host(path: str) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(request(path, CLEAR["chunked"], "1.0"))
        assert await is_refused(client)
        client = await server.connect()
        await client.send(f"POST {path} HTTP/1.0\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert (await client.read_answer())[0] == 200
        client = await server.connect()
        await client.send(f"POST {path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert await is_refused(client)

    run_server(scenario)


@each_row(
    ("version", "host_count", "codings"),
    [("1.1", 1, []), ("1.0", 0, []), ("1.0", 1, []), ("1.1", 1, [b"chunked"]), ("1.1", 1, [b" Chunked\t"])],
)
def test_clear_framing(version: str, host_count: int, codings: list[bytes]) -> None:
    check_framing(version, host_count, codings)


@each_row(
    ("version", "host_count", "codings"),
    [
        ("1.1", 0, []),
        ("1.1", 2, []),
        ("1.0", 2, []),
        ("2.0", 1, []),
        ("0.9", 0, []),
        ("1.0", 1, [b"chunked"]),
        ("1.1", 1, [b""]),
        ("1.1", 1, [b"gzip"]),
        ("1.1", 1, [b"gzip, chunked"]),
        ("1.1", 1, [b"chunked", b"chunked"]),
        ("1.1", 1, [b"\x0bchunked"]),
        ("1.1", 1, ["ｃhunked".encode()]),
    ],
)
def test_unclear_framing(version: str, host_count: int, codings: list[bytes]) -> None:
    with pytest.raises(FramingUnclear):
        check_framing(version, host_count, codings)
