"""The endpoints of a merchant's callbacks: for each host, how its last attempts went.

Rules:
- The newest 500 callbacks are counted, of each the last 20 attempts.
- A URL's host is its name and its port. An attempt counts once it has an answer or an error.
- A merchant's endpoint chose the bytes of an answer. Pages show them as text only.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.callbacks.answers import Kept
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("endpoints.sql"))
MAX_CALLBACKS: Final = 500
MAX_ATTEMPTS: Final = 20
SHOWN: Final = 5
"""So many attempts are kept for each host."""


class EndpointAttempt(msgspec.Struct, Kept, frozen=True):
    """One attempt at a callback, and where it went."""

    url: str | None
    event_id: str
    state: str
    attempt_no: int
    at_ms: int
    address: str | None
    http_status: int | None
    error: str | None
    answer: bytes | None
    latency_ms: int | None

    @property
    def is_over(self) -> bool:
        """Whether there is an outcome."""
        return self.latency_ms is not None or self.error is not None


class Endpoint(msgspec.Struct):
    """One host, and the outcome of its last attempts. `last` are the newest of them."""

    host: str
    url: str
    successes: int = 0
    failures: int = 0
    last: list[EndpointAttempt] = msgspec.field(default_factory=list)


async def list_endpoints(cell: Connection, merchant_id: int) -> list[Endpoint]:
    """The endpoints of a merchant, the one that was used last first."""
    values = {"merchant_id": merchant_id, "most": MAX_CALLBACKS, "attempts": MAX_ATTEMPTS}
    rows = await fetch(cell, QUERIES["list_last_attempts"].text, values)
    return group_by_host(EndpointAttempt(**row) for row in rows)


def group_by_host(attempts: Iterable[EndpointAttempt]) -> list[Endpoint]:
    """The endpoints of these attempts, which are ordered with the newest first. Pure."""
    endpoints: dict[str, Endpoint] = {}
    for attempt in attempts:
        if attempt.url is None:
            continue
        host = read_host(attempt.url)
        endpoint = endpoints.setdefault(host, Endpoint(host, attempt.url))
        if attempt.is_over:
            if attempt.failure is None:
                endpoint.successes += 1
            else:
                endpoint.failures += 1
        if len(endpoint.last) < SHOWN:
            endpoint.last.append(attempt)
    return list(endpoints.values())


def read_host(url: str) -> str:
    """The name and the port of a URL."""
    try:
        return urlsplit(url).netloc.lower() or url
    except ValueError:
        return url
