"""Metrics of the back-ups of the own PostgreSQL, and how they are read. A database without them shows none.

The process that stores WAL says in its session's name up to which moment the store can be restored. The audit
log says when a restore was last rehearsed. What there is none of has an infinite age: its alert fires.
"""

import math
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.metric_rows import Alert, Metric
from merchant_wallet.postgres.backups.names import SESSION, Stored, parse_session
from merchant_wallet.postgres.backups.queries import SLOT

MAX_BASE_AGE_S: Final = 8 * 86_400
MAX_VERIFY_AGE_S: Final = 35 * 86_400
NOTHING: Final = Stored(0, 0, 0)
"""Nobody stores WAL now."""
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
                first="The log of `up` has `WAL is not being stored` with the reason. After 16 GB "
                "PostgreSQL keeps no more of it, and a new `backup create` is needed.",
            ),
        ),
    ),
    Metric(
        "wallet_backup_behind_seconds",
        (),
        "Age of the newest commit that can't be restored from the store: what a lost disk would lose now",
        (
            Alert(
                "WalletBackupBehind",
                "above 60",
                "max(wallet_backup_behind_seconds < Inf) > 60",
                "page",
                "5m",
                says="The stored back-up is {duration} behind",
                means="Merchants notice nothing. A lost disk would lose this much.",
                first="The log of `up` has `WAL is not being stored` if the store does not answer, and `WAL "
                "is missing` if the store has lost some, or was not set for a while: then run `backup "
                "create`. Otherwise the store is slower than the WAL that is written.",
            ),
        ),
    ),
    Metric(
        "wallet_backup_base_age_seconds",
        (),
        "Age of the newest base back-up of this PostgreSQL. Infinite without one. Only while WAL is stored",
        (
            Alert(
                "WalletBackupBaseOld",
                "above 8 days, or none",
                f"max(wallet_backup_base_age_seconds) > {MAX_BASE_AGE_S}",
                "ticket",
                "1h",
                says="There is no base back-up of this database of the last 8 days",
                means="Merchants notice nothing. A restore takes long, or is not possible.",
                first="Run `backup create`, from a timer at least once a week, and after each upgrade of "
                "PostgreSQL. Without a base back-up the stored WAL restores nothing.",
            ),
        ),
    ),
    Metric(
        "wallet_backup_verify_age_seconds",
        (),
        "Time since `backup verify` found a restore of this PostgreSQL good. Infinite before the first time",
        (
            Alert(
                "WalletBackupUnverified",
                "above 35 days, or never",
                f"max(wallet_backup_verify_age_seconds) > {MAX_VERIFY_AGE_S}",
                "ticket",
                "1h",
                says="No restore of this database was rehearsed in the last 35 days",
                means="Merchants notice nothing. Nobody knows whether the back-ups can be restored.",
                first="Run `backup verify`, from a timer at least once a month. It counts if it ends with "
                "status 0 and reaches the live database.",
            ),
        ),
    ),
)


async def read_backup(connection: AsyncConnection[Any], now_ms: int, settings: Settings) -> list[Sample]:
    """What the back-ups can restore. Nothing without a store."""
    stored = await find_backup(connection)
    if stored is None:
        return []
    samples: list[Sample] = [("wallet_backup_running", (), int(stored != NOTHING))]
    if stored != NOTHING:
        samples += [
            ("wallet_backup_behind_seconds", (), _age_s(stored.restorable_ms, now_ms)),
            ("wallet_backup_base_age_seconds", (), _age_s(stored.base_ms, now_ms)),
        ]
    verified = await (await connection.execute(QUERIES["read_verified"].text)).fetchone()
    return [
        *samples,
        ("wallet_backup_verify_age_seconds", (), _age_s(verified[0] if verified else 0, now_ms)),
    ]


async def find_backup(connection: AsyncConnection[Any]) -> Stored | None:
    """What is stored; NOTHING while nobody stores; None if nobody ever did."""
    values = {"session": SESSION, "slot": SLOT}
    row = await (await connection.execute(QUERIES["read_stored"].text, values)).fetchone()
    assert row is not None
    is_wanted, told = row
    if told is None:
        return NOTHING if is_wanted else None
    return parse_session(told) or NOTHING


def _age_s(at_ms: int, now_ms: int) -> float:
    return max(0, now_ms - at_ms) / 1000 if at_ms else math.inf
