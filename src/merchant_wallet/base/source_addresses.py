"""Source addresses of requests: parsing, and the client behind trusted proxies. Pure."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

MAX_HOPS: Final = 16

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


INNER: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "fc00::/7",
        "::1",
    )
)
"""What companies give to machines inside their networks (RFC 1918, 4193 and 6598), and this machine."""
NOBODY: Final = "::"
"""What stands for an address that cannot be read. No client has it."""
_match_written: Final = re.compile(
    r"\[([0-9A-Fa-f:.]+)(?:%[\w.~-]+)?\](?::[0-9]{1,5})?"
    r"|([0-9.]+):[0-9]{1,5}"
    r"|([0-9A-Fa-f:.]+)(?:%[\w.~-]+)?",
    re.ASCII,
).fullmatch
"""An address as proxies write it: in brackets, with a port, with a zone. One group has the address alone."""


def read_address(text: str) -> Address:
    """Parse an address, also with a port, brackets, quotes or a zone. An unreadable one becomes `NOBODY`.

    A zone is dropped: it names an interface of the machine that wrote the address (RFC 4007 section 6).
    """
    address = _parse(text) or _parse(_strip(text))
    if address is None or address.is_unspecified:
        return IPv6Address(NOBODY)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _parse(text: str) -> Address | None:
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def _strip(text: str) -> str:
    """The address alone, of a text as proxies write it. Empty for any other text."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    written = _match_written(text)
    return "" if written is None else written[written.lastindex or 0]


def find_source(peer: str, forwarded: list[str], trusted: tuple[Network, ...]) -> str:
    """The client's address: the last hop of X-Forwarded-For that is not a trusted proxy, if there is one.

    The header is ignored unless a trusted proxy sent it (RFC 7239 section 8.1). The address is normalized,
    since it is logged. A hop that is no address becomes `NOBODY`.
    """
    if not trusted or not is_trusted(peer, trusted):
        return peer
    last = peer
    for hop in _hops_from_the_last(forwarded):
        last = str(read_address(hop))
        if last == NOBODY or not is_trusted(last, trusted):
            break
    return last


def hides_its_caller(source: str, forwarded: list[str]) -> bool:
    """Whether the address that counts is an inner one that named a caller of its own, as a proxy does."""
    if not is_trusted(source, INNER):
        return False
    hops = [str(read_address(hop)) for hop in _hops_from_the_last(forwarded)]
    return source in hops[:-1]


def _hops_from_the_last(forwarded: list[str]) -> Iterator[str]:
    """The hops, nearest first. Hops beyond the longest possible chain of proxies are ignored."""
    for line in reversed(forwarded):
        for hop in reversed(line.rsplit(",", MAX_HOPS)):
            if hop.strip():
                yield hop.strip()


def is_trusted(text: str, trusted: tuple[Network, ...]) -> bool:
    """Whether an address is one of the trusted proxies."""
    if not trusted:
        return False
    address = read_address(text)
    return any(address in network for network in trusted)
