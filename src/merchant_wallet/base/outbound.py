"""Connections that the service opens: whose certificates it trusts, and which proxy it goes through.

Rules:
- Only this module makes TLS contexts for such connections. Trusted are the certificates of the system, or
  those that `SSL_CERT_FILE` or `SSL_CERT_DIR` name, and in addition those of `WALLET_CA_FILE`.
- A chain that leads to a trusted certificate is accepted by every version of Python alike. Python 3.13 alone
  would refuse some whose form breaks RFC 5280, and companies' own authorities often make such.
- A proxy is used for a destination that the setting names, and for no other. Nothing is taken from the
  environment (`HTTPS_PROXY`), since a variable of another program must not redirect payouts.
- A proxy's password is in no repr and in no error.
"""

import os
import re
from base64 import b64encode
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from merchant_wallet.base.errors import list_causes

if TYPE_CHECKING:
    import ssl

    import httpx

ALL: Final = "all"
DIRECT: Final = "direct"
_PORTS: Final = {"http": 80, "https": 443}
_TRY_S: Final = 4.0
_HOST: Final = re.compile(r"\.?[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?(\.[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?)*")
# Where distributions keep their certificates. A Python that was built elsewhere may look in another place.
_BUNDLES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)


class Destination(StrEnum):
    """What a connection is for, as the setting of proxies names it."""

    CALLBACKS = "callbacks"
    """Also the webhooks to operators."""
    NODES = "nodes"
    SCREENING = "screening"
    BACKUPS = "backups"


class Untrusting(OSError):
    """The named certificates can't be used. The text says which and why, without a full stop."""


class Proxy(NamedTuple):
    """An HTTP proxy. With `is_encrypted` the connection to it is TLS, too."""

    host: str
    port: int
    is_encrypted: bool = False
    user: str | None = None
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.name})"

    @property
    def name(self) -> str:
        """Host and port, for texts."""
        return f"{_bracket(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        """The URL, with the credentials."""
        user = "" if self.user is None else f"{quote(self.user, '')}:{quote(self.password, '')}@"
        return f"{'https' if self.is_encrypted else 'http'}://{user}{self.name}"

    @property
    def authorization(self) -> bytes | None:
        """The value of the header Proxy-Authorization (RFC 7617). None without credentials."""
        if self.user is None:
            return None
        return b"Basic " + b64encode(f"{self.user}:{self.password}".encode())


Exemption = str | IPv4Network | IPv6Network
"""A host with all names below it, or a network."""
Proxies = tuple[tuple[str, Proxy | None], ...]
"""Destinations, or `all`, with their proxies. None: directly."""


class Outbound(NamedTuple):
    """The settings of connections to others."""

    ca_file: Path | None = None
    proxies: Proxies = ()
    no_proxy: tuple[Exemption, ...] = ()
    """What is reached directly."""

    def find_way(self, destination: Destination) -> Proxy | None:
        """The proxy that the setting names for a destination, or None."""
        chosen = dict(self.proxies)
        return chosen.get(destination, chosen.get(ALL))

    def find_proxy(self, destination: Destination, host: str, address: str | None = None) -> Proxy | None:
        """The proxy for a host, or None. `address` is the host's, if it was looked up here."""
        proxy = self.find_way(destination)
        return None if proxy is None or self._is_exempt(host, address) else proxy

    async def try_proxies(self) -> list[str]:
        """Connect to each proxy, and ask nothing of it. Returns what is wrong with those that fail."""
        proxies = dict.fromkeys(proxy for _, proxy in self.proxies if proxy is not None)
        failures = [await self._try_proxy(proxy) for proxy in proxies]
        return [failure for failure in failures if failure is not None]

    async def _try_proxy(self, proxy: Proxy) -> str | None:
        # As ssl below: most commands and their help work without it.
        import asyncio

        try:
            async with asyncio.timeout(_TRY_S):
                tls = self.tls() if proxy.is_encrypted else None
                _, writer = await asyncio.open_connection(proxy.host, proxy.port, ssl=tls)
                writer.close()
        except OSError as error:
            why = f"no connection within {_TRY_S:g} s" if isinstance(error, TimeoutError) else str(error)
            return f"the proxy {proxy.name} can't be reached: {why}"
        return None

    def tls(self, *, only: Path | None = None, strict: bool = False) -> "ssl.SSLContext":
        """What judges certificates. `only` names a file that alone is trusted. `strict`: it judges the
        certificates' form, too. Raises Untrusting.
        """
        if only is not None:
            return _make_tls(str(only), None, None, strict)
        file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        return _make_tls(file, folder, self.ca_file, strict)

    def open_client(
        self, destination: Destination, urls: Sequence[str], limits: "httpx.Limits", timeout_s: float | None
    ) -> "httpx.AsyncClient":
        """An HTTP client for these URLs. It follows no redirect. Raises Untrusting."""
        import httpx

        ways = {httpx.URL(url): self.find_proxy(destination, urlsplit(url).hostname or "") for url in urls}
        is_encrypted = any(
            url.scheme == "https" or (proxy is not None and proxy.is_encrypted) for url, proxy in ways.items()
        )
        # Reading all certificates takes longer than a request to a node of this machine.
        verify = self.tls() if is_encrypted else False
        mounts = {
            f"{url.scheme}://{url.netloc.decode()}": httpx.AsyncHTTPTransport(
                verify=verify, limits=limits, trust_env=False, proxy=self._make_httpx_proxy(proxy)
            )
            for url, proxy in ways.items()
            if proxy is not None
        }
        return httpx.AsyncClient(
            trust_env=False, verify=verify, limits=limits, timeout=timeout_s, mounts=mounts
        )

    def _make_httpx_proxy(self, proxy: Proxy) -> "httpx.Proxy":
        import httpx

        return httpx.Proxy(proxy.url, ssl_context=self.tls() if proxy.is_encrypted else None)

    def _is_exempt(self, host: str, address: str | None) -> bool:
        host = host.lower().rstrip(".")
        if any(isinstance(one, str) and f".{host}".endswith(f".{one}") for one in self.no_proxy):
            return True
        found = _read_address(host if address is None else address)
        networks = (one for one in self.no_proxy if not isinstance(one, str))
        return found is not None and any(found in network for network in networks)


