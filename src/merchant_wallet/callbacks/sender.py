"""The worker that delivers callbacks: it claims due callbacks and makes many attempts at once.

Rules:
- An attempt is recorded with its claim before anything is sent, and completed afterwards. If the process dies
  in between, the claim expires and the callback is sent again with the same event id. So every event is
  delivered at least once.
- Merchants are served in turn, each with its first few callbacks.
- A host gets slots by its latency (`host_concurrency`), so a dead endpoint slows no other.
- Any number of senders may run.
"""

import asyncio
import os
import random
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec
import structlog
from structlog.contextvars import bind_contextvars

from merchant_wallet.base import spans
from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.pool import Pool, is_idle
from merchant_wallet.base.spans import Tracing, work_on_order
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer, explain_failure, find_remark
from merchant_wallet.callbacks.callback_states import Event, read_attempt
from merchant_wallet.callbacks.host_concurrency import QUICK_LIMIT, HostConcurrency
from merchant_wallet.callbacks.outbox import Claim, Key, Waiting
from merchant_wallet.callbacks.payloads import (
    DEPOSIT,
    CallbackEvent,
    Payload,
    add_traceparent,
    build_payload,
)
from merchant_wallet.callbacks.schedule import compute_pause_ms
from merchant_wallet.callbacks.target_policy import read_host
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import Merchant

POLL_INTERVAL_S: Final = 0.2
MAX_CONCURRENT: Final = 128
"""Attempts at the same time."""
WRITERS: Final = 4
"""Connections that record results."""
HOME_READERS: Final = 1
"""Connections to home, for the secrets of an apart cell's merchants."""
CLAIM_MS: Final = 30_000
"""Three times the longest attempt."""
PAGE: Final = 500
"""Merchants per turn."""
MAX_KEPT: Final = 10_000
"""Merchants in the cache."""

NONCE_BYTES: Final = 16
"""In hexadecimal this is the longest allowed nonceStr."""
NO_URL: Final = "there is no URL to send it to"
OUR_FAULT: Final = "a fault of this service, its log says which"

log = structlog.get_logger(__name__)


def make_nonce() -> str:
    """The nonce of one attempt."""
    return secrets.token_hex(NONCE_BYTES)


