"""What all transports share: where requests go, headers, limits, nonces, and what a lost answer is called.

Rules:
- An answer has a limit of size and of time. Redirects are not followed: a signed request has one place.
- A transport sends a request once. Whether it is sent again is decided in `calls`.
- Of more calls than `MAX_CONNECTIONS` the others wait their turn. They are signed when it comes, so that
  their timestamps are fresh.
"""

import os
import secrets
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi

from merchant_wallet_client.calls import Reply, Unanswered
from merchant_wallet_client.errors import BadArgumentError

MAX_ANSWER_BYTES: Final = 1024 * 1024
MAX_CONNECTIONS: Final = 100
"""Of one client. The service accepts 1,024 from one source address by default."""
KEEP_ALIVE_S: Final = 30.0
"""The service closes an idle connection after 75 s. Load balancers often do so after 60 s."""
PORTS: Final = {"http": 80, "https": 443}
DISTRIBUTION: Final = "merchant-wallet-client"


class UnusableAnswer(Exception):
    """An answer that is too long, too slow, or not whole."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names. `authorization` is in no repr."""

    scheme: str
    host: str
    port: int
    authorization: str | None

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where requests go. `url` is the base URL without a user's name and without a slash at its end.

    `authority` is host and port as in the header Host. `authorization` is in no repr.
    """

    url: str
    host: str
    port: int
    authority: str
    path: str
    is_tls: bool
    authorization: str | None
    proxy: Proxy | None

    def __repr__(self) -> str:
        return f"Origin({self.url!r})"

    @property
    def is_usual(self) -> bool:
        """Whether it has no proxy, or one that is asked in plain HTTP."""
        return self.proxy is None or self.proxy.scheme == "http"


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


def check_base_url(base_url: str) -> str:
    """The base URL without a slash at its end. Raises BadArgumentError."""
    _split(base_url)
    return base_url.rstrip("/")


def read_origin(base_url: str) -> Origin:
    """The parts of a base URL, and the proxy that the environment names for it. Raises BadArgumentError."""
    parts = _split(base_url)
    host, port = _host_of(parts), _port_of(parts)
    authority = f"[{host}]" if ":" in host else host
    if port != PORTS[parts.scheme]:
        authority += f":{port}"
    path = quote_path(parts.path.rstrip("/"))
    return Origin(
        url=f"{parts.scheme}://{authority}{path}",
        host=host,
        port=port,
        authority=authority,
        path=path,
        is_tls=parts.scheme == "https",
        authorization=_write_basic(parts),
        proxy=_find_proxy(parts.scheme, host, authority),
    )


def quote_path(path: str) -> str:
    """A path as HTTP has it. What is quoted already stays so."""
    return quote(path, safe="/%:@!$&'()*+,;=")


def make_tls_context() -> ssl.SSLContext:
    """Trusts what `SSL_CERT_FILE` or else `SSL_CERT_DIR` names, and otherwise the authorities of certifi."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or not folder:
        context = ssl.create_default_context(cafile=file or certifi.where())
    else:
        context = ssl.create_default_context(capath=folder)
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_nonce() -> str:
    """A nonceStr: 16 random bytes."""
    return secrets.token_hex(16)


def now_ms() -> int:
    """This moment, in milliseconds."""
    return time.time_ns() // 1_000_000


def explain(error: Exception) -> Unanswered:
    """Why no answer came. The texts of libraries are sometimes empty."""
    return Unanswered(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


class Collector:
    """Collects an answer's body in parts, up to a limit of size and time."""

    def __init__(self, answer_s: float) -> None:
        self._ends_s = time.monotonic() + answer_s
        self._parts: list[bytes] = []
        self._bytes = 0

    def take(self, part: bytes) -> None:
        """Keep a part. Raises UnusableAnswer if the answer is too long or too slow."""
        self._bytes += len(part)
        if self._bytes > MAX_ANSWER_BYTES:
            raise UnusableAnswer(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        self.rest_s()
        self._parts.append(part)

    def rest_s(self) -> float:
        """The time that is left. Raises UnusableAnswer if there is none."""
        rest_s = self._ends_s - time.monotonic()
        if rest_s <= 0:
            raise UnusableAnswer("the answer came too slowly")
        return rest_s

    def make_reply(self, http_status: int, headers: Mapping[str, str]) -> Reply:
        """The whole answer."""
        lower = {name.lower(): text for name, text in headers.items()}
        return Reply(http_status, lower, b"".join(self._parts))


def _split(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url)
        # Host and port are read when they are asked for.
        is_usable = parts.scheme in PORTS and _host_of(parts) != "" and parts.port != 0
        is_usable = is_usable and not parts.query and not parts.fragment
    except ValueError:
        is_usable = False
    if not is_usable:
        raise BadArgumentError(f"base_url must be like https://wallet.example, not {base_url!r}")
    return parts


def _find_proxy(scheme: str, host: str, authority: str) -> Proxy | None:
    """Read from `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the system's settings."""
    named = getproxies()
    url = named.get(scheme) or named.get("all")
    if not url or proxy_bypass(host) or proxy_bypass(authority):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return Proxy(parts.scheme, parts.hostname or "", _port_of(parts), _write_basic(parts))


def _host_of(parts: SplitResult) -> str:
    """The host's name as DNS knows it. Raises UnicodeError."""
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode()


def _port_of(parts: SplitResult) -> int:
    return parts.port or PORTS.get(parts.scheme, 0)


def _write_basic(parts: SplitResult) -> str | None:
    """The value of `Authorization` for the user that a URL names."""
    if not parts.username and not parts.password:
        return None
    given = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + b64encode(given.encode()).decode()
