"""The endpoint of one operation: body in, envelope out. This is the hot path of the service.

Rules:
- Every request gets an envelope, whatever happens. A fault is logged with the request's id; the client gets
  only the code.
- Before cached settings refuse a request of a known merchant, they are read again from the database.
- A submission that the book calls stale is made again with fresh settings.
- Most requests need no task: they are checked on arrival and answered when their batch commits. A request
  that needs the database first runs in a task.
"""

import asyncio
import time
from collections.abc import Coroutine, MutableMapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from merchant_wallet.api.dependencies import Dependencies, Header, OperationRequest
from merchant_wallet.api.gate import Caller, refuse_callback, require_app_key, unknown_app_key
from merchant_wallet.api.operation import Operation
from merchant_wallet.api.request_spans import begin_span, keep_order
from merchant_wallet.api.rewritten import KEEP_TYPE, TYPE_CHANGED
from merchant_wallet.api.turns import find_turn
from merchant_wallet.api.wire import (
    CONTENT_TYPES,
    MAX_BODY_BYTES,
    Fields,
    encode_refusal,
    encode_success,
    list_present_texts,
    name_invisible,
    parse_body,
)
from merchant_wallet.base.codes import (
    APP_KEY_UNKNOWN,
    BODY_MALFORMED,
    CODES,
    INTERNAL_FAULT,
    MEDIA_TYPE_UNSUPPORTED,
    METHOD_NOT_ALLOWED,
    SUCCESS,
    UNAVAILABLE,
    Refusal,
    Refused,
)
from merchant_wallet.base.signing import sign_response
from merchant_wallet.base.spans import read_trace_id
from merchant_wallet.base.trusted_proxies import TrustedProxies
from merchant_wallet.base.workers import log_error
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import BookClosed, CommandFailed, Unavailable
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.merchants.cache import MerchantsUnavailable
from merchant_wallet.merchants.records import Merchant

log = structlog.get_logger("endpoint")

MAX_TRIES: Final = 5
BODY_TIMEOUT_S: Final = 10
TOO_LATE: Final = Refusal(BODY_MALFORMED, f"the body did not arrive within {BODY_TIMEOUT_S} s")
FAULT: Final = Refusal(INTERNAL_FAULT, "a fault on our side; ask again with the same mcOrderId")
BUSY: Final = Refusal(
    UNAVAILABLE, "not available right now; ask again with the same mcOrderId", retry_after_s=1
)
ONLY_POST: Final = Refusal(METHOD_NOT_ALLOWED, "operations are called with POST")
ALLOW_POST: Final[Sequence[Header]] = ((b"allow", b"POST"),)


