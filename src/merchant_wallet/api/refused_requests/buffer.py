"""Buffer of refused requests: endpoints add to it, and a task writes it to the database every second.

Rules:
- Adding appends to a queue in memory and never waits. A successful request costs nothing.
- The buffer is bounded, for each list and in all. When it is full, the oldest are dropped, first those of the
  same list. Dropped requests are counted.
- Signed and unsigned requests of a key are two lists. An appKey is no secret: who knows it can send any
  number of unsigned requests, and they must not push the merchant's own out.
- Each write is one transaction. It keeps the last hundred requests of each of a merchant's two lists, and
  deletes older ones.
"""

import asyncio
import itertools
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
from merchant_wallet.base.workers import Connect, WorkerConnection, log_error

log = structlog.get_logger("refusals")

QUERIES: Final = Queries(Path(__file__).with_name("refusals.sql"))
KEPT: Final = 100
"""So many signed requests are stored for each merchant, and so many unsigned ones."""
MAX_WAITING: Final = 1000
"""So many may wait to be written, of all merchants. Each has at most 16 KiB."""
INTERVAL_S: Final = 1.0


class IncomingRequest(Protocol):
    """What is read of a request. `merchant_id` is set once its signature was found right."""

    app_key: str
    merchant_id: int | None
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
        self._queues: dict[tuple[str, bool], deque[tuple[int, CapturedRequest]]] = {}
        self._numbers = itertools.count()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        # `stop` waits for a write that is under way.
        self._writing = asyncio.Lock()
        self.dropped = 0

    def add(self, path: str, refusal: Refusal, request: IncomingRequest) -> None:
        """Add a refused request. A full buffer drops the oldest of the same list, else an unsigned one."""
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
            is_signed=request.merchant_id is not None,
        )
        name = captured.app_key, captured.is_signed
        queue = self._queues.get(name)
        if queue is not None and (len(queue) >= KEPT or self._waiting >= self._max_waiting):
            queue.popleft()
            self.dropped += 1
            self._waiting -= 1
        elif self._waiting >= self._max_waiting:
            self._drop_oldest()
        self._queues.setdefault(name, deque()).append((next(self._numbers), captured))
        self._waiting += 1

    def _drop_oldest(self) -> None:
        key = next((name for name in self._queues if not name[1]), next(iter(self._queues)))
        queue = self._queues[key]
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
            # In the order of their arrival, over all lists.
            captured = [one for _, one in sorted(pair for queue in queues.values() for pair in queue)]
            if captured:
                await self._write_or_drop(captured, list({app_key for app_key, _ in queues}))

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
            log_error(log, "refused requests not kept", error, count=len(captured), dropped=self.dropped)
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
        "signed": [one.is_signed for one in captured],
        "msgs": [storable(one.msg) for one in captured],
        "content_types": [storable(one.content_type)[:MAX_CONTENT_TYPE] for one in captured],
    }
