"""Checkpoints of all books of a database, as the worker writes them."""

import asyncio
from pathlib import Path

from psycopg import AsyncConnection

from merchant_wallet.audit.checkpointing.signing import INTERVAL_MS, CheckpointSigner, append_all, read_heads


async def write_checkpoints(
    conn: AsyncConnection,
    signer: CheckpointSigner,
    folder: Path,
    now_ms: int,
    *,
    interval_ms: int = INTERVAL_MS,
) -> int:
    """Append a checkpoint for each book that has grown. Returns how many were written."""
    heads = await read_heads(conn, now_ms)
    return await asyncio.to_thread(append_all, signer, folder, heads, interval_ms)
