"""One source opens every connection that it can, and a merchant elsewhere notices nothing."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tests.echo_server import HOST, Client, EchoServer, post, run_server, until

from merchant_wallet.api import admission
from merchant_wallet.api.admission import AdmittedConnection
from merchant_wallet.base.config import ConfigError
from merchant_wallet.processes.file_limit import raise_file_limit
from merchant_wallet.processes.listener import SOURCE_CONNECTIONS, count_connections

ATTACKER, MERCHANT, OTHER = "127.0.0.3", "127.0.0.2", "127.0.0.4"
FLOOD = 9000
OWN_FILES = 500
TIMEOUT_S = 240.0
MAX_CONCURRENT = 200
GET_PAGE = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
GET_STREAM = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"


def is_slow(held: AdmittedConnection) -> bool:
    """Whether a connection has a request that arrived only in part."""
    waiting = held.client_wait()
    return waiting is not None and waiting.is_slow


async def is_served(client: Client, body: bytes) -> bool:
    """Whether a request is answered on this connection."""
    await client.send(post(body))
    status, _, answer = await client.read_answer()
    return (status, answer) == (200, body)


async def connect_raw(server: EchoServer, source: str) -> socket.socket:
    """A connection that sends nothing."""
    connection = socket.socket()
    connection.setblocking(False)
    connection.bind((source, 0))
    await asyncio.get_running_loop().sock_connect(connection, (HOST, server.port))
    return connection


def test_nine_thousand_connections_from_one_address_are_no_merchants_trouble() -> None:
    files = raise_file_limit(2 * FLOOD + OWN_FILES)
    # Both ends of each connection are in this process. If fewer files may be open, the flood is smaller.
    count = min(FLOOD, (files - OWN_FILES) // 2)
    if count < 2 * SOURCE_CONNECTIONS:
        pytest.skip(f"{files} files may be open here, too few for a flood")

    async def scenario(server: EchoServer) -> None:
        old = await server.connect(MERCHANT)
        assert await is_served(old, b"before")
        flood: list[socket.socket] = []
        try:
            for number in range(0, count, MAX_CONCURRENT):
                some = min(MAX_CONCURRENT, count - number)
                flood += await asyncio.gather(*(connect_raw(server, ATTACKER) for _ in range(some)))
                assert await is_served(old, b"%d" % number)
                assert len(server.listener.admission) <= SOURCE_CONNECTIONS + 1
            assert len(flood) == count
            new = await server.connect(MERCHANT)
            assert await is_served(new, b"new")
            assert await is_served(old, b"after")
        finally:
            for connection in flood:
                connection.close()

    run_server(scenario, timeout_s=TIMEOUT_S)


def test_requests_that_never_end_go_before_those_that_wait_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "MIN_IDLE_S", 0.0)

    async def scenario(server: EchoServer) -> None:
        idle = await server.connect(ATTACKER)
        assert await is_served(idle, b"1")
        slow = [await server.connect(ATTACKER) for _ in range(3)]
        for client, start in zip(slow, (b"PO", post(b"half", length=10), GET_PAGE[:20]), strict=True):
            await client.send(start)
        await until(lambda: sum(is_slow(one) for one in server.listener.admission.connections()) == 3)
        for number in range(3):
            assert await is_served(await server.connect(ATTACKER), b"%d" % number)
        for client in slow:
            await client.read_until_closed()
        assert await is_served(idle, b"2")

    run_server(scenario, source_connections=4)


def test_live_streams_and_requests_in_flight_stay_when_all_connections_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "MIN_IDLE_S", 0.0)
    let_go = asyncio.Event()

    async def follow(request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield b"first"
            await let_go.wait()
            yield b"last"

        return StreamingResponse(events())

    async def scenario(server: EchoServer) -> None:
        stream = await server.connect(OTHER)
        # A next request that arrived only in part does not make this connection slow.
        await stream.send(GET_STREAM + GET_PAGE[:20])
        assert b"200 OK" in await stream.reader.readuntil(b"first")
        server.echo.holds = True
        busy = await server.connect(OTHER)
        await busy.send(post(b"busy"))
        await until(lambda: len(server.echo.requests) == 1)
        server.echo.holds = False
        idle = [await server.connect(ATTACKER) for _ in range(3)]
        for client in idle:
            await client.send(GET_PAGE)
            assert (await client.read_answer())[0] == 200
        for number in range(3):
            assert await is_served(await server.connect(MERCHANT), b"%d" % number)
        for client in idle:
            assert await client.is_closed()
        server.echo.answer(server.echo.requests[0][1])
        assert (await busy.read_answer())[2] == b"busy"
        let_go.set()
        await stream.reader.readuntil(b"last")

    run_server(scenario, max_connections=5, further=[Route("/stream", follow)])


def test_a_connection_of_a_page_is_no_longer_counted_when_it_ends() -> None:
    async def scenario(server: EchoServer) -> None:
        for _ in range(10):
            client = await server.connect(OTHER)
            await client.send(GET_PAGE)
            assert (await client.read_answer())[0] == 200
            client.close()
            await until(lambda: len(server.listener.admission) == 0)

    run_server(scenario, source_connections=1)


def test_the_limit_of_files_is_raised_no_further_than_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lower = min(soft, 512)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lower, hard))
        assert raise_file_limit(lower + 10) == lower + 10
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (lower + 10, hard)
        assert raise_file_limit(lower) == lower
        if hard != resource.RLIM_INFINITY:
            assert raise_file_limit(hard + 1000) == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_that_may_open_few_files_is_refused_with_both_numbers() -> None:
    assert count_connections(512) == 256
    with pytest.raises(ConfigError, match="may open 256 files at once, and needs 512: raise the hard limit"):
        count_connections(256)
