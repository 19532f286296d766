"""Connections of the operations: order, limits, timeouts. Clients send in pieces, ahead of answers, or too
much.
"""

import asyncio
import time
from functools import partial

import pytest
from tests.echo_server import PATH, Client, EchoServer, post, run_server, until
from tests.rows import each_row

from merchant_wallet.api.connection import MAX_DISCARDED_BYTES, MAX_HEAD_BYTES, MAX_PIPELINED
from merchant_wallet.api.dependencies import OperationRequest
from merchant_wallet.api.endpoint import BODY_TIMEOUT_S
from merchant_wallet.api.wire import MAX_BODY_BYTES


def test_requests_of_a_connection_are_answered_one_after_the_other() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        for body in (b"first", b"second"):
            await client.send(post(body))
            status, headers, answer = await client.read_answer()
            assert (status, answer) == (200, body)
            assert headers["x-request-id"]
            assert headers["date"].endswith("gmt")
            assert headers["cache-control"] == "no-store"
            assert "connection" not in headers

    run_server(scenario)


def test_a_request_in_single_bytes_is_read_whole() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        for byte in post(b"slowly"):
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.read_answer())[2] == b"slowly"

    run_server(scenario)


def test_requests_sent_ahead_wait_for_the_one_before_and_keep_their_order() -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"1") + post(b"2") + post(b"3"))
        requests = server.echo.requests
        for number in (1, 2, 3):
            await until(partial(_has, requests, number))
            await asyncio.sleep(0.02)
            assert len(server.echo.requests) == number
            server.echo.answer(server.echo.requests[-1][1])
            assert (await client.read_answer())[2] == str(number).encode()

    run_server(scenario)


def test_a_client_far_ahead_is_no_longer_read_and_still_gets_every_answer() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        count = 20 * MAX_PIPELINED
        await client.send(b"".join(post(b"%d" % number) for number in range(count)))
        for number in range(count):
            assert (await client.read_answer())[2] == b"%d" % number

    run_server(scenario)


def test_a_body_in_chunks_is_put_together() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        await client.send(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await client.read_answer())[2] == b"abcde"
        assert server.echo.requests[0][1].content_type is None

    run_server(scenario)


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        request = post(b"body", "Expect: 100-continue\r\n")
        await client.send(request[:-4])
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(request[-4:])
        assert (await client.read_answer())[2] == b"body"

    run_server(scenario)


@each_row(
    ("path", "media_type", "length", "code"),
    [
        (PATH, "text/plain", 4, 415),
        (PATH, "application/json", MAX_BODY_BYTES + 1, 413),
        ("/merchant/nothing", "application/json", 4, 404),
    ],
)
def test_a_client_that_asks_first_is_refused_before_it_sends_a_body(
    path: str, media_type: str, length: int, code: int
) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n"
        await client.send(f"{head}Content-Type: {media_type}\r\n\r\n".encode())
        status, kept, _ = await client.read_answer()
        assert (status, kept["connection"]) == (code, "close")

    run_server(scenario)


@pytest.mark.parametrize("size", [MAX_BODY_BYTES + 1, 20 * MAX_BODY_BYTES])
def test_a_body_that_is_too_long_is_handed_on_so_that_it_can_be_refused(size: int) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"x" * size))
        assert (await client.read_answer())[0] == 200
        kept = len(server.echo.requests[0][1].body)
        assert MAX_BODY_BYTES < kept <= size
        await client.send(post(b"next"))
        assert (await client.read_answer())[2] == b"next"

    run_server(scenario)


def test_a_body_without_end_is_answered_and_cut_off() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        sending = asyncio.create_task(_send_all(client, post(b"x" * (8 * MAX_DISCARDED_BYTES))))
        status, headers, _ = await client.read_answer()
        assert (status, headers["connection"]) == (200, "close")
        assert len(server.echo.requests) == 1
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    run_server(scenario)


async def _send_all(client: Client, raw: bytes) -> None:
    try:
        await client.send(raw)
    except ConnectionError:
        # The server need not read the rest of what it has refused.
        return


@each_row(
    "raw",
    [
        b"POST /merchant/echo HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /merchant/echo HTTP/1.1\r\n\x00: y\r\n\r\n",
        b"POST /merchant/echo HTTP/9.9\r\n\r\n",
        b"POST /merchant/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /merchant/echo HTTP/1.1\r\nX: " + b"y" * (2 * MAX_HEAD_BYTES) + b"\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_end_the_connection(raw: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(raw)
        status, headers, _ = await client.read_answer()
        assert (status, headers["connection"]) == (400, "close")
        assert await client.is_closed()
        assert server.echo.requests == []

    run_server(scenario)


def test_nonsense_behind_a_request_does_not_cost_that_request_its_answer() -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"good") + b"POST /merchant/ \x00\x01\r\n\r\n")
        await until(lambda: len(server.echo.requests) == 1)
        server.echo.answer(server.echo.requests[0][1])
        assert (await client.read_answer())[2] == b"good"
        assert await client.is_closed()

    run_server(scenario)


