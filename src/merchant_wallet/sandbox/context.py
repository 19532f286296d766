"""What the control actions use, and one call of a merchant's test.

Rules:
- Money moves by commands to the book alone. The audit log has an entry before, with what is asked, and one
  after. Everything else is recorded in the transaction of the change.
- The actor is `sandbox:` and the appKey. Of what a person plays on a page, the audit log names the person.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.audit.book_commands import Act, ask_book
from merchant_wallet.audit.cell_changes import Told, change_cell
from merchant_wallet.audit.records import Author, Facts
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.base.fair_places import SERVICE
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.outcomes import Outcome
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
    player: Author | None = None

    @property
    def merchant_id(self) -> int:
        """The merchant's id."""
        return self.merchant.merchant_id

    @property
    def actor(self) -> str:
        """Who does it, for the journal, and for the audit log if no person plays."""
        return f"sandbox:{self.merchant.app_key}"

    @property
    def author(self) -> Author:
        """The author of a change, now: the person who plays, or else the merchant."""
        if self.player is not None:
            return self.player.later()
        return Author(self.actor, SOURCE, self.context.clock(), clock=self.context.clock)

    async def ask(self, command: Command) -> Outcome:
        """Send a command to the merchant's book. Raises Refused."""
        outcome = await self._submit(self.merchant_id, command)
        if isinstance(outcome, Refusal):
            raise Refused(outcome)
        return outcome

    async def change_book(self, command: Command, action: str, subject: str) -> Outcome:
        """As `ask`, for a command that changes something: with its entries in the audit log."""
        act = Act(action, subject)
        return await ask_book(self.author, self.home, self._submit, self.merchant_id, command, act)

    def change_cell(self, action: str, subject: str) -> AbstractAsyncContextManager[Told]:
        """A transaction that changes the merchant's cell, with its entries in the audit log."""
        return change_cell(self.author, self.home, self.cell, action, subject, self.merchant_id)

    async def record(self, action: str, subject: str, *, after: Facts | None = None) -> None:
        """Append an entry to the audit log, last in the transaction of the change."""
        await self.author.record(self.home, action, subject, self.merchant_id, after=after)

    async def _submit(self, merchant_id: int, command: Command) -> Outcome:
        return await self.context.books.submit(merchant_id, Submission(command))


@asynccontextmanager
async def open_call(
    context: SandboxContext, merchant: Merchant, player: Author | None = None
) -> AsyncIterator[Call]:
    """The connections of one action, which is counted. Raises Refused, Unavailable."""
    try:
        async with context.connections.take() as home, context.cells.open(home, SERVICE) as cells:
            await store.count_action(home, merchant.merchant_id, context.clock())
            yield Call(context, merchant, home, await cells.of(merchant.merchant_id), player)
    except Away as away:
        raise Unavailable(str(away)) from away
