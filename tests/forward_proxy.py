"""A company's forward proxy for tests: it takes CONNECT, and absolute URLs of plain HTTP, as Squid does."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.callbacks.receiver import listen

from merchant_wallet.base.outbound import Proxy

USER = "wallet"
PASSWORD = "p@ss: word"


@dataclass
class ForwardProxy:
    """A proxy that listens. `asked` has the target of each request. `refusal` answers in place of a tunnel.

    `hosts` are the names that it can look up, with their addresses. `ports` leads a host to another port.
    """

    port: int = 0
    wants_credentials: bool = False
    refusal: bytes = b""
    hosts: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    unreachable: Collection[str] = ()
    asked: list[str] = field(default_factory=list)

    def proxy(self, host: str = "127.0.0.1", *, is_encrypted: bool = False) -> Proxy:
        """How a client reaches it."""
        credentials = (USER, PASSWORD) if self.wants_credentials else (None, "")
        return Proxy(host, self.port, is_encrypted, *credentials)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._handle(reader, writer)
        finally:
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n", 1)[0].split(" ")
        self.asked.append(target)
        expected = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.wants_credentials and f"proxy-authorization: basic {expected}".lower() not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return await writer.drain()
        if self.refusal:
            writer.write(self.refusal)
            return await writer.drain()
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        assert url.hostname is not None
        if url.hostname in self.unreachable:
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            return await writer.drain()
        port = self.ports.get(url.hostname, url.port or 80)
        far_reader, far_writer = await asyncio.open_connection(
            self.hosts.get(url.hostname, url.hostname), port
        )
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(head.replace(target, url.path or "/", 1).encode())
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def open_proxy(tls: ssl.SSLContext | None = None) -> AsyncIterator[ForwardProxy]:
    """A proxy that listens until the block ends."""
    proxy = ForwardProxy()
    async with listen(proxy.handle, tls) as proxy.port:
        yield proxy