def test_a_client_that_closes_after_its_request_may_say_so() -> None:
    async def scenario(server: EchoServer) -> None:
        for request in (
            post(b"bye", "Connection: close\r\n"),
            post(b"bye").replace(b"HTTP/1.1", b"HTTP/1.0"),
        ):
            client = await server.connect()
            await client.send(request)
            _, headers, body = await client.read_answer()
            assert (headers["connection"], body) == ("close", b"bye")
            assert await client.is_closed()

    run_server(scenario)


def test_a_client_that_goes_away_leaves_its_request_to_be_carried_out() -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"alone"))
        await until(lambda: len(server.echo.requests) == 1)
        client.close()
        await asyncio.sleep(0.05)
        server.echo.answer(server.echo.requests[0][1])
        other = await server.connect()
        server.echo.holds = False
        await other.send(post(b"other"))
        assert (await other.read_answer())[2] == b"other"

    run_server(scenario)


def test_a_path_below_merchant_that_is_no_operation_is_answered_with_an_envelope() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(path="/merchant/else"))
        status, _, body = await client.read_answer()
        assert status == 404
        assert b'"code":404' in body
        await client.send(post(b"known"))
        assert (await client.read_answer())[2] == b"known"

    run_server(scenario)


def test_a_query_behind_the_path_changes_nothing() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(post(b"same", path=f"{PATH}?a=b"))
        assert (await client.read_answer())[2] == b"same"

    run_server(scenario)


def test_pages_are_served_on_a_connection_of_their_own_and_after_an_operation() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        for _ in range(2):
            await client.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await client.read_answer())[2] == b"page "
        other = await server.connect()
        await other.send(post(b"first"))
        assert (await other.read_answer())[2] == b"first"
        await other.send(b"POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
        status, headers, body = await other.read_answer()
        assert (status, body) == (200, b"page body")
        assert headers["date"]

    run_server(scenario)


def test_the_start_of_a_request_may_come_in_pieces_before_it_is_known_whose_it_is() -> None:
    async def scenario(server: EchoServer) -> None:
        for start, rest, answer in (
            (b"POS", b"T /page HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"page "),
            (b"POST /mer", post(b"ours")[9:], b"ours"),
        ):
            client = await server.connect()
            await client.send(start)
            await asyncio.sleep(0.05)
            await client.send(rest)
            assert (await client.read_answer())[2] == answer

    run_server(scenario)


def test_a_page_asked_for_behind_an_operation_under_way_closes_the_connection_after_its_answer() -> None:
    async def scenario(server: EchoServer) -> None:
        server.echo.holds = True
        client = await server.connect()
        await client.send(post(b"first"))
        await until(lambda: len(server.echo.requests) == 1)
        await client.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.05)
        server.echo.answer(server.echo.requests[0][1])
        assert (await client.read_answer())[2] == b"first"
        assert await client.is_closed()

    run_server(scenario)


def test_a_body_that_does_not_come_is_answered_in_time_and_an_idle_connection_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(server: EchoServer) -> None:
        waiting, silent, idle = [await server.connect() for _ in range(3)]
        await waiting.send(post(b"half", length=10))
        await idle.send(post(b"done"))
        await idle.read_answer()
        server.echo.holds = True
        busy = await server.connect()
        await busy.send(post(b"busy"))
        await until(lambda: len(server.echo.requests) == 2)
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + BODY_TIMEOUT_S + 1)
        status, headers, body = await waiting.read_answer()
        assert (status, headers["connection"]) == (200, "close")
        assert b"did not arrive" in body
        assert await silent.is_closed()
        monkeypatch.setattr(time, "monotonic", lambda: real() + 1000)
        assert await idle.is_closed()
        server.echo.answer(server.echo.requests[1][1])
        assert (await busy.read_answer())[2] == b"busy"

    run_server(scenario)


def test_while_it_gets_ready_to_stop_its_answers_say_that_the_connection_ends() -> None:
    """A client that kept the connection would lose its next request when the server stops."""

    async def scenario(server: EchoServer) -> None:
        server.dependencies.in_flight.ending = True
        client = await server.connect()
        await client.send(post(b"1") + post(b"2"))
        assert "connection" not in (await client.read_answer())[1]
        assert (await client.read_answer())[1]["connection"] == "close"
        assert await client.is_closed()

    run_server(scenario)


def test_told_to_stop_it_closes_what_is_idle_and_answers_what_is_under_way() -> None:
    async def scenario(server: EchoServer) -> None:
        idle, busy = await server.connect(), await server.connect()
        await idle.send(post(b"done"))
        await idle.read_answer()
        server.echo.holds = True
        await busy.send(post(b"last"))
        await until(lambda: len(server.echo.requests) == 2)
        stopping = asyncio.create_task(server.listener.stop())
        assert await idle.is_closed()
        assert not stopping.done()
        server.echo.answer(server.echo.requests[1][1])
        _, headers, body = await busy.read_answer()
        assert (headers["connection"], body) == ("close", b"last")
        await stopping

    run_server(scenario)


def _has(requests: list[tuple[str, OperationRequest]], count: int) -> bool:
    return len(requests) == count
