"""Records signed requests beside the hot path: the last ones with their fields, and how many there were.

Rules:
- For each answer one number in memory is raised. A few requests of each turn are kept: the first of each key,
  operation and code, and a hundred in all. So a busy merchant's log is a sample, and its rare refusals are in
  it. The numbers are complete.
- A turn is a second. Its requests are written as one batch; numbers are written each 15 seconds. Reading the
  fields happens in another thread.
- What can't be written is dropped, counted and logged: requests must go on.
- Only signed requests are kept with their fields. Others are counted if their appKey is known.
- Of the fields only what refused requests show is stored (`redaction`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import psycopg
import structlog

from merchant_wallet.api.refused_requests.redaction import CapturedRequest, make_columns
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import HOUR_MS, MINUTE_MS
from merchant_wallet.base.workers import Connect, WorkerConnection

log = structlog.get_logger("request log")

QUERIES: Final = Queries(Path(__file__).with_name("request_log.sql"))
KEPT: Final = 1000
"""So many requests are kept for each merchant, and none for more than a day."""
KEPT_OF_EACH: Final = 5
"""So many of a key, an operation and a code in one turn."""
KEPT_IN_ALL: Final = 100
"""So many of all merchants in one turn of one process."""
TRIM_AFTER: Final = 100
"""A merchant's old requests are deleted after this process has added so many."""
MAX_NUMBERS: Final = 20_000
"""Numbers that wait in memory while the database is away."""
TURN_S: Final = 1.0
TURNS_UNTIL_NUMBERS: Final = 15

Key = tuple[str, str, int]
"""An appKey, a path and a code."""


class AnsweredRequest(Protocol):
    """What is read of a request."""

    app_key: str
    merchant_id: int | None
    request_id: str
    source: str
    content_type: str | None
    body: bytes


class _Kept(NamedTuple):
    at_ms: int
    request: AnsweredRequest
    path: str
    code: int
    took_s: float


class RequestRecorder:
    """See the module. `is_known` says whether an appKey is one of a cached merchant.

    `dropped` counts requests and numbers that were never written.
    """

    def __init__(
        self,
        connect: Connect,
        is_known: Callable[[str], bool],
        *,
        clock: Callable[[], int] = now_ms,
        turn_s: float = TURN_S,
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._is_known = is_known
        self._clock = clock
        self._turn_s = turn_s
        self._counts: dict[Key, int] = {}
        self._kept: list[_Kept] = []
        self._numbers: dict[Key, int] = {}
        self._used: set[str] = set()
        self._unsigned: dict[Key, int] = {}
        self._added: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        # `stop` waits for a write that is under way.
        self._writing = asyncio.Lock()
        self.dropped = 0

    def note(self, request: AnsweredRequest, path: str, code: int, took_s: float) -> None:
        """Note an answered request. This is on the hot path."""
        key = (request.app_key, path, code)
        if request.merchant_id is None:
            if self._is_known(request.app_key):
                self._unsigned[key] = self._unsigned.get(key, 0) + 1
            return
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        if count <= KEPT_OF_EACH and len(self._kept) < KEPT_IN_ALL:
            self._kept.append(_Kept(self._clock(), request, path, code, took_s))

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
            for _ in range(TURNS_UNTIL_NUMBERS):
                await asyncio.sleep(self._turn_s)
                # A write that has begun is finished even if the task is cancelled meanwhile.
                await asyncio.shield(self.end_turn())
            await asyncio.shield(self.write_numbers())

    async def flush(self) -> None:
        """Write everything that waits."""
        await self.end_turn()
        await self.write_numbers()

    async def end_turn(self) -> None:
        """Add the turn's numbers up, and write the requests that it kept."""
        counts, self._counts = self._counts, {}
        unsigned, self._unsigned = self._unsigned, {}
        self._used.update(app_key for app_key, _, _ in counts)
        for key, count in (*counts.items(), *unsigned.items()):
            self._numbers[key] = self._numbers.get(key, 0) + count
        async with self._writing:
            kept, self._kept = self._kept, []
            if kept and not await self._try(self._write_requests, kept):
                self.dropped += len(kept)

    async def write_numbers(self) -> None:
        """Write the numbers, and when keys were used last. Numbers that can't be written wait."""
        async with self._writing:
            numbers, self._numbers = self._numbers, {}
            used, self._used = self._used, set()
            if not numbers or await self._try(self._write_numbers, numbers, used):
                return
        if len(numbers) > MAX_NUMBERS:
            self.dropped += len(numbers)
            return
        self._used |= used
        for key, count in numbers.items():
            self._numbers[key] = self._numbers.get(key, 0) + count

    async def _try(self, write: Callable[..., Any], *values: Any) -> bool:
        try:
            connection = await self._connection.get()
            async with connection.transaction():
                await connection.execute(QUERIES["skip_commit_wait"].text)
                await connection.execute(QUERIES["limit_lock_wait"].text)
                await write(connection, *values)
        except (psycopg.Error, OSError) as error:
            log.warning("requests not recorded", dropped=self.dropped, error=str(error))
        except Exception as error:
            # A bug with one request must not stop the writing of all later ones.
            log.error("requests not recorded", dropped=self.dropped, exc_info=error)
        else:
            return True
        await self._connection.close()
        return False

    async def _write_requests(self, connection: psycopg.AsyncConnection, kept: list[_Kept]) -> None:
        columns = await asyncio.to_thread(_columns, kept)
        await connection.execute(QUERIES["insert_requests"].text, columns)
        for app_key in columns["app_keys"]:
            self._added[app_key] = self._added.get(app_key, 0) + 1
        full = [app_key for app_key, count in self._added.items() if count >= TRIM_AFTER]
        if full:
            await connection.execute(QUERIES["trim_requests"].text, {"app_keys": full, "kept": KEPT})
            for app_key in full:
                del self._added[app_key]

    async def _write_numbers(
        self, connection: psycopg.AsyncConnection, numbers: dict[Key, int], used: set[str]
    ) -> None:
        at_ms = self._clock()
        values = {
            "app_keys": [app_key for app_key, _, _ in numbers],
            "operations": [_operation_of(path) for _, path, _ in numbers],
            "codes": [code for _, _, code in numbers],
            "requests": list(numbers.values()),
            "hour_ms": at_ms // HOUR_MS * HOUR_MS,
            "minute_ms": at_ms // MINUTE_MS * MINUTE_MS,
        }
        await connection.execute(QUERIES["add_usage"].text, values)
        await connection.execute(QUERIES["add_minute"].text, values)
        if used:
            uses = {"app_keys": sorted(used), "used_ms": values["minute_ms"]}
            await connection.execute(QUERIES["note_uses"].text, uses)


def _operation_of(path: str) -> str:
    return path.rpartition("/")[2]


def _columns(kept: list[_Kept]) -> dict[str, list[Any]]:
    captured = [
        CapturedRequest(
            one.request.app_key,
            one.at_ms,
            one.request.request_id,
            one.path,
            one.code,
            "",
            one.request.source,
            one.request.content_type or "",
            one.request.body,
        )
        for one in kept
    ]
    return make_columns(captured) | {
        "operations": [_operation_of(one.path) for one in kept],
        "took_ms": [int(one.took_s * 1000) for one in kept],
    }
