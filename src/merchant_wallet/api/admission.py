"""Limits of open connections, for each source and in all, and which connection is closed for a new one.

Rules:
- A source is an IPv4 address or an IPv6 /64. Trusted proxies stand for many clients and have no limit.
- A source's connections to all processes of one `serve` count together. The limit of all connections is
  each process's own.
- When a source is at its limit, a new connection from it closes one of its own.
- When all connections are taken, one of the source with most connections is closed. A proxy's connection is
  closed only if there is no other.
- A connection with a request under way is never closed, so a page's live stream is never closed.
- Slow senders are closed first, then connections that have been idle longest.
- A connection that has waited for less than a second is not closed. If none can be closed, the new one is
  refused.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from heapq import nsmallest
from typing import Final, NamedTuple, Protocol

from merchant_wallet.base.rate_limits import subscriber_of
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.source_addresses import Network, is_trusted

MIN_IDLE_S: Final = 1.0
"""A connection that has waited for less time is not closed for another."""
BATCH_SIZE: Final = 64
"""One search finds this many connections to close, so that a flood does not search for each."""
PAUSE_S: Final = 0.1
"""After a search that found none, there is no other search for this time."""
_PROXIES: Final = ""


class ClientWait(NamedTuple):
    """Since when the server waits for a client, and whether its request is half there."""

    is_slow: bool
    since_s: float


class AdmittedConnection(Protocol):
    """A connection of either protocol."""

    def client_wait(self) -> ClientWait | None:
        """None while a request is under way."""
        ...

    def evict(self) -> None:
        """Close at once, to make room for another connection."""
        ...


class PageProtocol(AdmittedConnection, Protocol):
    """The protocol for connections whose requests are not for an operation."""

    def connection_made(self, transport: asyncio.Transport) -> None: ...

    def data_received(self, data: bytes) -> None: ...


class _Group:
    """The connections of one source, or all. `evictable` are those to close next, in order."""

    def __init__(self) -> None:
        self.members: set[AdmittedConnection] = set()
        self.evictable: deque[tuple[AdmittedConnection, ClientWait]] = deque()
        self.look_again_s = 0.0


class Admission:
    """See the module. A source limit of 0 means none. `closed` and `refused` count since the start."""

    def __init__(
        self,
        max_connections: int,
        max_per_source: int,
        trusted_proxies: tuple[Network, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
        siblings: Siblings | None = None,
    ) -> None:
        self._shared = None if siblings is None else siblings.sources
        self._max_connections = max_connections
        self._max_per_source = max_per_source
        self._trusted_proxies = trusted_proxies
        self._monotonic = monotonic
        self._all = _Group()
        self._sources: dict[str, _Group] = {}
        self._keys: dict[AdmittedConnection, str] = {}
        self.closed = self.refused = 0

    def __len__(self) -> int:
        return len(self._keys)

    def connections(self) -> list[AdmittedConnection]:
        """All connections."""
        return list(self._keys)

    def admit(self, new: AdmittedConnection, peer: str) -> bool:
        """Whether a new connection from an address may stay. It may have closed another."""
        key = _PROXIES if is_trusted(peer, self._trusted_proxies) else subscriber_of(peer)
        group = self._sources.get(key) or _Group()
        limited = self._max_per_source > 0 and key != _PROXIES
        # It is counted first: of two that come at the same moment to two processes, one is too many.
        count = self._count(key, 1)
        count = len(group.members) + 1 if count is None else count
        if (limited and count > self._max_per_source and not self._make_room(group)) or (
            len(self._keys) >= self._max_connections and not self._make_room(self._all)
        ):
            self._count(key, -1)
            self.refused += 1
            return False
        self._add(new, key)
        return True

    def _count(self, key: str, change: int) -> int | None:
        """Count a connection that came or went. Returns the count of all processes, if it is shared."""
        if self._shared is None or self._max_per_source == 0 or key == _PROXIES:
            return None
        return self._shared.add(key, change)

    def hand_over(self, old: AdmittedConnection, new: AdmittedConnection) -> None:
        """Let another protocol continue a connection, unless it was closed meanwhile."""
        key = self._keys.get(old)
        if key is not None:
            self._remove(old, key)
            self._add(new, key)

    def release(self, connection: AdmittedConnection) -> None:
        """Forget a closed connection. May be called more than once."""
        key = self._keys.get(connection)
        if key is not None:
            self._remove(connection, key)
            self._count(key, -1)

    def _remove(self, connection: AdmittedConnection, key: str) -> None:
        del self._keys[connection]
        self._all.members.discard(connection)
        group = self._sources[key]
        group.members.discard(connection)
        if not group.members:
            del self._sources[key]

    def _add(self, new: AdmittedConnection, key: str) -> None:
        self._keys[new] = key
        self._all.members.add(new)
        self._sources.setdefault(key, _Group()).members.add(new)

    def _make_room(self, group: _Group) -> bool:
        """Close a waiting connection of a group. Returns whether there was one."""
        now_s = self._monotonic()
        if not group.evictable and now_s >= group.look_again_s:
            group.evictable.extend(self._find(group, now_s))
            if not group.evictable:
                group.look_again_s = now_s + PAUSE_S
        while group.evictable:
            connection, waiting = group.evictable.popleft()
            # Its client may have sent something since the search.
            if connection in self._keys and connection.client_wait() == waiting:
                self.release(connection)
                connection.evict()
                self.closed += 1
                return True
        return False

    def _find(self, group: _Group, now_s: float) -> list[tuple[AdmittedConnection, ClientWait]]:
        found = ((connection, connection.client_wait()) for connection in group.members)
        ready = [
            (connection, waiting)
            for connection, waiting in found
            if waiting is not None and now_s - waiting.since_s >= MIN_IDLE_S
        ]
        return nsmallest(BATCH_SIZE, ready, key=self._rank)

    def _rank(self, one: tuple[AdmittedConnection, ClientWait]) -> tuple[bool, int, float]:
        connection, waiting = one
        key = self._keys[connection]
        crowd = 0 if key == _PROXIES else len(self._sources[key].members)
        return (not waiting.is_slow, -crowd, waiting.since_s)
