"""For measurements without a service: a database of their own, and books to fill.

Rules: fsync is on. Every entry is made through the book's writer.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench.writers import ask, open_writer
from merchant_wallet import postgres
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import Connect
from merchant_wallet.book.commands import Adjust, Command
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.observability import logs
from merchant_wallet.postgres.migrate import migrate

COIN: Final = 1_000_000
KEYRING: Final = Keyring(bytes(32))
WRITER_CONNECTIONS: Final = 4
"""As many as the worker side's writer has."""


@contextmanager
def open_database(folder: Path) -> Iterator[str]:
    """The URL of a migrated database in this folder, deleted at the end."""
    logs.set_up("warning", None)
    running = postgres.start(folder, lambda _: None)
    try:
        migrate(running.url, lambda _: None)
        yield running.url
    finally:
        running.stop()


class BenchDatabase:
    """A database with a writer."""

    def __init__(self, url: str, connection: store.Connection, writer: Writer) -> None:
        self.connect: Connect = partial(db.connect, url)
        self.connection = connection
        self.writer = writer

    async def open_merchant(self, name: str, settings: dict[str, str] | None = None) -> Merchant:
        """A new merchant."""
        seed = KEYRING.sandbox_seed()
        made = await store.create(
            self.connection, KEYRING, f"bench {name}", seed=seed, at_ms=now_ms(), settings=settings
        )
        return made.merchant

    async def ask(self, merchant_id: int, commands: Sequence[Command]) -> list[Outcome]:
        """Outcomes of commands. Raises PreparationFailed if one is refused."""
        return await ask(self.writer, merchant_id, commands)

    async def fund(self, merchant_id: int, units: int) -> None:
        """Credit USDT."""
        await self.ask(merchant_id, [Adjust(USDT, units, "funds for a measurement", "bench", None)])

    async def count(self, statement: bytes, **values: object) -> int:
        """The number that a query returns."""
        row = await (await self.connection.execute(statement, values)).fetchone()
        assert row is not None
        return int(row[0])


@asynccontextmanager
async def open_bench_database(url: str) -> AsyncIterator[BenchDatabase]:
    """The database of this URL, ready to be filled."""
    async with await db.connect(url) as connection:
        await ensure_nonce_partitions(connection, now_ms() // DAY_MS)
        async with open_writer(url, connections=WRITER_CONNECTIONS) as writer:
            yield BenchDatabase(url, connection, writer)
