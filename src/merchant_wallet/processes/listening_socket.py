"""The socket that the web side listens on: bound here, or passed by systemd.

Rules:
- A socket that is closed resets the connections that wait in its backlog. Their clients have often sent a
  request already, and can't know that nobody read it. So a socket is closed in three steps: the kernel drops
  new SYNs, what waits is accepted, then it is closed. A client whose SYN was dropped sends it again, and is
  refused or reaches a successor. No request was sent by then, so a proxy may safely ask another server.
- A socket that somebody else keeps open is only left. Its backlog waits for the next process.
"""

import asyncio
import errno
import os
import socket
from collections.abc import MutableMapping
from typing import Final

import structlog

from merchant_wallet.base.config import ConfigError

log = structlog.get_logger("listener")

BIND_RETRY_S: Final = 30.0
SYSTEMD_FD: Final = 3
"""systemd passes its sockets from this descriptor on (sd_listen_fds(3))."""

_IP_MINTTL: Final = 21
_IPV6_MINHOPCOUNT: Final = 73
_LARGEST_TTL: Final = 255
"""No usual system sends packets with this time to live (ip(7)). So with this minimum nothing arrives."""


class CannotListen(ConfigError):
    """The server can't listen on its address or port. The text says why."""


async def resolve_host(host: str) -> str:
    """The address of a host name. Raises CannotListen."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"WALLET_HOST {host} has no address: {error.strerror}") from error
    return str(found[0][4][0])


async def bind(host: str, port: int) -> socket.socket:
    """A socket that is bound to the address, once the port is free. Port 0 takes any free one.

    It does not listen yet, so nobody can connect before the server is ready. Raises CannotListen.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + BIND_RETRY_S
    while True:
        made = _make_socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            made.bind((host, port))
        except OSError as error:
            made.close()
            # The previous server may still be finishing its requests.
            if loop.time() > ends or port == 0:
                raise CannotListen(f"can't listen on {host} port {port}: {error.strerror}") from error
        else:
            return made
        await asyncio.sleep(0.2)


def is_taken(host: str, port: int) -> bool:
    """Whether another program has the port now. Port 0 is never taken."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with _make_socket(found[0][0]) as probe:
            probe.bind(found[0][4])
    except OSError as error:
        return port != 0 and error.errno == errno.EADDRINUSE
    return False


def _make_socket(family: socket.AddressFamily) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return made


def url_of(host: str, listening: socket.socket) -> str:
    """The address to call."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


def take_systemd_socket(environment: MutableMapping[str, str]) -> socket.socket | None:
    """The socket that systemd has passed to this process (`LISTEN_FDS`), or None. Raises CannotListen."""
    passed, pid = environment.pop("LISTEN_FDS", "0"), environment.pop("LISTEN_PID", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or passed == "0":
        return None
    if passed != "1":
        raise CannotListen(f"systemd passed {passed} sockets. Name one ListenStream= in the socket unit.")
    taken = socket.socket(fileno=SYSTEMD_FD)
    taken.set_inheritable(False)
    if taken.type != socket.SOCK_STREAM or taken.family not in (socket.AF_INET, socket.AF_INET6):
        raise CannotListen("systemd passed a socket that is not TCP. Use ListenStream= with a port.")
    return taken


def drop_new_connections(listening: socket.socket) -> None:
    """Let the kernel drop every SYN to this socket. It needs no right.

    Handshakes under way still complete. Their connections inherit the minimum: `let_packets_in` removes it.
    """
    _set_least_ttl(listening, _LARGEST_TTL)


def let_packets_in(accepted: socket.socket) -> None:
    """Let a connection that was accepted after `drop_new_connections` get its packets, also earlier ones.

    What was dropped meanwhile is sent again by its sender.
    """
    _set_least_ttl(accepted, 0)


def _set_least_ttl(changed: socket.socket, ttl: int) -> None:
    is_ipv6 = changed.family == socket.AF_INET6
    level, option = (socket.IPPROTO_IPV6, _IPV6_MINHOPCOUNT) if is_ipv6 else (socket.IPPROTO_IP, _IP_MINTTL)
    try:
        changed.setsockopt(level, option, ttl)
    except OSError as error:
        log.warning("new connections can't be held off while the server stops", reason=str(error))
