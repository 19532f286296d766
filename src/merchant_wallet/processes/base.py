"""What every process of the service starts from: its settings, its database, its keys, and its writer.

The parts of the web side are connected in `app`. Commands and workers need only this module.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import (
    MASTER_KEY_FILE,
    NODE_SETTINGS,
    ConfigError,
    has_master_key,
    load_or_create_master_key,
)
from merchant_wallet.base.connection_limits import CELL_CONNECTIONS
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.spans import Tracer
from merchant_wallet.base.workers import Connect
from merchant_wallet.book.committer import OpenConnection
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.merchants.keys import Keyring, WrongMasterKey
from merchant_wallet.merchants.mode import require_mode
from merchant_wallet.observability.traces import StoredTraces, open_tracer


@dataclass(frozen=True, slots=True)
class Base:
    """What every part of the service needs: its settings, its databases, its keys. `url` is home's."""

    settings: Settings
    url: str
    keyring: Keyring
    cells: Directory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # The class is frozen.
        object.__setattr__(self, "cells", Directory(self.url, dict(self.settings.cell_urls)))

    @property
    def checkpoint_dir(self) -> Path:
        """Where signed checkpoints are kept, outside the database."""
        return self.settings.checkpoint_folder


def require_supported(settings: Settings) -> None:
    """Raises ConfigError for settings that ask for what this version can't do."""
    if not settings.open_chains:
        raise ConfigError(
            f"WALLET_SANDBOX is false, so {NODE_SETTINGS} must name a node: "
            "a service that takes orders it can't pay would hold its merchants' money."
        )


def make_base(settings: Settings, url: str) -> Base:
    """Settings, database and keys. The master key is made in the data folder when none is set.

    Raises ConfigError.
    """
    require_supported(settings)
    master_key = settings.master_key or load_or_create_master_key(settings.data)
    return Base(settings, db.for_writing(url), Keyring(master_key))


async def prepare_master_key(settings: Settings, url: str) -> None:
    """Make the master key if it is the first start. Check that it fits the database, and that the mode fits.

    A service with another key would answer every request with a fault, and would sign checkpoints that nobody
    can verify. A key is made only while there is no merchant. A sandbox database is refused where real money
    is paid, and the reverse. Raises ConfigError.
    """
    async with await db.connect(url) as connection:
        await require_mode(settings, connection)
        if not has_master_key(settings) and await store.list_merchants(connection):
            raise ConfigError(
                f"WALLET_MASTER_KEY is not set and {settings.data / MASTER_KEY_FILE} is not there, but the "
                "database has merchants: bring back the key they were made under."
            )
        keyring = Keyring(settings.master_key or load_or_create_master_key(settings.data))
        await check_master_key(connection, keyring)


async def check_master_key(connection: AsyncConnection[Any], keyring: Keyring) -> bool:
    """Check that the master key fits the database. False: nothing in it shows that. Raises ConfigError."""
    try:
        return await store.has_fitting_key(connection, keyring)
    except WrongMasterKey as error:
        raise ConfigError(f"WALLET_MASTER_KEY: {error}") from error


async def is_key_proven(settings: Settings, url: str) -> bool:
    """Whether the master key is here and fits the database, whose schema may be older. Raises ConfigError."""
    if not has_master_key(settings):
        return False
    keyring = Keyring(settings.master_key or load_or_create_master_key(settings.data))
    async with await db.connect(url) as connection:
        try:
            return await check_master_key(connection, keyring)
        except psycopg.errors.UndefinedTable:
            # It is the first start, which has no tables yet.
            return False


class OpenTracing(NamedTuple):
    """A process's tracer, and the stored traces of orders. See `base.spans.Tracing`."""

    tracer: Tracer
    orders: StoredTraces


def open_tracing(
    settings: Settings, connect_home: Connect, stack: AsyncExitStack, process: str
) -> OpenTracing | None:
    """What a process needs for its spans, until the stack ends. None: traces are off. Raises ConfigError."""
    tracer = open_tracer(settings, process)
    if tracer is None:
        return None
    # The end may wait for the collector, so it has a thread of its own.
    stack.push_async_callback(asyncio.to_thread, tracer.close)
    orders = StoredTraces(connect_home)
    stack.push_async_callback(orders.close)
    return OpenTracing(tracer, orders)


@asynccontextmanager
async def open_writer(base: Base, clock: Callable[[], int] = now_ms) -> AsyncIterator[CellWriters]:
    """A writer with one connection, until the context ends. Raises Unavailable."""
    writer = make_writer(base, connections=1, clock=clock)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.close()


def make_writer(
    base: Base,
    connections: int | None = None,
    clock: Callable[[], int] = now_ms,
    tracer: Tracer | None = None,
) -> CellWriters:
    """A writer for each cell, with the settings' limits."""
    settings, most = base.settings, connections or base.settings.connections

    def make(cell: Cell, open_connection: OpenConnection, note_closed: Callable[[int], None]) -> Writer:
        return Writer(
            cell.url,
            connections=most if cell.is_home else min(most, CELL_CONNECTIONS),
            queue_limit=settings.queue_limit,
            batch_limit=settings.batch_limit,
            clock=clock,
            make_partition=partial(open_nonce_days, cell.table_url),
            open_connection=open_connection,
            note_closed=note_closed,
            tracer=tracer,
        )

    return CellWriters(base.cells, make)
