"""One HTTP request to one target, limited in time and in the size of the answer.

Rules:
- The connection goes to an address that the target policy allows. Host header, SNI and certificate use the
  URL's name.
- Redirects are not followed, connections are not kept, and no proxy of the environment is used.
- A proxy of the settings is asked for an address that was judged here. With `proxy_names` it is asked for the
  host's name, which it looks up again: then its own rules must keep it from internal addresses. So they must
  with `unknown_names`: then it also gets names that can't be found here.
- A certificate that leads to a trusted one is accepted, even if its form breaks RFC 5280. The answer says so.
- Whatever the other side does, the attempt ends within `timeout_s` with an `Answer`, not an exception.
"""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Final

import httpcore

from merchant_wallet.base.errors import list_causes
from merchant_wallet.base.invisible_text import show_invisible
from merchant_wallet.base.outbound import (
    PLAIN,
    Destination,
    Outbound,
    Proxy,
    Untrusting,
    find_certificate_error,
)
from merchant_wallet.base.version import write_agent
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Header, Payload
from merchant_wallet.callbacks.target_policy import HTTPS, Forbidden, Target, TargetPolicy
from merchant_wallet.callbacks.tunnel import ProxyRefused, ProxyTunnel

TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 4.0
"""For one address, if the host has several."""
MAX_BYTES: Final = 4096
MAX_ERROR_LENGTH: Final = 300
_UNKNOWN_ISSUER: Final = (20, 21)
"""OpenSSL's codes of a chain that ends too early."""


def _tidy(error: str | None) -> str | None:
    """An error text that database and terminal can take. Parts of it may come from the other side."""
    if error is None:
        return None
    return show_invisible(error)[:MAX_ERROR_LENGTH]


class _Progress:
    """The known part of a running attempt, in case the time runs out."""

    address: str | None = None
    http_status: int | None = None
    body = b""
    remark: str | None = None


class CallbackClient:
    """Sends payloads. `page` is the URL of the page that explains them to who finds them in a log."""

    def __init__(
        self,
        policy: TargetPolicy,
        outbound: Outbound = PLAIN,
        *,
        proxy_names: bool = False,
        unknown_names: bool = False,
        page: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._policy = policy
        self._outbound = outbound
        self._proxy_names = proxy_names
        self._unknown_names = unknown_names
        self._agent = write_agent(page).encode()
        self._timeout_s = timeout_s

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL. The host is looked up each time."""
        began_s, progress, error = time.monotonic(), _Progress(), None
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._exchange(await self._find_target(url), payload, progress)
        except Forbidden as refused:
            error = f"not sent: {refused}"
        except TimeoutError:
            error = f"no complete answer within {self._timeout_s:g} s"
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as failure:
            error = _describe_failure(failure)
        except Untrusting as failure:
            error = f"not sent: {failure}"
        except (OSError, ValueError) as failure:
            error = f"the host can't be found: {failure}"
        latency_ms = int((time.monotonic() - began_s) * 1000)
        if error is None and len(progress.body) > MAX_BYTES:
            error = f"the answer is longer than {MAX_BYTES} bytes"
        return Answer(
            latency_ms,
            progress.address,
            progress.http_status,
            progress.body[:MAX_BYTES],
            _tidy(error),
            _tidy(progress.remark),
        )

    async def _find_target(self, url: str) -> Target:
        try:
            return await self._policy.find_target(url)
        except socket.gaierror:
            if not self._unknown_names:
                raise
            target = self._policy.leave_to_proxy(url)
            if self._outbound.find_proxy(Destination.CALLBACKS, target.host) is None:
                raise
            return target

    async def _exchange(self, target: Target, payload: Payload, progress: _Progress) -> None:
        """Try the host's addresses in turn until one accepts a connection."""
        # A name that a proxy looks up stands for its address.
        for number, address in enumerate(target.addresses or (target.host,), 1):
            progress.address = address if target.addresses else None
            try:
                await self._exchange_with(target, address, payload, progress)
                return
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number >= len(target.addresses):
                    raise

    async def _exchange_with(
        self, target: Target, address: str, payload: Payload, progress: _Progress
    ) -> None:
        if target.scheme != HTTPS:
            return await self._exchange_over(None, target, address, payload, progress)
        try:
            # First in the strict way, only to be able to say what the other one passes over.
            tls = self._outbound.tls(strict=True)
            return await self._exchange_over(tls, target, address, payload, progress)
        except httpcore.ConnectError as failure:
            refused = find_certificate_error(failure)
            if refused is None or isinstance(failure, ProxyRefused):
                raise
        await self._exchange_over(self._outbound.tls(), target, address, payload, progress)
        progress.remark = f"the certificate breaks a rule of RFC 5280: {refused.verify_message}"

    async def _exchange_over(
        self,
        tls: ssl.SSLContext | None,
        target: Target,
        address: str,
        payload: Payload,
        progress: _Progress,
    ) -> None:
        origin = httpcore.Origin(target.scheme.encode(), address.encode(), target.port)
        proxy = self._outbound.find_proxy(Destination.CALLBACKS, target.host, address)
        tunnel = None if proxy is None else self._open_tunnel(proxy, target, address)
        connection = httpcore.AsyncHTTPConnection(origin, tls, network_backend=tunnel)
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

    def _open_tunnel(self, proxy: Proxy, target: Target, address: str) -> ProxyTunnel:
        return ProxyTunnel(proxy, self._outbound, target.host if self._proxy_names else address)

    def _request(self, target: Target, address: str, payload: Payload) -> httpcore.Request:
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=address.encode(),
            port=target.port,
            target=target.request_target.encode(),
        )
        own: Sequence[Header] = (
            (b"Host", target.host_header.encode()),
            (b"User-Agent", self._agent),
            (b"Accept", b"*/*"),
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
            (b"Content-Length", b"%d" % len(payload.body)),
        )
        several = len(target.addresses) > 1
        timeouts = {"connect": CONNECT_TIMEOUT_S if several else self._timeout_s}
        extensions = {"sni_hostname": target.host, "timeout": timeouts}
        headers = [*own, *payload.headers]
        return httpcore.Request("POST", url, headers=headers, content=payload.body, extensions=extensions)


def _find_system_error(failure: Exception) -> int | None:
    """The `errno` below a failure: its own words are "All connection attempts failed"."""
    for one in list_causes(failure):
        # These two count errors in a way of their own.
        if isinstance(one, OSError) and one.errno and not isinstance(one, ssl.SSLError | socket.gaierror):
            return one.errno
    return None


def _describe_failure(failure: Exception) -> str:
    if isinstance(failure, ProxyRefused):
        return str(failure)
    refused = find_certificate_error(failure)
    if refused is None:
        number = _find_system_error(failure)
        if isinstance(failure, httpcore.ConnectError) and number is not None:
            return f"no connection: {os.strerror(number)}"
        return f"{type(failure).__name__}: {failure}"
    hint = " (does the server send its intermediate certificates?)"
    why = f"{refused.verify_message}{hint if refused.verify_code in _UNKNOWN_ISSUER else ''}"
    return f"the certificate is not trusted: {why}"
