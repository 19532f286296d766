"""What the control actions use, and one call of a merchant's test.

Rules:
- Money moves by commands to the book alone. The audit log has an entry before, with what is asked, and one
  after. Everything else is recorded in the transaction of the change.
- The actor is `sandbox:` and the appKey.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.audit import records
from merchant_wallet.audit.cell_changes import Told, change_cell
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.outcomes import Outcome, read_audited_fields
from merchant_wallet.book.submissions import Books
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.store import Connection
from merchant_wallet.web.cells import CellPools
from merchant_wallet.web.connections import Away, Connections

SOURCE: Final = "sandbox"


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """What the actions use. `confirm_ms`: after this time a deposit is final."""

    connections: Connections
    cells: CellPools
    books: Books
    operations: OperationContext
    clock: Callable[[], int]
    is_ending: Callable[[], bool]
    confirm_ms: int


@dataclass(frozen=True, slots=True)
class Call:
    """One action of a merchant, with a connection to home and one to the merchant's cell."""

    context: SandboxContext
    merchant: Merchant
    home: Connection
    cell: Connection

    @property
    def merchant_id(self) -> int:
        """The merchant's id."""
        return self.merchant.merchant_id

    @property
    def actor(self) -> str:
        """Who does it, for the audit log and the journal."""
        return f"sandbox:{self.merchant.app_key}"

    async def ask(self, command: Command) -> Outcome:
        """Send a command to the merchant's book. Raises Refused."""
        outcome = await self.context.books.submit(self.merchant_id, Submission(command))
        if isinstance(outcome, Refusal):
            raise Refused(outcome)
        return outcome

    async def change_book(self, command: Command, action: str, subject: str) -> Outcome:
        """As `ask`, for a command that changes something: with its entries in the audit log."""
        await self.record(f"{action}.asked", subject, after=msgspec.to_builtins(command))
        try:
            outcome = await self.ask(command)
        except Refused as refused:
            told = {"refused": refused.refusal.code, "reason": refused.refusal.msg}
            await self.record(f"{action}.refused", subject, after=told)
            raise
        await self.record(action, subject, after={"done": True, **read_audited_fields(outcome)})
        return outcome

    @asynccontextmanager
    async def change_cell(self, action: str, subject: str) -> AsyncIterator[Told]:
        """A transaction that changes the merchant's cell, with its entries in the audit log."""

        async def record(name: str, before: records.Facts | None, after: records.Facts | None) -> None:
            await self.record(name, subject, after=after)

        async with change_cell(self.home, self.cell, action, record) as told:
            yield told

    async def record(self, action: str, subject: str, *, after: records.Facts | None = None) -> None:
        """Append an entry to the audit log, last in the transaction of the change."""
        await records.append(
            self.home,
            actor=self.actor,
            action=action,
            subject=subject,
            merchant_id=self.merchant_id,
            after=after,
            source=SOURCE,
            at_ms=self.context.clock(),
        )


@asynccontextmanager
async def open_call(context: SandboxContext, merchant: Merchant) -> AsyncIterator[Call]:
    """The connections of one action, which is counted. Raises Refused, Unavailable."""
    try:
        async with context.connections.take() as home, context.cells.open(home) as cells:
            await store.count_action(home, merchant.merchant_id, context.clock())
            yield Call(context, merchant, home, await cells.of(merchant.merchant_id))
    except Away as away:
        raise Unavailable(str(away)) from away
