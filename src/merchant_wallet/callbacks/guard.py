"""Where callbacks may go: a notifyUrl's host is looked up once, and every address found must be a public one.

Rules: whoever connects uses the addresses found here and never looks the name up again, so that a name cannot
point elsewhere a moment later. One address that is not allowed refuses the whole host. An IPv6 address that
stands for an IPv4 one is judged as that one. Networks that an operator names are allowed; the sandbox allows
loopback.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from merchant_wallet.base.setting_types import Network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host and port as texts. Raises OSError."""

HTTP: Final = "http"
HTTPS: Final = "https"
PORTS: Final = {HTTP: 80, HTTPS: 443}
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
MOST_ADDRESSES: Final = 4
"""Further ones that a name has are not tried, but judged."""

_RESERVED: Final = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "168.63.129.16/32",
        "64:ff9b:1::/48",
        "3fff::/20",
        "5f00::/16",
    )
)
"""Special ones that not every Python knows (the IANA registries), and the one that Azure keeps for itself."""

# RFC 6052: an IPv4 address that a translator stands before, in the last 32 bits.
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")


class Forbidden(Exception):
    """Nothing may be sent there; the text says why and is kept with the attempt."""


class Target(msgspec.Struct, frozen=True):
    """Where a callback goes: what the request says, and the addresses that may be connected to."""

    scheme: str
    host: str
    port: int
    request_target: str
    addresses: tuple[str, ...]

    @property
    def host_header(self) -> str:
        """The Host header's value (RFC 9110 section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


class Guard:
    """Judges where callbacks may go. `http_allowed` is the sandbox's, `networks` what is allowed besides."""

    def __init__(
        self, resolve: Resolve, networks: Sequence[Network] = (), *, http_allowed: bool = False
    ) -> None:
        self._resolve = resolve
        self._networks = tuple(networks)
        self._schemes = (HTTPS, HTTP) if http_allowed else (HTTPS,)

    async def find(self, url: str) -> Target:
        """Look the URL's host up. Raises Forbidden; OSError when the name has no address."""
        parts = urlsplit(url)
        if parts.scheme not in self._schemes or not parts.hostname or "@" in parts.netloc:
            raise Forbidden("the URL's form is not one that callbacks go to")
        host, port = parts.hostname.rstrip("."), read_port(parts)
        found = await self._resolve(host, port)
        for text in found:
            self._judge(text)
        if not found:
            raise Forbidden("the host has no address")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(parts.scheme, host, port, target, tuple(dict.fromkeys(found))[:MOST_ADDRESSES])

    def _judge(self, text: str) -> None:
        address = ip_address(text)
        if not self._allows(address):
            raise Forbidden(f"{text} is not a public address")

    def _allows(self, address: Address) -> bool:
        if any(address in network for network in self._networks if network.version == address.version):
            return True
        inner = _inside(address)
        return is_public(address) if inner is None else self._allows(inner)


def read_port(parts: SplitResult) -> int:
    """The port that a URL means. Raises ValueError for one that is no port."""
    return parts.port or PORTS[parts.scheme]


def read_host(url: str) -> str:
    """The `host:port` that a URL leads to, as turns are counted by; the text itself if it is no URL."""
    try:
        parts = urlsplit(url)
        return f"{(parts.hostname or '').rstrip('.')}:{read_port(parts)}"
    except (ValueError, KeyError):
        return url


def is_public(address: Address) -> bool:
    """Whether an address is one of the open Internet's (the IANA registries of special addresses)."""
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    special = special or any(address in network for network in _RESERVED)
    if isinstance(address, IPv6Address):
        # Tunnels lead to an IPv4 address of anybody's choice, and nobody needs them (RFC 7526).
        tunnel = address.sixtofour or address.teredo
        special = special or bool(address.is_site_local or address.scope_id or tunnel)
    return address.is_global and not address.is_private and not special


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for, mapped or translated."""
    if not isinstance(address, IPv6Address):
        return None
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _TRANSLATED else address.ipv4_mapped


def resolver(threads: Executor) -> Resolve:
    """Looks names up as the machine does, in threads of its own: a name that hangs holds up no other."""

    def look_up(host: str, port: int) -> list[str]:
        # As bytes, since the text form goes through a codec with errors of its own; a URL here is ASCII.
        found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
        return [str(entry[4][0]) for entry in found]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(threads, look_up, host, port)

    return resolve
