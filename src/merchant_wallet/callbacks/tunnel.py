"""Connections through an HTTP proxy: CONNECT asks it to lead to an address (RFC 9110 section 9.3.6).

Rules:
- The proxy gets what the caller says: an address that was judged, or a host's name. TLS with the endpoint
  begins inside the tunnel, so the proxy reads nothing of it.
- A proxy that refuses or is away is a `ProxyRefused`, and nothing was sent to the endpoint.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import httpcore

from merchant_wallet.base.outbound import Outbound, Proxy, find_certificate_error

MAX_HEAD_BYTES: Final = 16_384
_STATUS: Final = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})[^\r\n]*\r\n")
_END: Final = b"\r\n\r\n"
_UNREADABLE: Final = "the platform's proxy gives no answer that can be read"
_HINTS: Final = {
    b"403": "it does not allow this address or port",
    b"407": "it wants other credentials",
    b"502": "it could not reach the address",
    b"503": "it could not reach the address",
    b"504": "it could not reach the address",
}


class ProxyRefused(httpcore.ConnectError):
    """The proxy opened no tunnel. The text says why."""


class ProxyTunnel(httpcore.AsyncNetworkBackend):
    """Opens connections through a proxy. `host` is what the proxy is asked for, instead of the caller's."""

    def __init__(self, proxy: Proxy, outbound: Outbound, host: str) -> None:
        self._proxy = proxy
        self._outbound = outbound
        self._host = host
        self._direct = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class has it.
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the host of this tunnel. Raises ProxyRefused, also if the proxy is away."""
        try:
            stream = await self._direct.connect_tcp(
                self._proxy.host, self._proxy.port, timeout, local_address, socket_options
            )
            try:
                if self._proxy.is_encrypted:
                    stream = await stream.start_tls(self._outbound.tls(), self._proxy.host, timeout)
                await stream.write(self._write_request(port), timeout)
                _judge(await _read_head(stream, timeout))
            except BaseException:
                await stream.aclose()
                raise
        except ProxyRefused:
            raise
        except (httpcore.NetworkError, httpcore.TimeoutException) as failure:
            raise ProxyRefused(_describe(failure)) from failure
        return stream

    async def sleep(self, seconds: float) -> None:
        """See `AsyncNetworkBackend`."""
        await self._direct.sleep(seconds)

    def _write_request(self, port: int) -> bytes:
        target = f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"
        lines = [b"CONNECT %b HTTP/1.1" % target.encode(), b"Host: %b" % target.encode()]
        if self._proxy.authorization is not None:
            lines.append(b"Proxy-Authorization: %b" % self._proxy.authorization)
        return b"\r\n".join(lines) + _END


def _describe(failure: Exception) -> str:
    if isinstance(failure, httpcore.TimeoutException):
        return "the platform's proxy does not answer in time"
    refused = find_certificate_error(failure)
    if refused is not None:
        return f"the certificate of the platform's proxy is not trusted: {refused.verify_message}"
    return f"the platform's proxy can't be reached: {failure}"


async def _read_head(stream: httpcore.AsyncNetworkStream, timeout_s: float | None) -> bytes:
    head = b""
    while _END not in head:
        piece = await stream.read(MAX_HEAD_BYTES, timeout_s)
        head += piece
        if not piece or len(head) > MAX_HEAD_BYTES:
            raise ProxyRefused(_UNREADABLE)
    return head


def _judge(head: bytes) -> None:
    found = _STATUS.match(head)
    if found is None:
        raise ProxyRefused(_UNREADABLE)
    status = found[1]
    if not status.startswith(b"2"):
        hint = _HINTS.get(status)
        raise ProxyRefused(f"the platform's proxy answers {status.decode()}" + (f": {hint}" if hint else ""))
    # Behind the tunnel the endpoint waits for us: nothing can have come from it.
    if not head.endswith(_END):
        raise ProxyRefused("the platform's proxy sends something of its own after its answer")
