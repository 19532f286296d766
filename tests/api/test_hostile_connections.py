"""Hostile clients: they lie, stall, ask for other protocols or send what is no request."""

import asyncio
import json
import time
from ipaddress import IPv4Network

import pytest
from tests.echo_server import PATH, Client, EchoServer, post, run_server, until
from tests.rows import each_row

from merchant_wallet.api.connection import MAX_HEAD_BYTES, MAX_UNFINISHED_BYTES
from merchant_wallet.api.endpoint import BODY_TIMEOUT_S

UPGRADE = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
GET_PAGE = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"


def _is_refusal(answer: tuple[int, dict[str, str], bytes], status: int, code: int) -> bool:
    """Whether an answer is a refusal's envelope with the headers of every answer."""
    envelope = json.loads(answer[2])
    assert envelope["data"] is None
    assert envelope["msg"]
    assert answer[1]["content-type"] == "application/json; charset=utf-8"
    assert answer[1]["x-request-id"].startswith("req_")
    assert answer[1]["date"]
    return (answer[0], envelope["code"]) == (status, code)


def test_an_offer_of_another_protocol_is_declined_and_the_request_carried_out() -> None:
    """Java's client sends its first request like this to an address without TLS (RFC 9110 section 7.8)."""

    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"first", UPGRADE) + post(b"second", UPGRADE) + post(b"third"))
        for body in (b"first", b"second", b"third"):
            status, headers, answer = await client.read_answer()
            assert (status, answer) == (200, body)
            assert "connection" not in headers
        for byte in post(b"slowly", UPGRADE):
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.read_answer())[2] == b"slowly"
        assert {call.content_type for _, call in server.echo.requests} == {"application/json"}

    run_server(scenario)


def test_a_body_in_chunks_comes_with_an_offer_of_another_protocol() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{UPGRADE}\r\n".encode()
        await client.send(head + b"3\r\nabc\r\n0\r\n\r\n")
        assert (await client.read_answer())[2] == b"abc"

    run_server(scenario)


def test_a_client_that_sends_no_more_still_reads_its_answer() -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"1") + post(b"2"))
        client.end()
        for number in (1, 2):
            await until(lambda: len(server.echo.requests) == number)  # noqa: B023 - awaited in the same turn
            await asyncio.sleep(0.02)
            server.echo.answer(server.echo.requests[-1][1])
            assert (await client.read_answer())[2] == str(number).encode()
        assert await client.is_closed()

    run_server(scenario)


def test_a_client_that_ends_in_the_middle_of_a_request_is_let_go() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"half", length=10))
        client.end()
        assert await client.is_closed()
        assert server.echo.requests == []

    run_server(scenario)


def test_what_comes_behind_the_body_is_no_header() -> None:
    """Trailer fields come from the client, even behind a proxy that sets headers (RFC 9110 section 6.5.1)."""

    async def scenario(server: EchoServer) -> None:
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\n"
        head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        trailer = "1\r\nx\r\n0\r\nX-Forwarded-For: 10.0.0.1\r\nContent-Type: text/plain\r\n\r\n"
        client = await server.connect()
        await client.send((head + trailer).encode())
        await client.read_answer()
        call = server.echo.requests[0][1]
        assert (call.source, call.content_type) == ("192.0.2.7", "application/json")

    run_server(scenario, trusted_proxies=(IPv4Network("127.0.0.0/8"),))


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /merchant/echo HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /merchant/\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /merchant/echo HTTP/1.1\r\nX: " + b"y" * (2 * MAX_HEAD_BYTES) + b"\r\n\r\n",
        b"GET /page HTTP/1.1\r\nX: " + b"y" * (2 * MAX_HEAD_BYTES) + b"\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ],
)
def test_what_is_no_request_is_answered_with_an_envelope_too(raw: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(raw)
        answer = await client.read_answer()
        assert _is_refusal(answer, 400, 40000)
        assert answer[1]["connection"] == "close"
        assert await client.is_closed()

    run_server(scenario)


@each_row("method", ["post", "FOO", "M-SEARCHER"])
def test_a_method_that_nobody_knows_is_another_method_all_the_same(method: str) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post().replace(b"POST", method.encode()))
        answer = await client.read_answer()
        assert _is_refusal(answer, 405, 405)
        assert answer[1]["allow"] == "post"

    run_server(scenario)


