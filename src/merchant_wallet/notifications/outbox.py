"""The messages: stored before they are sent, claimed, and their results recorded.

Rules:
- A message and the items that it is about are stored in one transaction, before anything is sent.
- An attempt is counted before it is made. If its worker dies, the claim lapses and the message is sent again,
  with the same id. Then it may have arrived twice, and `is_doubtful` says so.
- A message whose items wait no more is dropped.
- An item that is gone is forgotten after `FORGET_MS`. If it comes back later, people are told again.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.notifications.contacts import QUERIES as CONTACT_QUERIES
from merchant_wallet.notifications.contacts import Choice, Contact
from merchant_wallet.notifications.planning import Last, Line, Planned, Reader, Told
from merchant_wallet.operators.roles import Operator

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("outbox.sql"))
WAITING: Final = "waiting"
SENT: Final = "sent"
FAILED: Final = "failed"
DROPPED: Final = "dropped"
FORGET_MS: Final = 600_000
KEPT_MS: Final = 90 * DAY_MS
MAX_LINES: Final = 100
"""The stored lines of one message. It says how many more there are."""
MAX_TESTS: Final = 6
MAX_ANSWER: Final = 300


class TooManyTests(ValueError):
    """The operator has asked for too many tests within the hour."""


class Body(msgspec.Struct, frozen=True):
    """What a message is about. `more`: so many further items."""

    lines: tuple[Line, ...] = ()
    more: int = 0


class Message(msgspec.Struct, frozen=True):
    """A claimed message. `attempt_no` is the claim."""

    notification_no: int
    operator_id: int
    channel: str
    target: str
    is_test: bool
    body: Body
    created_ms: int
    attempt_no: int
    is_doubtful: bool


class SentLine(msgspec.Struct, frozen=True):
    """A message in the list of an operator's last ones."""

    notification_no: int
    channel: str
    target: str
    is_test: bool
    body: Body
    created_ms: int
    state: str
    attempt_no: int
    next_ms: int
    claimed_until_ms: int | None
    is_doubtful: bool
    ended_ms: int | None
    answer: str | None


class Recipient(msgspec.Struct, frozen=True):
    """The person of a claimed message, as the person is reached now."""

    name: str
    language: str | None
    status: str
    email: str | None
    email_asked_ms: int | None
    email_confirmed_ms: int | None
    webhook_url: str | None
    webhook_sealed: bytes | None
    time_zone: str


async def list_readers(conn: Connection) -> list[Reader]:
    """Every active operator who wants to be told of something."""
    rows = await (await conn.execute(CONTACT_QUERIES["list_readers"].text)).fetchall()
    return [_make_reader(row) for row in rows]


def _make_reader(row: Sequence[Any]) -> Reader:
    person, contact, (step_no, choices) = row[:10], row[10:19], row[19:]
    chosen = {kind: Choice(kind, *how) for kind, *how in choices or ()}
    return Reader(Operator(*person), Contact(*contact), chosen, step_no)


async def lock_planning(conn: Connection) -> bool:
    """Whether this transaction alone may decide now who is told."""
    row = await (await conn.execute(QUERIES["lock_planning"].text)).fetchone()
    return row is not None and bool(row[0])


async def list_told(conn: Connection, merchant_id: int | None) -> list[Told]:
    """What the people of one merchant, or with None of the platform, were told of."""
    cursor = await conn.execute(QUERIES["list_told"].text, {"merchant_id": merchant_id})
    return [Told(*row) for row in await cursor.fetchall()]


async def list_last(conn: Connection, readers: Iterable[Reader]) -> Last:
    """When each person was last sent a message, by channel."""
    places = [(one.person.operator_id, channel) for one in readers for channel in one.contact.targets]
    values = {"operator_ids": [place[0] for place in places], "channels": [place[1] for place in places]}
    cursor = await conn.execute(QUERIES["list_last"].text, values)
    return {(operator_id, channel): at_ms for operator_id, channel, at_ms in await cursor.fetchall()}


async def store(conn: Connection, planned: Planned, at_ms: int) -> int:
    """Store a message and its items. Returns its number. Call it in a transaction."""
    body = Body(planned.lines[:MAX_LINES], max(0, len(planned.lines) - MAX_LINES))
    number = await _insert(
        conn, planned.operator_id, planned.channel, planned.target, body, at_ms, is_test=False
    )
    values = {
        "operator_id": planned.operator_id,
        "channel": planned.channel,
        "notification_no": number,
        "at_ms": at_ms,
        "kinds": [line.kind for line in planned.lines],
        "keys": [line.key for line in planned.lines],
    }
    await conn.execute(QUERIES["insert_told"].text, values)
    return number


