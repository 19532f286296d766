"""`/metrics`: who may read it, and where it is served.

Rules: only the networks of the settings may read it. For all others the path does not exist. That includes
requests through a proxy that the settings do not name: the proxy's own address says nothing about the client.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from merchant_wallet.base.source_addresses import Network, find_source, read_address

MAX_PORT: Final = 65_535

PATH = "/metrics"
FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "via")

Render = Callable[[], Awaitable[bytes]]


def make_route(render: Render, networks: Sequence[Network], trusted_proxies: tuple[Network, ...]) -> Route:
    """The page as a route."""

    async def show(request: Request) -> Response:
        if not _admits(request, networks, trusted_proxies):
            raise HTTPException(404)
        return Response(await render(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return Route(PATH, show, methods=["GET"])


def _admits(request: Request, networks: Sequence[Network], trusted_proxies: tuple[Network, ...]) -> bool:
    peer = request.client.host if request.client else ""
    source = find_source(peer, request.headers.getlist("x-forwarded-for"), trusted_proxies)
    if source == peer and any(name in request.headers for name in FORWARDED):
        return False
    address = read_address(source)
    return any(address in network for network in networks)


class PageServer:
    """Serves only this page, on its own port, for a process without another server."""

    def __init__(self, route: Route) -> None:
        application = Starlette(routes=[route])
        self._config = Config(
            application,
            interface="asgi3",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        self._config.load()
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, ports: int = 1) -> int:
        """Listen on the first free one of some ports, from `port` on, and return it. Raises OSError."""
        loop, last = asyncio.get_running_loop(), min(port + ports - 1, MAX_PORT)
        for number in range(port, last + 1):
            try:
                self._server = await loop.create_server(self._make_protocol, host, number)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or number == last:
                    raise
        assert self._server is not None, "there is a first port"
        return int(self._server.sockets[0].getsockname()[1])

    def _make_protocol(self) -> asyncio.Protocol:
        return HttpToolsProtocol(self._config, self._state, {})

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._state.connections):
                connection.shutdown()
            self._server = None
