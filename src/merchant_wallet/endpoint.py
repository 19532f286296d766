"""One operation as an ASGI endpoint: body in, envelope out. The hot path of the whole service.

Rules: a request is answered with an envelope whatever happens; a fault is logged with the request's id and
tells the caller nothing but the code. No request of a known merchant is refused by settings that were only
kept: they are read again first; a submission that the book finds stale starts over with the fresh ones.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

import structlog

from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.book.writer import Fault, Unavailable, Writer
from merchant_wallet.codes import (
    BODY_MALFORMED,
    CODES,
    INTERNAL_FAULT,
    METHOD_NOT_ALLOWED,
    SUCCESS,
    UNAVAILABLE,
    Refusal,
    Refused,
)
from merchant_wallet.gate import (
    Caller,
    Gate,
    Network,
    find_source,
    require_app_key,
    unknown_app_key,
)
from merchant_wallet.logs import AccessLog, RequestIds
from merchant_wallet.merchants.directory import Directory, DirectoryAway
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.operation import Operation, Terms
from merchant_wallet.signing import sign_response
from merchant_wallet.wire import (
    MAX_BODY_BYTES,
    Fields,
    encode_refusal,
    encode_success,
    parse_body,
    present_texts,
)

log = structlog.get_logger("endpoint")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_TRIES: Final = 5
BODY_TIMEOUT_S: Final = 10
UNWATCHED: Final = 512
"""So many requests may wait for their bodies without a time limit; the server takes eight times as many."""
TOO_LATE: Final = f"the body did not arrive within {BODY_TIMEOUT_S} s"
FAULT: Final = Refusal(INTERNAL_FAULT, "a fault on our side; ask again with the same mcOrderId")
BUSY: Final = Refusal(
    UNAVAILABLE, "not available right now; ask again with the same mcOrderId", retry_after_s=1
)


class Counter:
    """Requests under way, and whether new ones are refused because the service is stopping."""

    def __init__(self) -> None:
        self.under_way = 0
        self.draining = False
        self._idle = asyncio.Event()

    def end(self) -> None:
        """A request is answered."""
        self.under_way -= 1
        if self.draining and self.under_way == 0:
            self._idle.set()

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new requests and wait for those under way; False when the time ran out."""
        self.draining = True
        if self.under_way:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), timeout_s)
        return self.under_way == 0


class Joints:
    """Everything the endpoints share."""

    def __init__(
        self,
        *,
        gate: Gate,
        directory: Directory,
        writer: Writer,
        terms: Terms,
        access_log: AccessLog,
        trusted_proxies: tuple[Network, ...] = (),
    ) -> None:
        self.gate = gate
        self.directory = directory
        self.writer = writer
        self.terms = terms
        self.access_log = access_log
        self.trusted_proxies = trusted_proxies
        self.request_ids = RequestIds()
        self.counter = Counter()

    async def take_address_index(self, merchant_id: int) -> int:
        """The next address index of a merchant."""
        return await self.directory.take_address_index(merchant_id)

    async def ask(self, merchant: Merchant, command: Command) -> Outcome:
        """Have a follow-up command carried out."""
        return await self.writer.submit(merchant.merchant_id, Submission(command))


