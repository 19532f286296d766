"""The operations `POST /sandbox/<action>`, with which a merchant's tests move money, orders and deposits.

Rules:
- They are signed, checked, counted and answered as operations are. The nonce is claimed in the book first.
- The signed path is `/sandbox/<action>`.
- A live service has no such path, so it answers 404.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from merchant_wallet.api.dependencies import Dependencies, OperationRequest
from merchant_wallet.api.endpoint import Endpoint
from merchant_wallet.api.gate import Caller
from merchant_wallet.api.operation import FollowUpDependencies, Operation, OperationContext
from merchant_wallet.api.wire import DataItem, Fields
from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.commands import Command, ReadBalances
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.sandbox.context import Call, SandboxContext, open_call

Act = Callable[[Call, Any], Awaitable[list[DataItem]]]


class Action(NamedTuple):
    """One action: `read` checks the fields and is pure, `act` does it. `summary` is for the documents."""

    name: str
    read: Callable[[Fields, OperationContext], Any]
    act: Act
    fields: tuple[tuple[str, str], ...]
    summary: str


class Asked(Command, frozen=True):
    """What was read from the fields of a request. The book never sees it."""

    values: Any


class Done(msgspec.Struct, frozen=True):
    """The fields of an answer."""

    items: list[DataItem]


class ControlEndpoint(Endpoint):
    """The endpoint of one action."""

    def __init__(self, action: Action, dependencies: Dependencies, context: SandboxContext) -> None:
        super().__init__(_make_operation(action, context), dependencies)
        self._path = f"/sandbox/{action.name}"

    def _submit(self, caller: Caller, command: Command, request: OperationRequest) -> asyncio.Future[Outcome]:
        # A command that only reads claims the nonce. What the action does comes after it.
        return super()._submit(caller, ReadBalances(), request)


def _make_operation(action: Action, context: SandboxContext) -> Operation:
    """The action as an operation. Its outcome is `Done`, which no book answers."""

    def prepare(merchant: Merchant, fields: Fields, operations: OperationContext) -> Asked:
        return Asked(action.read(fields, operations))

    async def act(
        merchant: Merchant, command: Command, outcome: Outcome, dependencies: FollowUpDependencies
    ) -> Any:
        if isinstance(outcome, Refusal | Stale):
            return outcome
        assert isinstance(command, Asked), "prepare makes nothing else"
        async with open_call(context, merchant) as call:
            return Done(await action.act(call, command.values))

    def answer(merchant: Merchant, done: Done, operations: OperationContext) -> list[DataItem]:
        return done.items

    return Operation(action.name, prepare, answer, follow_up=act)


def build_control_endpoints(
    actions: tuple[Action, ...], dependencies: Dependencies, context: SandboxContext
) -> dict[str, Endpoint]:
    """The actions by their paths."""
    return {f"/sandbox/{action.name}": ControlEndpoint(action, dependencies, context) for action in actions}
