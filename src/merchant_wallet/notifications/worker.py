"""The worker that tells operators what waits for them: it decides, stores, and then sends.

Rules:
- Without anybody who wants to be told, it reads no inbox.
- Any number of workers may run. One at a time decides; a message has one claim at a time.
- While a cell is away, nothing of the kinds that it has counts as gone, or is forgotten. The same holds for a
  kind that could not be read. Nobody is told twice of an item because its cell was away.
- The time of the order of people goes on while a cell is away. Nobody is told of what can't be opened.
- A failed attempt is repeated after longer and longer pauses. Then the message has failed, which the inbox
  shows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat
from merchant_wallet.notifications import escalation, outbox
from merchant_wallet.notifications.outbox import (
    DROPPED,
    FAILED,
    FORGET_MS,
    SENT,
    WAITING,
    Message,
    Recipient,
)
from merchant_wallet.notifications.planning import Reader, Told, plan
from merchant_wallet.reporting.inbox import Inbox
from merchant_wallet.web.inbox_sources import BY_KIND

Connection = AsyncConnection[Any]
ReadInbox = Callable[[Connection, int | None], Awaitable[Inbox]]
"""Reads the inbox of one merchant's people, or with None of the platform's."""

PLAN_INTERVAL_S: Final = 5.0
SEND_INTERVAL_S: Final = 1.0
CLAIM_MS: Final = 60_000
"""Longer than the longest attempt."""
MAX_CONCURRENT: Final = 8
PAUSES_S: Final = (15, 60, 300, 900, 1800, 3600)
OUR_FAULT: Final = "a fault of this service, its log says which"
ACTED: Final = "dropped: nothing of it waits any more"
CHANGED: Final = "dropped: the person, or where the person is reached, was changed"

log = structlog.get_logger(__name__)


class Result(msgspec.Struct, frozen=True):
    """The result of an attempt. `is_final`: a failure that would be the same next time."""

    is_sent: bool
    answer: str
    is_final: bool = False


class Transport(Protocol):
    """Sends messages by one channel."""

    async def send(self, message: Message, recipient: Recipient, at_ms: int) -> Result:
        """Make one attempt."""


class Notifier:
    """Decides and sends. `transports` are the channels that work here."""

    def __init__(
        self,
        connect: Connect,
        read_inbox: ReadInbox,
        transports: Mapping[str, Transport],
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._planning = WorkerConnection(connect)
        self._sending = WorkerConnection(connect)
        self._read_inbox = read_inbox
        self._transports = transports
        self._clock = clock
        self._wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        try:
            await asyncio.gather(
                repeat("notifications", self.plan_once, stop=stop, interval_s=PLAN_INTERVAL_S),
                repeat(
                    "notification sender",
                    self.send_once,
                    stop=stop,
                    interval_s=SEND_INTERVAL_S,
                    wake=self._wake,
                    rest_s=REST_S,
                ),
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._planning.close()
        await self._sending.close()

    async def plan_once(self) -> int:
        """Store the messages that are due. Returns how many."""
        conn = await self._planning.get()
        readers = await outbox.list_readers(conn)
        stored = 0
        for merchant_id in {one.person.merchant_id for one in readers}:
            of_scope = [one for one in readers if one.person.merchant_id == merchant_id]
            stored += await self._plan_scope(conn, merchant_id, of_scope)
        await outbox.delete_old(conn, self._clock())
        if stored:
            self._wake.set()
        return stored

    async def _plan_scope(self, conn: Connection, merchant_id: int | None, readers: Sequence[Reader]) -> int:
        inbox = await self._read_inbox(conn, merchant_id)
        at_ms = self._clock()
        async with conn.transaction():
            if not await outbox.lock_planning(conn):
                return 0
            told = await outbox.list_told(conn, merchant_id)
            await outbox.mark(conn, "mark_gone", list_gone(inbox, told), at_ms)
            await outbox.mark(conn, "mark_back", list_back(inbox, told), at_ms)
            await outbox.mark(conn, "forget", list_forgotten(inbox, told, at_ms), at_ms)
            times_s = await escalation.list_times(conn)
            last = await outbox.list_last(conn, readers)
            due = plan(inbox, BY_KIND, readers, times_s, told, last, at_ms)
            for planned in due:
                number = await outbox.store(conn, planned, at_ms)
                log.info("notification stored", notification_no=number, items=len(planned.lines))
        return len(due)

    async def send_once(self) -> int:
        """Make an attempt at each message that is due. Returns how many."""
        conn = await self._sending.get()
        at_ms = self._clock()
        claimed = await outbox.claim(
            conn, list(self._transports), at_ms=at_ms, until_ms=at_ms + CLAIM_MS, limit=MAX_CONCURRENT
        )
        recipients = [await self._find_recipient(conn, message) for message in claimed]
        results = await asyncio.gather(
            *[self._attempt(message, found) for message, found in zip(claimed, recipients, strict=True)]
        )
        for message, (state, answer) in zip(claimed, results, strict=True):
            await self._record(conn, message, state, answer)
        if len(claimed) == MAX_CONCURRENT:
            self._wake.set()
        return len(claimed)

    async def _find_recipient(self, conn: Connection, message: Message) -> Recipient | str:
        """The person of a message as the person is reached now, or why nothing is sent."""
        found = await outbox.read_recipient(conn, message.operator_id)
        if found is None or found.status != "active":
            return CHANGED
        if message.target not in (found.email, found.webhook_url):
            return CHANGED
        if not message.is_test and not await outbox.is_waiting(conn, message.notification_no):
            return ACTED
        return found

    async def _attempt(self, message: Message, recipient: Recipient | str) -> tuple[str, str]:
        """The state that a message has now, and what the other side said."""
        if isinstance(recipient, str):
            return DROPPED, recipient
        try:
            result = await self._transports[message.channel].send(message, recipient, self._clock())
        except Exception as error:
            # Recorded like any failure, so that one broken message holds up no other.
            log_failure(log, "notification could not be sent", error, notification_no=message.notification_no)
            result = Result(False, OUR_FAULT)
        if result.is_sent:
            return SENT, result.answer
        is_last = result.is_final or message.is_test or message.attempt_no > len(PAUSES_S)
        return FAILED if is_last else WAITING, result.answer

    async def _record(self, conn: Connection, message: Message, state: str, answer: str) -> None:
        at_ms = self._clock()
        pause_s = PAUSES_S[min(message.attempt_no, len(PAUSES_S)) - 1]
        next_ms = at_ms + pause_s * 1000
        await outbox.record_result(conn, message, state, answer, at_ms=at_ms, next_ms=next_ms)
        say = log.warning if state in (FAILED, WAITING) else log.info
        say(
            "notification attempted",
            notification_no=message.notification_no,
            channel=message.channel,
            state=state,
            attempt_no=message.attempt_no,
            answer=outbox.tidy(answer),
        )


def list_gone(inbox: Inbox, told: Sequence[Told]) -> list[Told]:
    """What people were told of and what certainly waits no more. Pure."""
    listed, unknown = _list_items(inbox), inbox.unknown
    return [
        one
        for one in told
        if one.gone_ms is None and one.kind not in unknown and (one.kind, one.key) not in listed
    ]


def list_back(inbox: Inbox, told: Sequence[Told]) -> list[Told]:
    """What was gone and waits again. Pure."""
    listed = _list_items(inbox)
    return [one for one in told if one.gone_ms is not None and (one.kind, one.key) in listed]


def list_forgotten(inbox: Inbox, told: Sequence[Told], at_ms: int) -> list[Told]:
    """What has certainly been gone for so long that people are told again if it comes back. Pure."""
    listed, unknown, before_ms = _list_items(inbox), inbox.unknown, at_ms - FORGET_MS
    return [
        one
        for one in told
        if one.gone_ms is not None
        and one.gone_ms < before_ms
        and one.kind not in unknown
        and (one.kind, one.key) not in listed
    ]


def _list_items(inbox: Inbox) -> set[tuple[str, str]]:
    return {(group.kind, item.key) for group in inbox.groups for item in group.items}
