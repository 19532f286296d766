"""One HTTP request to one target, limited in time and in the size of the answer.

Rules:
- The connection goes to an address that the target policy allows. Host header, SNI and certificate use the
  URL's name.
- Redirects are not followed, connections are not kept, and no proxy of the environment is used.
- Whatever the other side does, the attempt ends within `timeout_s` with an `Answer`, not an exception.
"""

import asyncio
import ssl
import time
from collections.abc import Sequence
from typing import Final

import httpcore

from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Header, Payload
from merchant_wallet.callbacks.target_policy import HTTPS, Forbidden, Target, TargetPolicy

TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 4.0
"""For one address, if the host has several."""
MAX_BYTES: Final = 4096
MAX_ERROR_LENGTH: Final = 300


def _tidy(error: str | None) -> str | None:
    """An error text that database and terminal can take. Parts of it may come from the other side."""
    if error is None:
        return None
    return "".join(c if c.isprintable() else "?" for c in error[:MAX_ERROR_LENGTH])


class _Progress:
    """The known part of a running attempt, in case the time runs out."""

    address: str | None = None
    http_status: int | None = None
    body = b""


class CallbackClient:
    """Sends payloads. `tls` judges certificates."""

    def __init__(self, policy: TargetPolicy, tls: ssl.SSLContext, *, timeout_s: float = TIMEOUT_S) -> None:
        self._policy = policy
        self._tls = tls
        self._timeout_s = timeout_s

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL. The host is looked up each time."""
        began_s, progress, error = time.monotonic(), _Progress(), None
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._exchange(await self._policy.find_target(url), payload, progress)
        except Forbidden as refused:
            error = f"not sent: {refused}"
        except TimeoutError:
            error = f"no complete answer within {self._timeout_s:g} s"
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        except (OSError, ValueError) as failure:
            error = f"the host can't be found: {failure}"
        latency_ms = int((time.monotonic() - began_s) * 1000)
        if error is None and len(progress.body) > MAX_BYTES:
            error = f"the answer is longer than {MAX_BYTES} bytes"
        return Answer(
            latency_ms, progress.address, progress.http_status, progress.body[:MAX_BYTES], _tidy(error)
        )

    async def _exchange(self, target: Target, payload: Payload, progress: _Progress) -> None:
        """Try the host's addresses in turn until one accepts a connection."""
        for number, address in enumerate(target.addresses, 1):
            progress.address = address
            try:
                await self._exchange_with(target, address, payload, progress)
                return
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(target.addresses):
                    raise

    async def _exchange_with(
        self, target: Target, address: str, payload: Payload, progress: _Progress
    ) -> None:
        origin = httpcore.Origin(target.scheme.encode(), address.encode(), target.port)
        connection = httpcore.AsyncHTTPConnection(origin, self._tls if target.scheme == HTTPS else None)
        request = self._request(target, address, payload)
        try:
            response = await connection.handle_async_request(request)
            progress.http_status = response.status
            async for piece in response.aiter_stream():
                progress.body += piece
                if len(progress.body) > MAX_BYTES:
                    break
            await response.aclose()
        finally:
            await connection.aclose()

    def _request(self, target: Target, address: str, payload: Payload) -> httpcore.Request:
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=address.encode(),
            port=target.port,
            target=target.request_target.encode(),
        )
        own: Sequence[Header] = (
            (b"Host", target.host_header.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
            (b"Content-Length", b"%d" % len(payload.body)),
        )
        several = len(target.addresses) > 1
        timeouts = {"connect": CONNECT_TIMEOUT_S if several else self._timeout_s}
        extensions = {"sni_hostname": target.host, "timeout": timeouts}
        headers = [*own, *payload.headers]
        return httpcore.Request("POST", url, headers=headers, content=payload.body, extensions=extensions)
