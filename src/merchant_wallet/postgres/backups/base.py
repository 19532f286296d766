"""Makes a base back-up of a running server: `pg_basebackup` as a stream, compressed, encrypted, stored.

Rules:
- Nothing is written beside the store.
- The WAL of the back-up's own time is in it. A slot of this session keeps that WAL meanwhile.
- The `complete` object is written last. What is left without it is removed by `prune`.
- It has the manifest: the digest and the length of the data. It is signed, so both are authenticated.
"""

import hashlib
import os
import re
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.backups import catalogue, names
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError
from merchant_wallet.postgres.backups.names import Completed
from merchant_wallet.postgres.backups.queries import QUERIES
from merchant_wallet.postgres.backups.stores import Store
from merchant_wallet.postgres.programs import find_programs

READ_BYTES: Final = 2**20
COMPRESSION: Final = 1
GZIP_WINDOW: Final = 31
_START = re.compile(r"write-ahead log start point: (\S+) on timeline (\d+)")
_END = re.compile(r"write-ahead log end point: (\S+)")


class Manifest(msgspec.Struct, frozen=True):
    """What the data of a base back-up is: the SHA-256 of the compressed archive, and its length unpacked."""

    sha256: str
    archive_bytes: int


Progress = Callable[[int, int], None]
"""Called with the bytes read so far, and about how many there are."""


def create_base(url: str, store: Store, key: BackupKey, progress: Progress) -> catalogue.BaseBackup:
    """Make a base back-up of the server at `url` (the role of back-ups). Raises BackupError, StoreAway."""
    begun_ms = now_ms()
    with connect_sync(url) as connection:
        system, total = _describe(connection)
        name = names.format_moment(begun_ms)
        base = f"{system}/{catalogue.BASE}/{name}"
        if store.list_objects(base):
            raise BackupError(f"There is a back-up {name} already: try again in a second.")
        _keep_wal(connection)
        with tempfile.TemporaryFile() as said, _stream(url, name, said) as stream:
            compressed = _Compressed(stream, lambda done: progress(done, total))
            data = f"{base}/{catalogue.DATA}"
            with store.write(data) as target:
                key.seal_stream(data, compressed, target)
                # Before the object appears: half a cluster must not.
                _require_end(stream, said)
            completed = _read_positions(said)
    complete = f"{base}/{completed.name}"
    store.put(complete, key.seal(complete, msgspec.json.encode(compressed.make_manifest())))
    [size] = [found.size for found in store.list_objects(base) if found.name == data]
    return catalogue.BaseBackup(system, name, completed, size)


def _describe(connection: psycopg.Connection[Any]) -> tuple[str, int]:
    """The system identifier, and about how many bytes the cluster has."""
    row = connection.execute(QUERIES["describe_cluster"].text).fetchone()
    assert row is not None
    return str(row[0]), int(row[1])


def _keep_wal(connection: psycopg.Connection[Any]) -> None:
    slot = f"wallet_base_{os.getpid()}"
    connection.execute(QUERIES["keep_wal"].text, {"slot": slot})


@contextmanager
def _stream(url: str, name: str, said: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    program, environment = find_programs() / "pg_basebackup", make_environment(url)
    options = [
        "--format=tar",
        "--wal-method=fetch",
        "--checkpoint=fast",
        f"--label=wallet {name}",
        "--verbose",
    ]
    process = subprocess.Popen(
        [str(program), "--pgdata=-", *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=said,
        cwd="/",
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def make_environment(url: str) -> Mapping[str, str]:
    """How a program of PostgreSQL connects. The password is not on its command line."""
    parts = conninfo_to_dict(url)
    named = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
    told = {variable: str(parts[part]) for variable, part in named.items() if part in parts}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **told}


def _require_end(process: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
    if process.wait() != 0:
        raise BackupError(f"pg_basebackup failed: {_text(said)[-2000:].strip()}")


def _read_positions(said: IO[bytes]) -> Completed:
    text = _text(said)
    start, end = _START.search(text), _END.search(text)
    if start is None or end is None:
        raise BackupError(f"pg_basebackup did not say what it read: {text[-2000:].strip()}")
    return Completed(int(start[2]), names.parse_position(start[1]), names.parse_position(end[1]), now_ms())


def _text(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")


class _Compressed:
    """The output of a program, compressed (gzip)."""

    def __init__(self, process: "subprocess.Popen[bytes]", progress: Callable[[int], None]) -> None:
        assert process.stdout is not None
        self._output = process.stdout
        self._progress = progress
        self._compressor: Any = zlib.compressobj(COMPRESSION, zlib.DEFLATED, GZIP_WINDOW)
        self._digest = hashlib.sha256()
        self._left = b""
        self._done = 0
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        while not self._left and not self._ended:
            chunk = self._output.read(READ_BYTES)
            self._done += len(chunk)
            self._progress(self._done)
            self._ended = not chunk
            self._left = self._compressor.compress(chunk) if chunk else self._compressor.flush()
            self._digest.update(self._left)
        size = len(self._left) if size < 0 else size
        found, self._left = self._left[:size], self._left[size:]
        return found

    def make_manifest(self) -> Manifest:
        """What was read, when all was."""
        return Manifest(self._digest.hexdigest(), self._done)
