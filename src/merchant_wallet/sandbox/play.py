"""Operations in the sandbox: the usual endpoint, unless a request contains a test value.

Rules:
- A request without a test value goes to the endpoint that a live service has. A few searches of its bytes
  tell.
- A test value acts after the gate and the checks of the operation's fields. A refusal uses the nonce, like
  any refusal by the book. What is carried out is carried out by the book.
- Special recipients change the order's command before the book sees it: it waits for approval, or its
  deadline is near.
- What an answer waits for is bounded, and ends when the process stops.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from merchant_wallet.api.connection import Connection
from merchant_wallet.api.dependencies import Dependencies, Header, OperationRequest
from merchant_wallet.api.endpoint import BUSY, FAULT, Endpoint
from merchant_wallet.api.gate import Caller, refuse_callback, require_app_key
from merchant_wallet.api.operation import FollowUpDependencies, Operation, OperationContext
from merchant_wallet.api.operations.withdrawals import CREATE
from merchant_wallet.api.wire import Fields, parse_body
from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.codes import (
    CODES,
    INTERNAL_FAULT,
    SIGNATURE_MISMATCH,
    TIMESTAMP_OUT_OF_TOLERANCE,
    TOO_MANY_REQUESTS,
    UNAVAILABLE,
    Refusal,
    Refused,
)
from merchant_wallet.book.commands import Cancel, Command, CreateWithdrawal, ReadBalances
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.chains.sandbox.recipients import CANCELLED, EXPIRED, WAITING
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.context import SandboxContext
from merchant_wallet.sandbox.test_values import AnswerPlay, Plan, find_plan
from merchant_wallet.web.connections import Away

EXPIRES_MS: Final = 1_000
CANCELLED_BY: Final = "sandbox:recipient"
MAX_SLOW: Final = 200
"""Answers of this process that wait at the same time. Further ones do not wait."""
LOOK_S: Final = 0.1


class Dropped(Exception):
    """The connection ends without an answer."""


class SandboxEndpoint(Endpoint):
    """The endpoint of one operation in the sandbox."""

    def __init__(self, operation: Operation, dependencies: Dependencies, context: SandboxContext) -> None:
        super().__init__(_with_recipients(operation), dependencies)
        self._plain = Endpoint(operation, dependencies)
        self._has_hint = _has_hint_of_payout if operation is CREATE else _has_hint
        self._context = context
        self._slow_count = 0

    def _begin(self, request: OperationRequest) -> None:
        if not self._has_hint(request.body):
            self._plain._begin(request)
            return
        fields = parse_body(request.content_type, request.body)
        if self._find_plan(fields) is None:
            # A nonce or a signature may have these bytes, too.
            super()._begin(request)
            return
        request.app_key = require_app_key(fields)
        refuse_callback(fields)
        self._start_task(request, self._load_and_execute(request, fields))

    def _find_plan(self, fields: Fields) -> Plan | None:
        return find_plan(
            self._operation.name, {name: text for name, text in fields.items() if isinstance(text, str)}
        )

    async def _execute(self, request: OperationRequest, merchant: Merchant | None, fields: Fields) -> bytes:
        plan = self._find_plan(fields)
        caller = None if plan is None or merchant is None else self._try_check(request, merchant, fields)
        if plan is None or caller is None or not await self._is_due(plan, caller.merchant):
            return await super()._execute(request, merchant, fields)
        if plan.play is AnswerPlay.CUT:
            raise Dropped
        if plan.play is AnswerPlay.REFUSED:
            await self._use_nonce(caller, request)
            raise Refused(make_refusal(plan, self._context.clock()))
        answer = await super()._execute(request, merchant, fields)
        if plan.play is AnswerPlay.LOST:
            raise Dropped
        await self._rest(plan.seconds)
        return answer

    def _try_check(self, request: OperationRequest, merchant: Merchant, fields: Fields) -> Caller | None:
        """The caller of a request that would be submitted. None if it is refused before that."""
        try:
            return self._check(request, merchant, fields)[0]
        except Refused:
            return None

    async def _is_due(self, plan: Plan, merchant: Merchant) -> bool:
        """Whether a plan acts now. One that acts some times is counted. Raises Unavailable."""
        if not plan.times:
            return True
        try:
            async with self._context.connections.take() as home:
                now_ms = self._context.clock()
                return await store.count_use(home, merchant.merchant_id, plan.name, now_ms) <= plan.times
        except Away as away:
            raise Unavailable(str(away)) from away

    async def _use_nonce(self, caller: Caller, request: OperationRequest) -> None:
        """Claim the nonce, as a command that the book refuses does. Raises Refused if it was used before."""
        outcome = await self._submit(caller, ReadBalances(), request)
        if isinstance(outcome, Refusal):
            raise Refused(outcome)

    async def _rest(self, seconds: int) -> None:
        if self._slow_count >= MAX_SLOW:
            return
        self._slow_count += 1
        try:
            for _ in range(round(seconds / LOOK_S)):
                if self._context.is_ending():
                    return
                await asyncio.sleep(LOOK_S)
        finally:
            self._slow_count -= 1

    def _fail(self, request: OperationRequest, error: Exception) -> None:
        if not isinstance(error, Dropped):
            super()._fail(request, error)
            return
        request.reply = _make_drop(request.reply)
        self._refuse(request, BUSY)


def _has_hint(body: bytes) -> bool:
    """Whether a body may have a test value. Most others have none of these bytes.

    Written out, because every request in a sandbox comes here.
    """
    return b"sbx" in body or b"9004" in body or b"9005" in body


def _has_hint_of_payout(body: bytes) -> bool:
    """As `_has_hint`, for the operation that has special recipients."""
    return _has_hint(body) or b"57a7" in body or b"57A7" in body or b"T9yD14Nj9j7xAB4dbGeiX9h8uz" in body


def _make_drop(reply: Callable[..., None]) -> Callable[..., None]:
    """A reply that closes the connection instead."""
    connection = getattr(reply, "__self__", None)

    def drop(status: int, body: bytes, request_id: str, headers: list[Header]) -> None:
        if isinstance(connection, Connection):
            connection.evict()
        else:
            # uvicorn closes a connection whose answer is shorter than announced.
            reply(200, b"", request_id, ((b"content-length", b"1"),))

    return drop


def make_refusal(plan: Plan, now_ms: int) -> Refusal:
    """The refusal that a test value asks for. `msg` names it, `data` and `Retry-After` are as ever."""
    code = plan.code
    if code == INTERNAL_FAULT:
        return FAULT
    if code == UNAVAILABLE:
        return BUSY
    payload: dict[str, Any] | None = None
    if code == TIMESTAMP_OUT_OF_TOLERANCE:
        payload = {"serverTime": now_ms, "skewMs": -600_000}
    elif code == SIGNATURE_MISMATCH:
        payload = {"stringToSign": "a test value: nothing was compared"}
    retry_after_s = 1 if code == TOO_MANY_REQUESTS else None
    return Refusal(code, f"{CODES[code].meaning} (a test value)", payload, retry_after_s)


def _with_recipients(operation: Operation) -> Operation:
    """`createMerchantWithdrawOrder` with the special recipients; any other operation as it is."""
    if operation is not CREATE:
        return operation

    def prepare(merchant: Merchant, fields: Fields, context: OperationContext) -> Command:
        command = operation.prepare(merchant, fields, context)
        assert isinstance(command, CreateWithdrawal), "it creates withdrawals"
        return _rewrite(command)

    return operation._replace(prepare=prepare, follow_up=_cancel_if_asked)


def _rewrite(command: CreateWithdrawal) -> CreateWithdrawal:
    recipient = parse_address(command.chain, command.address)
    if recipient in (WAITING, CANCELLED):
        return msgspec.structs.replace(command, approval_limit_units=0)
    if recipient == EXPIRED:
        return msgspec.structs.replace(command, approval_limit_units=0, deadline_after_ms=EXPIRES_MS)
    return command


async def _cancel_if_asked(
    merchant: Merchant, command: Command, outcome: Outcome, dependencies: FollowUpDependencies
) -> Outcome:
    """Cancel an order to the recipient for that, at once. The answer is that of the creation."""
    if isinstance(outcome, Withdrawal) and parse_address(outcome.chain, outcome.address) == CANCELLED:
        await dependencies.ask(merchant, Cancel(outcome.order_id, CANCELLED_BY))
    return outcome