class CallbackTransport(Protocol):
    """Sends a payload. `client.CallbackClient` in production."""

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL."""


class CallbackSender:
    """One worker that delivers a cell's callbacks. Set `wake` to make it look at the queue at once.

    `connect` connects to the cell, `connect_home` to home; without it the cell is home's own.
    """

    def __init__(
        self,
        connect: Connect,
        keyring: Keyring,
        client: CallbackTransport,
        *,
        connect_home: Connect | None = None,
        max_concurrent: int = MAX_CONCURRENT,
        claim_ms: int = CLAIM_MS,
        clock: Callable[[], int] = now_ms,
        draw: Callable[[], float] = random.random,
        make_nonce: Callable[[], str] = make_nonce,
        name: str | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.wake = asyncio.Event()
        self._queue = WorkerConnection(connect)
        self._writers = Pool(connect, WRITERS, is_usable=is_idle)
        self._home = None if connect_home is None else Pool(connect_home, HOME_READERS, is_usable=is_idle)
        self._keyring = keyring
        self._client = client
        self._hosts = HostConcurrency(max_concurrent)
        self._claim_ms = claim_ms
        self._clock = clock
        self._draw = draw
        self._make_nonce = make_nonce
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._tracing = tracing
        self._merchants: OrderedDict[int, Merchant] = OrderedDict()
        self._after = 0
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Deliver until told to stop. Then finish the running attempts and close the connections."""
        try:
            await repeat(
                "callbacks", self.start_due, stop=stop, interval_s=interval_s, wake=self.wake, rest_s=REST_S
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Finish the running attempts and close the connections."""
        await self.finish()
        await self._queue.close()
        await self._writers.close()
        if self._home is not None:
            await self._home.close()

    async def finish(self) -> None:
        """Wait for the running attempts."""
        while self._running:
            await asyncio.wait(list(self._running))

    async def start_due(self) -> int:
        """Start attempts for due callbacks of the next page of merchants. Returns how many."""
        if self._hosts.free <= 0:
            return 0
        due = await self._peek()
        taken = {key: url for key, url in due if self._hosts.acquire(read_host(url or ""))}
        begun: set[Key] = set()
        try:
            for claim, event in await self._claim(taken):
                begun.add(claim.key)
                task = asyncio.create_task(self._deliver(claim, event, taken[claim.key]))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        finally:
            for key in taken.keys() - begun:
                self._hosts.release(read_host(taken[key] or ""))
        return len(begun)

    async def _peek(self) -> list[Waiting]:
        connection = await self._queue.get()
        page = await outbox.list_waiting(connection, after=self._after, limit=PAGE)
        self._after = page[-1][0] if len(page) == PAGE else 0
        if self._after:
            self.wake.set()
        merchant_ids = [merchant_id for merchant_id, paused in page if not paused]
        if not merchant_ids:
            return []
        # Reads at least the first callback of every merchant: most of the others may go to hosts without a
        # free slot.
        limit = PAGE + 2 * self._hosts.free
        return await outbox.peek_due(connection, merchant_ids, self._clock(), each=QUICK_LIMIT, limit=limit)

    async def _claim(self, keys: Mapping[Key, str | None]) -> list[tuple[Claim, CallbackEvent | None]]:
        if not keys:
            return []
        connection, now = await self._queue.get(), self._clock()
        claims = await outbox.claim(
            connection, keys, claimed_by=self._name, now_ms=now, until_ms=now + self._claim_ms
        )
        event = await outbox.read_events(connection, claims)
        return [(claim, event.get(claim.key)) for claim in claims]

    async def _deliver(self, claim: Claim, event: CallbackEvent | None, url: str | None) -> None:
        """Make the attempt and record the result. Every error is logged with the event."""
        # The task is this attempt's alone, so nothing has to be unbound.
        bind_contextvars(**_make_log_fields(claim))
        answer = Answer(0, error=NO_URL)
        try:
            if url is not None:
                answer = await self._attempt_traced(claim, event, url)
            await self._record_result(claim, answer, has_url=url is not None)
        except Exception as error:
            # A delivered callback whose result was not recorded is sent again when the claim has expired.
            log_failure(log, "callback result could not be recorded", error)
        finally:
            # Without a request there is no latency, so nothing is learnt about the host.
            self._hosts.release(read_host(url or ""), answer.latency_ms or None)
            self.wake.set()

    async def _attempt_traced(self, claim: Claim, event: CallbackEvent | None, url: str) -> Answer:
        """The attempt, in the trace of the request that made the order."""
        merchant_id, order_id, _ = claim.key
        with await work_on_order(self._tracing, "callback", merchant_id, order_id, kind="client") as span:
            answer = await self._attempt(claim, event, url)
            if span is not None:
                span.note({"wallet.event_id": claim.event_id, "wallet.attempt_no": claim.attempt_no})
                span.note({"http.response.status_code": answer.http_status or 0})
            return answer

    async def _attempt(self, claim: Claim, event: CallbackEvent | None, url: str) -> Answer:
        try:
            if event is None:
                raise LookupError("the order or deposit of this callback is missing")
            merchant = await self._merchant(claim)
            fields, nonce = event.fields(), self._make_nonce()
            payload = build_payload(merchant, claim.event_id, fields, nonce, self._clock())
            if traceparent := spans.current():
                payload = add_traceparent(payload, traceparent)
            return await self._send(claim, url, payload)
        except Exception as error:
            # Recorded like any failure, so one broken callback is not tried for ever.
            log_failure(log, "callback could not be sent", error)
            return Answer(0, error=OUR_FAULT)

    async def _send(self, claim: Claim, url: str, payload: Payload) -> Answer:
        return await self._client.send(url, payload)

    def _find_next_ms(self, claim: Claim) -> int | None:
        """When a callback that failed is sent next. None makes it a dead letter."""
        return self._clock() + compute_pause_ms(claim.retry_no, self._draw())

    async def _merchant(self, claim: Claim) -> Merchant:
        """The merchant with the settings of the claim's time or newer."""
        merchant_id = claim.key.merchant_id
        kept = self._merchants.get(merchant_id)
        if kept is not None and kept.settings_version >= claim.settings_version:
            return kept
        async with (self._home or self._writers).acquire() as connection:
            loaded = await store.load(connection, self._keyring, merchant_id)
        if loaded is None:
            raise LookupError(f"merchant {merchant_id} is gone")
        self._merchants[merchant_id] = loaded
        self._merchants.move_to_end(merchant_id)
        if len(self._merchants) > MAX_KEPT:
            self._merchants.popitem(last=False)
        return loaded

    async def _record_result(self, claim: Claim, answer: Answer, *, has_url: bool) -> None:
        failure = explain_failure(answer)
        event = read_attempt(is_success=failure is None, has_url=has_url, retry_no=claim.retry_no)
        if event is Event.SUCCEEDED:
            async with self._writers.acquire() as connection:
                noted = msgspec.structs.replace(answer, error=find_remark(answer))
                await outbox.record_success(connection, claim, noted, self._clock())
            log.debug("callback delivered", latency_ms=answer.latency_ms, remark=noted.error)
            return
        failed = msgspec.structs.replace(answer, error=failure)
        next_ms = self._find_next_ms(claim) if event is Event.FAILED else None
        repeats = next_ms is not None
        async with self._writers.acquire() as connection:
            await outbox.record_failure(connection, claim, failed, next_ms)
        say, said = (log.info, "callback not accepted") if repeats else (log.warning, "callback given up")
        say(
            said,
            attempt_no=claim.attempt_no,
            http_status=answer.http_status,
            error=failure,
        )


def _make_log_fields(claim: Claim) -> dict[str, object]:
    order = {} if claim.event_type == DEPOSIT else {"order_id": claim.key.order_id}
    return {"merchant_id": claim.key.merchant_id, **order, "event_id": claim.event_id}