@pytest.mark.parametrize("behind", [GET_PAGE, b"HEAD /merchant/echo HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_what_is_no_operation_in_the_same_bytes_is_not_answered_as_one(behind: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"first") + post(b"second") + behind + post(b"never"))
        assert (await client.read_answer())[2] == b"first"
        _, headers, body = await client.read_answer()
        assert (headers["connection"], body) == ("close", b"second")
        assert await client.is_closed()
        assert len(server.echo.requests) == 2

    run_server(scenario)


@pytest.mark.parametrize("start", [b"POST /merchant/echo HTTP/1.1\r\nX: ", b"GET /page HTTP/1.1\r\nX: "])
def test_a_header_without_end_is_cut_off(start: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(start)
        sending = asyncio.create_task(_send_on(client, b"y" * 65536, 100 * MAX_UNFINISHED_BYTES))
        assert await sending < 100 * MAX_UNFINISHED_BYTES

    run_server(scenario)


async def _send_on(client: Client, piece: bytes, most: int) -> int:
    """Send a piece again and again until the connection breaks. Returns the number of bytes sent."""
    sent = 0
    try:
        while sent < most:
            await client.send(piece)
            sent += len(piece)
    except ConnectionError:
        return sent
    return sent


@pytest.mark.parametrize(
    "start", [b"G", b"GET /page HTTP/1.1\r\n", b"POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"]
)
def test_nobody_keeps_a_page_s_connection_by_being_slow(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(server: EchoServer) -> None:
        slow, quick = await server.connect(), await server.connect()
        await slow.send(start)
        await quick.send(GET_PAGE)
        await quick.read_answer()
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + 2 * BODY_TIMEOUT_S + 1)
        assert await slow.is_closed()
        await quick.send(GET_PAGE)
        assert (await quick.read_answer())[2] == b"page "

    run_server(scenario)


def test_half_a_request_behind_one_under_way_is_never_answered_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"long") + post(b"half", length=10))
        await until(lambda: len(server.echo.requests) == 1)
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + BODY_TIMEOUT_S + 1)
        await asyncio.sleep(0.2)
        server.echo.answer(server.echo.requests[0][1])
        assert (await client.read_answer())[2] == b"long"

    run_server(scenario)


def test_a_late_body_is_answered_whatever_query_its_path_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"half", path=f"{PATH}?a=b", length=10))
        await asyncio.sleep(0.05)
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + BODY_TIMEOUT_S + 1)
        assert _is_refusal(await client.read_answer(), 200, 40000)

    run_server(scenario)


def test_connections_of_pages_count_among_those_that_may_be_open() -> None:
    async def scenario(server: EchoServer) -> None:
        clients = [await server.connect() for _ in range(2)]
        for client in clients:
            await client.send(GET_PAGE)
            await client.read_answer()
        assert await (await server.connect()).is_closed()

    run_server(scenario, max_connections=2)


@pytest.mark.parametrize("count", [520, 3000])
def test_any_number_of_offers_at_once_is_declined_one_after_the_other(count: int) -> None:
    """Once each was handled by a call nested in the one before, until Python's recursion limit."""

    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        sending = asyncio.create_task(client.send(b"".join(post(b"%d" % n, UPGRADE) for n in range(count))))
        for number in range(count):
            assert (await client.read_answer())[2] == b"%d" % number
        await sending
        assert len(server.echo.requests) == count

    run_server(scenario)


def test_an_offer_does_not_change_what_is_asked_for() -> None:
    """A GET after an operation's request closes the connection. `Upgrade` does not make it a POST."""

    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        sneaking = f"GET {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{UPGRADE}\r\n{{}}".encode()
        await client.send(post(b"first") + sneaking)
        assert (await client.read_answer())[2] == b"first"
        assert await client.is_closed()
        assert len(server.echo.requests) == 1

    run_server(scenario)


def test_a_page_is_given_with_its_body_to_those_who_offer_another_protocol() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        form = f"POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n{UPGRADE}\r\n".encode()
        for number in range(600):
            await client.send(form + b"%03d" % number)
            assert (await client.read_answer())[2] == b"page %03d" % number
        await client.send((form + b"abc") * 3)
        for _ in range(3):
            assert (await client.read_answer())[2] == b"page abc"
        for byte in form + b"xyz":
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.read_answer())[2] == b"page xyz"

    run_server(scenario)


def test_a_page_request_with_an_unreadable_body_is_refused_at_once() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        head = b"POST /page HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
        await client.send(head)
        await asyncio.sleep(0)
        await client.send(b"no size\r\n")
        assert _is_refusal(await client.read_answer(), 400, 40000)
        assert await client.is_closed()

    run_server(scenario)
