"""Where callbacks may go. A notifyUrl's host is looked up once, and all its addresses must be public.

Rules:
- The client connects to the addresses found here and never looks the name up again. So a name can't point
  elsewhere a moment later.
- One forbidden address forbids the whole host.
- An IPv6 address that stands for an IPv4 address is judged as that one.
- Networks that an operator names are allowed. The sandbox also allows loopback.
- A name that can't be found here is nobody's, unless a proxy may look it up. Then the proxy judges it, and
  the certificate must be for that name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from merchant_wallet.base.setting_types import LOOPBACK, Network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port as texts. Raises OSError."""

HTTP: Final = "http"
HTTPS: Final = "https"
PORTS: Final = {HTTP: 80, HTTPS: 443}
MAX_ADDRESSES: Final = 4
"""Further addresses of a name are judged but not tried."""

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
"""Special networks that not every Python knows (from the IANA registries), and Azure's own address."""

# RFC 6052: the last 32 bits are an IPv4 address behind a translator.
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")


class Forbidden(Exception):
    """Nothing may be sent there. The text says why and is kept with the attempt."""


class Target(msgspec.Struct, frozen=True):
    """Where a callback goes: the parts of the request, and the allowed addresses. None: a proxy finds it."""

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


class TargetPolicy:
    """Judges targets. `http_allowed` is for the sandbox, `networks` are allowed in addition."""

    def __init__(
        self, resolve: Resolve, networks: Sequence[Network] = (), *, http_allowed: bool = False
    ) -> None:
        self._resolve = resolve
        self._networks = tuple(networks)
        self._schemes = (HTTPS, HTTP) if http_allowed else (HTTPS,)

    async def find_target(self, url: str) -> Target:
        """Look up the URL's host. Raises Forbidden. Raises OSError if the name has no address."""
        target = self._read(url)
        found = await self._resolve(target.host, target.port)
        for text in found:
            self._judge(text)
        if not found:
            raise Forbidden("the host has no address")
        return msgspec.structs.replace(target, addresses=tuple(dict.fromkeys(found))[:MAX_ADDRESSES])

    def leave_to_proxy(self, url: str) -> Target:
        """The target of a URL whose name can't be found here. Raises Forbidden.

        Over HTTP nothing would prove where it leads. A name of one label is an internal one.
        """
        target = self._read(url)
        if target.scheme != HTTPS or "." not in target.host:
            raise Forbidden("a proxy looks up names of the Internet alone, for https")
        return target

    def _read(self, url: str) -> Target:
        parts = urlsplit(url)
        if parts.scheme not in self._schemes or not parts.hostname or "@" in parts.netloc:
            raise Forbidden("callbacks can't go to a URL of this form")
        host, port = parts.hostname.rstrip("."), read_port(parts)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(parts.scheme, host, port, target, ())

    def _judge(self, text: str) -> None:
        if not _allows(ip_address(text), self._networks):
            raise Forbidden(f"{text} is not a public address")


def list_networks(allowed: Sequence[Network], *, sandbox: bool) -> tuple[Network, ...]:
    """The networks that callbacks may go to besides public ones."""
    return (*allowed, *(LOOPBACK if sandbox else ()))


def find_closed_address(url: str, networks: Sequence[Network]) -> str | None:
    """The address that a URL has for its host, if no callback may go there. None for a name. Pure."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return None if _allows(address, networks) else host


def _allows(address: Address, networks: Sequence[Network]) -> bool:
    if any(address in network for network in networks if network.version == address.version):
        return True
    inner = _inside(address)
    return is_public(address) if inner is None else _allows(inner, networks)


def read_port(parts: SplitResult) -> int:
    """The port of a URL. Raises ValueError for an invalid port."""
    return parts.port or PORTS[parts.scheme]


def read_host(url: str) -> str:
    """The `host:port` of a URL, which concurrency is counted by. The text itself if it is no URL."""
    try:
        parts = urlsplit(url)
        return f"{(parts.hostname or '').rstrip('.')}:{read_port(parts)}"
    except (ValueError, KeyError):
        return url


def is_public(address: Address) -> bool:
    """Whether an address is on the public Internet (the IANA registries of special addresses)."""
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    special = special or any(address in network for network in _RESERVED)
    if isinstance(address, IPv6Address):
        # Tunnels lead to an IPv4 address of anybody's choice, and nobody needs them (RFC 7526).
        tunnel = address.sixtofour or address.teredo
        special = special or bool(address.is_site_local or address.scope_id or tunnel)
    return address.is_global and not address.is_private and not special


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, mapped or translated."""
    if not isinstance(address, IPv6Address):
        return None
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _TRANSLATED else address.ipv4_mapped


def make_resolver(threads: Executor) -> Resolve:
    """Looks names up in its own threads, so a name that hangs blocks no other."""

    def look_up(host: str, port: int) -> list[str]:
        # As bytes: the text form goes through a codec with its own errors. A URL here is ASCII.
        found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
        return [str(entry[4][0]) for entry in found]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(threads, look_up, host, port)

    return resolve
