"""What both clients share when they send: headers, limits, nonces, and what an HTTP error means.

Rules: an answer has a limit of size and of time. Redirects are not followed: a signed request has one place.
"""

import secrets
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from urllib.parse import urlsplit

import httpx

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.errors import BadArgumentError

MAX_ANSWER_BYTES: Final = 1024 * 1024
DISTRIBUTION: Final = "merchant-wallet-client"
HTTP_ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError)


@cache
def read_version() -> str:
    """The version of this distribution."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def make_headers() -> dict[str, str]:
    """The headers of every request."""
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"{DISTRIBUTION}/{read_version()}",
    }


def make_timeout(timeouts: Timeouts) -> httpx.Timeout:
    """httpx's timeouts. `Collector` limits the whole time of an answer."""
    return httpx.Timeout(timeouts.answer_s, connect=timeouts.connect_s)


def check_base_url(base_url: str) -> str:
    """The base URL without a slash at its end. Raises BadArgumentError."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadArgumentError(f"base_url must be like https://wallet.example, not {base_url!r}")
    return base_url.rstrip("/")


def make_nonce() -> str:
    """A nonceStr: 16 random bytes."""
    return secrets.token_hex(16)


def now_ms() -> int:
    """This moment, in milliseconds."""
    return time.time_ns() // 1_000_000


def explain(error: Exception) -> Unanswered:
    """Why no answer came. httpx's own texts are sometimes empty."""
    return Unanswered(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


class Collector:
    """Collects an answer's body in parts, up to a limit of size and time."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._ends_s = time.monotonic() + timeouts.answer_s
        self._parts: list[bytes] = []
        self._bytes = 0

    def take(self, part: bytes) -> None:
        """Keep a part. Raises httpx.HTTPError if the answer is too long or too slow."""
        self._bytes += len(part)
        if self._bytes > MAX_ANSWER_BYTES:
            raise httpx.ReadError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > self._ends_s:
            raise httpx.ReadTimeout("the answer came too slowly")
        self._parts.append(part)

    def make_reply(self, response: httpx.Response) -> Reply:
        """The whole answer."""
        headers = {name.lower(): text for name, text in response.headers.items()}
        return Reply(response.status_code, headers, b"".join(self._parts))
