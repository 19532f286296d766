"""Test events: a merchant's people ask for a callback, to try their endpoint. A worker sends it.

Rules:
- A test event is signed as any callback, and goes through the same client and target policy. `eventType` is
  `test`, and it names no order and no deposit, so no receiver can take it for money.
- It is sent once and never repeated.
- A merchant may ask for 30 an hour. The last 50 are kept.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.bell import LONG_REST_S, ring
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat
from merchant_wallet.callbacks.answers import Answer, Kept, explain_failure, find_remark
from merchant_wallet.callbacks.payloads import Value, build_payload
from merchant_wallet.callbacks.sender import OUR_FAULT, CallbackTransport, make_nonce
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring

QUERIES: Final = Queries(Path(__file__).with_name("test_events.sql"))
EVENT_TYPE: Final = "test"
MAX_HOURLY: Final = 30
KEPT: Final = 50
POLL_INTERVAL_S: Final = 0.5
MAX_CONCURRENT: Final = 8
_MAX_KEPT_BYTES: Final = 512

log = structlog.get_logger(__name__)


class TooManyTests(ValueError):
    """The merchant has asked for too many test events within the hour."""


class EndpointTest(msgspec.Struct, Kept, frozen=True):
    """A test event and its outcome. Without `ended_ms` it waits, is under way, or its worker died."""

    event_no: int
    url: str
    requested_ms: int
    requested_by: str
    claimed_ms: int | None
    ended_ms: int | None
    address: str | None
    http_status: int | None
    error: str | None
    answer: bytes | None
    latency_ms: int | None

    @property
    def event_id(self) -> str:
        """The id in the callback."""
        return format_event_id(self.event_no)


def format_event_id(event_no: int) -> str:
    """The id of a test event. No other event has such an id."""
    return f"evt_test_{event_no}"


async def ask_for_test(
    conn: AsyncConnection[Any], merchant_id: int, url: str, requested_by: str, at_ms: int
) -> int:
    """Ask for a test event, and return its number. Raises TooManyTests."""
    at: dict[str, Any] = {"merchant_id": merchant_id, "since_ms": at_ms - HOUR_MS}
    async with conn.transaction():
        await conn.execute(QUERIES["lock_requests"].text, at)
        row = await (await conn.execute(QUERIES["read_last"].text, at)).fetchone()
        assert row is not None
        last_no, recent = row
        if recent >= MAX_HOURLY:
            raise TooManyTests(f"At most {MAX_HOURLY} test events are sent within an hour.")
        values = {**at, "event_no": last_no + 1, "url": url, "at_ms": at_ms, "requested_by": requested_by}
        await conn.execute(QUERIES["insert_test"].text, values)
        await ring(conn)
        await conn.execute(QUERIES["trim_tests"].text, {**at, "oldest_no": last_no + 1 - KEPT})
    return int(last_no) + 1


async def list_tests(conn: AsyncConnection[Any], merchant_id: int, limit: int = KEPT) -> list[EndpointTest]:
    """A merchant's last test events, newest first."""
    async with conn.cursor(row_factory=class_row(EndpointTest)) as cursor:
        await cursor.execute(QUERIES["list_tests"].text, {"merchant_id": merchant_id, "limit": limit})
        return await cursor.fetchall()


class TestEventSender:
    """The worker that sends test events. Any number of them may run."""

    def __init__(
        self,
        connect: Connect,
        keyring: Keyring,
        client: CallbackTransport,
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._keyring = keyring
        self._client = client
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Send until told to stop."""
        try:
            await repeat(
                "test events", self.send_waiting, stop=stop, interval_s=interval_s, rest_s=LONG_REST_S
            )
        finally:
            await self._connection.close()

    async def send_waiting(self) -> int:
        """Send those that wait, several at a time. Returns how many."""
        connection = await self._connection.get()
        values = {"now_ms": self._clock(), "limit": MAX_CONCURRENT}
        claimed = await (await connection.execute(QUERIES["claim"].text, values)).fetchall()
        if claimed:
            # One connection takes the statements of all in turn; only the requests run side by side.
            answers = await asyncio.gather(*[self._send(connection, *row) for row in claimed])
            for (merchant_id, event_no, *_), answer in zip(claimed, answers, strict=True):
                await self._record(connection, merchant_id, event_no, answer)
        return len(claimed)

    async def _send(
        self, connection: AsyncConnection[Any], merchant_id: int, event_no: int, url: str, requested_ms: int
    ) -> Answer:
        try:
            merchant = await store.load(connection, self._keyring, merchant_id)
            if merchant is None:
                raise LookupError(f"merchant {merchant_id} is gone")
            fields: dict[str, Value] = {"eventType": EVENT_TYPE, "createTime": requested_ms}
            event_id = format_event_id(event_no)
            payload = build_payload(merchant, event_id, fields, make_nonce(), self._clock())
            return await self._client.send(url, payload)
        except Exception as error:
            # Recorded as any failure, so that people see an outcome.
            log_failure(log, "test event could not be sent", error, merchant_id=merchant_id)
            return Answer(0, error=OUR_FAULT)

    async def _record(
        self, connection: AsyncConnection[Any], merchant_id: int, event_no: int, answer: Answer
    ) -> None:
        values = {
            "merchant_id": merchant_id,
            "event_no": event_no,
            "now_ms": self._clock(),
            "address": answer.address,
            "http_status": answer.http_status,
            "error": explain_failure(answer) or find_remark(answer),
            "answer": answer.body[:_MAX_KEPT_BYTES],
            "latency_ms": answer.latency_ms,
        }
        await connection.execute(QUERIES["record"].text, values)