PLAIN: Final = Outbound()
"""The certificates of the system, and no proxy."""


def read_proxies(value: str) -> Proxies:
    """Proxies as `destination=URL`, separated by spaces. Raises ValueError, whose text has no URL."""
    pairs = [part.partition("=") for part in value.split()]
    if not all(name in (ALL, *Destination) and url for name, _, url in pairs):
        raise ValueError("not destination=URL")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError("a destination occurs twice")
    return tuple((name, None if url.lower() == DIRECT else _read_proxy(url)) for name, _, url in pairs)


def _read_proxy(url: str) -> Proxy:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("not a proxy's URL")
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    # A name with a colon would end at it, and a line break would begin another header.
    if ":" in (user or "") or not f"{user}{password}".isprintable():
        raise ValueError("credentials that no proxy can read")
    port = parts.port or _PORTS[parts.scheme]
    return Proxy(parts.hostname, port, parts.scheme == "https", user, password or "")


def read_no_proxy(value: str) -> tuple[Exemption, ...]:
    """Hosts and networks, separated by commas or spaces. Raises ValueError."""
    return tuple(_read_exemption(part.lower()) for part in value.replace(",", " ").split())


def _read_exemption(text: str) -> Exemption:
    if "/" in text or _read_address(text.strip("[]")) is not None:
        return ip_network(text.strip("[]"))
    if _HOST.fullmatch(text) is None:
        raise ValueError(text)
    return text.removeprefix(".")


def show_no_proxy(value: tuple[Exemption, ...]) -> str:
    """The setting as it can be typed again."""
    return ",".join(map(str, value)) or "none"


def find_certificate_error(error: BaseException) -> "ssl.SSLCertVerificationError | None":
    """The refused certificate that an error is about, or None."""
    import ssl

    return next((one for one in list_causes(error) if isinstance(one, ssl.SSLCertVerificationError)), None)


def read_ca_file(path: Path) -> str:
    """The text of the file with further certificates. Raises Untrusting."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Untrusting(f"WALLET_CA_FILE names {path}, which can't be read: {error.strerror}") from None


# A file that has changed is read at the next start, as the other settings are.
@lru_cache(maxsize=8)
def _make_tls(file: str | None, folder: str | None, ca_file: Path | None, strict: bool) -> "ssl.SSLContext":
    # Not above: most commands and their help work without it.
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As in Python 3.13: a certificate of the file is trusted even if another one has issued it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(*_find_store(file, folder))
    except OSError as error:
        named = " and ".join(filter(None, (file, folder))) or "of the system"
        raise Untrusting(f"the certificates {named} can't be used: {error.strerror or error}") from None
    if ca_file is not None:
        try:
            context.load_verify_locations(cadata=read_ca_file(ca_file))
        except (ssl.SSLError, ValueError):
            raise Untrusting(f"WALLET_CA_FILE names {ca_file}, which has no certificate in PEM") from None
    return context


def _find_store(file: str | None, folder: str | None) -> tuple[str | None, str | None]:
    """The file and the folder of the trusted certificates. Without names: those of the system."""
    if file or folder:
        # OpenSSL looks into a folder only when it needs it, and does not say that there is none.
        if folder and not Path(folder).is_dir():
            raise NotADirectoryError("no such folder")
        return file or None, folder or None
    import ssl

    paths = ssl.get_default_verify_paths()
    bundle = paths.cafile or next((str(path) for path in _BUNDLES if path.is_file()), None)
    capath = paths.capath if paths.capath and any(Path(paths.capath).iterdir()) else None
    if bundle is None and capath is None:
        # A small container may have none. httpx brings Mozilla's.
        import certifi

        bundle = certifi.where()
    return bundle, capath


def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