async def store_test(conn: Connection, operator_id: int, channel: str, target: str, at_ms: int) -> int:
    """Store a test message. Call it in a transaction. Raises TooManyTests."""
    values = {"operator_id": operator_id, "since_ms": at_ms - HOUR_MS}
    row = await (await conn.execute(QUERIES["count_tests"].text, values)).fetchone()
    if row is not None and row[0] >= MAX_TESTS:
        raise TooManyTests
    return await _insert(conn, operator_id, channel, target, Body(), at_ms, is_test=True)


async def _insert(
    conn: Connection, operator_id: int, channel: str, target: str, body: Body, at_ms: int, *, is_test: bool
) -> int:
    values = {
        "operator_id": operator_id,
        "channel": channel,
        "target": target,
        "is_test": is_test,
        "items": Jsonb(msgspec.to_builtins(body)),
        "at_ms": at_ms,
    }
    row = await (await conn.execute(QUERIES["insert_notification"].text, values)).fetchone()
    assert row is not None, "an insert that returns"
    return int(row[0])


async def mark(conn: Connection, name: str, told: Sequence[Told], at_ms: int) -> None:
    """Note that items are gone (`mark_gone`), wait again (`mark_back`), or are forgotten (`forget`)."""
    if not told:
        return
    values = {
        "operator_ids": [one.operator_id for one in told],
        "channels": [one.channel for one in told],
        "kinds": [one.kind for one in told],
        "keys": [one.key for one in told],
        "at_ms": at_ms,
    }
    await conn.execute(QUERIES[name].text, values)


async def delete_old(conn: Connection, at_ms: int) -> None:
    """Delete old messages, and items of people who do not want to be told any more."""
    await conn.execute(QUERIES["delete_old_items"].text, {"before_ms": at_ms - KEPT_MS})
    await conn.execute(QUERIES["delete_old"].text, {"before_ms": at_ms - KEPT_MS})


async def claim(
    conn: Connection, channels: Sequence[str], *, at_ms: int, until_ms: int, limit: int
) -> list[Message]:
    """Claim messages that are due."""
    values = {"channels": list(channels), "at_ms": at_ms, "until_ms": until_ms, "limit": limit}
    rows = await (await conn.execute(QUERIES["claim"].text, values)).fetchall()
    return [Message(*(*row[:5], msgspec.convert(row[5], Body), *row[6:])) for row in rows]


async def read_recipient(conn: Connection, operator_id: int) -> Recipient | None:
    """How the person of a message is reached now."""
    row = await (await conn.execute(QUERIES["read_reader"].text, {"operator_id": operator_id})).fetchone()
    return None if row is None else Recipient(*row)


async def is_waiting(conn: Connection, notification_no: int) -> bool:
    """Whether anything that a message is about still waits."""
    values = {"notification_no": notification_no}
    row = await (await conn.execute(QUERIES["is_waiting"].text, values)).fetchone()
    return row is not None and bool(row[0])


async def record_result(
    conn: Connection, message: Message, state: str, answer: str, *, at_ms: int, next_ms: int = 0
) -> None:
    """Record the result of an attempt. `next_ms` is when a message that waits again is sent next."""
    values = {
        "notification_no": message.notification_no,
        "attempt_no": message.attempt_no,
        "state": state,
        "next_ms": next_ms,
        "ended_ms": None if state == WAITING else at_ms,
        "answer": tidy(answer),
    }
    await conn.execute(QUERIES["record_result"].text, values)


async def list_recent(conn: Connection, operator_id: int, limit: int) -> list[SentLine]:
    """An operator's last messages, newest first."""
    values = {"operator_id": operator_id, "limit": limit}
    rows = await (await conn.execute(QUERIES["list_recent"].text, values)).fetchall()
    return [SentLine(*(*row[:4], msgspec.convert(row[4], Body), *row[5:])) for row in rows]


async def read_body(conn: Connection, operator_id: int, notification_no: int) -> Body | None:
    """What one of an operator's messages was about."""
    values = {"operator_id": operator_id, "notification_no": notification_no}
    row = await (await conn.execute(QUERIES["read_items"].text, values)).fetchone()
    return None if row is None else msgspec.convert(row[0], Body)


async def read_states(conn: Connection, since_ms: int) -> list[tuple[str, int | None, int, int]]:
    """Each channel: its oldest waiting message, how many have failed since a time, how many people chose."""
    cursor = await conn.execute(QUERIES["read_state"].text, {"since_ms": since_ms})
    return [(channel, oldest, failed, wanted) for channel, oldest, failed, wanted in await cursor.fetchall()]


async def list_messages(conn: Connection, *, failed: bool, limit: int) -> list[tuple[Any, ...]]:
    """The last messages to anybody, or only those that failed, newest first."""
    values = {"failed": failed, "limit": limit}
    return await (await conn.execute(QUERIES["list_messages"].text, values)).fetchall()


def tidy(text: str) -> str:
    """A text that database and pages can take. Parts of it come from the other side."""
    return "".join(c if c.isprintable() else " " for c in text[:MAX_ANSWER])
