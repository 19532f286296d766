"""Source addresses of requests: parsing, and the client behind trusted proxies. Pure."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

MAX_HOPS: Final = 16

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def read_address(text: str) -> Address:
    """Parse an address. An unreadable one becomes `::`, which is nobody's."""
    try:
        # A scope id may be any text. An address with one can't be on an allow-list.
        address = IPv6Address(0) if "%" in text else ip_address(text)
    except ValueError:
        return IPv6Address(0)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def find_source(peer: str, forwarded: list[str], trusted: tuple[Network, ...]) -> str:
    """The client's address: the last hop of X-Forwarded-For that is not a trusted proxy, if there is one.

    The header is ignored unless a trusted proxy sent it (RFC 7239 section 8.1). The address is normalized,
    since it is logged. A hop that is no address becomes `::`.
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
