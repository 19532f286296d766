"""Merchants' traffic through a rolling restart: many connections, and no request is ever sent again.

Rules: every connection stays open until the server ends it. What is not answered with code 200 is a failure.
"""

import asyncio
import json
import random
import ssl
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from tests.crash.client import Client
from tests.waits import TIMEOUT_S

NOTICED_S = 2.0
"""HAProxy asks a process that was away once a second. Before its answer the next one must not leave."""


class Load:
    """Transfers over `connections` connections until `stop`. `failures` says what was not answered with 200.

    A connection waits for up to `pause_s` between an answer and the next request.
    """

    def __init__(
        self,
        url: str,
        client: Client,
        connections: int,
        trusted: ssl.SSLContext | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.failures: Counter[str] = Counter()
        self.answers: dict[str, int] = {}
        self.opened = 0
        self._url = urlsplit(url)
        self._client = client
        self._connections = connections
        self._trusted = trusted
        self._pause_s = pause_s
        self._stopped = False
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to send."""
        self._running = [asyncio.create_task(self._work(number)) for number in range(self._connections)]

    async def stop(self) -> None:
        """Let every connection get its last answer."""
        self._stopped = True
        await asyncio.gather(*self._running)

    async def until_more(self, count: int) -> None:
        """Wait for this many further answers."""
        wanted = len(self.answers) + count
        async with asyncio.timeout(60):
            # The tasks notify nobody.
            while len(self.answers) < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def _work(self, number: int) -> None:
        wire = _Wire(self._url.hostname or "", self._url.port or 0, self._trusted)
        sent = 0
        while not self._stopped:
            if self._pause_s:
                await asyncio.sleep(random.uniform(0, self._pause_s))
            sent += 1
            await self._transfer(wire, f"{self._url.port}-{number}-{sent}")
        self.opened += wire.opened
        wire.close()

    async def _transfer(self, wire: "_Wire", order: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                envelope = await wire.exchange(*self._client.make_credit(order))
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            wire.close()
            self.failures[f"{type(error).__name__}: {error}"[:200]] += 1
            # As after any failure; and a crowd of refused clients would need all of the processor.
            await asyncio.sleep(0.2)
            return
        if envelope["code"] == 200:
            self.answers[order] = int(envelope["data"]["transactionId"])
        else:
            self.failures[str(envelope)[:200]] += 1


class _Wire:
    """One connection, opened again only when the server has said that it ends."""

    def __init__(self, host: str, port: int, trusted: ssl.SSLContext | None) -> None:
        self._to = (host, port, trusted)
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.opened = 0

    async def exchange(self, path: str, body: bytes) -> dict[str, Any]:
        """Send a request and read its answer. Raises OSError, EOFError, ValueError."""
        if self._open is None:
            host, port, trusted = self._to
            self._open = await asyncio.open_connection(host, port, ssl=trusted)
            self.opened += 1
        reader, writer = self._open
        head = f"POST {path} HTTP/1.1\r\nhost: wallet\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        said = await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        if "json" not in headers.get("content-type", ""):
            raise ValueError(lines[0])
        envelope: dict[str, Any] = json.loads(said)
        return envelope

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open[1].close()
        self._open = None
