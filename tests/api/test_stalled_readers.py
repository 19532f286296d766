"""Clients that request a page and then read nothing of it, or read it slowly."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tests.echo_server import HOST, Client, EchoServer, run_server, until

from merchant_wallet.web import connection as page_connection
from merchant_wallet.web.connection import WRITE_TIMEOUT_S, PageConnection

PIECE = b"x" * 65_536
NEVER_S = 3600.0
"""No timer checks timeouts. Each test calls the check with its own time."""
LONG_BYTES = 50_000_000
"""More than the operating system buffers for a client that reads nothing."""


class Pages:
    """An endless page and a long page. `left` is set when the endless page ends."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def endless(self, request: Request) -> Response:
        return StreamingResponse(self._go_on())

    async def long(self, request: Request) -> Response:
        return Response(b"x" * LONG_BYTES)

    async def _go_on(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield PIECE
                # As a page that reads from the database does.
                await asyncio.sleep(0)
        finally:
            self.left.set()

    @property
    def routes(self) -> list[Route]:
        return [Route("/endless", self.endless), Route("/long", self.long)]


async def ask(server: EchoServer, path: str, headers: str = "") -> tuple[Client, PageConnection]:
    """Request a page and read its headers. Returns the client, and the server's connection once its
    buffers are full.
    """
    # A small window, so that the operating system buffers little between the two.
    reader, writer = await asyncio.open_connection(HOST, server.port, limit=4096)
    client = Client(reader, writer)
    server.clients.append(client)
    await client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
    await client.reader.readuntil(b"\r\n\r\n")
    (connection,) = server.listener._page_state.connections
    assert isinstance(connection, PageConnection)
    await settle(connection)
    return client, connection


async def settle(connection: PageConnection) -> None:
    """Wait until the operating system's buffers between the two are full."""
    taken = -1
    while taken != connection._count_taken() or not connection.transport.get_write_buffer_size():
        taken = connection._count_taken()
        await asyncio.sleep(0.05)


def test_a_reader_that_takes_nothing_is_cut_off_and_what_is_made_for_it_ends() -> None:
    pages = Pages()

    async def scenario(server: EchoServer) -> None:
        client, connection = await ask(server, "/endless")
        now_s = time.monotonic()
        connection.check_timeouts(now_s)
        connection.check_timeouts(now_s + WRITE_TIMEOUT_S - 0.1)
        assert not connection.transport.is_closing()
        connection.check_timeouts(now_s + WRITE_TIMEOUT_S)
        await pages.left.wait()
        await until(lambda: not server.listener._page_state.connections)
        client.close()

    run_server(scenario, further=pages.routes, tick_s=NEVER_S)


def test_a_reader_that_takes_a_little_now_and_then_goes_on() -> None:
    pages = Pages()

    async def scenario(server: EchoServer) -> None:
        client, connection = await ask(server, "/endless")
        now_s = time.monotonic()
        for turn in range(4):
            connection.check_timeouts(now_s + turn * (WRITE_TIMEOUT_S - 1))
            # The server writes more at once, so as much waits as before.
            await client.reader.readexactly(20 * len(PIECE))
            await settle(connection)
        connection.check_timeouts(now_s + 4 * (WRITE_TIMEOUT_S - 1))
        assert not connection.transport.is_closing()
        assert not pages.left.is_set()
        client.close()
        await pages.left.wait()

    run_server(scenario, further=pages.routes, tick_s=NEVER_S)


def test_an_answer_that_nobody_takes_keeps_no_connection_that_was_closed() -> None:
    pages = Pages()

    async def scenario(server: EchoServer) -> None:
        client, connection = await ask(server, "/long", "Connection: close\r\n")
        await until(connection.transport.is_closing)
        now_s = time.monotonic()
        connection.check_timeouts(now_s)
        assert server.listener._page_state.connections
        connection.check_timeouts(now_s + WRITE_TIMEOUT_S)
        await until(lambda: not server.listener._page_state.connections)
        client.close()

    run_server(scenario, further=pages.routes, tick_s=NEVER_S)


def test_where_the_kernel_does_not_tell_a_reader_goes_on_while_less_and_less_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As on a kernel whose `tcp_info` is shorter.
    monkeypatch.setattr(page_connection, "_BYTES_ACKED_AT", 4096)
    pages = Pages()

    async def scenario(server: EchoServer) -> None:
        client, connection = await ask(server, "/long")
        now_s = time.monotonic()
        for turn in range(4):
            waits_bytes = connection.transport.get_write_buffer_size()
            connection.check_timeouts(now_s + turn * (WRITE_TIMEOUT_S - 1))
            await client.reader.readexactly(LONG_BYTES // 10)
            await until(lambda: connection.transport.get_write_buffer_size() < waits_bytes)  # noqa: B023
        assert not connection.transport.is_closing()
        connection.check_timeouts(now_s + 4 * (WRITE_TIMEOUT_S - 1))
        connection.check_timeouts(now_s + 5 * WRITE_TIMEOUT_S)
        assert connection.transport.is_closing()
        client.close()

    run_server(scenario, further=pages.routes, tick_s=NEVER_S)


def test_a_client_to_whom_nothing_is_said_is_not_cut_off() -> None:
    async def scenario(server: EchoServer) -> None:
        client = await server.connect()
        await client.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.read_answer())[2] == b"page "
        (connection,) = server.listener._page_state.connections
        assert isinstance(connection, PageConnection)
        now_s = time.monotonic()
        for turn in range(3):
            connection.check_timeouts(now_s + turn * WRITE_TIMEOUT_S)
        await client.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.read_answer())[2] == b"page "

    run_server(scenario, tick_s=NEVER_S)
