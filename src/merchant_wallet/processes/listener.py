"""The HTTP server: a listening socket, and a protocol for each connection.

Rules:
- `api.connection` answers requests for operations. `web.connection` answers all others with the ASGI
  application. Both run in the same event loop.
- Before a stop it can stop to accept connections without losing one (see `listening_socket`).
- On stop, idle connections are closed at once. Requests under way get `STOP_TIMEOUT_S` to end.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Final

import structlog
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import ServerState

from merchant_wallet.api.admission import Admission
from merchant_wallet.api.connection import ListenerState
from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import Endpoint
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.processes.listening_socket import drop_new_connections, let_packets_in
from merchant_wallet.web.connection import PageConnection

log = structlog.get_logger("listener")

BACKLOG: Final = 4096
MAX_CONNECTIONS: Final = 8192
SOURCE_CONNECTIONS: Final = 1024
RESERVED_FILES: Final = 256
"""So many files are reserved for database, logs and static files; the rest is for clients."""
LEAST_CONNECTIONS: Final = 256
"""A web process that may take fewer does not start: its callers would wait for each other."""
TICK_S: Final = 1.0
KEEP_ALIVE_S: Final = 75
STOP_TIMEOUT_S: Final = 5.0
ACCEPT_REST_S: Final = 0.3
"""How long handshakes that have begun may take before the socket is closed."""


def count_connections(files: int) -> int:
    """The most connections of a process that may open so many files. Raises ConfigError for too few. Pure."""
    least = LEAST_CONNECTIONS + RESERVED_FILES
    if files < least:
        raise ConfigError(
            f"This process may open {files} files at once, and needs {least}: raise the hard limit"
            " (`ulimit -Hn`, LimitNOFILE= of a systemd unit)."
        )
    return files - RESERVED_FILES


class Listener:
    """One listening socket with its connections."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        dependencies: Dependencies,
        application: ASGIApp,
        max_connections: int = MAX_CONNECTIONS,
        source_connections: int = SOURCE_CONNECTIONS,
        siblings: Siblings | None = None,
    ) -> None:
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
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        self._config.load()
        self._page_state = ServerState()
        self.admission = Admission(
            max_connections, source_connections, dependencies.proxies.networks, siblings=siblings
        )
        self._logged = (0, 0)
        self._state = ListenerState(
            {path.encode(): endpoint for path, endpoint in endpoints.items()},
            dependencies,
            self._make_page_connection,
            self.admission,
        )
        self._dependencies = dependencies
        # Bytes that are not a request are in our own log, with a request id.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server: asyncio.Server | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        """Listen on a bound socket, and close it at the end. Raises OSError."""
        self._tick()
        loop = asyncio.get_running_loop()
        self._socket = listening
        self._server = await loop.create_server(self._state.make_connection, sock=listening, backlog=BACKLOG)
        self._ticking = asyncio.create_task(self._keep_ticking())

    async def stop_accepting(self, *, is_kept: bool) -> None:
        """Accept what waits, then accept nothing more. `is_kept`: somebody else keeps the socket open."""
        assert self._server is not None, "it listens"
        if not is_kept:
            self._state.welcome = _let_packets_in
            drop_new_connections(self._socket)
            await asyncio.sleep(ACCEPT_REST_S)
        self._server.close()

    def is_idle_for(self, idle_s: float) -> bool:
        """Whether every connection waits for its client's next request, for at least this time."""
        now_s = time.monotonic()
        waits = [connection.client_wait() for connection in self.admission.connections()]
        return all(wait and not wait.is_slow and now_s - wait.since_s >= idle_s for wait in waits)

    def end_connections(self) -> None:
        """From now on each answer ends its connection."""
        self._dependencies.in_flight.ending = True
        self._set_page_headers()

    async def stop(self) -> None:
        """Stop listening, let requests under way end, close every connection."""
        if self._server is None or self._ticking is None:
            return
        self._server.close()
        self._state.closing = True
        for connection in list(self._state.open):
            connection.close_if_idle()
        for other in list(self._page_state.connections):
            other.shutdown()
        ends = time.monotonic() + STOP_TIMEOUT_S
        # Both kinds of connection close by themselves and notify nobody.
        while (self._state.open or self._page_state.connections) and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        self._ticking.cancel()
        await asyncio.gather(self._ticking, return_exceptions=True)

    def _make_page_connection(self) -> PageConnection:
        return PageConnection(
            self._config, self._page_state, self._dependencies, self._state.endpoints, self.admission
        )

    async def _keep_ticking(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tick()

    def _tick(self) -> None:
        """Once a second: renew the Date header (RFC 9110 section 6.6.1) and check timeouts of clients."""
        self._state.date = formatdate(usegmt=True).encode()
        self._set_page_headers()
        self._log_evictions()
        now_s = time.monotonic()
        for connection in list(self._state.open):
            connection.check_timeouts(now_s)
        for other in list(self._page_state.connections):
            if isinstance(other, PageConnection):
                other.check_timeouts(now_s)

    def _set_page_headers(self) -> None:
        ends = [(b"connection", b"close")] if self._dependencies.in_flight.ending else []
        self._page_state.default_headers = [(b"date", self._state.date), *ends]

    def _log_evictions(self) -> None:
        """Log connections that were closed or refused at the limits since the last tick."""
        admission = self.admission
        counts = (admission.closed, admission.refused)
        if counts != self._logged:
            closed, refused = counts[0] - self._logged[0], counts[1] - self._logged[1]
            log.warning(
                "connections closed for new ones", closed=closed, refused=refused, open=len(admission)
            )
            self._logged = counts


def _let_packets_in(transport: asyncio.Transport) -> None:
    """A connection from a socket that drops packets must not drop them, too."""
    let_packets_in(transport.get_extra_info("socket"))
