"""Buffer of refused requests: endpoints add to it, and a task writes it to the database every second.

Rules:
- Adding appends to a queue in memory and never waits. A successful request costs nothing.
- The buffer is bounded, for each merchant and in all. When it is full, the oldest are dropped, first those of
  the same merchant. Dropped requests are counted.
- Each write is one transaction. It keeps each merchant's last hundred requests and deletes older ones.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
import structlog

from merchant_wallet.api.refused_requests.redaction import (
    MAX_CONTENT_TYPE,
    CapturedRequest,
    make_columns,
    storable,
)
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import Connect, WorkerConnection

log = structlog.get_logger("refusals")

QUERIES: Final = Queries(Path(__file__).with_name("refusals.sql"))
KEPT: Final = 100
"""So many are stored for each merchant."""
MAX_WAITING: Final = 1000
"""So many may wait to be written, of all merchants. Each has at most 16 KiB."""
INTERVAL_S: Final = 1.0


class IncomingRequest(Protocol):
    """What is read of a request."""

    app_key: str
    request_id: str
    source: str
    content_type: str | None
    body: bytes


class RefusedRequestBuffer:
    """See the module. `dropped` counts requests that were added but never written."""

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Callable[[], int] = now_ms,
        max_waiting: int = MAX_WAITING,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._clock = clock
        self._max_waiting = max_waiting
        self._interval_s = interval_s
        self._queues: dict[str, deque[CapturedRequest]] = {}
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        # `stop` waits for a write that is under way.
        self._writing = asyncio.Lock()
        self.dropped = 0

    def add(self, path: str, refusal: Refusal, request: IncomingRequest) -> None:
        """Add a refused request. A full buffer drops the oldest of the same key, else of the oldest key."""
        captured = CapturedRequest(
            request.app_key,
            self._clock(),
            request.request_id,
            path,
            refusal.code,
            refusal.msg,
            request.source,
            request.content_type or "",
            request.body,
        )
        queue = self._queues.get(captured.app_key)
        if queue is not None and (len(queue) >= KEPT or self._waiting >= self._max_waiting):
            queue.popleft()
            self.dropped += 1
            self._waiting -= 1
        elif self._waiting >= self._max_waiting:
            self._drop_oldest()
        self._queues.setdefault(captured.app_key, deque()).append(captured)
        self._waiting += 1

    def _drop_oldest(self) -> None:
        key, queue = next(iter(self._queues.items()))
        queue.popleft()
        self.dropped += 1
        self._waiting -= 1
        if not queue:
            del self._queues[key]

    def start(self) -> None:
        """Start the task that writes."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, then stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.flush()
        await self._connection.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            # A write that has begun is finished even if the task is cancelled meanwhile.
            await asyncio.shield(self.flush())

    async def flush(self) -> None:
        """Write what waits. What can't be written is dropped and logged: requests must go on."""
        async with self._writing:
            queues, self._queues, self._waiting = self._queues, {}, 0
            captured = [one for queue in queues.values() for one in queue]
            if captured:
                await self._write_or_drop(captured, list(queues))

    async def _write_or_drop(self, captured: list[CapturedRequest], app_keys: list[str]) -> None:
        try:
            # To parse many bodies takes time, and requests must not wait for it.
            columns = await asyncio.to_thread(_columns, captured)
            await self._write(columns, app_keys)
        except (psycopg.Error, OSError) as error:
            self.dropped += len(captured)
            log.warning(
                "refused requests not kept", count=len(captured), dropped=self.dropped, error=str(error)
            )
            await self._connection.close()
        except Exception as error:
            # A bug with one request must not stop the writing of all later ones.
            self.dropped += len(captured)
            log.error("refused requests not kept", count=len(captured), dropped=self.dropped, exc_info=error)
            await self._connection.close()

    async def _write(self, columns: dict[str, list[Any]], app_keys: list[str]) -> None:
        connection = await self._connection.get()
        async with connection.transaction():
            await connection.execute(QUERIES["skip_commit_wait"].text)
            await connection.execute(QUERIES["limit_lock_wait"].text)
            await connection.execute(QUERIES["lock_writers"].text)
            await connection.execute(QUERIES["insert_refused"].text, columns)
            await connection.execute(QUERIES["trim_refused"].text, {"app_keys": app_keys, "kept": KEPT})


def _columns(captured: list[CapturedRequest]) -> dict[str, list[Any]]:
    return make_columns(captured) | {
        "paths": [one.path for one in captured],
        "msgs": [storable(one.msg) for one in captured],
        "content_types": [storable(one.content_type)[:MAX_CONTENT_TYPE] for one in captured],
    }
