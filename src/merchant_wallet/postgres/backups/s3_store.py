"""Objects in a bucket of an S3-compatible store, by obstore.

Rules:
- Address and credentials are the usual variables: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
  AWS_SECRET_ACCESS_KEY. Plain HTTP is allowed to this machine alone.
- A long object is sent in parts, and appears when the last one has arrived.
- Whom it trusts and which proxy it goes through is said by `base.outbound`.
- A request is repeated for ten seconds. After that the caller decides.
- The library lists no bucket that has a key such as `a//b`, which anybody may have made. The error names it.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from merchant_wallet.base.outbound import Destination, Outbound, read_ca_file
from merchant_wallet.postgres.backups.encryption import Reader, Writer
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone, StoreAway
from merchant_wallet.postgres.backups.stores import StoredObject

PART_BYTES: Final = 8 * 2**20
READ_BYTES: Final = 2**20
DELETE_AT_ONCE: Final = 500
REQUEST_S: Final = 60
RETRY_S: Final = 10
ENDPOINT: Final = "AWS_ENDPOINT_URL"
LOCAL: Final = ("127.0.0.1", "localhost", "::1")
MAX_SAID: Final = 300
IMPOSSIBLE: Final = "object with invalid path"
UNTRUSTED: Final = "InvalidCertificate"
NOBODY: Final = "http://127.0.0.1:1"
AMAZON: Final = "s3.amazonaws.com"


class S3Store:
    """A bucket, or what is below a prefix of it."""

    def __init__(self, bucket: str, prefix: str, outbound: Outbound) -> None:
        self._place = f"s3://{bucket}/{prefix}".rstrip("/")
        self._library = _load()
        endpoint = urlsplit(os.environ.get(ENDPOINT, ""))
        if endpoint.scheme == "http" and endpoint.hostname not in LOCAL:
            raise BackupError(f"{ENDPOINT} must be https:// unless it is this machine.")
        with self._named():
            self._store = self._library.store.S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": endpoint.scheme == "http",
                    "timeout": timedelta(seconds=REQUEST_S),
                    **_choose_way(outbound, endpoint.hostname),
                },
                retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRY_S)},
            )

    def put(self, name: str, content: bytes) -> None:
        """See `Store`."""
        with self._named():
            self._library.put(self._store, name, content)

    @contextmanager
    def write(self, name: str) -> Iterator[Writer]:
        """See `Store`."""
        # Without a `close` the parts that were sent are no object.
        writer = self._library.open_writer(self._store, name, buffer_size=PART_BYTES)
        yield _Adapter(writer, self)
        with self._named():
            writer.close()

    @contextmanager
    def read(self, name: str) -> Iterator[Reader]:
        """See `Store`."""
        with self._named():
            try:
                chunks = self._library.get(self._store, name).stream(min_chunk_size=READ_BYTES)
            except (FileNotFoundError, self._library.exceptions.NotFoundError) as error:
                raise ObjectGone(f"The back-up store {self._place} has no {name} any more.") from error
        yield _Chunks(iter(chunks), self)

    def list_objects(self, prefix: str = "") -> list[StoredObject]:
        """See `Store`."""
        with self._named():
            return sorted(
                StoredObject(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))
                for page in self._library.list(self._store, prefix or None)
                for found in page
            )

    def delete(self, names: Iterable[str]) -> None:
        """See `Store`."""
        left = list(names)
        with self._named():
            while left:
                self._library.delete(self._store, left[:DELETE_AT_ONCE])
                left = left[DELETE_AT_ONCE:]

    def named(self) -> Any:
        """Say which store an error is about."""
        return self._named()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, self._library.exceptions.BaseError) as error:
            text, _, source = str(error).partition("Debug source")
            said = " ".join(text.split())
            hint = " Remove that object: no back-up has such a name." if IMPOSSIBLE in said else ""
            if UNTRUSTED in source:
                hint = " Its certificate is not trusted: name its authority's in WALLET_CA_FILE."
            raise StoreAway(
                f"The back-up store {self._place}: {said[:MAX_SAID].rstrip('.')}.{hint}"
            ) from None


class _Adapter:
    """A writer whose errors name the store."""

    def __init__(self, writer: Any, store: S3Store) -> None:
        self._writer = writer
        self._store = store

    def write(self, content: bytes, /) -> int:
        with self._store.named():
            self._writer.write(content)
        return len(content)

    def flush(self) -> None:
        """The parts are sent by `close`."""


class _Chunks:
    """A stream of chunks as a reader."""

    def __init__(self, chunks: Iterator[Any], store: S3Store) -> None:
        self._chunks = chunks
        self._store = store
        self._left = memoryview(b"")

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            parts = [bytes(self._left)]
            while chunk := self._next():
                parts.append(bytes(chunk))
            self._left = memoryview(b"")
            return b"".join(parts)
        if not self._left:
            self._left = self._next()
        found, self._left = bytes(self._left[:size]), self._left[size:]
        return found

    def _next(self) -> memoryview:
        with self._store.named():
            return memoryview(bytes(next(self._chunks, b"")))


def _choose_way(outbound: Outbound, host: str | None) -> dict[str, str]:
    """The library's options for the proxy, and for certificates besides those that it finds itself: the
    system's, or those of SSL_CERT_FILE. Raises Untrusting.
    """
    proxy = outbound.find_proxy(Destination.BACKUPS, host or AMAZON)
    options = {} if proxy is None else {"proxy_url": proxy.url}
    if outbound.ca_file is not None:
        options["proxy_ca_certificate"] = read_ca_file(outbound.ca_file)
        if proxy is None:
            # The library takes certificates only with a proxy, and also for what that proxy is not used for.
            options |= {"proxy_url": NOBODY, "proxy_excludes": ",".join(filter(None, ("*", host)))}
    return options


def _load() -> Any:
    """The library. Raises BackupError if it is not installed."""
    try:
        import obstore
    except ImportError as error:
        raise BackupError(
            "An S3 store needs the package obstore: install merchant-wallet[s3], or the locked packages."
        ) from error
    return obstore
