"""The private key of checkpoints: where it is, and whether it is the service's.

Rules:
- The key is WALLET_CHECKPOINT_KEY, or else in the file WALLET_CHECKPOINT_KEY_FILE, or else in
  `checkpoint.key` in the data folder. If the service has no key yet, one is created. Only its owner may read
  the file.
- The first worker writes the public key to the database and beside the checkpoints. After that, a worker with
  another key does not start.
- The web process never has the private key. It verifies with the public one.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit.checkpointing.signing import FOLDER_MODE, CheckpointSigner
from merchant_wallet.base.atomic_files import READABLE, replace_file
from merchant_wallet.base.config import ConfigError, load_or_create_key_file
from merchant_wallet.base.db import Queries
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.checkpoint_keys import (
    PUBLIC_KEY_FILE,
    InvalidPublicKey,
    read_pinned,
    read_published,
)

QUERIES: Final = Queries(Path(__file__).with_name("keys.sql"))
KEY_NAME: Final = "checkpoint key"


def has_private_key(settings: Settings) -> bool:
    """Whether there is a private key already, in a setting or in its file."""
    return settings.checkpoint_key is not None or settings.checkpoint_key_path.exists()


def open_or_create_signer(settings: Settings) -> CheckpointSigner:
    """Open the signer. Creates a key if there is none. Raises ConfigError."""
    path = settings.checkpoint_key_path
    return CheckpointSigner(settings.checkpoint_key or load_or_create_key_file(path, KEY_NAME))


async def open_service_signer(
    conn: AsyncConnection[Any], settings: Settings, now_ms: int
) -> CheckpointSigner:
    """Open the service's signer at a worker's start, and make sure that its key is the service's.

    Raises ConfigError, OSError, `psycopg.Error`.
    """
    folder = settings.checkpoint_folder
    async with conn.transaction():
        await conn.execute(QUERIES["lock_keys"].text)
        pinned, published = await read_pinned(conn), read_published(folder)
        known = published if pinned is None else pinned
        if known is not None and not has_private_key(settings):
            raise ConfigError(
                f"the checkpoint key {settings.checkpoint_key_path} is not there, and this service has "
                "checkpoints: bring back the key they were signed with, or set WALLET_CHECKPOINT_KEY. "
                + LOST_KEY
            )
        signer = open_or_create_signer(settings)
        if isinstance(published, InvalidPublicKey) or not {pinned, published} <= {None, signer.public_key}:
            raise ConfigError(
                "the checkpoint key is not the one that the database or the checkpoints' folder names: bring "
                "back the key of this service's checkpoints, and its folder. " + LOST_KEY
            )
        if published is None:
            await asyncio.to_thread(publish, signer, folder)
        if pinned is None:
            await pin(conn, signer, now_ms)
    return signer


LOST_KEY: Final = (
    "If it is lost, `merchant-wallet book accept-rollback --new-key` keeps the old checkpoints as evidence."
)


async def pin(conn: AsyncConnection[Any], signer: CheckpointSigner, now_ms: int) -> None:
    """Write the signer's public key to the database. It is the service's from now on."""
    values = {"public_key": signer.public_key, "since_ms": now_ms}
    await conn.execute(QUERIES["add_key"].text, values)


def publish(signer: CheckpointSigner, folder: Path) -> None:
    """Write the public key beside the checkpoints, whole or not at all. Raises OSError."""
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    replace_file(folder / PUBLIC_KEY_FILE, f"{signer.public_key.hex()}\n".encode(), mode=READABLE)
