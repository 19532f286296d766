"""The keys that verify checkpoints. Nothing here can sign one (see `checkpointing`).

Rules:
- Workers sign checkpoints with an Ed25519 key (RFC 8032). Its public key is in the database and in a file
  beside the checkpoints. If the two differ, neither is trusted.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("checkpoint_keys.sql"))
PUBLIC_KEY_FILE: Final = "checkpoint.pub"
PUBLIC_KEY_BYTES: Final = 32


class CheckpointKeys(msgspec.Struct, frozen=True):
    """What verifies checkpoints. Without a `public_key`, no worker has signed one yet.

    `problem` says why no key can be trusted. Then no checkpoint can be verified.
    """

    public_key: bytes | None
    problem: str | None = None


class FormerKey(msgspec.Struct, frozen=True):
    """A public key that was replaced at `until_ms`. None: a person gave it, and nobody knows when."""

    public_key: bytes
    until_ms: int | None = None


async def load_keys(conn: AsyncConnection[Any], folder: Path) -> CheckpointKeys:
    """Load the keys for a folder of checkpoints. Raises OSError, `psycopg.Error`."""
    return join_keys(await read_pinned(conn), read_published(folder))


def join_keys(pinned: bytes | None, published: "bytes | InvalidPublicKey | None") -> CheckpointKeys:
    """Combine the database's key and the folder's key. Pure."""
    if isinstance(published, InvalidPublicKey):
        return CheckpointKeys(pinned, f"{PUBLIC_KEY_FILE} beside the checkpoints is no public key")
    if None not in (pinned, published) and pinned != published:
        return CheckpointKeys(
            pinned,
            f"{PUBLIC_KEY_FILE} beside the checkpoints is another key than the database names",
        )
    return CheckpointKeys(pinned or published)


async def read_pinned(conn: AsyncConnection[Any]) -> bytes | None:
    """The public key in the database; None before the first worker had one."""
    row = await (await conn.execute(QUERIES["read_key"].text)).fetchone()
    return None if row is None else bytes(row[0])


async def list_pinned(conn: AsyncConnection[Any]) -> list[bytes]:
    """Every public key that the database names, oldest first. By itself that proves nothing."""
    return [bytes(key) for (key,) in await (await conn.execute(QUERIES["list_keys"].text)).fetchall()]


class InvalidPublicKey:
    """The folder's key file has something that is no public key."""


def read_published(folder: Path) -> bytes | InvalidPublicKey | None:
    """The public key beside the checkpoints; None without a file. Raises OSError."""
    try:
        found = parse_public_key((folder / PUBLIC_KEY_FILE).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except ValueError:
        return InvalidPublicKey()
    return found


def parse_public_key(text: str) -> bytes:
    """A public key in hexadecimal digits. Raises ValueError. Pure."""
    found = bytes.fromhex(text.strip())
    if len(found) != PUBLIC_KEY_BYTES:
        raise ValueError(f"a public key has {PUBLIC_KEY_BYTES} bytes")
    return found


def verify_signature(public_key: bytes, signature: str, text: str) -> bool:
    """Whether the hex signature of this text was made with the private key of `public_key`."""
    try:
        _load(public_key).verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=16)
def _load(public_key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public_key)
