"""Whose turn a request waits for."""

import socket
from typing import cast

import pytest
from tests.echo_server import HOST, EchoServer, KnownMerchants, post, run_server, until
from tests.rows import each_row

from merchant_wallet.api.turns import SHARED, find_turn
from merchant_wallet.merchants.cache import MerchantCache

KEY = "mk_0123456789abcdef"
SOURCE = "192.0.2.1"


KNOWN = cast(MerchantCache, KnownMerchants(KEY))


@each_row(
    "body",
    [
        b'{"appKey":"%b","timestamp":1}',
        b'{ "timestamp" : 1, "appKey" :\n "%b" }',
        b"appKey=%b&timestamp=1",
        b"timestamp=1&appKey=%b",
    ],
)
def test_a_known_merchants_turns_are_taken_by_its_sources(body: bytes) -> None:
    assert find_turn(body % KEY.encode(), SOURCE, KNOWN) == (KEY, SOURCE)
    assert find_turn(body % KEY.encode(), "192.0.2.2", KNOWN) == (KEY, "192.0.2.2")


@each_row(
    "body",
    [
        b"",
        b"appKey",
        b'{"appKey":',
        b'{"appKey":7}',
        b'{"appKey":"invented"}',
        b"appKey=invented&timestamp=1",
        b'{"appKey":"' + b"k" * 70_000 + b'"}',
        b"\xff" * 100,
        b"appKey=" * 10_000,
    ],
)
def test_all_sources_without_a_known_app_key_share_one_turn(body: bytes) -> None:
    shared = SHARED[0]
    assert find_turn(body, SOURCE, KNOWN) == (shared, SOURCE)
    assert find_turn(body, "192.0.2.2", KNOWN) == (shared, "192.0.2.2")


def test_a_subscribers_ipv6_addresses_are_one_source() -> None:
    body = b"appKey=%b" % KEY.encode()
    first, second, other = (
        find_turn(body, source, KNOWN) for source in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    )
    assert first == second
    assert first != other


def _connect_from(port: int, source: str) -> socket.socket:
    return socket.create_connection((HOST, port), source_address=(source, 0))


@pytest.mark.parametrize("crowd_key", [b"theirs", b"invented"])
def test_a_call_is_begun_in_the_second_turn_beside_a_crowd_from_many_sources(crowd_key: bytes) -> None:
    sources = [f"127.0.1.{number}" for number in range(1, 31)] * 10
    their_body, our_body = (b'{"appKey":"%b"}' % key for key in (crowd_key, b"ours"))

    async def scenario(server: EchoServer) -> None:
        connections = [_connect_from(server.port, source) for source in [*sources, HOST]]
        try:
            await until(lambda: len(server.listener.admission) == len(connections))
            # The event loop finds them all at once: the crowd's first, then our call.
            for connection in connections[:-1]:
                connection.sendall(post(their_body))
            connections[-1].sendall(post(our_body))
            await until(lambda: len(server.echo.requests) == len(connections))
        finally:
            for connection in connections:
                connection.close()
        assert [request.body for _, request in server.echo.requests].index(our_body) == 1

    run_server(scenario, known=KnownMerchants("ours", "theirs"))
