"""A listener with one operation and one page, and clients that send bytes to it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.crash.shop import run
from tests.waits import TIMEOUT_S

from merchant_wallet.api.dependencies import Dependencies, OperationRequest
from merchant_wallet.api.endpoint import Endpoint, write_refusal
from merchant_wallet.api.gate import Gate
from merchant_wallet.api.operation import OperationContext
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.source_addresses import Network
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.observability.logs import AccessLog
from merchant_wallet.processes import listener as listeners
from merchant_wallet.processes.listener import MAX_CONNECTIONS, SOURCE_CONNECTIONS, Listener
from merchant_wallet.processes.listening_socket import bind

PATH = "/merchant/echo"
HOST = "127.0.0.1"


class EchoEndpoint(Endpoint):
    """Answers with the request's body, at once or when a test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, OperationRequest]] = []
        self.holds = False
        self.only_reads = False

    def handle(self, method: str, request: OperationRequest) -> None:
        """Record the request, and answer it unless `holds` is set."""
        self.requests.append((method, request))
        if not self.holds:
            self.answer(request)

    def answer(self, request: OperationRequest) -> None:
        """Answer a request."""
        request.reply(200, request.body[:100], request.request_id, ())

    def refuse_incomplete(self, request: OperationRequest, refusal: Refusal) -> None:
        """Answer a request that did not arrive completely."""
        status, body, headers = write_refusal(refusal)
        request.reply(status, body, request.request_id, headers)


class Client:
    """A connection that sends bytes and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def send(self, raw: bytes) -> None:
        """Send bytes unchanged."""
        self._writer.write(raw)
        await self._writer.drain()

    async def read_answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one answer: status, headers, body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split(" ")[1]), headers, body

    async def read_until_closed(self) -> bytes:
        """Everything that arrives until the server closes."""
        return await self.reader.read()

    async def is_closed(self) -> bool:
        """Wait until the server closes. False if it sends something first."""
        return await self.reader.read(1) == b""

    def end(self) -> None:
        """Close the sending side and keep reading."""
        self._writer.write_eof()

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class KnownMerchants:
    """Replaces the cache of merchants: it knows some appKeys, and nothing about their merchants."""

    def __init__(self, *app_keys: str) -> None:
        self._app_keys = app_keys

    def get(self, app_key: str) -> Merchant | None:
        """Something, if the appKey is known."""
        return cast(Merchant, app_key) if app_key in self._app_keys else None


class EchoServer:
    """A listener with one operation and one page."""

    def __init__(self, echo: EchoEndpoint, dependencies: Dependencies, listener: Listener, port: int) -> None:
        self.echo = echo
        self.dependencies = dependencies
        self.listener = listener
        self.port = port
        self.clients: list[Client] = []

    async def connect(self, source: str = HOST) -> Client:
        """A new client that connects from this address of the machine."""
        client = Client(*await asyncio.open_connection(HOST, self.port, local_addr=(source, 0)))
        self.clients.append(client)
        return client


def post(body: bytes = b"{}", headers: str = "", path: str = PATH, length: int | None = None) -> bytes:
    """A request for the operation."""
    size = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    return f"{head}{headers}\r\n".encode() + body


async def _page(request: Request) -> Response:
    return PlainTextResponse(f"page {(await request.body()).decode()}")


def make_dependencies(
    trusted_proxies: tuple[Network, ...] = (), known: KnownMerchants | None = None
) -> Dependencies:
    """What connections need. No operation of the service can run with them."""
    return Dependencies(
        gate=cast(Gate, None),
        merchant_cache=cast(MerchantCache, known or KnownMerchants()),
        writer=cast(Writer, None),
        operation_context=cast(OperationContext, None),
        access_log=AccessLog(sys.stderr, enabled=False),
        trusted_proxies=trusted_proxies,
    )


def run_server(
    scenario: Callable[[EchoServer], Awaitable[None]],
    *,
    trusted_proxies: tuple[Network, ...] = (),
    max_connections: int = MAX_CONNECTIONS,
    source_connections: int = SOURCE_CONNECTIONS,
    further: Sequence[Route] = (),
    timeout_s: float = TIMEOUT_S,
    known: KnownMerchants | None = None,
    tick_s: float = 0.05,
) -> None:
    """Listen, run the scenario, stop. No connection may stay open. Timeouts are checked every `tick_s`."""

    async def whole() -> None:
        echo, dependencies = EchoEndpoint(), make_dependencies(trusted_proxies, known)
        pages = Starlette(routes=[Route("/page", _page, methods=["GET", "POST"]), *further])
        listener = Listener({PATH: echo}, dependencies, pages, max_connections, source_connections)
        listening = await bind(HOST, 0)
        await listener.start(listening)
        server = EchoServer(echo, dependencies, listener, listening.getsockname()[1])
        try:
            async with asyncio.timeout(timeout_s):
                await scenario(server)
        finally:
            for client in server.clients:
                client.close()
            await listener.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listeners, "TICK_S", tick_s)
        run(whole())


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition in the server is true."""
    # Nothing notifies the test, so it polls.
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.005)
