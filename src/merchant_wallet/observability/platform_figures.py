"""What the metrics show of the platform, read from home's database.

Rules: each query reads few rows, or the rows of an index of open things. What is shown of books is read in
each cell (see `cell_figures`). Money is shown in coins, as a float: no decision is made with it.

Statements are in `metrics.sql`. All functions raise `psycopg.Error`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, get_args

from psycopg import AsyncConnection

from merchant_wallet.audit import failures
from merchant_wallet.audit.rollback.evidence import Subject
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_RANGE
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.observability.backup_metrics import read_backup
from merchant_wallet.observability.cell_figures import MAX_COUNTED, Sample, age, make_coins
from merchant_wallet.observability.cold_metrics import read_cold
from merchant_wallet.observability.screening_metrics import read_screening
from merchant_wallet.observability.server_metrics import read_server

QUERIES: Final = Queries(Path(__file__).with_name("metrics.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


async def read_platform(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    """The samples of home's own tables."""
    samples: list[Sample] = []
    for read_samples in READERS:
        samples += await read_samples(connection, now_ms, settings)
    return samples


async def _read_payouts(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    [(count, since_ms)] = await _rows(connection, "count_frozen")
    aged = ("wallet_frozen_orders", "wallet_frozen_order_oldest_seconds", ())
    samples = age(*aged, count, since_ms, now_ms)
    for chain, kind, count, since_ms in await _rows(connection, "count_obstacles", most=MAX_COUNTED):
        names = (chain, kind)
        samples += age("wallet_obstacles", "wallet_obstacle_oldest_seconds", names, count, since_ms, now_ms)
    return samples


async def _read_wallets(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    samples: list[Sample] = []
    for chain, funds, checked_ms, is_frozen, reserved in await _rows(connection, "list_hot_wallets"):
        samples.append(("wallet_hot_wallet_reserved_coins", (chain,), make_coins(reserved)))
        samples.append(("wallet_hot_wallet_frozen", (chain,), is_frozen))
        if funds is not None:
            samples.append(("wallet_hot_wallet_funds_coins", (chain,), make_coins(funds)))
            samples.append(("wallet_hot_wallet_checked_seconds", (chain,), (now_ms - checked_ms) / 1000))
    for chain, actor in await _rows(connection, "list_stops"):
        samples.append(("wallet_payout_stops", (chain, actor), 1))
    return samples


async def _read_chains(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    samples: list[Sample] = []
    watched: dict[str, int] = {}
    for chain, final, head, is_stopped, moved_ms in await _rows(connection, "list_watchers"):
        watched[chain] = final
        samples.append(("wallet_watcher_block", (chain, "final"), final))
        samples.append(("wallet_watcher_block", (chain, "head"), head))
        # A chain that is not in the settings any more is not read: its age would call people for ever.
        if chain in settings.open_chains:
            samples.append(("wallet_watcher_stopped", (chain,), is_stopped))
            samples.append(("wallet_watcher_idle_seconds", (chain,), (now_ms - moved_ms) / 1000))
    for chain, at_ms, is_sound, block, unexplained, held, coin in await _rows(
        connection, "list_reconciliations"
    ):
        is_open = chain in settings.open_chains
        if is_open:
            samples.append(("wallet_reconciliation_age_seconds", (chain,), (now_ms - at_ms) / 1000))
            samples.append(("wallet_reconciliation_sound", (chain,), is_sound))
        if block is None:
            continue
        samples.append(("wallet_reconciliation_unexplained_coins", (chain,), make_coins(unexplained)))
        samples.append(("wallet_custody_coins", (chain,), make_coins(held)))
        coins = sum(int(each["held"]) for each in coin)
        samples.append(("wallet_hot_wallet_gas_coins", (chain,), coins / 10 ** CHAINS[chain].coin_decimals))
        if chain in watched and is_open and not settings.sandbox:
            # Reconciliation counts the sandbox's blocks in another way.
            samples.append(("wallet_watcher_lag_blocks", (chain,), max(0, block - watched[chain])))
    return samples


async def _read_supplies(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    [(highest,)] = await _rows(connection, "read_highest_range")
    [(accounts,)] = await _rows(connection, "count_accounts_left", most=MAX_COUNTED)
    samples: list[Sample] = [
        ("wallet_id_ranges_left", (), MAX_RANGE - (highest or 0)),
    ]
    if not settings.sandbox:
        samples.append(("wallet_accounts_left", (), accounts))
    return samples


async def _read_rollback(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    rows = {row[0]: row[1:] for row in await _rows(connection, "count_evidence")}
    samples: list[Sample] = []
    for subject in get_args(Subject):
        count, since_ms = rows.get(subject, (0, None))
        aged = ("wallet_rollback_evidence", "wallet_rollback_evidence_oldest_seconds", (subject,))
        samples += age(*aged, count, since_ms, now_ms)
    return samples


async def _read_distributed(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    return [
        ("wallet_cell_unfollowed_seconds", (name,), 0.0 if since_ms is None else (now_ms - since_ms) / 1000)
        for name, since_ms in await _rows(connection, "list_distributed_cells")
    ]


ReadSamples = Callable[[AsyncConnection, int, Settings], Awaitable[list[Sample]]]


async def _read_sign_ins(connection: AsyncConnection, now_ms: int, settings: Settings) -> list[Sample]:
    counts = await failures.count_recent(connection, now_ms - HOUR_MS)
    return [("wallet_failed_sign_ins", (factor,), count) for factor, count in counts.items()]


READERS: Final[tuple[ReadSamples, ...]] = (
    _read_payouts,
    _read_wallets,
    _read_chains,
    _read_supplies,
    _read_rollback,
    _read_sign_ins,
    _read_distributed,
    read_backup,
    read_cold,
    read_screening,
    read_server,
)
"""The queries, given the present time."""


async def _rows(connection: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
