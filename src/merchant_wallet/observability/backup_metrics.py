"""Metrics of the back-ups of the own PostgreSQL, and how they are read. A database without them shows none.

The process that stores WAL says in its session's name up to which moment everything is stored.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.metric_rows import Alert, Metric
from merchant_wallet.postgres.backups.queries import SESSION, SLOT

QUERIES: Final = Queries(Path(__file__).with_name("backup_metrics.sql"))

BACKUPS: Final = (
    Metric(
        "wallet_backup_running",
        (),
        "1 while a process stores the WAL of the own PostgreSQL, else 0. Only with WALLET_BACKUP_URL",
        (
            Alert(
                "WalletBackupStopped",
                "0",
                "max(wallet_backup_running) < 1",
                "page",
                "5m",
                says="The database's WAL is not being stored",
                means="Merchants notice nothing. A lost disk would lose all that was committed since.",
            ),
        ),
        "The log of `up` has `WAL is not being stored` with the reason. Until then, a lost disk loses it. "
        "After 16 GB PostgreSQL keeps no more of it, and a new `backup create` is needed.",
    ),
    Metric(
        "wallet_backup_behind_seconds",
        (),
        "Age of the newest commit that may not be stored yet: what a lost disk would lose now",
        (
            Alert(
                "WalletBackupBehind",
                "above 60",
                "max(wallet_backup_behind_seconds) > 60",
                "page",
                "5m",
                says="The stored back-up is {duration} behind",
                means="Merchants notice nothing. A lost disk would lose this much.",
            ),
        ),
        "The log of `up` has `WAL is not being stored` if the store does not answer. Otherwise the store is "
        "slower than the WAL that is written.",
    ),
)


async def read_backup(connection: AsyncConnection[Any], now_ms: int, settings: Settings) -> list[Sample]:
    """How far the stored WAL is behind. Nothing without a store."""
    stored_ms = await find_backup(connection)
    if stored_ms is None:
        return []
    samples: list[Sample] = [("wallet_backup_running", (), int(stored_ms > 0))]
    if stored_ms:
        samples.append(("wallet_backup_behind_seconds", (), max(0, now_ms - stored_ms) / 1000))
    return samples


async def find_backup(connection: AsyncConnection[Any]) -> int | None:
    """Up to which moment WAL is stored; 0 while nobody stores it; None if nobody ever did."""
    values = {"session": SESSION, "slot": SLOT}
    row = await (await connection.execute(QUERIES["read_stored"].text, values)).fetchone()
    assert row is not None
    is_wanted, told = row
    if told is None:
        return 0 if is_wanted else None
    moment = told.removeprefix(SESSION).strip()
    return int(moment) if moment.isdecimal() else 0
