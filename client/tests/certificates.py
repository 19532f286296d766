"""The authorities' certificates, which all clients of httpx in a process of tests share."""

import os
import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import pytest


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """Each new client of httpx would read all authorities' certificates anew, for 60 ms."""
    create = httpx.create_ssl_context

    @cache
    def create_once(_paths: tuple[str | None, ...], options: frozenset[tuple[str, Any]]) -> ssl.SSLContext:
        return create(**dict(options))

    def create_ssl_context(**options: Any) -> ssl.SSLContext:
        paths = tuple(map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
        return create_once(paths, frozenset(options.items()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", create_ssl_context)
        patch.setattr("httpx.create_ssl_context", create_ssl_context)
        yield
