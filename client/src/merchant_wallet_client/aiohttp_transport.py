"""Connections of the asyncio client, kept alive by aiohttp.

Rules:
- aiohttp repeats only what HTTP calls idempotent. A POST is sent once.
- A session belongs to the event loop that opened it. In another loop, such as that of a second `asyncio.run`,
  a new one is opened.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import aiohttp

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.sending import (
    KEEP_ALIVE_S,
    MAX_CONNECTIONS,
    Collector,
    Origin,
    UnusableAnswer,
    explain,
    make_headers,
    make_tls_context,
)
from merchant_wallet_client.wire import SignedRequest

ERRORS: Final = (aiohttp.ClientError, OSError, UnusableAnswer)


class _Opened(NamedTuple):
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession
    slots: asyncio.Semaphore


class AiohttpTransport:
    """Sends requests to one origin, through its proxy if it has one."""

    def __init__(self, origin: Origin, timeouts: Timeouts) -> None:
        self._url = origin.url
        self._proxy = origin.proxy.url if origin.proxy else None
        self._tls = make_tls_context() if origin.is_tls else True
        self._headers = make_headers()
        if origin.authorization:
            self._headers["Authorization"] = origin.authorization
        self._timeouts = timeouts
        # No call waits for a connection here, so `connect` is what it takes to open one.
        self._timeout = aiohttp.ClientTimeout(timeouts.answer_s, timeouts.connect_s)
        self._opened: _Opened | None = None
        self._is_closed = False

    async def post(self, prepare: Callable[[], SignedRequest]) -> Reply | Unanswered:
        """Send once what `prepare` returns when it is this call's turn. Raises what `prepare` raises."""
        opened = await self._open()
        async with opened.slots:
            request = prepare()
            try:
                return await self._exchange(opened.session, request)
            except ERRORS as error:
                return explain(error)

    async def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        if self._opened:
            await _close(self._opened)

    async def _exchange(self, session: aiohttp.ClientSession, request: SignedRequest) -> Reply:
        collector = Collector(self._timeouts)
        async with session.post(
            self._url + request.path,
            data=request.body.encode(),
            proxy=self._proxy,
            allow_redirects=False,
        ) as response:
            async for part in response.content.iter_any():
                collector.take(part)
            return collector.make_reply(response.status, response.headers)

    async def _open(self) -> _Opened:
        """The session of the running loop."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        loop, before = asyncio.get_running_loop(), self._opened
        if before and before.loop is loop:
            return before
        if before and before.loop.is_running():
            raise RuntimeError("the client is in use in another event loop")
        # The slots are the limit, so that a call is signed when its turn has come.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=self._tls)
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self._opened = opened = _Opened(loop, session, asyncio.Semaphore(MAX_CONNECTIONS))
        if before:
            await _close(before)
        return opened


async def _close(opened: _Opened) -> None:
    # The connections of a loop that only rests can't be closed from here. They end with it.
    if opened.loop is asyncio.get_running_loop() or opened.loop.is_closed():
        await opened.session.close()
