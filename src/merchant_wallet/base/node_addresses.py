"""Where a node of a chain is reached, and what must never be shown of that. Pure.

Rules:
- A node is `URL`, or `URL solidity=URL` for a java-tron that serves `/walletsolidity` on a port of its own.
- A header is `HOST NAME: VALUE` or `HOST:PORT NAME: VALUE`. It goes to that host alone.
- A limit is `HOST N/s`, `HOST N/day`, `HOST N/s N/day` or `HOST none`. It replaces the default of that host's
  nodes. Only nodes over https have a default.
- A node's name is its host, with the port if the URL has one. Nothing else of its URLs or headers is shown.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from merchant_wallet.base.outbound import PLAIN, Outbound

SOLIDITY: Final = "solidity="
SOLID_PATH: Final = "/walletsolidity/"
_HEADER: Final = re.compile(
    r"([0-9A-Za-z_.:\[\]-]+)\s+([0-9A-Za-z!#$%&'*+.^_`|~-]+):\s*([!-~]+(?: +[!-~]+)*)"
)
_LIMIT: Final = re.compile(r"([0-9A-Za-z_.:\[\]-]+)\s+(?:none|(?:([0-9]{1,9})/s)?\s*(?:([0-9]{1,12})/day)?)")
# The transport sets these.
_RESERVED: Final = frozenset({"connection", "content-length", "content-type", "host", "transfer-encoding"})
# A shorter part of a path is a word such as "v3" or "rpc". Hidden, it would garble every text with it.
_SHORTEST_KEY: Final = 6


class NodeHeader(NamedTuple):
    """An HTTP header for the nodes of one host. The value is a secret."""

    host: str
    name: str
    value: str


class CallLimits(NamedTuple):
    """How many calls a node takes in a second and in a day. None: any number."""

    per_s: int | None = None
    per_day: int | None = None

    def __str__(self) -> str:
        """As in the setting."""
        counts = ((self.per_s, "s"), (self.per_day, "day"))
        return " ".join(f"{count}/{unit}" for count, unit in counts if count) or "none"


UNLIMITED: Final = CallLimits()


class HostLimits(NamedTuple):
    """The limits of the nodes of one host."""

    host: str
    limits: CallLimits

    def __str__(self) -> str:
        """As in the setting."""
        return f"{self.host} {self.limits}"


class NodeAddress(NamedTuple):
    """One node: its URL, the URL of its final blocks if that is another one, the headers that it gets, its
    limits, and how it is reached.
    """

    url: str
    solid_url: str | None = None
    headers: tuple[NodeHeader, ...] = ()
    limits: CallLimits = UNLIMITED
    outbound: Outbound = PLAIN

    def __repr__(self) -> str:
        """Only the name: the rest may contain a key."""
        return f"NodeAddress({self.name})"

    @property
    def name(self) -> str:
        """Host and port for texts."""
        return name_of(self.url)

    @property
    def is_encrypted(self) -> bool:
        """Whether any of its URLs is https."""
        return any(urlsplit(url).scheme == "https" for url in self.list_urls())

    def list_urls(self) -> list[str]:
        """Its URL, or both."""
        return [self.url] if self.solid_url is None else [self.url, self.solid_url]

    def base_of(self, path: str) -> str:
        """The URL that serves a path."""
        return self.solid_url if self.solid_url and path.startswith(SOLID_PATH) else self.url

    def headers_of(self, url: str) -> dict[str, str]:
        """The headers of a request to one of its URLs."""
        return {header.name: header.value for header in self.headers if header.host in _hosts_of(url)}

    def list_secrets(self) -> tuple[str, ...]:
        """Every part of URLs and headers that may be a key, longest first."""
        found = {part for url in self.list_urls() for part in _keys_of_url(urlsplit(url))}
        found |= {part for header in self.headers for part in _keys_of_header(header.value)}
        return tuple(sorted((part for part in found if part), key=lambda part: (-len(part), part)))


def name_of(url: str) -> str:
    """Host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def read_node(
    text: str,
    headers: Iterable[NodeHeader] = (),
    limits: Iterable[HostLimits] = (),
    default: CallLimits = UNLIMITED,
) -> NodeAddress:
    """A node from its text, with those of the headers and limits that are for it. Raises ValueError."""
    url, *others = text.split() or [""]
    if len(others) > 1 or not all(other.startswith(SOLIDITY) for other in others):
        raise ValueError("a node is a URL, or URL solidity=URL")
    urls = [_checked(each) for each in (url, *(other.removeprefix(SOLIDITY) for other in others))]
    hosts = {host for each in urls for host in _hosts_of(each)}
    own = tuple(header for header in headers if header.host in hosts)
    node = NodeAddress(urls[0], urls[1] if others else None, own)
    named = [each.limits for each in limits if each.host in hosts]
    if len(named) > 1:
        raise ValueError(f"{node.name} has limits twice")
    return node._replace(limits=named[0] if named else default if node.is_encrypted else UNLIMITED)


def read_nodes(
    texts: Sequence[str],
    headers: Sequence[NodeHeader] = (),
    limits: Sequence[HostLimits] = (),
    default: CallLimits = UNLIMITED,
) -> tuple[NodeAddress, ...]:
    """Nodes from their texts. Raises ValueError for one that is none, and for a header or a limit that no
    node gets.
    """
    nodes = tuple(read_node(text, headers, limits, default) for text in texts)
    hosts = {host for node in nodes for url in node.list_urls() for host in _hosts_of(url)}
    for host in [each.host for each in headers] + [each.host for each in limits]:
        if host not in hosts:
            raise ValueError(f"{host} is no node")
    return nodes


def read_headers(text: str) -> tuple[NodeHeader, ...]:
    """Headers, separated by commas or line breaks. Raises ValueError, whose text has no value."""
    return tuple(_read_header(part.strip()) for part in re.split(r"[,\r\n]", text) if part.strip())


def _read_header(text: str) -> NodeHeader:
    match = _HEADER.fullmatch(text)
    if match is None or match[2].lower() in _RESERVED:
        raise ValueError("not HOST NAME: VALUE")
    return NodeHeader(name_of(f"//{match[1]}"), match[2], match[3])


def read_limits(text: str) -> tuple[HostLimits, ...]:
    """Limits, separated by commas or line breaks. Raises ValueError."""
    return tuple(_read_limits(part.strip()) for part in re.split(r"[,\r\n]", text) if part.strip())


def _read_limits(text: str) -> HostLimits:
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError("not HOST N/s N/day")
    limits = CallLimits(*(int(count) if count else None for count in match.group(2, 3)))
    if 0 in limits:
        raise ValueError("a limit of 0")
    return HostLimits(name_of(f"//{match[1]}"), limits)


def _hosts_of(url: str) -> tuple[str, str]:
    """How a header may name a URL's host."""
    return name_of(url), str(urlsplit(url).hostname)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a node's URL begins with http:// or https://")
    return url.rstrip("/")


def _keys_of_url(parts: SplitResult) -> set[str]:
    user, password = parts.username or "", parts.password or ""
    found = {part for part in parts.path.split("/") if len(part) >= _SHORTEST_KEY}
    found |= {user, password}
    found |= {unquote(part) for part in found}
    if user or password:
        found.add(b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode())
    return found


def _keys_of_header(value: str) -> set[str]:
    scheme, _, credentials = value.partition(" ")
    found = {value, credentials.strip()}
    if scheme.lower() == "basic":
        try:
            said = b64decode(credentials, validate=True).decode()
        except ValueError:
            return found
        found |= {said, *said.partition(":")[::2]}
    return found
