"""What people play on a page of the console: the control actions, and an order to freeze.

Rules: a page does what the merchant's own test would do by signed requests. The audit log names the person.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.api.operations.withdrawals import CREATE
from merchant_wallet.api.wire import Fields
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.book.commands import CreateWithdrawal
from merchant_wallet.chains.sandbox.recipients import SETTLED
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.actions.deposits import CONFIRM, DEPOSIT, REORGANISE, require_chain
from merchant_wallet.sandbox.actions.funds import FUND
from merchant_wallet.sandbox.actions.orders import ADVANCE, create_frozen
from merchant_wallet.sandbox.actions.screening import RELEASE
from merchant_wallet.sandbox.context import Call, SandboxContext, open_call
from merchant_wallet.sandbox.control import Action
from merchant_wallet.web import plays
from merchant_wallet.web.plays import WaitingDeposit

PLAYS: Final[Mapping[str, tuple[Action, Fields]]] = {
    plays.HELD_DEPOSIT: (DEPOSIT, {"screening": "hold"}),
    plays.RELEASE: (RELEASE, {}),
    plays.WAITING_DEPOSIT: (DEPOSIT, {"finality": "manual"}),
    plays.REORGANISE: (REORGANISE, {}),
    plays.CONFIRM: (CONFIRM, {}),
    plays.RESUME: (ADVANCE, {"txnStatus": "2"}),
}
"""The action of each name, and the fields that the name stands for."""


class SandboxPlays:
    """See `web.plays.Plays`."""

    def __init__(self, context: SandboxContext) -> None:
        self._context = context

    async def play(self, merchant: Merchant, name: str, fields: Mapping[str, str], author: Author) -> None:
        """Play it. Raises Refused, Unavailable."""
        async with open_call(self._context, merchant, author) as call:
            if name == plays.FROZEN_ORDER:
                await _create_frozen_order(call, dict(fields))
            else:
                action, own = PLAYS[name]
                await _act(call, action, {**fields, **own})

    async def list_waiting(self, home: AsyncConnection, merchant_id: int) -> list[WaitingDeposit]:
        """The merchant's deposits that wait until somebody confirms them, oldest first."""
        rows = await store.run(home, "list_waiting", merchant_id=merchant_id)
        return [WaitingDeposit(*row) for row in rows]


async def _act(call: Call, action: Action, fields: Fields) -> None:
    await action.act(call, action.read(fields, call.context.operations))


async def _create_frozen_order(call: Call, fields: Fields) -> None:
    """Create a frozen order with money from the tap. It is paid once somebody resumes it, on any page."""
    chain = require_chain(fields, call.context.operations)
    name = f"page-{secrets.token_hex(6)}"
    named: Fields = {**fields, "currency": USDT, "mcOrderId": name}
    # What the order refuses needs no money.
    order: Fields = {**named, "address": format_address(chain, SETTLED)}
    command = CREATE.prepare(call.merchant, order, call.context.operations)
    await _act(call, FUND, named)
    assert isinstance(command, CreateWithdrawal)
    await create_frozen(call, command)
