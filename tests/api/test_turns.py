"""Whose turn a request waits for."""

import socket
from typing import cast

import pytest
from tests.echo_server import HOST, EchoServer, KnownMerchants, post, run_server, until

from merchant_wallet.api.turns import SHARED, find_turn
from merchant_wallet.merchants.cache import MerchantCache

KEY = "mk_0123456789abcdef"
SOURCE = "192.0.2.1"


KNOWN = cast(MerchantCache, KnownMerchants(KEY))


@pytest.mark.parametrize(
    "body",
    [
        b'{"appKey":"%b","timestamp":1}',
        b'{ "timestamp" : 1, "appKey" :\n "%b" }',
        b"appKey=%b&timestamp=1",
        b"timestamp=1&appKey=%b",
    ],
)
def test_a_known_merchant_has_a_turn_for_each_source_address(body: bytes) -> None:
    assert find_turn(body % KEY.encode(), SOURCE, KNOWN) == (KEY, SOURCE)
    assert find_turn(body % KEY.encode(), "192.0.2.2", KNOWN) == (KEY, "192.0.2.2")


@pytest.mark.parametrize(
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
def test_all_requests_without_a_known_app_key_share_one_turn(body: bytes) -> None:
    assert find_turn(body, SOURCE, KNOWN) == SHARED
    assert find_turn(body, "192.0.2.2", KNOWN) == SHARED


def test_a_call_is_begun_before_most_of_another_merchants_crowd() -> None:
    crowd_size = 300
    theirs, ours = (post(b'{"appKey":"%b"}' % key) for key in (b"theirs", b"ours"))

    async def scenario(server: EchoServer) -> None:
        connections = [socket.create_connection((HOST, server.port)) for _ in range(crowd_size + 1)]
        try:
            await until(lambda: len(server.listener.admission) == len(connections))
            # The event loop finds them all at once: the crowd's first, then our call.
            for connection in connections[:-1]:
                connection.sendall(theirs)
            connections[-1].sendall(ours)
            await until(lambda: len(server.echo.requests) == len(connections))
        finally:
            for connection in connections:
                connection.close()
        bodies = [request.body for _, request in server.echo.requests]
        assert bodies.index(b'{"appKey":"ours"}') < crowd_size / 3

    run_server(scenario, known=KnownMerchants("ours", "theirs"))
