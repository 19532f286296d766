"""Reads when the certificate of the pages ends, as a merchant's client sees it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import urlsplit

from merchant_wallet.base.outbound import Outbound, find_certificate_error
from merchant_wallet.base.settings import Settings

HTTPS_PORT = 443
CONNECT_S = 10.0
MS_PER_S = 1000


def make_certificate_reader(settings: Settings) -> Callable[[], Awaitable[int | None]] | None:
    """Reads the certificate of the settings' pages. None if they are not served over TLS."""
    url = settings.pages_url
    return partial(read_end_ms, url, settings.outbound) if url.startswith("https://") else None


async def read_end_ms(url: str, outbound: Outbound) -> int | None:
    """When the certificate ends; 0 if it is not trusted now. None if nobody answers there."""
    parts = urlsplit(url)
    assert parts.hostname is not None, "the setting has a host"
    try:
        async with asyncio.timeout(CONNECT_S):
            opening = asyncio.open_connection(parts.hostname, parts.port or HTTPS_PORT, ssl=outbound.tls())
            _, writer = await opening
    except (OSError, TimeoutError) as error:
        return None if find_certificate_error(error) is None else 0
    try:
        certificate = writer.get_extra_info("peercert")
        return int(ssl.cert_time_to_seconds(certificate["notAfter"])) * MS_PER_S
    finally:
        writer.transport.abort()
