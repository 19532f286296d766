"""The small HTTP server of nodes and endpoints."""

import socket
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler

from devnet.http_server import HttpServer
from tests.waits import TIMEOUT_S


def test_many_clients_connect_at_once() -> None:
    with HttpServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server, ExitStack() as waiting:
        # Nobody serves, so all of them wait.
        for _ in range(50):
            waiting.enter_context(
                socket.create_connection(("127.0.0.1", server.server_port), timeout=TIMEOUT_S)
            )
