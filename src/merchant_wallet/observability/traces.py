"""Whether there are traces, and which trace an order belongs to.

Rules:
- Traces are off unless WALLET_TRACES_URL names a collector. Then nothing of OpenTelemetry is imported.
- The span of the request that made an order is stored beside the book, after the commit: the journal must not
  depend on traces, and a trace may be lost. Home has it, because workers of all cells ask home.
- Of an order whose request was not traced nothing is stored, and no worker opens a span.

Statements are in `traces.sql`.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.version import read_version
from merchant_wallet.base.workers import Connect, WorkerConnection

if TYPE_CHECKING:
    from merchant_wallet.observability.otel import OtelTracer

QUERIES: Final = Queries(Path(__file__).with_name("traces.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
KEPT_MS: Final = 30 * DAY_MS
"""An order that is not finished after this time has spans without a request."""
MAX_WAITING: Final = 10_000
FIND_TIMEOUT_S: Final = 1.0

log = structlog.get_logger(__name__)


def open_tracer(settings: Settings, process: str) -> "OtelTracer | None":
    """The tracer of a process, if traces are on. Raises ConfigError if their packages are missing."""
    if settings.traces_url is None:
        return None
    try:
        from merchant_wallet.observability.otel import OtelTracer
    except ImportError as error:
        raise ConfigError(
            "WALLET_TRACES_URL is set, and the packages for traces are not installed: "
            "install merchant-wallet[traces], or remove the setting."
        ) from error
    share = settings.traces_share / RATE_SCALE
    return OtelTracer(settings.traces_url, share, process, read_version())


class StoredTraces:
    """The traces of orders, in home's database."""

    def __init__(self, connect_home: Connect) -> None:
        self._worker_connection = WorkerConnection(connect_home)
        self._waiting: list[tuple[int, int, str, int]] = []
        self._writing: asyncio.Task[None] | None = None

    def keep(self, merchant_id: int, order_id: int, traceparent: str) -> None:
        """Store the span of the request that made an order, soon."""
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append((merchant_id, order_id, traceparent, now_ms()))
            if self._writing is None:
                self._writing = asyncio.get_running_loop().create_task(self._write())

    async def find(self, merchant_id: int, order_id: int) -> str | None:
        """The span of the request that made an order. None if there is none, or no answer soon."""
        try:
            async with asyncio.timeout(FIND_TIMEOUT_S):
                connection = await self._worker_connection.get()
                key = {"merchant_id": merchant_id, "order_id": order_id}
                row = await (await connection.execute(_TEXTS["find"], key)).fetchone()
        except (psycopg.Error, TimeoutError):
            # After a cancelled statement the connection's state is unknown. The work goes on without a span.
            await self._worker_connection.close()
            return None
        return None if row is None else str(row[0])

    async def close(self) -> None:
        """Finish writing and close the connection."""
        if self._writing is not None:
            await self._writing
        await self._worker_connection.close()

    async def _write(self) -> None:
        try:
            while self._waiting:
                rows, self._waiting = self._waiting, []
                columns = [list(column) for column in zip(*rows, strict=True)]
                names = ("merchant_ids", "order_ids", "traceparents", "at_ms")
                connection = await self._worker_connection.get()
                await connection.execute(_TEXTS["keep"], dict(zip(names, columns, strict=True)))
        except psycopg.Error as error:
            log.warning("traces of orders not kept", reason=" ".join(str(error).split()))
            with suppress(psycopg.Error):
                await self._worker_connection.close()
        finally:
            self._writing = None


async def delete_old(connection: AsyncConnection, at_ms: int) -> None:
    """Delete what is older than `KEPT_MS`. Raises psycopg.Error."""
    await connection.execute(_TEXTS["delete_old"], {"before_ms": at_ms - KEPT_MS})
