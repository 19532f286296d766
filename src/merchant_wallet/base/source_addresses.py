"""Where a request comes from: addresses as text, and the client behind trusted proxies. Pure."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

MAX_HOPS: Final = 16

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def read_address(text: str) -> Address:
    """An address from its text; one that can't be read is nobody's, `::`."""
    try:
        # A scope id is any text, and names no address that anyone could be allowed from.
        address = IPv6Address(0) if "%" in text else ip_address(text)
    except ValueError:
        return IPv6Address(0)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def find_source(peer: str, forwarded: list[str], trusted: tuple[Network, ...]) -> str:
    """The client's address: the last hop of X-Forwarded-For that is no trusted proxy, if one tells it.

    A header that comes from anyone else says nothing (RFC 7239 section 8.1). What a proxy forwards is given
    in an address's own spelling, since it goes into the log; a hop that is no address is `::`.
    """
    if not trusted or not is_trusted(peer, trusted):
        return peer
    last = peer
    for hop in _hops_from_the_last(forwarded):
        last = str(read_address(hop))
        if not is_trusted(last, trusted):
            break
    return last


def _hops_from_the_last(forwarded: list[str]) -> Iterator[str]:
    """The hops, the nearest first; further ones than a chain of proxies can have are not looked at."""
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