class Endpoint:
    """The ASGI application of one operation."""

    def __init__(self, operation: Operation, joints: Joints) -> None:
        self._operation = operation
        self._joints = joints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began = time.monotonic()
        joints = self._joints
        counter = joints.counter
        request_id = joints.request_ids.next()
        content_type, source = _read_headers(scope, joints.trusted_proxies)
        counter.under_way += 1
        try:
            if scope["method"] != "POST":
                refusal = Refusal(METHOD_NOT_ALLOWED, "operations are called with POST")
                await respond(send, request_id, refusal, [(b"allow", b"POST")])
                code, app_key = METHOD_NOT_ALLOWED, ""
            elif counter.draining:
                await respond(send, request_id, BUSY)
                code, app_key = UNAVAILABLE, ""
            else:
                code, app_key = await self._serve(receive, send, content_type, source, request_id)
        finally:
            counter.end()
        joints.access_log.write(
            request_id, self._operation.path, code, app_key, source, time.monotonic() - began
        )

    async def _serve(
        self, receive: Receive, send: Send, content_type: str | None, source: str, request_id: str
    ) -> tuple[int, str]:
        app_key = ""
        try:
            crowded = self._joints.counter.under_way > UNWATCHED
            body = await (_read_in_time(receive) if crowded else read_body(receive))
            fields = parse_body(content_type, body)
            app_key = require_app_key(fields)
            answer = await self._carry_out(app_key, fields, source, request_id)
        except Refused as refused:
            refusal = self._joints.gate.note(refused.refusal, source)
        except (Unavailable, DirectoryAway) as error:
            log.warning("not available", request_id=request_id, reason=str(error))
            refusal = BUSY
        except Fault:
            refusal = FAULT
        except Exception:
            log.exception("request failed", request_id=request_id, path=self._operation.path)
            refusal = FAULT
        else:
            await send_answer(send, 200, answer, request_id)
            return SUCCESS, app_key
        await respond(send, request_id, refusal)
        return refusal.code, app_key

    async def _carry_out(self, app_key: str, fields: Fields, source: str, request_id: str) -> bytes:
        """Judge, submit and answer. Raises Refused, Unavailable, Fault, DirectoryAway."""
        directory, operation, gate = self._joints.directory, self._operation, self._joints.gate
        merchant = directory.kept(app_key) or await directory.load(app_key)
        counted = False
        for _ in range(MAX_TRIES):
            if merchant is None:
                raise Refused(unknown_app_key())
            try:
                caller = gate.authenticate(merchant, operation.path, fields, source)
                if not counted:
                    gate.count(merchant)
                    counted = True
                gate.admit(merchant, operation)
                command = operation.prepare(merchant, fields, self._joints.terms)
            except Refused:
                # Any check may depend on a setting, and an older setting may refuse before a newer one would.
                fresh = await directory.refresh(merchant)
                if fresh is merchant:
                    raise
                merchant = fresh
                continue
            outcome = await self._submit(caller, command, request_id)
            if not isinstance(outcome, Stale):
                return self._answer(caller, outcome)
            merchant = await directory.load(app_key)
        raise Unavailable("the merchant's settings keep changing")

    async def _submit(self, caller: Caller, command: Command, request_id: str) -> Outcome:
        merchant, joints = caller.merchant, self._joints
        submission = Submission(command, caller.nonce, merchant.settings_version, request_id)
        outcome = await joints.writer.submit(merchant.merchant_id, submission)
        if self._operation.follow is not None:
            outcome = await self._operation.follow(merchant, command, outcome, joints)
        return outcome

    def _answer(self, caller: Caller, outcome: Outcome) -> bytes:
        if isinstance(outcome, Refusal):
            raise Refused(outcome)
        operation, merchant = self._operation, caller.merchant
        items = operation.answer(merchant, outcome, self._joints.terms)
        sign = sign_response(
            merchant.sign_method,
            caller.secret,
            operation.path,
            present_texts(items),
            SUCCESS,
            caller.nonce,
            operation.sign_length,
        )
        return encode_success(items, sign)


async def _read_in_time(receive: Receive) -> bytes:
    """The body; mostly it is there at once. A client that never sends it must not keep its place for ever.

    Only asked for when many requests are under way: a timer costs as much as reading the body does.
    """
    task = asyncio.current_task()
    assert task is not None
    alarm = asyncio.get_running_loop().call_later(BODY_TIMEOUT_S, task.cancel, TOO_LATE)
    try:
        return await read_body(receive)
    except asyncio.CancelledError as cancelled:
        if cancelled.args != (TOO_LATE,):
            raise
        task.uncancel()
        raise Refused(Refusal(BODY_MALFORMED, TOO_LATE)) from None
    finally:
        alarm.cancel()


async def read_body(receive: Receive) -> bytes:
    """The request's body, read no further than the largest one allowed and a byte more."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    parts, length = [body], len(body)
    while message.get("more_body", False) and length <= MAX_BODY_BYTES:
        message = await receive()
        parts.append(message.get("body", b""))
        length += len(parts[-1])
    return b"".join(parts)


async def respond(
    send: Send, request_id: str, refusal: Refusal, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a refusal's envelope with its HTTP status."""
    extra = headers or []
    if refusal.retry_after_s is not None:
        extra = [*extra, (b"retry-after", b"%d" % refusal.retry_after_s)]
    await send_answer(send, CODES[refusal.code].http_status, encode_refusal(refusal), request_id, extra)


async def send_answer(
    send: Send, status: int, body: bytes, request_id: str, extra: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send an envelope; every answer bears the request's id."""
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
    ]
    if extra:
        headers += extra
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _read_headers(scope: Scope, trusted: tuple[Network, ...]) -> tuple[str | None, str]:
    content_type = None
    forwarded = []
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"x-forwarded-for" and trusted:
            forwarded.append(value.decode("latin-1"))
    client = scope.get("client")
    peer = client[0] if client else ""
    return content_type, find_source(peer, forwarded, trusted) if trusted else peer
