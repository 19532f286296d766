"""Idle connections of a transport. Threads may share a pool.

Rules:
- The connection that was used last is used first, so those that are not needed grow old and are closed.
- One that ended meanwhile, or that has something to read which was not asked for, is closed.
"""

import select
import threading
import time
from typing import Generic, NamedTuple, Protocol, TypeVar

from merchant_wallet_client.sending import KEEP_ALIVE_S


class Connection(Protocol):
    """What a pool needs to know of a connection."""

    def is_quiet(self) -> bool:
        """Whether it is open and nothing came on it."""

    def close(self) -> None:
        """Close it."""


Kind = TypeVar("Kind", bound=Connection)


def has_input(descriptor: int) -> bool:
    """Whether a socket has something to read, or its end."""
    # Windows has no poll. Elsewhere select knows only the first 1,024 files.
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class _Idle(NamedTuple, Generic[Kind]):
    connection: Kind
    until_s: float


class ConnectionPool(Generic[Kind]):
    """Connections to one origin that wait for the next call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle[Kind]] = []
        self._is_closed = False

    def take(self) -> Kind | None:
        """A connection that can be used, or None. Raises RuntimeError if the pool is closed."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise RuntimeError("the client is closed")
                if not self._idle:
                    return None
                connection, until_s = self._idle.pop()
            if time.monotonic() < until_s and connection.is_quiet():
                return connection
            connection.close()

    def keep(self, connection: Kind) -> None:
        """Keep a connection for the next call, and close the one that has waited longest if it is too old."""
        now_s = time.monotonic()
        with self._lock:
            unused = self._idle.pop(0).connection if self._idle and self._idle[0].until_s < now_s else None
            if self._is_closed:
                unused = connection
            else:
                self._idle.append(_Idle(connection, now_s + KEEP_ALIVE_S))
        if unused is not None:
            unused.close()

    def close(self) -> None:
        """Close the idle connections now, and those in use after their answer."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.connection.close()
