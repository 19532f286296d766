"""One operation as an endpoint: body in, envelope out. The hot path of the whole service.

Rules: a request is answered with an envelope whatever happens; a fault is logged with the request's id and
tells the caller nothing but the code. No request of a known merchant is refused by settings that were only
kept: they are read again first; a submission that the book finds stale starts over with the fresh ones.

Most requests need no task of their own: they are judged where they arrive, and answered where their batch's
outcome comes in. Whatever has to ask the database first takes its time in a task.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send

from merchant_wallet.api.gate import Caller, Gate, refuse_callback, require_app_key, unknown_app_key
from merchant_wallet.api.operation import Operation, Terms
from merchant_wallet.api.refused_requests.buffer import Notebook
from merchant_wallet.api.scheduler import Pace
from merchant_wallet.api.wire import (
    MAX_BODY_BYTES,
    Fields,
    encode_refusal,
    encode_success,
    parse_body,
    present_texts,
)
from merchant_wallet.base.codes import (
    APP_KEY_UNKNOWN,
    BODY_MALFORMED,
    CODES,
    INTERNAL_FAULT,
    METHOD_NOT_ALLOWED,
    SUCCESS,
    UNAVAILABLE,
    Refusal,
    Refused,
)
from merchant_wallet.base.signing import sign_response
from merchant_wallet.base.source_addresses import Network, find_source
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.book.writer import CommandFailed, Unavailable, Writer
from merchant_wallet.merchants.directory import Directory, DirectoryAway
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.observability.counters import Tally
from merchant_wallet.observability.logs import AccessLog, RequestIds

log = structlog.get_logger("endpoint")

Header = tuple[bytes, bytes]
Reply = Callable[[int, bytes, str, Sequence[Header]], None]
"""Takes HTTP status, body, request id and further headers; is called once for each request."""

MAX_TRIES: Final = 5
BODY_TIMEOUT_S: Final = 10
TOO_LATE: Final = Refusal(BODY_MALFORMED, f"the body did not arrive within {BODY_TIMEOUT_S} s")
FAULT: Final = Refusal(INTERNAL_FAULT, "a fault on our side; ask again with the same mcOrderId")
BUSY: Final = Refusal(
    UNAVAILABLE, "not available right now; ask again with the same mcOrderId", retry_after_s=1
)
ONLY_POST: Final = Refusal(METHOD_NOT_ALLOWED, "operations are called with POST")
POST_ALONE: Final[Sequence[Header]] = ((b"allow", b"POST"),)


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
        notebook: Notebook | None = None,
    ) -> None:
        self.gate = gate
        self.directory = directory
        self.writer = writer
        self.terms = terms
        self.access_log = access_log
        self.trusted_proxies = trusted_proxies
        self.notebook = notebook
        self.request_ids = RequestIds()
        self.counter = Counter()
        self.tally = Tally()
        self.pace = Pace()

    async def take_address_index(self, merchant_id: int) -> int:
        """The next address index of a merchant."""
        return await self.directory.take_address_index(merchant_id)

    async def ask(self, merchant: Merchant, command: Command) -> Outcome:
        """Have a follow-up command carried out."""
        return await self.writer.submit(merchant.merchant_id, Submission(command))


class Call:
    """One request on its way through an endpoint; `began_s` is on the monotonic clock."""

    __slots__ = ("app_key", "began_s", "body", "content_type", "counted", "reply", "request_id", "source")

    def __init__(
        self, content_type: str | None, body: bytes, source: str, request_id: str, reply: Reply
    ) -> None:
        self.content_type = content_type
        self.body = body
        self.source = source
        self.request_id = request_id
        self.reply = reply
        self.began_s = time.monotonic()
        self.app_key = ""
        self.counted = False


class Endpoint:
    """What answers the requests of one operation."""

    def __init__(self, operation: Operation, joints: Joints) -> None:
        self._operation = operation
        self._joints = joints
        self.only_reads = operation.only_reads
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, method: str, call: Call) -> None:
        """Answer a request, sooner or later, through its `reply`."""
        counter = self._joints.counter
        counter.under_way += 1
        if method != "POST":
            self._refuse(call, ONLY_POST, POST_ALONE)
        elif counter.draining:
            self._refuse(call, BUSY)
        else:
            try:
                self._begin(call)
            except Exception as error:
                self._fail(call, error)

    def give_up(self, call: Call, refusal: Refusal) -> None:
        """Answer a request that never arrived whole."""
        self._joints.counter.under_way += 1
        self._refuse(call, refusal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As `take`, for a server that speaks ASGI."""
        content_type, source = _read_headers(scope, self._joints.trusted_proxies)
        answered: asyncio.Future[tuple[int, bytes, str, Sequence[Header]]]
        answered = asyncio.get_running_loop().create_future()

        def reply(*answer: Any) -> None:
            if not answered.done():
                answered.set_result(answer)

        call = Call(content_type, b"", source, self._joints.request_ids.next(), reply)
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                call.body = await read_body(receive)
        except TimeoutError:
            self.give_up(call, TOO_LATE)
        else:
            self.take(scope["method"], call)
        await send_answer(send, *await answered)

    def _begin(self, call: Call) -> None:
        """Judge a request and hand it to the book. Raises Refused, Unavailable."""
        fields = parse_body(call.content_type, call.body)
        call.app_key = require_app_key(fields)
        refuse_callback(fields)
        merchant = self._joints.directory.kept(call.app_key)
        if merchant is None:
            self._take_time(call, self._introduce(call, fields))
            return
        try:
            caller, command = self._judge(call, merchant, fields)
        except Refused as refused:
            # Any check may depend on a setting, and an older setting may refuse before a newer one would.
            self._take_time(call, self._reconsider(call, merchant, fields, refused))
            return
        if self._operation.follow is not None:
            self._take_time(call, self._carry_out(call, merchant, fields))
            return
        waiting = self._submit(caller, command, call.request_id)
        pace = self._joints.pace
        waiting.add_done_callback(partial(pace.put, self.only_reads, self._finish, call, fields, caller))

    def _judge(self, call: Call, merchant: Merchant, fields: Fields) -> tuple[Caller, Command]:
        """See that a request may be carried out. Raises Refused."""
        operation, gate = self._operation, self._joints.gate
        caller = gate.authenticate(merchant, operation.path, fields, call.source)
        if not call.counted:
            gate.count(merchant)
            call.counted = True
        gate.admit(merchant, operation)
        return caller, operation.prepare(merchant, fields, self._joints.terms)

    def _submit(self, caller: Caller, command: Command, request_id: str) -> asyncio.Future[Outcome]:
        merchant = caller.merchant
        submission = Submission(command, caller.nonce, merchant.settings_version, request_id)
        return self._joints.writer.submit(merchant.merchant_id, submission)

    def _finish(self, call: Call, fields: Fields, caller: Caller, waiting: asyncio.Future[Outcome]) -> None:
        """Answer with the outcome that the book gave."""
        try:
            outcome = waiting.result()
            stale = type(outcome) is Stale
            body = b"" if stale else self._answer(caller, outcome)
        except Exception as error:
            self._fail(call, error)
            return
        if stale:
            self._take_time(call, self._introduce(call, fields))
        else:
            self._succeed(call, body)

    def _take_time(self, call: Call, work: Coroutine[Any, Any, bytes]) -> None:
        task = asyncio.get_running_loop().create_task(self._work(call, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, call: Call, work: Coroutine[Any, Any, bytes]) -> None:
        try:
            answer = await work
        except Exception as error:
            self._fail(call, error)
        else:
            self._succeed(call, answer)

    async def _introduce(self, call: Call, fields: Fields) -> bytes:
        """As `_carry_out`, for a merchant whose settings are not kept or no longer hold."""
        self._joints.gate.require_own_mode(call.app_key)
        return await self._carry_out(call, await self._joints.directory.load(call.app_key), fields)

    async def _reconsider(self, call: Call, merchant: Merchant, fields: Fields, refused: Refused) -> bytes:
        """As `_carry_out`, for a request that the kept settings refuse."""
        fresh = await self._joints.directory.refresh(merchant)
        if fresh is merchant:
            raise refused
        return await self._carry_out(call, fresh, fields)

    async def _carry_out(self, call: Call, merchant: Merchant | None, fields: Fields) -> bytes:
        """Judge, submit and answer. Raises Refused, Unavailable, CommandFailed, DirectoryAway."""
        directory = self._joints.directory
        for _ in range(MAX_TRIES):
            if merchant is None:
                raise Refused(unknown_app_key())
            try:
                caller, command = self._judge(call, merchant, fields)
            except Refused:
                fresh = await directory.refresh(merchant)
                if fresh is merchant:
                    raise
                merchant = fresh
                continue
            outcome = await self._submit(caller, command, call.request_id)
            if self._operation.follow is not None:
                outcome = await self._operation.follow(merchant, command, outcome, self._joints)
            if not isinstance(outcome, Stale):
                return self._answer(caller, outcome)
            merchant = await directory.load(call.app_key)
        raise Unavailable("the merchant's settings keep changing")

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

    def _fail(self, call: Call, error: Exception) -> None:
        """Answer a request that `error` ended."""
        if isinstance(error, Refused):
            refusal = self._joints.gate.note(error.refusal, call.source)
            notebook = self._joints.notebook
            if notebook is not None and call.app_key and error.refusal.code != APP_KEY_UNKNOWN:
                notebook.note(self._operation.path, refusal, call)
        elif isinstance(error, Unavailable | DirectoryAway):
            log.warning("not available", request_id=call.request_id, reason=str(error))
            refusal = BUSY
        else:
            if not isinstance(error, CommandFailed):
                log.error(
                    "request failed",
                    request_id=call.request_id,
                    path=self._operation.path,
                    exc_info=error,
                )
            refusal = FAULT
        self._refuse(call, refusal)

    def _succeed(self, call: Call, body: bytes) -> None:
        self._close(call, SUCCESS, 200, body, ())

    def _refuse(self, call: Call, refusal: Refusal, headers: Sequence[Header] = ()) -> None:
        self._close(call, refusal.code, *write_refusal(refusal, headers))

    def _close(self, call: Call, code: int, status: int, body: bytes, headers: Sequence[Header]) -> None:
        joints = self._joints
        try:
            call.reply(status, body, call.request_id, headers)
        finally:
            joints.counter.end()
            path, took_s = self._operation.path, time.monotonic() - call.began_s
            joints.tally.count(path, code, took_s)
            joints.access_log.write(call.request_id, path, code, call.app_key, call.source, took_s)


async def read_body(receive: Receive) -> bytes:
    """The request's body, read no further than the largest one allowed and a byte more."""
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
    """Send an envelope; every answer bears the request's id."""
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
        *extra,
    ]
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
