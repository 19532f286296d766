"""`POST /sandbox/listenCallbacks`: a stream of one merchant's attempts at callbacks, for a laptop behind NAT.

Rules:
- The request is signed and checked like that of any action. The answer is `application/x-ndjson`: an object
  for each attempt, whatever becomes of it at its notifyUrl. A blank line is a heartbeat.
- Attempts are read from home. So it does not matter which process sends a callback or has the stream.
- After `after`, the id of an event, come the attempts after the latest one at that event. Without it the
  stream begins now.
- A merchant has few streams in a process. A stream ends after some minutes, when the merchant is suspended,
  when its key is revoked or limited to operations, and when the process stops. Then the client connects
  again, with the last event that it saw.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.gate import Caller
from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.wire import Fields, optional
from merchant_wallet.base.codes import ORDER_NOT_FOUND, TOO_MANY_REQUESTS, Refusal, Refused, refuse
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.actions.callbacks import EVENT_ID_LENGTH
from merchant_wallet.sandbox.context import Call, SandboxContext
from merchant_wallet.sandbox.control import Action, ControlEndpoint
from merchant_wallet.sandbox.store import Attempt
from merchant_wallet.web.live import OPEN_ENDED, Hub, SessionEnded, TooManyStreams

INTERVAL_S: Final = 0.25
MAX_OF_MERCHANT: Final = 4
BEAT: Final = b"\n"
MEDIA_TYPE: Final = "application/x-ndjson"
NAME: Final = "listenCallbacks"
FIELDS: Final = (("after", "optional: the `eventId` of the last line that you got"),)
SUMMARY: Final = "a stream of all attempts at your callbacks, see below"
TOO_MANY: Final = Refusal(
    TOO_MANY_REQUESTS, f"a merchant has at most {MAX_OF_MERCHANT} streams of callbacks here", retry_after_s=5
)


class Stream(NamedTuple):
    """A stream that may begin: whose, after which attempt, and with which key."""

    merchant_id: int
    after: int
    app_key: str


class CallbackListeners:
    """The streams of this process."""

    def __init__(self, context: SandboxContext) -> None:
        self._context = context
        self._open: Counter[int] = Counter()
        self._hub: Hub[int, int, str] = Hub(self._look, self._check, context.is_ending, INTERVAL_S)

    async def close(self) -> None:
        """End all streams."""
        await self._hub.close()

    def require_room(self, merchant_id: int) -> None:
        """Check that a merchant may have another stream. Refused 42900."""
        if self._open[merchant_id] >= MAX_OF_MERCHANT:
            raise Refused(TOO_MANY)

    async def follow(self, stream: Stream) -> AsyncIterator[bytes]:
        """The lines of a stream. It ends at once if this process follows as many as it can."""
        try:
            states = self._hub.follow(stream.merchant_id, stream.app_key)
        except TooManyStreams:
            return
        self._open[stream.merchant_id] += 1
        after = stream.after
        try:
            # A proxy passes the head on with the first bytes.
            yield BEAT
            async for newest in states:
                if newest is None:
                    yield BEAT
                    continue
                while after < newest:
                    attempts = await self._page(stream.merchant_id, after, newest)
                    # Older attempts may be gone.
                    after = attempts[-1].attempt_no if attempts else newest
                    for attempt in attempts:
                        yield write_attempt(attempt)
        except SessionEnded:
            return
        finally:
            self._open[stream.merchant_id] -= 1
            await states.aclose()

    async def _page(self, merchant_id: int, after: int, upto: int) -> list[Attempt]:
        async with self._context.connections.take() as home:
            return await store.page_attempts(home, merchant_id, after, upto)

    async def _look(self, merchant_ids: Sequence[int]) -> Mapping[int, int]:
        async with self._context.connections.take() as home:
            return await store.read_newest(home, merchant_ids)

    async def _check(self, app_keys: Sequence[str]) -> Collection[str]:
        async with self._context.connections.take() as home:
            rows = await store.run(home, "list_admitted", app_keys=list(app_keys))
        return {app_key for (app_key,) in rows}


def write_attempt(attempt: Attempt) -> bytes:
    """One line of the stream."""
    line = {
        "eventId": attempt.event_id,
        "url": attempt.url,
        "headers": msgspec.Raw(attempt.headers.encode()),
        "body": attempt.body,
    }
    return msgspec.json.encode(line) + b"\n"


def _read(fields: Fields, context: OperationContext) -> str | None:
    return optional(fields, "after", EVENT_ID_LENGTH)


def make_action(listeners: CallbackListeners) -> Action:
    """The action. What it answers is no fields but a `Stream`: `ListenEndpoint` knows."""

    async def begin(call: Call, after: str | None) -> Any:
        listeners.require_room(call.merchant_id)
        if after is None:
            newest = await store.read_newest(call.home, [call.merchant_id])
            return Stream(call.merchant_id, newest[call.merchant_id], call.merchant.app_key)
        number = await store.find_event(call.home, call.merchant_id, after)
        if number is None:
            refuse(ORDER_NOT_FOUND, "after: no attempt at this event is known any more; leave it out")
        return Stream(call.merchant_id, number, call.merchant.app_key)

    return Action(NAME, _read, begin, FIELDS, SUMMARY)


class ListenEndpoint(ControlEndpoint):
    """Checks a request as an action, and answers with the stream instead of an envelope."""

    def __init__(
        self, dependencies: Dependencies, context: SandboxContext, listeners: CallbackListeners
    ) -> None:
        super().__init__(make_action(listeners), dependencies, context)
        self._listeners = listeners

    def _answer(self, caller: Caller, outcome: Any) -> bytes:
        if isinstance(outcome, Refusal):
            raise Refused(outcome)
        return msgspec.json.encode(outcome.items)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal as ever, and a success with the stream."""
        kept: list[Message] = []

        async def keep(message: Message) -> None:
            kept.append(message)

        await super().__call__(scope, receive, keep)
        head, body = kept[0], kept[1]["body"]
        # An envelope is an object, and a place is an array.
        if body.startswith(b"{"):
            for message in kept:
                await send(message)
            return
        stream = msgspec.json.decode(body, type=Stream)
        request_id = dict(head["headers"])[b"x-request-id"].decode()
        headers = {"x-request-id": request_id, "cache-control": "no-store", "x-accel-buffering": "no"}
        scope[OPEN_ENDED] = True
        lines = self._listeners.follow(stream)
        await StreamingResponse(lines, headers=headers, media_type=MEDIA_TYPE)(scope, receive, send)