class Endpoint:
    """Answers the requests of one operation."""

    def __init__(self, operation: Operation, dependencies: Dependencies) -> None:
        self._operation = operation
        self._path = operation.path
        self._dependencies = dependencies
        self.only_reads = operation.only_reads
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, method: str, request: OperationRequest) -> None:
        """Answer a request through its `reply`, now or later."""
        in_flight = self._dependencies.in_flight
        in_flight.count += 1
        if method != "POST":
            self._refuse(request, ONLY_POST, ALLOW_POST)
        elif in_flight.draining:
            self._refuse(request, BUSY)
        else:
            try:
                self._begin(request)
            except Exception as error:
                self._fail(request, error)

    def refuse_incomplete(self, request: OperationRequest, refusal: Refusal) -> None:
        """Refuse a request whose body never arrived completely."""
        self._dependencies.in_flight.count += 1
        self._refuse(request, refusal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As `handle`, in the merchant's turn, for a server that speaks ASGI."""
        content_type, source = _read_headers(scope, self._dependencies.proxies)
        answered: asyncio.Future[tuple[int, bytes, str, Sequence[Header]]]
        answered = asyncio.get_running_loop().create_future()

        def reply(*answer: Any) -> None:
            if not answered.done():
                answered.set_result(answer)

        request = OperationRequest(content_type, b"", source, self._dependencies.request_ids.next(), reply)
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                request.body = await read_body(receive)
        except TimeoutError:
            self.refuse_incomplete(request, TOO_LATE)
        else:
            dependencies = self._dependencies
            request.turn = find_turn(request.body, source, dependencies.merchant_cache)
            method = scope["method"]
            dependencies.scheduler.schedule(request.turn, self.only_reads, self.handle, method, request)
        await send_answer(send, *await answered)

    def _begin(self, request: OperationRequest) -> None:
        """Check a request and submit it to the book. Raises Refused, Unavailable."""
        fields = request.fields = parse_body(request.content_type, request.body)
        request.app_key = require_app_key(fields)
        refuse_callback(fields)
        merchant = self._dependencies.merchant_cache.get(request.app_key)
        if merchant is None:
            self._start_task(request, self._load_and_execute(request, fields))
            return
        try:
            caller, command = self._check(request, merchant, fields)
        except Refused as refused:
            # Any check may depend on a setting, and the cached setting may be older than the stored one.
            self._start_task(request, self._refresh_and_execute(request, merchant, fields, refused))
            return
        if self._operation.follow_up is not None:
            self._start_task(request, self._execute(request, merchant, fields))
            return
        waiting = self._submit(caller, command, request)
        scheduler = self._dependencies.scheduler
        waiting.add_done_callback(
            partial(scheduler.schedule, request.turn, self.only_reads, self._finish, request, fields, caller)
        )

    def _check(self, request: OperationRequest, merchant: Merchant, fields: Fields) -> tuple[Caller, Command]:
        """Check a request and make its command. Raises Refused."""
        operation, gate = self._operation, self._dependencies.gate
        caller = gate.authenticate(merchant, self._path, fields, request.source)
        request.merchant_id = merchant.merchant_id
        if not request.counted:
            refusal, request.quota = gate.count(merchant)
            if refusal is not None:
                raise Refused(refusal)
            request.counted = True
        gate.admit(merchant, operation)
        return caller, operation.prepare(merchant, fields, self._dependencies.operation_context)

    def _submit(self, caller: Caller, command: Command, request: OperationRequest) -> asyncio.Future[Outcome]:
        merchant = caller.merchant
        traceparent = "" if self._dependencies.tracer is None else self._begin_span(request)
        nonce = caller.nonce if merchant.key_no == 1 else caller.book_nonce
        submission = Submission(command, nonce, merchant.settings_version, request.request_id, traceparent)
        return self._dependencies.writer.submit(merchant.merchant_id, submission)

    def _begin_span(self, request: OperationRequest) -> str:
        """Begin the request's span, which has passed the gate. An empty text if the request is not traced."""
        tracer = self._dependencies.tracer
        if request.span is None and tracer is not None:
            request.span = begin_span(tracer, self._operation.name, request)
        return "" if request.span is None else request.span.traceparent

    def _finish(
        self, request: OperationRequest, fields: Fields, caller: Caller, waiting: asyncio.Future[Outcome]
    ) -> None:
        """Answer with the outcome from the book."""
        try:
            outcome = waiting.result()
            if request.span is not None:
                self._keep_trace(request, outcome)
            stale = type(outcome) is Stale
            body = b"" if stale else self._answer(caller, outcome)
        except BookClosed:
            # Nothing was done. The book may have moved since this process last asked home where it is.
            stale = True
        except Exception as error:
            self._fail(request, error)
            return
        if stale:
            self._start_task(request, self._load_and_execute(request, fields))
        else:
            self._reply(request, SUCCESS, 200, body, ())

    def _start_task(self, request: OperationRequest, work: Coroutine[Any, Any, bytes]) -> None:
        task = asyncio.get_running_loop().create_task(self._run_task(request, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_task(self, request: OperationRequest, work: Coroutine[Any, Any, bytes]) -> None:
        # The task is this request's alone, so nothing has to be unbound.
        bind_contextvars(request_id=request.request_id, path=self._path)
        try:
            answer = await work
        except Exception as error:
            self._fail(request, error)
        else:
            self._reply(request, SUCCESS, 200, answer, ())

    async def _load_and_execute(self, request: OperationRequest, fields: Fields) -> bytes:
        """As `_execute`, for a merchant whose settings are not cached or are stale."""
        self._dependencies.gate.require_own_mode(request.app_key)
        return await self._execute(
            request, await self._dependencies.merchant_cache.load(request.app_key), fields
        )

    async def _refresh_and_execute(
        self, request: OperationRequest, merchant: Merchant, fields: Fields, refused: Refused
    ) -> bytes:
        """As `_execute`, for a request that cached settings refuse."""
        fresh = await self._dependencies.merchant_cache.refresh(merchant)
        if fresh is merchant:
            raise refused
        return await self._execute(request, fresh, fields)

    async def _execute(self, request: OperationRequest, merchant: Merchant | None, fields: Fields) -> bytes:
        """Check, submit and answer. Raises Refused, Unavailable, CommandFailed, MerchantsUnavailable."""
        merchant_cache = self._dependencies.merchant_cache
        for _ in range(MAX_TRIES):
            if merchant is None:
                raise Refused(unknown_app_key())
            try:
                caller, command = self._check(request, merchant, fields)
            except Refused:
                fresh = await merchant_cache.refresh(merchant)
                if fresh is merchant:
                    raise
                merchant = fresh
                continue
            outcome = await self._submit(caller, command, request)
            if self._operation.follow_up is not None:
                outcome = await self._operation.follow_up(merchant, command, outcome, self._dependencies)
            if request.span is not None:
                self._keep_trace(request, outcome)
            if not isinstance(outcome, Stale):
                return self._answer(caller, outcome)
            merchant = await merchant_cache.load(request.app_key)
        raise Unavailable("the merchant's settings keep changing")

    def _answer(self, caller: Caller, outcome: Outcome) -> bytes:
        if isinstance(outcome, Refusal):
            raise Refused(outcome)
        operation, merchant = self._operation, caller.merchant
        items = operation.answer(merchant, outcome, self._dependencies.operation_context)
        sign = sign_response(
            merchant.sign_method,
            caller.secret,
            self._path,
            list_present_texts(items),
            SUCCESS,
            caller.nonce,
            operation.sign_length,
        )
        return encode_success(items, sign)

    def _fail(self, request: OperationRequest, error: Exception) -> None:
        """Answer a request that ended with `error`."""
        if isinstance(error, Refused):
            named = name_invisible(error.refusal, request.fields)
            refusal = self._dependencies.gate.note(named, request.source)
            # Of a body that can't be read, it is known whose it seems to be.
            request.app_key = request.app_key or request.turn[0]
            refused_requests = self._dependencies.refused_requests
            if refused_requests is not None and request.app_key and error.refusal.code != APP_KEY_UNKNOWN:
                refused_requests.add(self._path, refusal, request)
        elif isinstance(error, Unavailable | MerchantsUnavailable):
            log.warning("not available", **self._name(request), reason=str(error))
            refusal = BUSY
        else:
            if not isinstance(error, CommandFailed):
                log_error(log, "request failed", error, **self._name(request))
            refusal = FAULT
        self._refuse(request, refusal)

    def _note_type(self, request: OperationRequest) -> None:
        self._dependencies.proxies.complaints.say(
            TYPE_CHANGED,
            content_type=request.content_type or "",
            documented=" or ".join(CONTENT_TYPES),
            path=self._path,
            request_id=request.request_id,
            source=request.source,
            advice=KEEP_TYPE,
        )

    def _keep_trace(self, request: OperationRequest, outcome: Outcome) -> None:
        """Remember a traced request that made an order, for the order's payout and callbacks."""
        order_traces = self._dependencies.order_traces
        if order_traces is not None and request.span is not None and request.merchant_id is not None:
            keep_order(order_traces, self._operation, request.merchant_id, outcome, request.span)

    def _name(self, request: OperationRequest) -> dict[str, object]:
        """What the log says of a request."""
        traced = {} if request.span is None else {"trace_id": read_trace_id(request.span.traceparent)}
        about = {"request_id": request.request_id, "merchant_id": request.merchant_id, "path": self._path}
        return {**about, **traced}

    def _refuse(self, request: OperationRequest, refusal: Refusal, headers: Sequence[Header] = ()) -> None:
        if refusal.code == MEDIA_TYPE_UNSUPPORTED:
            self._note_type(request)
        self._reply(request, refusal.code, *write_refusal(refusal, headers))

    def _reply(
        self, request: OperationRequest, code: int, status: int, body: bytes, headers: Sequence[Header]
    ) -> None:
        dependencies = self._dependencies
        try:
            request.reply(
                status, body, request.request_id, (*request.quota, *headers) if headers else request.quota
            )
        finally:
            if request.span is not None:
                request.span.note({"wallet.code": code, "http.response.status_code": status})
                request.span.end()
            dependencies.in_flight.end()
            took_s = time.monotonic() - request.began_s
            dependencies.request_counters.count(self._path, code, took_s)
            if dependencies.request_recorder is not None and request.app_key:
                dependencies.request_recorder.note(request, self._path, code, took_s)
            dependencies.access_log.write(
                request.request_id,
                self._path,
                code,
                request.app_key,
                request.source,
                took_s,
                request.merchant_id,
            )


async def read_body(receive: Receive) -> bytes:
    """The request's body. Reading stops one byte after the maximum."""
    message: MutableMapping[str, Any] = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    parts, length = [body], len(body)
    while message.get("more_body", False) and length <= MAX_BODY_BYTES:
        message = await receive()
        parts.append(message.get("body", b""))
        length += len(parts[-1])
    return b"".join(parts)


def write_refusal(refusal: Refusal, headers: Sequence[Header] = ()) -> tuple[int, bytes, Sequence[Header]]:
    """A refusal's HTTP status, envelope and further headers."""
    if refusal.retry_after_s is not None:
        headers = [*headers, (b"retry-after", b"%d" % refusal.retry_after_s)]
    return CODES[refusal.code].http_status, encode_refusal(refusal), headers


async def send_answer(
    send: Send, status: int, body: bytes, request_id: str, extra: Sequence[Header] = ()
) -> None:
    """Send an envelope with the request's id."""
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _read_headers(scope: Scope, proxies: TrustedProxies) -> tuple[str | None, str]:
    content_type = None
    forwarded = []
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"x-forwarded-for":
            forwarded.append(value.decode("latin-1"))
    client = scope.get("client")
    return content_type, proxies.find(client[0] if client else "", forwarded)
