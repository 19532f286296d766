"""Objects in a bucket of an S3-compatible store, by obstore.

Rules:
- Address and credentials are the usual variables: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
  AWS_SECRET_ACCESS_KEY. Plain HTTP is allowed to this machine alone.
- A long object is sent in parts, and appears when the last one has arrived.
- Whom it trusts and which proxy it goes through is said by `base.outbound`.
- A request that fails is repeated, with pauses that grow to ten seconds, while the caller has patience.
- A long object is read in ranges, some of them ahead, so that each has a time limit and repeats of its own.
- The library lists no bucket that has a key such as `a//b`, which anybody may have made. The error names it.
"""

import html
import io
import os
import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from merchant_wallet.base.outbound import Destination, Outbound, read_ca_file
from merchant_wallet.postgres.backups.encryption import Reader, Writer
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone, StoreAway
from merchant_wallet.postgres.backups.stores import StoredObject

PART_BYTES: Final = 8 * 2**20
DELETE_AT_ONCE: Final = 500
READ_AHEAD: Final = 4
REQUEST_S: Final = 60
FIRST_PAUSE_S: Final = 0.2
MAX_PAUSE_S: Final = 10
MAX_RETRIES: Final = 10_000
"""Never reached: the time ends first."""
ENDPOINT: Final = "AWS_ENDPOINT_URL"
LOCAL: Final = ("127.0.0.1", "localhost", "::1")
KEY_PAIR: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
MAX_SAID: Final = 300
_CODE = re.compile(r"<Code>([^<]{1,100})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
IMPOSSIBLE: Final = "object with invalid path"
UNTRUSTED: Final = "InvalidCertificate"
NOBODY: Final = "http://127.0.0.1:1"
AMAZON: Final = "s3.amazonaws.com"


class S3Store:
    """A bucket, or what is below a prefix of it. `patience_s`: for how long a request is repeated."""

    def __init__(self, bucket: str, prefix: str, outbound: Outbound, patience_s: int) -> None:
        self._place = f"s3://{bucket}/{prefix}".rstrip("/")
        self._library = _load()
        endpoint = urlsplit(os.environ.get(ENDPOINT, ""))
        if endpoint.scheme == "http" and endpoint.hostname not in LOCAL:
            raise BackupError(f"{ENDPOINT} must be https:// unless it is this machine.")
        _require_keys(is_amazon=not endpoint.netloc)
        with self.named():
            self._store = self._library.store.S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": endpoint.scheme == "http",
                    "timeout": timedelta(seconds=REQUEST_S),
                    **_choose_way(outbound, endpoint.hostname),
                },
                retry_config={
                    "max_retries": MAX_RETRIES,
                    "retry_timeout": timedelta(seconds=patience_s),
                    "backoff": {
                        "init_backoff": timedelta(seconds=FIRST_PAUSE_S),
                        "max_backoff": timedelta(seconds=MAX_PAUSE_S),
                        "base": 2,
                    },
                },
            )

    def put(self, name: str, content: bytes) -> None:
        """See `Store`."""
        with self.named():
            self._library.put(self._store, name, content)

    @contextmanager
    def write(self, name: str) -> Iterator[Writer]:
        """See `Store`."""
        # Without a `close` the parts that were sent are no object.
        writer = self._library.open_writer(self._store, name, buffer_size=PART_BYTES)
        yield _Adapter(writer, self)
        with self.named():
            writer.close()

    @contextmanager
    def read(self, name: str) -> Iterator[Reader]:
        """See `Store`."""
        with self.named():
            first = self._get(name)
            size, tag = first.meta["size"], first.meta["e_tag"]
            content = bytes(first.bytes()) if size <= PART_BYTES else None
        if content is not None:
            yield io.BytesIO(content)
            return
        # Its connection is closed: one request for all would have to end within its time limit.
        del first
        ranges = self._read_ranges(name, size, tag)
        try:
            yield _Chunks(ranges)
        finally:
            ranges.close()

    def _read_ranges(self, name: str, size: int, tag: str | None) -> Generator[bytes]:
        """The content of a long object, in order."""
        pool = ThreadPoolExecutor(READ_AHEAD)
        ahead: deque[Future[bytes]] = deque()
        try:
            for start in range(0, size, PART_BYTES):
                ahead.append(pool.submit(self._read_range, name, start, min(size, start + PART_BYTES), tag))
                if len(ahead) > READ_AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _read_range(self, name: str, start: int, end: int, tag: str | None) -> bytes:
        with self.named():
            found = self._get(name, {"range": (start, end)})
            content = bytes(found.bytes())
        if found.meta["e_tag"] != tag or len(content) != end - start:
            raise ObjectGone(f"{name} was replaced in the store while it was read.")
        return content

    def _get(self, name: str, options: Any = None) -> Any:
        try:
            return self._library.get(self._store, name, options=options)
        except (FileNotFoundError, self._library.exceptions.NotFoundError) as error:
            raise ObjectGone(f"The back-up store {self._place} has no {name} any more.") from error

    def list_objects(self, prefix: str = "") -> list[StoredObject]:
        """See `Store`."""
        with self.named():
            return sorted(
                StoredObject(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))
                for page in self._library.list(self._store, prefix or None)
                for found in page
            )

    def delete(self, names: Iterable[str]) -> None:
        """See `Store`."""
        left = list(names)
        with self.named():
            while left:
                self._library.delete(self._store, left[:DELETE_AT_ONCE])
                left = left[DELETE_AT_ONCE:]

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say which store an error is about."""
        try:
            yield
        except (OSError, ValueError, self._library.exceptions.BaseError) as error:
            raise StoreAway(f"The back-up store {self._place}: {_explain(str(error))}") from None


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

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
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
        return memoryview(next(self._chunks, b""))


def _require_keys(*, is_amazon: bool) -> None:
    """Raises BackupError if a variable of the key is missing. A machine of Amazon may get one by itself."""
    missing = [name for name in KEY_PAIR if not os.environ.get(name)]
    if missing and not (is_amazon and len(missing) == len(KEY_PAIR)):
        raise BackupError(f"An S3 store needs a key: set {' and '.join(missing)}.")


def _explain(said: str) -> str:
    """What the library says of an error, as sentences. A store's own words are in XML."""
    text, _, source = said.partition("Debug source")
    told = " ".join(text.split())
    if code := _CODE.search(told):
        message = _MESSAGE.search(told)
        detail = html.unescape(message[1]).rstrip(".") if message else "no more is said"
        told = f"it answers {code[1]}: {detail}"
    told = f"{told[:MAX_SAID].rstrip('.')}."
    if IMPOSSIBLE in told:
        return f"{told} Remove that object: no back-up has such a name."
    if UNTRUSTED in source:
        return f"{told} Its certificate is not trusted: name its authority's in WALLET_CA_FILE."
    if not any(os.environ.get(name) for name in KEY_PAIR):
        return f"{told} {' and '.join(KEY_PAIR)} are not set."
    return told


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
