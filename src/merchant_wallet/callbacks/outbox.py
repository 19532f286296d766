"""The outbox: events to deliver, their claims, and the result of each attempt.

Rules:
- Each function is one statement that commits by itself, or one transaction in one round trip.
- A claim is an attempt number, and a later claim has a higher one. Only the latest claim may say when a
  callback is sent next. Any claim may record a success, because that is a fact.
- Statements are in `outbox.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection, AsyncCursor

from merchant_wallet.base.db import Queries, run_together
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import DEPOSIT, CallbackEvent, DepositEvent, WithdrawalEvent

QUERIES: Final = Queries(Path(__file__).with_name("outbox.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
_MAX_KEPT_BYTES: Final = 512
"""Stored bytes of an answer."""


class Key(NamedTuple):
    """The key of a callback: merchant, order (or a deposit's entry), and the status (0 for a deposit)."""

    merchant_id: int
    order_id: int
    status: int


class Waiting(NamedTuple):
    """A callback that may be sent now, and its URL. None if there is no URL any more."""

    key: Key
    url: str | None


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The right to make the attempt `attempt_no`. `created_ms` is the time of the event."""

    key: Key
    event_type: str
    event_id: str
    created_ms: int
    attempt_no: int
    retry_no: int
    settings_version: int


async def list_waiting(connection: AsyncConnection, *, after: int, limit: int) -> list[tuple[int, bool]]:
    """The next merchants after an id with waiting callbacks, and whether each is paused."""
    rows = await _fetch(connection, "list_waiting", {"after": after, "limit": limit})
    return [(merchant_id, paused) for merchant_id, paused in rows]


async def peek_due(
    connection: AsyncConnection, merchant_ids: Sequence[int], now_ms: int, *, each: int, limit: int
) -> list[Waiting]:
    """Callbacks that may be sent now, at most `each` per merchant. Nothing is locked: each must still be
    claimed.
    """
    values = {"merchant_ids": list(merchant_ids), "now_ms": now_ms, "each": each, "limit": limit}
    return [Waiting(Key(*key), url) for *key, url in await _fetch(connection, "peek_due", values)]


async def claim(
    connection: AsyncConnection, keys: Iterable[Key], *, claimed_by: str, now_ms: int, until_ms: int
) -> list[Claim]:
    """Claim those callbacks that nobody else has claimed, until `until_ms`. Records their attempts."""
    values = {**_columns(keys), "claimed_by": claimed_by, "now_ms": now_ms, "until_ms": until_ms}
    claimed, _ = await _run_together(connection, values, "claim", "insert_attempts")
    return [Claim(Key(*row[:3]), *row[3:]) for row in await claimed.fetchall()]


async def read_events(connection: AsyncConnection, claims: Sequence[Claim]) -> dict[Key, CallbackEvent]:
    """The events of the claimed callbacks. An event whose order or deposit is missing is left out."""
    events: dict[Key, CallbackEvent] = {}
    withdrawals = [claim for claim in claims if claim.event_type != DEPOSIT]
    if withdrawals:
        for row in await _fetch(connection, "read_withdrawals", _event_columns(withdrawals)):
            events[Key(*row[:3])] = WithdrawalEvent(*row[1:])
    deposits = [claim for claim in claims if claim.event_type == DEPOSIT]
    if deposits:
        for row in await _fetch(connection, "read_deposits", _event_columns(deposits)):
            events[Key(*row[:3])] = DepositEvent(row[1], *row[3:])
    return events


async def record_success(connection: AsyncConnection, claim: Claim, answer: Answer, now_ms: int) -> None:
    """Record a successful delivery, and as its error what was odd. The first is the order's notifyTime."""
    values = {**_attempt(claim, answer), "now_ms": now_ms}
    await _run_together(connection, values, "record_success", "note_order", "record_answer")


async def record_failure(
    connection: AsyncConnection, claim: Claim, answer: Answer, next_ms: int | None
) -> bool:
    """Record a failed attempt, and when the callback is sent next. None makes it a dead letter.

    False if a later attempt or an operator has moved it. Then only the attempt is recorded.
    """
    values = {**_attempt(claim, answer), "next_ms": next_ms}
    moved, _ = await _run_together(connection, values, "record_failure", "record_answer")
    return moved.rowcount == 1


async def send_again(connection: AsyncConnection, merchant_id: int, event_id: str) -> bool:
    """Have a callback sent now, whatever its state. False if there is none."""
    return await _change(connection, "send_again", merchant_id, event_id=event_id) == 1


async def send_dead_letters_again(connection: AsyncConnection, merchant_id: int) -> int:
    """Have all dead letters of a merchant sent now. Returns how many."""
    return await _change(connection, "send_dead_letters_again", merchant_id)


async def pause(connection: AsyncConnection, merchant_id: int, event_id: str) -> bool:
    """Pause a callback that is due. False if it is not due."""
    return await _change(connection, "pause", merchant_id, event_id=event_id) == 1


async def resume(connection: AsyncConnection, merchant_id: int, event_id: str) -> bool:
    """Resume a paused callback. False if it was not paused."""
    return await _change(connection, "resume", merchant_id, event_id=event_id) == 1


async def pause_merchant(connection: AsyncConnection, merchant_id: int, paused_by: str, now_ms: int) -> bool:
    """Pause a merchant's callbacks. False if they were paused."""
    values = {"paused_by": paused_by, "now_ms": now_ms}
    return await _change(connection, "pause_merchant", merchant_id, **values) == 1


async def resume_merchant(connection: AsyncConnection, merchant_id: int) -> bool:
    """Resume a merchant's callbacks. False if they were not paused."""
    return await _change(connection, "resume_merchant", merchant_id) == 1


async def list_pauses(connection: AsyncConnection) -> list[tuple[int, int, str]]:
    """The paused merchants: id, since when, by whom."""
    return [
        (merchant_id, since, by) for merchant_id, since, by in await _fetch(connection, "list_pauses", {})
    ]


def _columns(keys: Iterable[Key]) -> dict[str, object]:
    named = list(keys)
    return {
        "merchant_ids": [key.merchant_id for key in named],
        "order_ids": [key.order_id for key in named],
        "statuses": [key.status for key in named],
    }


def _event_columns(claims: Sequence[Claim]) -> dict[str, object]:
    return {**_columns(claim.key for claim in claims), "event_ms": [claim.created_ms for claim in claims]}


def _attempt(claim: Claim, answer: Answer) -> dict[str, object]:
    return {
        "merchant_id": claim.key.merchant_id,
        "order_id": claim.key.order_id,
        "status": claim.key.status,
        "attempt_no": claim.attempt_no,
        "address": answer.address,
        "http_status": answer.http_status,
        "answer": answer.body[:_MAX_KEPT_BYTES],
        "error": answer.error,
        "latency_ms": answer.latency_ms,
    }


async def _run_together(
    connection: AsyncConnection, values: Mapping[str, object], *names: str
) -> list[AsyncCursor[Any]]:
    """Run statements as one transaction in one round trip."""
    return await run_together(connection, [(_TEXTS[name], values) for name in names])


async def _fetch(
    connection: AsyncConnection, name: str, values: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()


async def _change(connection: AsyncConnection, name: str, merchant_id: int, **values: object) -> int:
    changed = (await connection.execute(_TEXTS[name], {"merchant_id": merchant_id, **values})).rowcount
    if not changed:
        await refuse_closed(connection, merchant_id)
    return changed
